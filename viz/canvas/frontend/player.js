// Step player: the decoding, token by token. The browser has all steps, so a step reveals a row and never asks the server.

const REPORT_MS = 400;
const TILE = 64;
const BELOW = 16; // a card's edge below a map or a list

/** A row of weights in words, as viz/labels/alt_text.py puts it; `cellAt(key)` is one of its cells. */
function rowSentence(texts, row, keys, cellAt) {
  const found = keys.map((key, at) => ({ key, weight: cellAt(at).masked ? 0 : cellAt(at).weight }));
  const [first, second] = found.sort((one, other) => other.weight - one.weight);
  const percent = (share) => (share > 0 && share < 0.005 ? texts.little : fill(texts.percent, { number: fixed(100 * share, 0) }));
  const gaps = { row, key: first.key, share: percent(first.weight) };
  if (!second || second.weight < 0.01) return fill(texts.rowOne, gaps);
  return fill(texts.rowTwo, { ...gaps, next: second.key, second: percent(second.weight) });
}

class Player extends Drawing {
  constructor(parent) {
    super(parent, "player");
    this.canvas = el("canvas", { tabindex: 0, role: "application" });
    this.map = new Heatmap(this.canvas);
    this.transport = new Transport({ moved: (step) => this.moved(step), rested: () => this.report({}) });
    this.unsaid = {};
    const hover = (x, y) => this.hover(this.map.cellAt(x, y), x, y);
    watchTouch(this.canvas, { hover, leave: () => this.leave(), click: (x, y) => this.open(this.map.cellAt(x, y)) });
    this.canvas.addEventListener("keydown", (event) => this.onMapKey(event));
    this.root.addEventListener("keydown", (event) => this.transport.onKey(event));
  }

  connect() {
    super.connect();
    this.transport.listen(this.life.signal);
  }

  disconnect() {
    this.transport.pause();
    clearTimeout(this.resting);
    super.disconnect();
  }

  needs() {
    return ["heads"];
  }

  form() {
    const { strips, site, names, texts, decodes } = this.header;
    return JSON.stringify([strips, site, names, texts, decodes]);
  }

  build() {
    const { strips, written, names, texts, axes } = this.header;
    this.chips = strips.map((strip) => strip.tokens.map((token, at) => chip(token, at, this.chipListeners(strip, token, at))));
    for (const node of this.chips.flat()) node.tabIndex = -1; // arrow keys move between steps, not tokens
    const tokens = strips.find(({ name }) => name === written).tokens;
    const read = (position) => tokens[position - 1]?.text ?? "";
    this.steps = tokens.flatMap((token, at) => (token.candidates ? [{ ...token, position: at, read: read(at) }] : []));
    this.tiles = names.map((name, head) => this.tile(name, head));
    this.title = el("h3");
    this.note = el("p", { class: "note" });
    this.candidates = el("div");
    this.next = el("section", { class: "card" }, el("h3", {}, texts.candidates), this.candidates);
    const map = el("section", { class: "card map" }, this.title, el("p", { class: "axes" }, axes), this.note, this.canvas);
    const tiles = el("div", { class: "tiles" }, ...this.tiles.map(({ button }) => button));
    const heads = el("section", { class: "card" }, el("h3", {}, texts.heads), tiles);
    const rows = el("div", { class: "strips" }, ...strips.map((strip, i) => chipStrip(strip, this.chips[i], texts)));
    const stage = el("div", { class: "stage" }, map, el("div", { class: "side" }, this.next, heads));
    const controls = this.transport.build(this.steps.length, texts);
    this.root.replaceChildren(el("div", { class: "player" }, controls, rows, stage, this.readout));
  }

  tile(name, head) {
    const { headShort, headLabel } = this.header.texts;
    const canvas = el("canvas");
    const label = { "aria-description": fill(headLabel, { head: name }), onclick: () => this.setHead(head) };
    const button = el("button", { type: "button", class: "tile", ...label }, fill(headShort, { head: head + 1 }), canvas);
    return { canvas, button };
  }

  chipListeners(strip, token, position) {
    const { texts, keyStrip, keys, written } = this.header;
    const enter = ({ currentTarget }) => {
      const { x, top, height } = currentTarget.getBoundingClientRect();
      const looked = this.row >= 0 && strip.name === keyStrip && position < keys.length;
      const weight = looked ? facts(token.text, [[texts.weight, weightText(this.cell(this.row, position), texts)]]).slice(1) : [];
      this.showTip({ x, y: top, height }, ...aboutToken(token, strip, texts), ...weight);
    };
    const jump = () => {
      const step = this.steps.findIndex((each) => each.position === position);
      if (strip.name === written && step >= 0) this.transport.go(step);
    };
    return { onpointerenter: enter, onpointerleave: () => this.hideTip(), onclick: jump };
  }

  /** Takes a scene. A new run starts at the step that Python names; a known one keeps its step and head. */
  take() {
    const { head, step, run, names } = this.header;
    if (run !== this.run) this.transport.step = this.transport.inside(step);
    if (run !== this.run || head !== this.told) this.head = head;
    Object.assign(this, { run, told: head });
    this.head = Math.min(this.head, names.length - 1);
    const { exact: { array, shape: [, rows, columns] }, mask } = this.part("heads").blobs;
    const codes = encoded(array);
    const part = (whole, h) => headOf(whole, h, rows, columns);
    this.heads = names.map((_, h) => grid(rows, columns, part(codes, h), mask.array, part(array, h)));
  }

  /** The current step: the token it generated, its position, and the token it read. */
  get now() {
    return this.steps[this.transport.step];
  }

  /** Query row of the current step; -1 at a site that does not decode. */
  get row() {
    return this.header.decodes ? this.now.row : -1;
  }

  /** Number of rows computed so far. */
  get revealed() {
    return this.header.decodes ? this.row + 1 : this.heads[0].rows;
  }

  cell(row, column) {
    return cellOf(this.heads[this.head], row, column);
  }

  moved(step) {
    const { texts } = this.header;
    const { read, text, probability } = this.now;
    this.hideTip();
    const gaps = { step: step + 1, steps: this.steps.length, read, written: text, probability: exactly(probability) };
    this.say(fill(texts.readsWrites, gaps));
    if (this.row >= 0) this.words.say(rowSentence(texts, this.header.queries[this.row], this.header.keys, (key) => this.cell(this.row, key)));
    this.report({ step });
    this.redraw();
  }

  setHead(head) {
    this.head = head;
    this.report({ site: this.header.site, head });
    this.redraw();
  }

  /** Continues the decode from a candidate of a step; null where it cannot be continued. */
  goes(step) {
    const { continues } = this.header;
    return continues && ((id) => {
      this.forget(); // a step that is reported after this choice would replace it, and it is a step of another text
      this.choose(continuation(continues, step, id));
    });
  }

  /** Drops what waits to be reported. */
  forget() {
    clearTimeout(this.resting);
    this.unsaid = {};
  }

  /** Collects changes and reports them to Python after a pause, never while playing. */
  report(change) {
    Object.assign(this.unsaid, change);
    clearTimeout(this.resting);
    if (this.transport.playing || !Object.keys(this.unsaid).length) return;
    this.resting = setTimeout(() => this.reportNow(), REPORT_MS);
  }

  reportNow() {
    const waits = Object.keys(this.unsaid).length > 0;
    if (waits) this.choose(this.unsaid);
    this.forget();
    return waits;
  }

  /** Opens the calculation of a cell that is computed already. */
  open(cell) {
    if (!cell || cell.row >= this.revealed) return;
    this.transport.pause();
    this.hideTip();
    this.report({ site: this.header.site, head: this.head, query: cell.row, key: cell.column });
  }

  /** Up and down read the weights of the current row, key by key; Enter opens the calculation of one. */
  onMapKey(event) {
    if (event.key === "Enter") return this.open(this.map.cursor);
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const row = Math.max(this.row, 0);
    const column = this.map.cursor?.row === row ? this.map.cursor.column : -1;
    this.map.cursor = { row, column };
    const cell = this.map.move(0, by);
    const { x, y, width, height } = this.map.place(cell.row, cell.column);
    this.hover(cell, x + width / 2, y + height / 2);
  }

  hover(cell, x, y) {
    if (!cell || cell.row >= this.revealed) return this.leave();
    const { texts, queries, keys, queryStrip, keyStrip, names, site } = this.header;
    const found = this.cell(cell.row, cell.column);
    const [head, query, key, weight] = [names[this.head], queries[cell.row], keys[cell.column], weightText(found, texts)];
    const about = { site, head: this.head, query: cell.row, key: cell.column, weight: found.weight };
    this.say(fill(texts.cell, { head, query, key, weight }), about);
    this.showTip(inWindow(this.canvas, x, y), ...facts(head, [[texts.query, query], [texts.key, key], [texts.weight, weight]]));
    point({ queryStrip, query: cell.row, keyStrip, key: cell.column });
  }

  leave() {
    this.hideTip();
    point({});
  }

  draw() {
    const { header, transport, steps } = this;
    const { texts, names } = header;
    Object.assign(this.root.dataset, { step: transport.step, head: this.head });
    this.title.textContent = names[this.head];
    this.canvas.setAttribute("aria-label", fill(texts.label, { head: names[this.head] }));
    this.note.textContent = steps.length ? texts.whole : texts.notDecoded;
    this.note.hidden = header.decodes;
    this.next.hidden = !steps.length;
    if (steps.length) {
      transport.draw();
    }
    this.drawChips();
    if (steps.length) this.listCandidates();
    this.drawMap();
    this.drawTiles();
  }

  /** Lists the candidates of the step; where the player fills a screen, the likeliest for which there is room, and the chosen one. */
  listCandidates() {
    const { now, header: { texts } } = this;
    const room = fillsScreen() ? roomBelow(this.candidates, BELOW) : Infinity;
    if (this.listed === now && this.listedIn === room) return;
    Object.assign(this, { listed: now, listedIn: room });
    const list = (shown) => this.candidates.replaceChildren(candidateList(shown, texts, this.goes(now.step)));
    list(now.candidates);
    const row = heightOf(this.candidates) / this.candidates.querySelectorAll(".candidate").length;
    const most = Math.floor(room / row) - 1; // a line says how likely the others are
    if (heightOf(this.candidates) > room) list(now.candidates.filter(({ chosen }, at) => chosen || at < most));
  }

  /** Draws the target so far, and shades the key tokens by the weights of the current row. */
  drawChips() {
    const { strips, written, keyStrip, keys } = this.header;
    const { row, now } = this;
    strips.forEach((strip, i) => this.chips[i].forEach((node, position) => {
      const at = strip.name === written && now ? position - now.position : null;
      node.classList.toggle("unwritten", at !== null && at > 0);
      node.classList.toggle("selected", at === 0);
      node.classList.toggle("reads", at === -1);
      if (at === 0) keepInView(node);
      const looked = row >= 0 && strip.name === keyStrip && position < keys.length ? this.cell(row, position) : null;
      shade(node, this.colours, looked && !looked.masked ? looked.weight : null);
    }));
  }

  drawMap() {
    const { queryStrip, keyStrip, queries, keys, written, decodes } = this.header;
    const { pointed, colours, revealed } = this;
    const row = pointed.queryStrip === queryStrip ? pointed.query : null;
    const lit = { row: row ?? -1, column: pointed.keyStrip === keyStrip ? pointed.key ?? -1 : -1 };
    const known = decodes && keyStrip === written ? revealed : keys.length;
    this.map.take(this.heads[this.head], queries, keys);
    const room = widthIn(this.canvas.parentElement) - 28;
    this.map.draw(room, mapHeight(this.canvas, 330, 420, Infinity, BELOW), { colours, font: this.font(), lit, selected: this.row, revealed, known });
  }

  layout() {
    const { rows, columns } = this.map.cells;
    return [{ site: this.header.site, head: this.head, ...boxIn(this.root, this.canvas, this.map.box), row: 0, column: 0, rows, columns }];
  }

  drawTiles() {
    this.tiles.forEach(({ button, canvas }, head) => {
      const pen = sized(canvas, TILE, TILE);
      const place = { x: 0, y: 0, width: canvas.width, height: canvas.height };
      paint(pen, this.heads[head], this.colours, place, undefined, this.revealed);
      const silenced = this.header.silenced.includes(`${this.header.site}/${head}`);
      if (silenced) crossOut(pen, this.colours, { x: 0, y: 0, width: TILE, height: TILE });
      button.setAttribute("aria-pressed", head === this.head);
    });
  }
}
