// Training film: the atlas at every snapshot of a training. The browser has all numbers, so the slider never asks the server.

const SETTLED_MS = 400; // delay after the last move before it is reported to Python

class Film extends Atlas {
  constructor(parent) {
    super(parent);
    this.transport = new Transport({ moved: () => this.moved(), rested: () => this.report() });
    this.said = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
    this.controls = el("div");
    this.stage = el("div", { class: "film" });
    this.root.prepend(this.controls, this.stage);
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

  form() {
    super.form();
    this.all = this.overview;
    const { frames, fed, texts } = this.header;
    return JSON.stringify([this.groups, texts, frames, fed]);
  }

  build() {
    super.build();
    this.root.dataset.drawing = "film";
    const { frames, fed, titles, texts, measures } = this.header;
    this.title = el("h3");
    this.fed = fed.map((token, at) => chip(token, at, this.chipListeners(token, at)));
    this.own = el("div", { class: "own" });
    this.losses = this.numbers(texts.onFed, [texts.loss, texts.perplexity]);
    this.headNumbers = this.numbers("", measures);
    const given = el("div", { class: "fed" }, chipStrip({ name: "fed", title: titles.fed }, this.fed, texts));
    const strips = el("div", { class: "strips" }, given, this.own);
    const numbers = el("div", { class: "numbers" }, this.losses.box, this.headNumbers.box);
    const card = el("section", { class: "card" }, this.title, strips, numbers, this.said);
    const controls = this.transport.build(frames.length, texts);
    this.controls.replaceWith(controls); // beside the stage, so that it can stay in view over the whole drawing
    this.controls = controls;
    this.stage.replaceChildren(card);
  }

  /** A row of named numbers under a title. */
  numbers(title, names) {
    const heading = el("h4", {}, title);
    const values = names.map(() => el("dd"));
    const pairs = names.map((name, i) => el("div", {}, el("dt", {}, name), values[i]));
    return { heading, values, box: el("div", {}, heading, el("dl", {}, ...pairs)) };
  }

  chipListeners(token, position) {
    const enter = ({ currentTarget }) => {
      const { x, top, height } = currentTarget.getBoundingClientRect();
      const { texts } = this.header;
      const probability = this.probability(position);
      const likely = probability === undefined ? texts.token : texts.likely;
      const notes = [token.special && texts.special, token.unknown && texts.unknown].filter(Boolean);
      const about = fill(likely, { token: token.text, probability: probability === undefined ? "" : exactly(probability) });
      this.showTip({ x, y: top, height }, el("b", {}, about), ...notes.map((note) => el("p", {}, note)));
    };
    return { onpointerenter: enter, onfocus: enter, onpointerleave: () => this.hideTip(), onblur: () => this.hideTip() };
  }

  /** Probability that this snapshot gave to a token it was fed; undefined for the first token, which is not predicted. */
  probability(position) {
    const { array, shape: [, tokens] } = this.all.probability;
    return position > 0 && position <= tokens ? array[this.at * tokens + position - 1] : undefined;
  }

  /** Index of the current frame. */
  get at() {
    return this.transport.step;
  }

  /** Takes a scene. A new film starts at the frame that Python names; a known one stays at its current frame. */
  take() {
    const { film, frame } = this.header;
    if (film !== this.running) this.transport.step = this.transport.inside(frame);
    this.running = film;
    this.cut();
  }

  /** Cuts the numbers of one frame out of the film, for the atlas. */
  cut() {
    const part = (name) => {
      const { array, shape: [, ...shape] } = this.all[name];
      const size = shape.reduce((product, side) => product * side, 1);
      return { shape, array: array.subarray(this.at * size, (this.at + 1) * size) };
    };
    const moving = Object.keys(this.all).filter((name) => !name.startsWith("mask/"));
    this.overview = { ...this.all, ...Object.fromEntries(moving.map((name) => [name, part(name)])) };
    super.take();
    this.tell();
  }

  /** Cells of a head at this snapshot; exact for the selected head, once fetched. */
  cellsOf(tile) {
    const part = same(tile, this.header.selection) ? this.part("exact") : null;
    if (!part) return tile.cells;
    const { exact: { shape: [, rows, columns], array }, mask } = part.blobs;
    const weights = headOf(array, this.at, rows, columns);
    return grid(rows, columns, encoded(weights), mask.array, weights);
  }

  /** Writes the loss, the output and the measures of this snapshot. */
  tell() {
    const { frames, steps, titles, texts, selection, column } = this.header;
    const { name, loss, perplexity, own } = frames[this.at];
    const most = decimals();
    const shown = (value, digits) => (value === null || Number.isNaN(value) ? "–" : fixed(value, Math.min(digits, most)));
    const tokens = own.map((token, at) => chip(token, at, this.ownListeners(token)));
    this.title.textContent = name;
    this.own.replaceChildren(chipStrip({ name: "own", title: titles.own }, tokens.length ? tokens : [texts.nothing], texts));
    this.own.hidden = loss === null;
    this.losses.box.hidden = loss === null;
    [loss, perplexity].forEach((value, i) => { this.losses.values[i].textContent = shown(value, 2 + (i === 0)); });
    this.headNumbers.heading.textContent = this.groups.flatMap(({ sites }) => sites).find(({ site }) => site === selection.site).names[selection.head];
    const { array, shape: [, heads] } = this.overview.measures;
    this.headNumbers.values.forEach((node, i) => { node.textContent = shown(array[i * heads + column], 3); });
    this.fed.forEach((node, position) => this.fillBar(node, this.probability(position)));
    this.root.dataset.snapshot = steps[this.at];
    const output = own.filter(({ special }) => !special).map(({ text }) => text).join(" ");
    this.said.textContent = fill(loss === null ? texts.moved : texts.moment, { moment: name, loss: shown(loss, 3), output });
  }

  ownListeners(token) {
    const { texts } = this.header;
    const about = fill(texts.likely, { token: token.text, probability: exactly(token.probability) });
    const enter = ({ currentTarget }) => {
      const { x, top, height } = currentTarget.getBoundingClientRect();
      this.showTip({ x, y: top, height }, el("b", {}, about));
    };
    return { onpointerenter: enter, onfocus: enter, onpointerleave: () => this.hideTip(), onblur: () => this.hideTip() };
  }

  /** Sets the bar below a token to its probability. */
  fillBar(node, probability) {
    node.querySelector(".bar")?.remove();
    if (probability === undefined) return;
    node.dataset.probability = probability;
    node.append(el("span", { class: "bar" }, shareOf(probability)));
  }

  /** Shows another frame, and rereads the cell under the pointer. */
  moved() {
    const { hovered } = this;
    this.hideTip();
    this.cut();
    if (hovered?.cell) this.enter(this.tileLike(hovered.tile), hovered.cell, hovered.place);
    this.report();
    this.redraw();
  }

  tileLike(tile) {
    return this.cards.flatMap(({ tiles }) => tiles).find((each) => same(each, tile));
  }

  enter(tile, cell, place) {
    super.enter(tile, cell, place);
    Object.assign(this.hovered, { cell: { row: cell.row, column: cell.column }, place });
  }

  /** Reports a choice together with its snapshot. */
  choose(selection) {
    clearTimeout(this.resting);
    this.resting = null;
    super.choose({ ...selection, snapshot: this.header.steps[this.at] });
  }

  /** Reports the snapshot to Python once the slider has rested, never while playing. */
  report() {
    clearTimeout(this.resting);
    this.resting = this.transport.playing ? null : setTimeout(() => this.reportNow(), SETTLED_MS);
  }

  reportNow() {
    const waits = Boolean(this.resting);
    if (waits) this.choose({});
    return waits;
  }

  draw() {
    this.transport.draw();
    super.draw();
  }
}
