// The lines: query tokens on the left, key tokens on the right, joined by one head's weights.

const NUMBERS = 50;
const HEAD = 26;

class Lines extends Drawing {
  constructor(parent) {
    super(parent, "lines");
    this.canvas = el("canvas", { tabindex: 0, role: "application" });
    this.root.append(this.canvas, this.readout);
    this.listen();
  }

  build() {}

  take() {
    const { name, texts, run } = this.header;
    this.canvas.setAttribute("aria-label", fill(texts.label, { head: name }));
    if (run !== this.run) this.focus = null;
    this.run = run;
    this.say(texts.hint);
  }

  /** The tokens of a side, `query` or `key`. */
  labels(side) {
    return side === "query" ? this.header.queries : this.header.keys;
  }

  weight(query, key) {
    return this.blobs.exact.array[query * this.header.keys.length + key];
  }

  /** What is emphasised: the token under the pointer or the keyboard, else one that another drawing points at, else the selected row. */
  get active() {
    const { queryStrip, keyStrip, query, queries, keys } = this.header;
    const { pointed } = this;
    if (this.focus) return this.focus;
    if (pointed.queryStrip === queryStrip && pointed.query !== null && pointed.query < queries.length) return { side: "query", index: pointed.query };
    if (pointed.queryStrip === null && pointed.keyStrip === keyStrip && pointed.key < keys.length) return { side: "key", index: pointed.key };
    if (pointed.queryStrip !== queryStrip && pointed.keyStrip === keyStrip && pointed.key !== null && pointed.key < keys.length) return { side: "key", index: pointed.key };
    return query >= 0 ? { side: "query", index: query } : null;
  }

  arrange() {
    const { queries, keys } = this.header;
    const count = Math.max(queries.length, keys.length);
    const row = Math.max(18, Math.min(27, 560 / count));
    const pen = this.canvas.getContext("2d");
    pen.font = this.font();
    const most = (this.width - 2 * NUMBERS) * 0.34;
    const room = (labels) => Math.min(most, Math.max(...labels.map((label) => pen.measureText(label).width)) + 2);
    const [left, right] = [NUMBERS + room(queries), this.width - NUMBERS - room(keys)];
    const spare = Math.max(0, (right - left - 420) / 2);
    this.box = { row, left: left + spare, right: right - spare, most, height: HEAD + row * count + 6 };
  }

  y(index) {
    return HEAD + this.box.row * (index + 0.5);
  }

  font(size = 13, weight = 400) {
    return `${weight} ${size}px ${getComputedStyle(this.root).fontFamily}`;
  }

  draw() {
    this.arrange();
    const { active } = this;
    const pen = sized(this.canvas, this.width, this.box.height);
    pen.textBaseline = "middle";
    this.drawTitles(pen);
    this.drawLines(pen, active);
    for (const side of ["query", "key"]) this.labels(side).forEach((label, index) => this.drawToken(pen, side, label, index, active));
    this.root.dataset.layout = JSON.stringify(["query", "key"].flatMap((side) => this.labels(side).map((_, index) => this.spot(side, index))));
  }

  /** The middle of a token, in CSS pixels of the drawing. */
  spot(side, index) {
    return { side, index, x: side === "query" ? this.box.left - 14 : this.box.right + 14, y: this.y(index) };
  }

  drawTitles(pen) {
    const { queryAxis, keyAxis } = this.header;
    const { left, right } = this.box;
    const middle = (left + right) / 2;
    Object.assign(pen, { font: this.font(12.5), fillStyle: this.colours.faint, textAlign: "right" });
    pen.fillText(fitted(pen, queryAxis, middle - 12), Math.max(left, Math.min(pen.measureText(queryAxis).width, middle - 8)), 9);
    pen.textAlign = "left";
    const wide = pen.measureText(keyAxis).width;
    pen.fillText(fitted(pen, keyAxis, this.width - middle - 12), Math.max(Math.min(right, this.width - wide), middle + 8), 9);
  }

  drawLines(pen, active) {
    const { queries, keys } = this.header;
    const line = (query, key, strength, colour) => {
      const weight = this.weight(query, key);
      if (weight < 0.004) return;
      const { left, right } = this.box;
      const bend = (right - left) * 0.38;
      Object.assign(pen, { globalAlpha: Math.min(1, weight ** 0.7 * strength), lineWidth: 0.6 + 5 * weight, strokeStyle: colour });
      pen.beginPath();
      pen.moveTo(left + 6, this.y(query));
      pen.bezierCurveTo(left + bend, this.y(query), right - bend, this.y(key), right - 6, this.y(key));
      pen.stroke();
    };
    const alone = this.focus || this.pointed.queryStrip === this.header.queryStrip;
    const on = (query, key) => active && (active.side === "query" ? query : key) === active.index;
    pen.lineCap = "round";
    queries.forEach((_, query) => keys.forEach((__, key) => { if (!on(query, key)) line(query, key, active ? (alone ? 0.08 : 0.24) : 0.75, this.colours.accent); }));
    queries.forEach((_, query) => keys.forEach((__, key) => { if (on(query, key)) line(query, key, 1, active.side === "query" ? this.colours.accent : this.colours.second); }));
    pen.globalAlpha = 1;
  }

  drawToken(pen, side, label, index, active) {
    const { left, right, most } = this.box;
    const mine = active?.side === side && active.index === index;
    const weight = active && active.side !== side ? (side === "key" ? this.weight(active.index, index) : this.weight(index, active.index)) : 0;
    const [x, align, beyond] = side === "query" ? [left, "right", -1] : [right, "left", 1];
    const colour = side === "query" ? this.colours.accent : this.colours.second;
    pen.font = this.font(13, mine ? 650 : 400);
    const text = fitted(pen, label, most);
    Object.assign(pen, { textAlign: align, fillStyle: mine ? colour : this.colours.text });
    pen.globalAlpha = active && active.side !== side ? Math.min(1, 0.45 + 2 * weight) : 1;
    pen.fillText(text, x, this.y(index));
    pen.globalAlpha = 1;
    if (weight < 0.005) return;
    const wide = pen.measureText(text).width;
    Object.assign(pen, { font: this.font(11.5), fillStyle: this.colours.faint });
    pen.fillText(weight.toFixed(2), x + beyond * (wide + 8), this.y(index));
  }

  listen() {
    const { canvas } = this;
    watchFingers(canvas, {
      hover: (x, y) => this.point(this.tokenAt(x, y)),
      click: (x, y) => { const token = this.tokenAt(x, y); this.point(token); if (token) this.select(token); },
    });
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("blur", () => this.point(null));
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** The token at a point: the left half belongs to the queries, the right half to the keys. */
  tokenAt(x, y) {
    const side = x < (this.box.left + this.box.right) / 2 ? "query" : "key";
    const index = Math.floor((y - HEAD) / this.box.row);
    return index >= 0 && index < this.labels(side).length ? { side, index } : null;
  }

  /** Emphasises a token, says where it looks, and tells the other drawings. */
  point(token) {
    if (token?.side === this.focus?.side && token?.index === this.focus?.index) return;
    this.focus = token;
    const { queryStrip, keyStrip, texts } = this.header;
    if (token) this.read(token);
    else this.say(texts.hint);
    point(!token ? {} : token.side === "query" ? { queryStrip, query: token.index } : { keyStrip, key: token.index });
  }

  read({ side, index }) {
    const { queries, keys, texts } = this.header;
    const others = side === "query" ? keys.map((_, key) => this.weight(index, key)) : queries.map((_, query) => this.weight(query, index));
    const best = others.indexOf(Math.max(...others));
    const [query, key] = side === "query" ? [index, best] : [best, index];
    const sentence = side === "query" ? texts.fromQuery : texts.toKey;
    this.say(fill(sentence, { query: queries[query], key: keys[key], weight: exactly(others[best]) }), { query, key, weight: others[best] });
  }

  select({ side, index }) {
    if (side !== "query") return;
    this.header.query = index;
    this.choose({ query: index });
    this.redraw();
  }

  onKey(event) {
    const { side, index } = this.focus ?? { side: "query", index: Math.max(this.header.query, 0) - (this.focus === undefined ? 0 : 0) };
    const to = { ArrowUp: [side, index - 1], ArrowDown: [side, index + 1], ArrowLeft: ["query", index], ArrowRight: ["key", index], Home: [side, 0], End: [side, Infinity] }[event.key];
    if (event.key === "Enter") this.select({ side, index });
    else if (event.key === "Escape") this.point(null);
    else if (!to || event.ctrlKey || event.metaKey || event.altKey) return;
    else this.point({ side: to[0], index: Math.min(Math.max(to[1], 0), this.labels(to[0]).length - 1) });
    event.preventDefault();
  }
}

export default (component) => mount(component, Lines);
