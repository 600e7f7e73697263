// Lines of one head: query tokens on the left, key tokens on the right, a line for each weight.

const NUMBERS = 38; // width of a weight beside a token
const LINE = 18; // height of a line of titles
const EMPHASIS = 650; // weight of the emphasized label
const SHORTEST = 90; // distance of the two sides that lines need
const TALLEST_LINES = 1150; // from 64 tokens on, rows are lower, and not every one of them has its label
const WIDE = 1000; // width of a window that the first picture fills
const LABEL = 12; // height of a label
const OUTSTANDING = 0.2; // beside the emphasized token, a weight that has its label, however low the rows are
const FAINTEST = 0.004; // smaller weights would be invisible as lines

class Lines extends Drawing {
  constructor(parent) {
    super(parent, "lines");
    this.focus = null;
    this.canvas = el("canvas", { tabindex: 0, role: "application" });
    this.root.append(this.readout, this.canvas);
    this.listen();
  }

  needs() {
    return ["exact"];
  }

  take() {
    const { name, texts, run } = this.header;
    this.weights = this.part("exact").blobs.exact.array;
    this.canvas.setAttribute("aria-label", fill(texts.label, { head: name }));
    if (run !== this.run) this.focus = null;
    this.run = run;
    this.say(hintOf(texts));
  }

  /** The tokens of a side, `query` or `key`. */
  labels(side) {
    return side === "query" ? this.header.queries : this.header.keys;
  }

  weight(query, key) {
    return this.weights[query * this.header.keys.length + key];
  }

  /** The emphasized token: the one under pointer or keyboard, else the one another drawing points at, else the selected row. */
  get active() {
    const { queryStrip, keyStrip, query } = this.header;
    const { pointed } = this;
    const there = (side, index) => (index !== null && index < this.labels(side).length ? { side, index } : null);
    return (
      this.focus ??
      (pointed.queryStrip === queryStrip ? there("query", pointed.query) : null) ??
      (pointed.queryStrip !== queryStrip && pointed.keyStrip === keyStrip ? there("key", pointed.key) : null) ??
      (query >= 0 ? { side: "query", index: query } : null)
    );
  }

  arrange() {
    const { queries, keys } = this.header;
    const count = Math.max(queries.length, keys.length);
    const fills = fillsScreen();
    const least = Math.min(18, Math.max(5, TALLEST_LINES / count));
    const alone = this.header.invites !== undefined; // the first picture is whole in a small window, and fills a large one
    const [around, tallest] = !alone ? [110, 27] : innerWidth >= WIDE ? [340, 44] : [620, 27];
    const high = mapHeight(this.canvas, around, alone ? 0 : 560, 560) / count;
    const row = fills ? (roomBelow(this.canvas, 2 * LINE + 16) / count) : Math.max(least, Math.min(tallest, high));
    const pen = this.canvas.getContext("2d");
    pen.font = this.font(13, EMPHASIS); // any label may be emphasized: it would be cut then
    const room = (labels) => Math.min(this.width * 0.32, Math.max(...labels.map((label) => pen.measureText(label).width)) + 2);
    const across = this.width - room(queries) - NUMBERS - room(keys);
    const edge = Math.max(0, Math.min(NUMBERS, across - SHORTEST)); // if narrow, weights on the left take space from long labels
    const [left, right] = [edge + room(queries), this.width - NUMBERS - room(keys)];
    const spare = Math.max(0, (right - left - (fills || alone ? Math.max(1.2 * row * count, alone ? 420 : 0) : 420)) / 2);
    pen.font = this.font();
    const [one, other] = [this.header.queryAxis, this.header.keyAxis].map((title) => pen.measureText(title).width);
    const titles = one + other + 16 > this.width ? 2 : 1;
    const top = titles * LINE + 8;
    this.box = { row, left: left + spare, right: right - spare, titles, top, height: top + row * count + 6 };
  }

  y(index) {
    return this.box.top + this.box.row * (index + 0.5);
  }

  draw() {
    this.arrange();
    const { active } = this;
    const pen = sized(this.canvas, this.width, this.box.height);
    pen.textBaseline = "middle";
    this.drawTitles(pen);
    this.drawLines(pen, active);
    for (const side of ["query", "key"]) {
      for (const index of this.written(side, active)) this.drawToken(pen, side, this.labels(side)[index], index, active);
    }
  }

  /** The tokens of a side that have a label: all; of low rows some, first the emphasized one, or those with a large weight to it. */
  written(side, active) {
    const all = [...this.labels(side).keys()];
    const every = Math.ceil(LABEL / this.box.row);
    if (every === 1) return all;
    const weight = (index) => (side === "key" ? this.weight(active.index, index) : this.weight(index, active.index));
    const first = all.filter((index) => active && (active.side === side ? index === active.index : weight(index) >= OUTSTANDING));
    const apart = (index) => first.every((other) => Math.abs(other - index) * this.box.row >= LABEL);
    return [...first, ...all.filter((index) => index % every === 0 && apart(index))];
  }

  layout() {
    return ["query", "key"].flatMap((side) => this.labels(side).map((_, index) => this.spot(side, index)));
  }

  /** Middle of a token, in pixels of the drawing. */
  spot(side, index) {
    const x = side === "query" ? this.box.left - 14 : this.box.right + 14;
    return { side, index, x, y: this.canvas.offsetTop / scaleOf(this.canvas) + this.y(index) };
  }

  /** Draws the axis titles above their tokens, in two lines if they would overlap. */
  drawTitles(pen) {
    const { queryAxis, keyAxis } = this.header;
    const { left, right, titles } = this.box;
    Object.assign(pen, { font: this.font(), fillStyle: this.colours.faint, textAlign: "right" });
    const room = (text) => Math.min(pen.measureText(text).width, this.width);
    pen.fillText(fitted(pen, queryAxis, this.width), Math.max(left, room(queryAxis)), LINE / 2);
    pen.textAlign = "left";
    pen.fillText(fitted(pen, keyAxis, this.width), Math.min(right, this.width - room(keyAxis)), LINE * (titles - 0.5));
  }

  /** Draws the emphasized token's lines over the faint others; while it is pointed at, its own lines only. */
  drawLines(pen, active) {
    const { accent, second } = this.colours;
    const alone = this.focus !== null || this.pointed.queryStrip === this.header.queryStrip;
    pen.lineCap = "round";
    if (!active) this.eachLine((query, key) => this.drawLine(pen, query, key, 0.75, accent));
    else {
      const mine = (query, key) => (active.side === "query" ? query : key) === active.index;
      if (!alone) this.eachLine((query, key) => { if (!mine(query, key)) this.drawLine(pen, query, key, 0.14, accent); });
      const colour = active.side === "query" ? accent : second;
      this.eachLine((query, key) => { if (mine(query, key)) this.drawLine(pen, query, key, 1.2, colour); });
    }
    pen.globalAlpha = 1;
  }

  eachLine(visit) {
    const { queries, keys } = this.header;
    queries.forEach((_, query) => keys.forEach((__, key) => visit(query, key)));
  }

  drawLine(pen, query, key, strength, colour) {
    const weight = this.weight(query, key) / this.header.largest;
    if (weight < FAINTEST) return;
    const { left, right } = this.box;
    const bend = (right - left) * 0.38;
    Object.assign(pen, { globalAlpha: Math.min(1, weight ** 0.6 * strength), lineWidth: 0.6 + 5 * weight, strokeStyle: colour });
    pen.beginPath();
    pen.moveTo(left + 6, this.y(query));
    pen.bezierCurveTo(left + bend, this.y(query), right - bend, this.y(key), right - 6, this.y(key));
    pen.stroke();
  }

  /** Draws one token, and beside it its weight with the emphasized token of the other side. */
  drawToken(pen, side, label, index, active) {
    const { left, right } = this.box;
    const other = active !== null && active.side !== side;
    const invites = active === null && side === "query" && this.header.invites === index;
    const mine = invites || (active?.side === side && active.index === index);
    const weight = !other ? 0 : side === "key" ? this.weight(active.index, index) : this.weight(index, active.index);
    const numbered = weight >= 0.005;
    const [x, room, align, beyond] = side === "query" ? [left, left, "right", -1] : [right, this.width - right, "left", 1];
    pen.font = this.font(13, mine ? EMPHASIS : 400);
    const text = fitted(pen, label, numbered ? room - NUMBERS : room);
    const strong = side === "query" ? this.colours.accent : this.colours.second;
    pen.globalAlpha = other ? Math.min(1, 0.5 + (2 * weight) / this.header.largest) : 1;
    Object.assign(pen, { textAlign: align, fillStyle: mine ? strong : this.colours.text });
    pen.fillText(text, x, this.y(index));
    pen.globalAlpha = 1;
    if (!numbered) return;
    const wide = pen.measureText(text).width;
    Object.assign(pen, { font: this.font(11.5), fillStyle: this.colours.faint });
    pen.fillText(fixed(weight, 2), x + beyond * (wide + 8), this.y(index));
  }

  listen() {
    const { canvas } = this;
    watchTouch(canvas, {
      hover: (x, y) => this.point(this.tokenAt(x, y)),
      leave: () => this.point(null),
      click: (x, y) => { const token = this.tokenAt(x, y); if (token) this.select(token); },
    });
    canvas.addEventListener("blur", () => this.point(null));
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** The token at a point: the left half belongs to the queries, the right half to the keys. */
  tokenAt(x, y) {
    const side = x < (this.box.left + this.box.right) / 2 ? "query" : "key";
    const index = Math.floor((y - this.box.top) / this.box.row);
    return index >= 0 && index < this.labels(side).length ? { side, index } : null;
  }

  /** Emphasizes a token, reads out its largest weight, and tells the other drawings. */
  point(token) {
    if (token?.side === this.focus?.side && token?.index === this.focus?.index) return;
    this.focus = token;
    const { queryStrip, keyStrip, texts } = this.header;
    if (token) this.read(token);
    else this.say(hintOf(texts));
    point(!token ? {} : token.side === "query" ? { queryStrip, query: token.index } : { keyStrip, key: token.index });
  }

  read({ side, index }) {
    const { queries, keys, texts } = this.header;
    const fromQuery = () => keys.map((_, key) => this.weight(index, key));
    const others = side === "query" ? fromQuery() : queries.map((_, query) => this.weight(query, index));
    const best = others.indexOf(Math.max(...others));
    const [query, key] = side === "query" ? [index, best] : [best, index];
    const sentence = side === "query" ? texts.fromQuery : texts.toKey;
    const weight = others[best];
    this.say(fill(sentence, { query: queries[query], key: keys[key], weight: exactly(weight) }), { query, key, weight });
  }

  /** Selects a query; if a query is selected, a key opens the calculation of their cell. */
  select({ side, index }) {
    const { query, site, head } = this.header;
    if (side === "key") return query < 0 || !this.header.opens ? undefined : this.choose({ site, head, query, key: index });
    this.header.query = index;
    this.choose({ query: index });
    this.redraw();
  }

  onKey(event) {
    const { side, index } = this.focus ?? { side: "query", index: Math.max(this.header.query, 0) };
    const to = {
      ArrowUp: [side, index - 1],
      ArrowDown: [side, index + 1],
      ArrowLeft: ["query", index],
      ArrowRight: ["key", index],
      Home: [side, 0],
      End: [side, Infinity],
    }[event.key];
    if (event.key === "Enter") this.select({ side, index });
    else if (event.key === "Escape") this.point(null);
    else if (!to || event.ctrlKey || event.metaKey || event.altKey) return;
    else this.point({ side: to[0], index: Math.min(Math.max(to[1], 0), this.labels(to[0]).length - 1) });
    event.preventDefault();
  }
}
