// The image that a network read, in gray, and over it a row or a column of one head's weights: patch by patch, or smoothly. Where words
// were written about the image, their rows.

const AROUND_IT = 330; // CSS pixels of the window that the image leaves to other things

class Overlay extends Drawing {
  constructor(parent) {
    super(parent, "overlay");
    this.focus = null; // the patch or token without one under pointer or keyboard
    this.word = null; // the same of the words that were written: a row
    this.brushed = null; // the patches of a drag that is under way
    this.canvas = el("canvas", { class: "image", tabindex: 0, role: "application" });
    this.tools = el("div", { class: "overlay-tools" });
    this.most = el("span");
    this.ramp = el("span", { class: "ramp" });
    this.unit = el("span");
    this.legend = el("div", { class: "legend", "aria-hidden": "true" }, this.unit, el("span", {}, "0"), this.ramp, this.most);
    this.root.append(this.tools, this.canvas, this.legend, this.readout);
    this.listen();
  }

  needs() {
    return (this.coming ?? this).header.parts.exact.levels ? ["image"] : ["image", "exact"];
  }

  form() {
    const { texts, patches, hides, keys, words } = this.header;
    return JSON.stringify([texts, patches, hides, keys.slice(0, patches.added), words]);
  }

  build() {
    const { texts, patches: { added }, keys, words } = this.header;
    const button = (name, act) => el("button", { type: "button", class: "tool", title: texts[`${name}Help`], "data-name": name, onclick: act }, texts[name]);
    const sides = ["row", "column"].map((name) => button(name, () => this.turn({ column: name === "column" })));
    this.switches = [...sides, button("smooth", () => this.turn({ smooth: !this.has("smooth") }))];
    this.chips = keys.slice(0, added).map((name, token) => this.chipOf(name, token));
    this.written = words?.map((word, row) => this.chipOfWord(word, row)) ?? [];
    const group = (name, nodes) => (nodes.length ? [el("div", { role: "group", "aria-label": name }, ...nodes)] : []);
    const lines = [...group(texts.words, this.written), ...group(texts.added, this.chips)];
    this.tools.replaceChildren(...lines, ...group(texts.sides, words ? [] : sides), this.switches[2]);
    this.unit.textContent = texts.weight;
  }

  /** A token without a patch as a button, with its weight. */
  chipOf(name, token) {
    const enter = ({ currentTarget }) => {
      const { x, top, bottom } = currentTarget.getBoundingClientRect();
      this.enter(token, { x, y: top, height: bottom - top });
    };
    const leave = () => this.leave();
    const on = { onpointerenter: enter, onfocus: enter, onpointerleave: leave, onblur: leave, onclick: () => this.choice(token) };
    return el("button", { type: "button", class: "chip special", "data-position": token, ...on }, el("bdi", {}, name), el("span", { class: "number" }));
  }

  /** A word that was written as a button: its row is shown while it is pointed at. */
  chipOfWord({ text, special }, row) {
    const tell = (shown) => {
      this.word = shown;
      point(shown === null ? {} : { queryStrip: this.header.queryStrip, query: shown });
      this.tell();
      this.redraw();
    };
    const onclick = () => {
      this.header.query = row;
      this.choose({ query: row });
    };
    const leave = () => tell(null);
    const on = { onpointerenter: () => tell(row), onfocus: () => tell(row), onpointerleave: leave, onblur: leave, onclick };
    return el("button", { type: "button", class: special ? "chip special" : "chip", "data-row": row, ...on }, el("bdi", {}, text));
  }

  take() {
    const { parts: { exact }, partsAddress, name, texts, hides } = this.header;
    this.cells = exact.levels
      ? new TilePyramid(exact, partsAddress, (address) => this.fetched(address))
      : exactGrid(this.part("exact").blobs, 0);
    const { image } = this.part("image").blobs;
    if (this.pixels !== image) Object.assign(this, { pixels: image, gray: canvasOf(image, grayed), colored: canvasOf(image, plain) });
    this.canvas.setAttribute("aria-label", fill(texts.label, { head: name }));
    this.canvas.classList.toggle("brushed", Boolean(hides));
    if (this.focus === null) this.tell();
    else this.enter(this.focus, this.spot); // its weight may be another one now
  }

  /** Whether the link's parameter `overlay` has a word. */
  has(word) {
    return this.header.overlay.split(" ").includes(word) && !(word === "column" && this.header.words);
  }

  /** Turns words of the parameter `overlay` on or off. */
  turn(changed) {
    const wanted = { smooth: this.has("smooth"), column: this.has("column"), ...changed };
    this.header.overlay = Object.keys(wanted).filter((word) => wanted[word]).join(" ");
    this.choose({ overlay: this.header.overlay });
    this.tell();
    this.redraw();
  }

  /** The token whose row or column is shown: one that another drawing points at, else the selected one. */
  get token() {
    const { queryStrip, query } = this.header;
    const { pointed } = this;
    if (this.word !== null) return this.word;
    return this.focus === null && pointed.queryStrip === queryStrip && pointed.query !== null ? pointed.query : query;
  }

  /** The weight between the shown token and another one. */
  cell(other, token = this.token) {
    return this.has("column") ? cellOf(this.cells, other, token) : cellOf(this.cells, token, other);
  }

  /** The weights between the shown token and all tokens; undefined where they are still being fetched. */
  weights() {
    const { cells, token } = this;
    const count = this.header.keys.length;
    if (cells.levels) {
      const at = (band, along) => (this.has("column") ? cells.at(0, along, band) : cells.at(0, band, along));
      for (let along = 0; along * cells.side < count; along++) cells.fetched(at(Math.floor(token / cells.side), along));
    }
    return Array.from({ length: count }, (_, other) => {
      const { weight, masked, exact } = this.cell(other);
      return masked ? 0 : exact ? weight : undefined;
    });
  }

  draw() {
    const { header: { patches: { rows, columns, added }, schemes, hides, words }, colours, width } = this;
    const side = Math.max(2, Math.min(width / columns, mapHeight(this.canvas, AROUND_IT, 260, hides ? 400 : 640, 74) / rows));
    this.side = side;
    const [wide, high] = [side * columns, side * rows];
    const pen = sized(this.canvas, wide, high);
    const weights = this.weights();
    const over = weights.slice(added);
    const most = over.reduce((largest, weight) => Math.max(largest, weight ?? 0), 0);
    Object.assign(pen, { imageSmoothingEnabled: true, imageSmoothingQuality: "high" });
    pen.drawImage(this.gray, 0, 0, wide, high);
    pen.imageSmoothingEnabled = this.has("smooth");
    if (most > 0) pen.drawImage(tinted(over.map((weight) => (weight ?? 0) / most), columns, schemes.dark.accent), 0, 0, wide, high);
    for (const position of this.hidden) if (position >= added) covered(pen, colours, this.place(position));
    const selected = this.token;
    const ring = (token, colour, line) => { if (token >= added) framed(pen, colours, this.place(token), colour, line); };
    if (this.focus !== null) ring(this.focus, colours.second, 2);
    if (!words) ring(selected, colours.text, 2.5);
    this.note(weights, most);
    if (this.cells.levels && this.focus === null) this.tell(); // more of its tiles may be here
  }

  /** Writes what belongs to the shown token beside the image: the scale, the weights without a patch, the switches. */
  note(weights, most) {
    const { header: { patches: { added }, schemes, words }, root, token } = this;
    this.most.textContent = exactly(most);
    this.ramp.style.background = `linear-gradient(90deg, #808080, ${schemes.dark.accent})`;
    this.chips.forEach((chip, at) => {
      chip.querySelector(".number").textContent = weights[at] === undefined ? "…" : exactly(weights[at]);
      chip.classList.toggle("selected", !words && at === token);
      chip.classList.toggle("hidden", this.hidden.has(at));
      chip.setAttribute("aria-pressed", !words && at === token);
    });
    this.written.forEach((chip, row) => {
      chip.classList.toggle("selected", row === this.header.query);
      chip.classList.toggle("lit", row === token);
      chip.setAttribute("aria-pressed", row === this.header.query);
    });
    for (const node of this.switches) {
      const { name } = node.dataset;
      node.setAttribute("aria-pressed", name === "row" ? !this.has("column") : this.has(name));
    }
    Object.assign(root.dataset, { token, overlay: this.header.overlay, added });
  }

  /** The hidden positions, those of a drag under way included. */
  get hidden() {
    const hidden = new Set(this.header.hidden);
    for (const position of this.brushed ?? []) {
      if (this.shows) hidden.delete(position);
      else hidden.add(position);
    }
    return hidden;
  }

  /** Rectangle of a patch, in CSS pixels of the canvas. */
  place(token) {
    const { columns, added } = this.header.patches;
    const at = token - added;
    return { x: (at % columns) * this.side, y: Math.floor(at / columns) * this.side, width: this.side, height: this.side };
  }

  layout() {
    const { site, head, patches: { rows, columns } } = this.header;
    const box = { x: 0, y: 0, width: this.side * columns, height: this.side * rows };
    return [{ site, head, ...boxIn(this.root, this.canvas, box), row: 0, column: 0, rows, columns }];
  }

  /** The token of the patch at a point of the canvas; null: there is none. */
  patchAt(x, y) {
    const { rows, columns, added } = this.header.patches;
    const [row, column] = [Math.floor(y / this.side), Math.floor(x / this.side)];
    return row < 0 || column < 0 || row >= rows || column >= columns ? null : added + row * columns + column;
  }

  listen() {
    const { canvas } = this;
    watchTouch(canvas, {
      hover: (x, y) => this.hover(this.patchAt(x, y)),
      leave: () => this.leave(),
      click: (x, y) => {
        if (this.header.hides) return;
        this.leave(); // its tooltip told of the token that was selected before
        this.choice(this.patchAt(x, y));
      },
    });
    brushes(this);
    canvas.addEventListener("blur", () => this.leave());
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Reports that positions are hidden, or shown again if they are. */
  hide(positions) {
    if (positions.length) this.setTriggerValue("edit", { act: "hide", strip: this.header.keyStrip, positions });
    this.redraw();
  }

  /** What a click or Enter does with a token: selects it, or hides it. */
  choice(token) {
    if (token === null) return;
    if (this.header.hides) return this.hide([token]);
    if (this.header.words) return;
    this.header.query = token;
    this.choose({ query: token });
    this.tell();
    this.redraw();
  }

  hover(token) {
    if (token === null) return this.leave();
    const { x, y, width, height } = this.place(token);
    this.enter(token, inWindow(this.canvas, x + width / 2, y + height));
  }

  /** Reads out the weight of a token and tells the other drawings. */
  enter(token, place) {
    Object.assign(this, { focus: token, spot: place });
    const { texts, queries, keys, queryStrip, keyStrip, name, site, head, patches: { added }, query: selected } = this.header;
    const found = this.cell(token, selected);
    const [query, key] = this.has("column") ? [token, selected] : [selected, token];
    const weight = weightText(found, texts);
    this.say(fill(texts.cell, { head: name, query: queries[query], key: keys[key], weight }), { site, head, query, key, weight: found.weight });
    const out = this.hidden.has(token) ? `${weight}, ${texts.hiddenPatch}` : weight;
    this.showTip(place, ...facts(out, [[texts.query, queries[query]], [texts.key, keys[key]]]), ...(token >= added ? [magnified(this.colored, this.header.patches, token - added)] : []));
    point({ queryStrip, query, keyStrip, key });
    this.redraw();
  }

  leave() {
    if (this.focus === null) return;
    this.focus = null;
    this.hideTip();
    this.tell();
    point({});
    this.redraw();
  }

  /** Says where the selected token looks most, or who looks at it most, and what can be done. */
  tell() {
    const { texts, queries, keys, words } = this.header;
    const token = words ? this.token : this.header.query;
    let [best, largest] = [-1, 0];
    for (let other = 0; other < keys.length; other++) {
      const { weight, masked, exact } = this.cell(other, token);
      if (exact && !masked && weight > largest) [best, largest] = [other, weight];
    }
    const [sentence, query, key] = this.has("column") ? [texts.toKey, best, token] : [texts.fromQuery, token, best];
    const said = best < 0 ? "" : `${fill(sentence, { query: queries[query], key: keys[key], weight: exactly(largest) })}. `;
    this.say(said + hintOf(texts));
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { rows, columns, added } = this.header.patches;
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const act = { Enter: () => this.choice(this.focus), Escape: () => this.leave() }[event.key];
    if (!by && !act) return;
    event.preventDefault();
    if (act) return act();
    const from = this.focus ?? (this.header.words ? 0 : this.header.query);
    const at = from < added ? null : from - added;
    const inside = (place, count) => Math.min(Math.max(place, 0), count - 1);
    const row = at === null ? 0 : inside(Math.floor(at / columns) + by[0], rows);
    this.hover(added + row * columns + (at === null ? 0 : inside((at % columns) + by[1], columns)));
  }
}
