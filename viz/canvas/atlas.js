// The atlas: every head of every site as a small map, one card for each kind of attention.

const GAP = 3;
const SMALLEST = 20;

class Atlas extends Drawing {
  constructor(parent) {
    super(parent, "atlas");
    this.large = new Large(this);
    this.cardBox = el("div", { class: "cards" });
    this.legend = el("div", { class: "legend", "aria-hidden": "true" });
    this.root.append(this.cardBox, el("div", { class: "foot" }, this.readout, this.legend), this.large.box);
  }

  form() {
    return JSON.stringify([this.header.groups, this.header.texts]);
  }

  build() {
    const { groups, texts } = this.header;
    if (this.large.open) this.large.hide();
    this.cards = groups.map((group) => this.card(group));
    this.cardBox.replaceChildren(...this.cards.map(({ box }) => box));
    this.legend.replaceChildren(texts.scale, el("span", {}, "0"), el("span", { class: "ramp" }), el("span", {}, "1"), el("span", { class: "hole" }), texts.masked);
    this.say(texts.hint);
  }

  card(group) {
    const { texts } = this.header;
    group.axes = `${group.queryAxis} ↓  ${group.keyAxis} →`;
    const canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": fill(texts.label, { title: group.title }) });
    const card = { group, canvas, base: document.createElement("canvas"), at: 0 };
    const enlarge = iconButton(SIGNS.enlarge, texts.enlarge, () => this.large.show(this.preferred(card)));
    const title = el("div", {}, el("h3", {}, group.title), el("p", { class: "axes" }, group.axes));
    card.box = el("section", { class: "card" }, el("header", {}, title, enlarge), el("div", { class: "scroll" }, canvas));
    this.listen(card);
    return card;
  }

  /** Puts the numbers of the scene into tiles; the selected head has exact ones. */
  take() {
    const { selection } = this.header;
    if (this.asked && this.asked.site === selection.site && this.asked.head === selection.head) this.asked = null;
    this.serial = (this.serial ?? 0) + 1;
    for (const card of this.cards) {
      card.tiles = card.group.sites.flatMap((site, row) => site.names.map((name, head) => this.tile(card, site, row, name, head)));
      card.across = Math.max(...card.group.sites.map(({ names }) => names.length));
      if (this.large.open && this.large.tile.card === card) this.large.take(card.tiles.find((tile) => same(tile, this.large.tile)));
    }
  }

  tile(card, { site, mask }, row, name, head) {
    const { shape: [, rows, columns], array } = this.blobs[`weights/${site}`];
    const exact = same({ site, head }, this.header.selection) ? this.blobs.exact.array : null;
    const cells = grid(rows, columns, headOf(array, head, rows, columns), this.blobs[mask].array, exact);
    return { card, site, head, name, row, cells };
  }

  /** The head that is outlined: the one asked for, until Python answers, else the one of the scene. */
  get chosen() {
    return this.asked && performance.now() - this.asked.at < 3000 ? this.asked : this.header.selection;
  }

  preferred(card) {
    return card.tiles.find((tile) => same(tile, this.chosen)) ?? card.tiles[card.at] ?? card.tiles[0];
  }

  font(size) {
    return `${size}px ${getComputedStyle(this.root).fontFamily}`;
  }

  draw() {
    const side = this.width >= 640 ? Math.min(this.cards.length, this.width >= 1500 ? 4 : 3) : 1;
    this.cardBox.style.setProperty("--columns", side);
    this.legend.querySelector(".ramp").style.background = `linear-gradient(90deg, ${this.colours.weights.join(", ")})`;
    for (const card of this.cards) this.drawCard(card, side);
    if (this.large.open) this.large.draw();
    else this.root.style.minHeight = "";
    this.root.dataset.layout = JSON.stringify(this.large.open ? this.large.layout() : this.cards.flatMap((card) => this.layoutOf(card)));
  }

  /** Sizes of a card: the side of a tile, and where tiles begin. */
  arrange(card, side) {
    const room = card.box.querySelector(".scroll").clientWidth - 4;
    const layers = card.group.sites.length;
    const pen = card.canvas.getContext("2d");
    pen.font = this.font(11.5);
    const left = Math.ceil(Math.max(...card.group.sites.map(({ label }) => pen.measureText(label).width))) + 7;
    const widest = Math.floor((room - left - GAP * (card.across - 1)) / card.across);
    const tallest = Math.floor(((side > 1 ? 420 : 330) - GAP * layers) / layers);
    const size = Math.max(SMALLEST, Math.min(widest, Math.max(tallest, 30), 110));
    Object.assign(card, { left, top: 17, size, width: left + card.across * (size + GAP), height: 17 + layers * (size + GAP) });
  }

  drawCard(card, side) {
    this.arrange(card, side);
    const pen = sized(card.canvas, card.width, card.height);
    const sketch = [card.width, card.height, window.devicePixelRatio, this.colours.background, this.serial].join();
    if (card.sketch !== sketch) this.drawBase(card);
    card.sketch = sketch;
    pen.drawImage(card.base, 0, 0, card.width, card.height);
    this.drawNames(pen, card);
    this.drawMarks(pen, card);
  }

  /** Paints all cells of a card once; hovering draws over a copy. */
  drawBase(card) {
    const pen = sized(card.base, card.width, card.height);
    const ratio = window.devicePixelRatio || 1;
    const pixel = (at) => Math.round(at * ratio);
    pen.strokeStyle = this.colours.line;
    for (const tile of card.tiles) {
      const { x, y } = this.corner(tile);
      const size = pixel(card.size);
      paint(pen, tile.cells, this.colours, { x: pixel(x), y: pixel(y), width: size, height: size });
      pen.strokeRect(x - 0.5, y - 0.5, card.size + 1, card.size + 1);
    }
  }

  drawNames(pen, card) {
    const active = this.hovered?.tile.card === card ? this.hovered.tile : null;
    const tint = (on) => (on ? this.colours.text : this.colours.faint);
    Object.assign(pen, { font: this.font(11.5), textBaseline: "middle", textAlign: "right" });
    card.group.sites.forEach(({ label }, row) => {
      pen.fillStyle = tint(active?.row === row);
      pen.fillText(label, card.left - 6, card.top + row * (card.size + GAP) + card.size / 2);
    });
    pen.textAlign = "center";
    for (let head = 0; head < card.across; head++) {
      pen.fillStyle = tint(active?.head === head);
      pen.fillText(fill(this.header.texts.headShort, { head: head + 1 }), card.left + head * (card.size + GAP) + card.size / 2, 8);
    }
  }

  /** The row and column pointed at in every tile, the cell under the pointer, the selected head, the keyboard's head. */
  drawMarks(pen, card) {
    const lit = this.litIn(card.group);
    const selected = this.selectedRow(card.group);
    for (const tile of card.tiles) {
      const { x, y } = this.corner(tile);
      const [wide, high] = [card.size / tile.cells.columns, card.size / tile.cells.rows];
      const outline = (colour, line, ...box) => { Object.assign(pen, { strokeStyle: colour, lineWidth: line }); pen.strokeRect(...box); };
      if (selected >= 0 && lit.row === undefined) outline(this.colours.accent, 1, x, y + selected * high, card.size, high);
      if (lit.row >= 0) outline(this.colours.text, 1, x, y + lit.row * high, card.size, high);
      if (lit.column >= 0) outline(this.colours.second, 1, x + lit.column * wide, y, wide, card.size);
      if (same(tile, this.chosen)) outline(this.colours.accent, 2.5, x - 1.25, y - 1.25, card.size + 2.5, card.size + 2.5);
      else if (tile === this.hovered?.tile || (card.keyboard && tile === card.tiles[card.at])) outline(this.colours.text, 1.5, x - 0.75, y - 0.75, card.size + 1.5, card.size + 1.5);
    }
  }

  corner({ card, row, head }) {
    return { x: card.left + head * (card.size + GAP), y: card.top + row * (card.size + GAP) };
  }

  /** {row, column} of a card's tiles that something on the page points at. */
  litIn({ queryStrip, keyStrip, writes }) {
    const { pointed } = this;
    const row = pointed.queryStrip === queryStrip && pointed.query !== null ? pointed.query : undefined;
    return { row, column: pointed.keyStrip === keyStrip && pointed.key !== null ? pointed.key : undefined };
  }

  /** The selected query row, in the groups that have the same query tokens. */
  selectedRow({ queryStrip }) {
    const home = this.cards.find(({ group }) => group.sites.some(({ site }) => site === this.chosen.site));
    return home?.group.queryStrip === queryStrip ? this.header.selection.query : -1;
  }

  layoutOf(card) {
    const outer = this.root.getBoundingClientRect();
    const inner = card.canvas.getBoundingClientRect();
    return card.tiles.map((tile) => {
      const { x, y } = this.corner(tile);
      const { rows, columns } = tile.cells;
      const box = { x: x + inner.x - outer.x, y: y + inner.y - outer.y, width: card.size, height: card.size };
      return { site: tile.site, head: tile.head, ...box, row: 0, column: 0, rows, columns };
    });
  }

  listen(card) {
    const { canvas } = card;
    const at = (x, y) => this.cellAt(card, x, y);
    watchFingers(canvas, {
      hover: (x, y) => this.hover(card, x, y),
      pinch: (factor, x, y) => { if (factor > 1 && at(x, y)) this.large.show(at(x, y).tile); },
      click: (x, y) => { const found = at(x, y); if (found) this.select(found.tile); },
    });
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("dblclick", ({ offsetX, offsetY }) => { const found = at(offsetX, offsetY); if (found) this.large.show(found.tile); });
    canvas.addEventListener("wheel", (event) => {
      const found = event.ctrlKey && at(event.offsetX, event.offsetY);
      if (event.ctrlKey) event.preventDefault();
      if (found && event.deltaY < 0) this.large.show(found.tile);
    }, { passive: false });
    canvas.addEventListener("focus", () => { if (canvas.matches(":focus-visible")) this.focus(card, card.tiles.indexOf(this.preferred(card))); });
    canvas.addEventListener("blur", () => { card.keyboard = false; this.redraw(); });
    canvas.addEventListener("keydown", (event) => this.onKey(card, event));
  }

  hover(card, x, y) {
    const found = this.cellAt(card, x, y);
    const { left, top } = card.canvas.getBoundingClientRect();
    if (found) this.enter(found.tile, found, { x: left + x, y: top + y });
    else this.leave();
  }

  /** The tile and the cell at a point of a card's canvas. */
  cellAt(card, x, y) {
    const step = card.size + GAP;
    const [head, row] = [Math.floor((x - card.left) / step), Math.floor((y - card.top) / step)];
    const tile = card.tiles.find((each) => each.row === row && each.head === head);
    const [u, v] = [(x - card.left - head * step) / card.size, (y - card.top - row * step) / card.size];
    if (!tile || u < 0 || v < 0 || u >= 1 || v >= 1) return null;
    return { tile, row: Math.floor(v * tile.cells.rows), column: Math.floor(u * tile.cells.columns) };
  }

  /** Something is under the pointer or the keyboard: read it out, and tell the other drawings. */
  enter(tile, { row, column }, place) {
    const { group } = tile.card;
    const { texts } = this.header;
    const cell = cellOf(tile.cells, row, column);
    const weight = weightText(cell, texts);
    const [query, key] = [group.queries[row], group.keys[column]];
    this.hovered = { tile };
    this.say(fill(texts.cell, { head: tile.name, query, key, weight }), { site: tile.site, head: tile.head, query: row, key: column, weight: cell.weight });
    this.showTip(place, ...facts(tile.name, [[texts.query, query], [texts.key, key], [texts.weight, weight]]));
    point({ queryStrip: group.queryStrip, query: row, keyStrip: group.keyStrip, key: column });
  }

  leave() {
    if (!this.hovered) return;
    this.hovered = null;
    this.hideTip();
    this.say(this.header.texts.hint);
    point({});
  }

  /** Asks for a head (and a row of it); the outline moves at once. */
  select({ site, head }, query) {
    this.asked = { site, head, at: performance.now() };
    this.choose({ site, head, query });
    this.redraw();
  }

  focus(card, at) {
    Object.assign(card, { at, keyboard: true });
    const { name, site, head } = card.tiles[at];
    this.say(fill(this.header.texts.head, { head: name }), { site, head });
    this.redraw();
  }

  onKey(card, event) {
    const tile = card.tiles[card.at];
    const go = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const act = { Enter: () => this.select(tile), " ": () => this.large.show(tile), "+": () => this.large.show(tile), "=": () => this.large.show(tile) }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !(go || act)) return;
    event.preventDefault();
    if (act) return act();
    const next = card.tiles.findIndex((each) => each.row === tile.row + go[0] && each.head === tile.head + go[1]);
    this.focus(card, next < 0 ? card.at : next);
  }
}

/** True if two tiles are one head. */
function same(one, other) {
  return one.site === other.site && one.head === other.head;
}

export default (component) => mount(component, Atlas);
