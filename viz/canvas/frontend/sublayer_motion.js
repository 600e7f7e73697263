// What the moving picture shows of each part of a network: the input, attention, a feed-forward network, the output.

const LINE = 13; // least height of a token's line

class SublayerMotion extends KeysMotion {
  /** The residual stream as it comes into a sublayer; at its beginning it arrives from where the last sublayer left it. */
  stream(slot) {
    const { group: { into, stages }, network: { header: { texts } } } = this;
    if (!into) return null;
    const begins = this.at === stages[0] && this.t < 0.4;
    const from = begins && this.blobs[into] ? this.place(into, this.slot("out", 2, 3)) : null;
    return this.shape(into, /^\d+$/.test(into) ? Number(into) : stages[0], slot, from, from ? during(this.t, 0, 0.4) : 1, texts.stream);
  }

  /** Where the vectors of a sublayer stand that come in, and those that go out, from the top. */
  get sides() {
    const pre = this.group.stages.length && this.nameOf(this.group.stages[0]) === "normed";
    return { pre, out: pre || !this.names.has("normed") ? 3 : 4 };
  }

  input() {
    const { group, network: { colours, header: { titles, texts } } } = this;
    const left = this.slot("in", 0, 1);
    const { row } = this.header.rows[group.stack];
    const most = Math.max(1, Math.floor((left.height - LABEL) / LINE)); // below each other, then comes another column
    const line = Math.min(22, (left.height - LABEL) / Math.min(most, group.tokens.length));
    const wide = left.width / Math.ceil(group.tokens.length / most);
    const ids = this.come("ids");
    this.words(titles.tokens, left.x, left.y + 6);
    let own = null;
    group.tokens.forEach((text, i) => {
      const [x, y] = [left.x + Math.floor(i / most) * wide, left.y + LABEL + ((i % most) + 0.5) * line];
      const mine = group.first + i === row;
      const box = { x, y: y - line / 2, width: wide, height: line };
      if (mine) own = { ...box, width: 40, height: 11, y: y - 5 };
      this.words(text, x, y, { colour: mine ? colours.accent : colours.text, weight: mine ? 650 : 400, size: SIZES.text, width: wide * 0.65 });
      if (ids !== null && group.ids.length && during(ids, i / group.tokens.length / 2, 1) > 0) {
        this.words(String(group.ids[i]), x + wide * 0.95, y, { align: "right", width: wide * 0.28 });
      }
      this.shapes.push({ ...box, token: group.first + i, stage: this.names.get("tokens"), label: text });
    });
    const { x, y, width, height } = this.middle;
    const half = (index) => ({ x, y: y + (index * height) / 2, width, height: height / 2 - EDGE });
    const features = this.vector("features", half(0), own);
    const embedded = this.vector("embedding", half(0), own) ?? features;
    const scaled = this.vector("scaled", half(1), embedded) ?? embedded;
    const t = this.come("positioned");
    const name = `${this.names.get("positioned")}+`;
    if (t !== null && this.blobs[name]) {
      const slot = this.slot("out", 0, 2);
      const outside = { ...this.place(name, slot), x: this.width };
      const added = this.shape(name, this.names.get("positioned"), slot, outside, during(t, 0, 0.5), texts.positions);
      this.sum("positioned", this.slot("out", 1, 2), scaled, added, t);
    } else this.vector("positioned", this.slot("out", 1, 2), scaled);
  }

  /** Two vectors meet and become their sum: in the second half of the stage. */
  sum(name, slot, one, other, t) {
    const stage = this.names.get(name);
    if (t === null || !this.blobs[stage]) return this.vector(name, slot, other);
    const to = this.place(String(stage), slot);
    for (const part of [one, other].filter(Boolean)) {
      if (t >= 0.7) break;
      const { x, y, width, height } = midway(part, to, during(t, 0.2, 0.7));
      this.pen.globalAlpha = 0.6;
      this.pen.drawImage(this.image(part.name), x, y, width, height);
      this.pen.globalAlpha = 1;
    }
    const [title, wide] = [this.network.header.titles[name], this.width >= WIDE];
    if (wide) this.words("+", to.x - 9, to.y + to.height / 2, { colour: this.network.colours.accent, size: SIZES.title, weight: 650, align: "center" });
    return this.shape(String(stage), stage, slot, null, during(t, 0.55, 1), wide ? title : `+ ${title}`); // no room beside it
  }

  attention() {
    const { pre, out } = this.sides;
    const latent = this.names.has("latents") ? 1 : 0;
    const count = (pre ? 3 : 2) + latent;
    const before = this.stream(this.slot("in", count - 1, count));
    const normed = pre ? this.vector("normed", this.slot("in", 1 + latent, count), before) : null;
    const query = this.vector("queries", this.slot("in", 0, count), normed ?? before);
    const kept = latent ? this.vector("latents", this.slot("in", 1, count), normed ?? before) : null;
    this.rows(query, kept ?? normed ?? before);
    const heads = this.together(this.slot("out", 0, out));
    const output = this.vector("output", this.slot("out", 1, out), heads, this.come("output") === null ? null : during(this.come("output"), 0.5, 1));
    this.goesOn(before, output, out, 2);
  }

  /** The sum with the residual stream, and the normalization after it. */
  goesOn(before, output, out, index) {
    if (!this.names.has("residual")) return;
    const sum = this.sum("residual", this.slot("out", index, out), before, output, this.come("residual"));
    if (!this.sides.pre) this.vector("normed", this.slot("out", index + 1, out), sum);
    if (this.width < WIDE || !before) return;
    const [low, slot] = [this.height - EDGE, this.slot("out", index, out)];
    const [x, to] = [before.x + before.width / 2, slot.x - EDGE * 1.5];
    const level = slot.y + LABEL + 6;
    this.arrow([x, before.y + before.height + 3], [x, low], [to - 6, low], [to - 6, level], [to + 4, level]);
  }

  feed_forward() {
    const { pre } = this.sides;
    const before = this.stream(this.slot("in", pre ? 1 : 0, pre ? 2 : 1));
    const normed = pre ? this.vector("normed", this.slot("in", 0, 2), before) : null;
    const hidden = this.vector("hidden", this.middle, normed ?? before);
    const out = pre ? 2 : 3;
    this.goesOn(before, this.vector("contracted", this.slot("out", 0, out), hidden), out, 1);
  }

  output() {
    const before = this.stream(this.slot("in", this.names.has("final") ? 1 : 0, this.names.has("final") ? 2 : 1));
    const final = this.vector("final", this.slot("in", 0, 2), before) ?? before;
    const [logits, shares] = ["logits", "probabilities"].map((name) => [this.come(name), this.names.get(name)]);
    if (logits[0] === null || !this.blobs[logits[1]]) return;
    const { colours, header: { titles } } = this.network;
    const { x, y, width, height } = this.middle;
    const { candidates } = this.header;
    const high = Math.min((height - LABEL) / candidates.length, 30);
    const [t, stage] = shares[0] === null ? logits : shares;
    const { array } = this.blobs[stage];
    const least = stage === shares[1] ? 0 : this.once("least", () => Math.min(0, ...array));
    const most = stage === shares[1] ? 1 : this.once("most", () => Math.max(...array));
    const chosen = this.come("chosen");
    const title = titles[this.nameOf(stage)];
    this.words(title, x, y + 6, { width });
    candidates.forEach((text, i) => {
      const [top, strong] = [y + LABEL + i * high, chosen !== null && i === this.header.taken];
      this.words(text, x, top + high / 2, { colour: strong ? colours.accent : colours.text, weight: strong ? 650 : 400, size: SIZES.text, width: width * 0.3 });
      this.pen.fillStyle = strong ? colours.accent : colours.second;
      this.pen.fillRect(x + width * 0.33, top + 5, Math.max(1, width * 0.48 * during(t) * ((array[i] - least) / (most - least || 1))), high - 10);
      this.words(stage === shares[1] ? significant(array[i]) : numberText(array[i], 2), x + width, top + high / 2, { align: "right", size: SIZES.text, colour: colours.text });
      this.answers({ x, y: top, width, height: high }, String(stage), stage, { title, row: i, rows: 1, columns: 1, label: text });
    });
    if (final && this.width >= WIDE) this.arrow([final.x + final.width + 4, final.y + final.height / 2], [x - 10, final.y + final.height / 2]);
    if (chosen !== null && this.header.taken >= 0) this.drawChosen(chosen, { x, y: y + LABEL + this.header.taken * high, width: width * 0.3, height: high });
  }

  drawChosen(t, from) {
    const slot = this.slot("out", 0, 1);
    const { x, y } = midway(from, { ...slot, y: slot.y + 30 }, during(t));
    const stage = this.names.get("chosen");
    this.words(this.network.header.titles.chosen, slot.x, slot.y + 6, { width: slot.width });
    this.words(this.header.candidates[this.header.taken], x, y + 12, { colour: this.network.colours.accent, size: 13 + 9 * during(t), weight: 650, width: slot.width });
    this.shapes.push({ ...slot, height: 50, stage, label: this.header.candidates[this.header.taken] });
  }
}
