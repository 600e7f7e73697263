// The keys that the query of the followed token meets: a line for each, with its vector, score, weight and value.

const LEAST_SHOWN = 0.01; // of a weight, in two decimals
const HEADED = ["keys", "scores", "weights", "values"];
const HEADING_LINE = 12;

class KeysMotion extends Motion {
  /** The columns of the keys: where their words, vectors, scores, weights and values stand, below headings of one line or two. */
  get columns() {
    const { x, y, width, height } = this.middle;
    const at = [0, 0.17, 0.37, 0.51, 0.79, 1].map((share) => x + share * width);
    const { keys, others } = this.group;
    const column = (i, inset = 6) => ({ x: at[i], width: at[i + 1] - at[i] - inset });
    const headings = HEADED.map((name, i) => this.lines(this.network.header.titles[name], column(i + 1).width));
    const top = y + LABEL + (Math.max(...headings.map((lines) => lines.length)) - 1) * HEADING_LINE;
    const high = Math.min((y + height - top - (others ? LABEL : 0)) / keys.length, 36);
    return { high, top, column, headings, size: Math.min(SIZES.text, high) };
  }

  /** Names a column; the last line of a heading is next to the column. */
  heading(name) {
    const { columns: { top, column, headings } } = this;
    const i = HEADED.indexOf(name);
    const { x, width } = column(i + 1);
    headings[i].forEach((line, at, lines) => this.words(line, x, top - 8 - (lines.length - 1 - at) * HEADING_LINE, { width }));
  }

  /** The keys that the query meets: a line for each, with its score, its weight and its value. */
  rows(query, own) {
    const { group, columns: { high, top, column, size }, network: { colours } } = this;
    const { keys } = group;
    const lines = keys.map((text, i) => ({ text, y: top + i * high, mine: i === group.own }));
    for (const { text, y, mine } of lines) {
      this.words(text, column(0).x, y + high / 2, { colour: mine ? colours.accent : colours.text, size, width: column(0).width });
    }
    for (const [name, i] of [["keys", 1], ["values", 4]]) {
      const t = this.come(name);
      if (t === null) continue;
      this.heading(name);
      lines.forEach((line, key) => this.strip(name, key, line, { ...column(i), y: line.y + 2, height: high - 4 }, own, t));
    }
    this.scores(lines, query);
    this.weights(lines);
    this.words(group.others, column(0).x, top + keys.length * high + 7, { width: this.middle.width });
  }

  /** The vector of one key: it comes from the stream of its own token. */
  strip(name, key, { text, y, mine }, box, own, t) {
    const stage = this.names.get(name);
    const blob = this.blobs[stage];
    if (!blob) return this.words(this.network.header.texts.absent, box.x, y + box.height / 2 + 2, { width: box.width });
    const columns = blob.shape[1];
    const now = midway(mine && own ? own : { ...box, x: box.x - 60 }, box, during(t, 0, 0.8));
    this.pen.globalAlpha = during(t);
    this.pen.drawImage(this.image(String(stage)), 0, key, columns, 1, now.x, now.y, now.width, now.height);
    this.pen.globalAlpha = 1;
    this.answers(now, String(stage), stage, { title: this.network.header.titles[name], row: key, rows: 1, columns, label: text });
  }

  /** The query goes from key to key; each product is a score, which the mask may forbid. */
  scores(lines, query) {
    const { columns: { high, top, column, size }, network: { colours, header: { titles } } } = this;
    const t = this.come("scores");
    if (t === null) return;
    const [stage, blocked] = [this.names.get("scores"), this.come("mask")];
    const [scores, mask] = [this.blobs[stage]?.array, this.blobs[this.names.get("mask")]?.array];
    const met = during(t, 0.05, 0.95) * lines.length;
    this.heading("scores");
    lines.forEach(({ y, text }, key) => {
      if (key + 0.5 > met) return;
      const masked = mask && mask[key] === -Infinity && blocked !== null && blocked * lines.length > key;
      const score = scores?.[key] ?? NaN;
      const shown = masked ? "−∞" : Number.isNaN(score) ? "–" : numberText(score, 2);
      const box = { ...column(2), y, height: high };
      this.words(shown, box.x + box.width, y + high / 2, { align: "right", size, colour: masked ? colours.faint : colours.text });
      const [name, from] = masked ? ["mask", this.names.get("mask")] : ["scores", stage];
      this.answers(box, String(from), from, { title: titles[name], row: key, rows: 1, columns: 1, label: text });
    });
    if (t >= 1 || !query || !this.blobs[this.names.get("queries")]) return;
    const key = Math.min(met, lines.length - 1);
    const over = { ...column(1), y: top + key * high + 2, height: high - 4 };
    const { x, y, width, height } = midway(query, over, during(t, 0, 0.08));
    this.pen.globalAlpha = 0.85;
    this.pen.drawImage(this.image(String(this.names.get("queries"))), x, y, width, height);
    this.pen.globalAlpha = 1;
    Object.assign(this.pen, { strokeStyle: colours.accent, lineWidth: 2 });
    this.pen.strokeRect(x - 1, y - 1, width + 2, height + 2);
  }

  /** The bars of the softmax. */
  weights(lines) {
    const { columns: { high, column, size }, network: { colours, header: { titles } } } = this;
    const t = this.come("weights");
    if (t === null) return;
    const stage = this.names.get("weights");
    this.heading("weights");
    lines.forEach(({ y, text }, key) => {
      const weight = this.blobs[stage].array[key];
      const { x, width } = column(3, 12);
      const room = width - 34;
      this.pen.fillStyle = colours.accent;
      this.pen.fillRect(x, y + 4, Math.max(weight > 0 ? 1 : 0, room * weight * during(t)), high - 8);
      const shown = weight > 0 && weight < LEAST_SHOWN / 2 ? `<${numberText(LEAST_SHOWN, 2)}` : numberText(weight, 2); // 0.00 is exactly 0
      if (t > 0.6) this.words(shown, x + width, y + high / 2, { align: "right", size: Math.min(size, SIZES.small), colour: colours.text });
      this.answers({ x, y, width, height: high }, String(stage), stage, { title: titles.weights, row: key, rows: 1, columns: 1, label: text });
    });
  }

  /** Values, by their weights, become the context of this head; then the other heads bring theirs. */
  together(slot) {
    const { group, columns: { high, top, column }, network: { header: { titles } } } = this;
    const t = this.come("context");
    const stage = this.names.get("context");
    if (t === null || !this.blobs[stage] || this.blobs[stage].shape[0] === 1) return this.vector("context", slot);
    const { shape: [rows, columns] } = this.blobs[stage];
    const box = this.place(String(stage), slot);
    const line = (head) => ({ ...box, y: box.y + (head * box.height) / rows, height: box.height / rows });
    const [values, weights] = [this.names.get("values"), this.blobs[this.names.get("weights")]?.array];
    const image = this.image(String(stage));
    this.words(titles.context, slot.x, slot.y + 6, { width: slot.width });
    if (t < 1 && this.blobs[values]) {
      group.keys.forEach((_, key) => {
        const from = { ...column(4), y: top + key * high + 2, height: high - 4 };
        const { x, y, width, height } = midway(from, line(group.head), during(t, 0.1 + (0.2 * key) / group.keys.length, 0.8));
        this.pen.globalAlpha = Math.min(1, weights?.[key] ?? 0.5);
        this.pen.drawImage(this.image(String(values)), 0, key, this.blobs[values].shape[1], 1, x, y, width, height);
      });
    }
    const joined = this.come("output");
    for (let head = 0; head < rows; head++) {
      const mine = head === group.head;
      const share = mine ? during(t, 0.7, 1) : joined === null ? 0 : during(joined, 0, 0.5);
      const { x, y, width, height } = mine ? line(head) : midway({ ...line(head), x: this.width }, line(head), share);
      this.pen.globalAlpha = share;
      if (share) this.pen.drawImage(image, 0, head, columns, 1, x, y, width, height);
    }
    this.pen.globalAlpha = 1;
    this.frame(box, "line");
    this.answers(box, String(stage), stage, { title: titles.context, rows, columns });
    return { ...box, name: String(stage) };
  }
}
