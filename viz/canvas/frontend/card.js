// A card of the atlas: all layers and heads of one kind of attention, as tiles (small heatmaps) on one canvas. If the tiles would
// be too small, it shows one layer at a time.

const GAP = 5;
const EDGE = 5; // room for outlines beside the first tile
const SMALLEST = 16;
const READABLE = 22; // if tiles would be smaller than this, only one layer is shown
const ALONE = 64; // approximate side of a tile when only one layer is shown
const TALLEST = 260; // height of all tiles of a card together, unless that makes them too small
const COMFORTABLE = 52; // side of a tile in a tall window
const NAMES = 17; // room for the heads' names

/** True if two tiles show the same head. */
function same(one, other) {
  return one.site === other.site && one.head === other.head;
}

class Card {
  /** `atlas` owns selection and pointer; `group` is the scene's entry for this kind of attention. */
  constructor(atlas, group) {
    const { texts } = atlas.header;
    Object.assign(this, { atlas, group, at: 0, shown: [], keyboard: false, base: document.createElement("canvas") });
    this.canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": fill(texts.label, { title: group.title }) });
    this.names = new CardNames(group, texts);
    this.scroll = el("div", { class: "scroll" }, ...this.names.boxes, this.canvas);
    const enlarge = iconButton(SIGNS.enlarge, texts.enlarge, () => atlas.large.show(this.preferred()));
    const title = el("div", {}, el("h3", {}, group.title), el("p", { class: "axes" }, group.axes));
    const options = group.sites.map(({ label }, row) => el("option", { value: row }, label));
    const choose = ({ target }) => { this.layer = Number(target.value); atlas.redraw(); };
    this.layers = el("select", { class: "layers", "aria-label": texts.layer, onchange: choose }, ...options);
    this.box = el("section", { class: "card" }, el("header", {}, title, this.layers, enlarge), this.scroll);
    this.listen();
  }

  /** Whether each tile has its name above it, and the card no names at its edges. */
  get named() {
    return this.alone || this.inLine;
  }

  /** Makes the tiles from the numbers of an overview; `group` may be the same kind of attention in another run. */
  take(group, blobs) {
    this.group = group;
    const { sites, blocks, queries, keys } = group;
    this.tiles = sites.flatMap(({ site, mask, names }, row) => names.map((name, head) => {
      const { shape: [, rows, columns], array } = blobs[`weights/${site}`];
      const stored = grid(rows, columns, headOf(array, head, rows, columns), blobs[mask].array, null, this.atlas.signed);
      return { card: this, site, head, name, row, cells: pooledGrid(queries.length, keys.length, stored, blocks) };
    }));
    this.across = Math.max(...sites.map(({ names }) => names.length));
    this.painted = null;
  }

  /** The tile to open or focus first. */
  preferred() {
    return this.tiles.find((tile) => same(tile, this.atlas.chosen)) ?? this.tiles[this.at] ?? this.tiles[0];
  }

  /** Computes sizes and positions of the visible tiles. */
  arrange() {
    const { sites } = this.group;
    const left = this.names.width(this.canvas.getContext("2d"), this.atlas.font(11.5));
    const room = this.scroll.clientWidth - 4;
    const widest = Math.floor((room - left - EDGE) / this.across) - GAP;
    const alone = this.atlas.cards.length === 1; // a model with one kind of attention has the whole width, and larger tiles
    const together = Math.max(alone ? innerHeight * 0.5 : TALLEST, Math.min((innerHeight / zoomOf(this.canvas)) * 0.62, sites.length * (COMFORTABLE + GAP)));
    const tallest = Math.max(30, Math.floor(together / sites.length) - GAP);
    this.alone = widest < READABLE && sites.length > 1;
    this.inLine = false;
    if (this.alone) return this.arrangeLayer(room);
    const size = Math.max(SMALLEST, Math.min(widest, tallest));
    const lined = Math.min(Math.floor((room - EDGE) / this.tiles.length) - GAP, Math.floor(together) - NAMES);
    this.inLine = alone && sites.length > 1 && lined > size; // few heads: all layers side by side fill the width
    if (this.inLine) return this.arrangeLine(lined);
    for (const tile of this.tiles) Object.assign(tile, { x: EDGE + tile.head * (size + GAP), y: EDGE + tile.row * (size + GAP) });
    Object.assign(this, { left, size, shown: this.tiles, step: size + GAP });
    Object.assign(this, { width: EDGE + this.across * (size + GAP), height: EDGE + sites.length * (size + GAP) });
  }

  /** Arranges all heads in one line, each with its name above. */
  arrangeLine(size) {
    this.tiles.forEach((tile, at) => Object.assign(tile, { x: EDGE + at * (size + GAP), y: NAMES }));
    Object.assign(this, { left: 0, size, shown: this.tiles, width: EDGE + this.tiles.length * (size + GAP), height: NAMES + size + GAP });
  }

  /** Arranges the heads of one layer in lines, each with its name above. */
  arrangeLayer(room) {
    const count = Math.max(1, Math.min(this.across, Math.floor((room - EDGE) / (ALONE + GAP))));
    const size = Math.floor((room - EDGE) / count) - GAP;
    const own = this.group.sites.findIndex(({ site }) => site === this.atlas.chosen.site);
    this.layer ??= Math.max(own, 0);
    const shown = this.tiles.filter(({ row }) => row === this.layer);
    const line = size + GAP + NAMES;
    for (const tile of shown) {
      Object.assign(tile, { x: EDGE + (tile.head % count) * (size + GAP), y: Math.floor(tile.head / count) * line + NAMES });
    }
    Object.assign(this, { left: 0, size, shown, width: EDGE + count * (size + GAP), height: Math.ceil(shown.length / count) * line });
    this.layers.value = this.layer;
  }

  /** Draws the tiles at the positions from `arrange`. */
  draw() {
    this.layers.hidden = !this.alone;
    const hovered = this.atlas.hovered?.tile;
    this.names.draw(this, hovered?.card === this ? hovered : null);
    const ratio = resolution(this.canvas);
    const pen = sized(this.canvas, this.width, this.height);
    const painted = [this.width, this.height, ratio, this.inLine, this.alone && this.layer, this.atlas.colours.background].join();
    if (this.painted !== painted) this.paint(ratio);
    this.painted = painted;
    pen.drawImage(this.base, 0, 0, this.base.width / ratio, this.base.height / ratio);
    for (const tile of this.shown) this.drawMarks(pen, tile);
  }

  /** Paints all cells once into an off-screen canvas; hovering redraws only the marks over a copy of it. */
  paint(ratio) {
    const { colours, header } = this.atlas;
    const pen = sized(this.base, this.width, this.height, ratio);
    const pixel = (at) => Math.round(at * ratio);
    const side = Math.max(1, pixel(this.size));
    Object.assign(pen, { strokeStyle: colours.line, fillStyle: colours.faint, font: this.atlas.font(11.5), textBaseline: "middle" });
    for (const tile of this.shown) {
      const { x, y } = tile;
      paint(pen, tile.cells, colours, { x: pixel(x), y: pixel(y), width: side, height: side });
      pen.strokeRect(x - 0.5, y - 0.5, this.size + 1, this.size + 1);
      if (!this.named) continue;
      const layer = this.inLine ? `${this.group.sites[tile.row].label} ` : "";
      pen.fillText(layer + fill(header.texts.headShort, { head: tile.head + 1 }), x, y - 8);
    }
  }

  /** Marks the pointed-at and selected rows and columns, the selected head, and the head under the pointer or the keyboard. */
  drawMarks(pen, tile) {
    const { atlas, size } = this;
    const { colours } = atlas;
    const { x, y } = tile;
    const { row, column } = atlas.litIn(this.group);
    const selected = atlas.selectedRow(this.group);
    if (selected >= 0) this.tick(pen, colours.accent, tile, "row", selected);
    if (row >= 0) this.mark(pen, colours.text, tile, "row", row);
    if (column >= 0) this.mark(pen, colours.second, tile, "column", column);
    if (atlas.isSilenced(tile)) crossOut(pen, colours, { x, y, width: size, height: size });
    const outline = (colour, line) => {
      Object.assign(pen, { strokeStyle: colour, lineWidth: line });
      pen.strokeRect(x - line / 2, y - line / 2, size + line, size + line);
    };
    if (same(tile, atlas.chosen)) outline(colours.accent, 2.5);
    if (tile === atlas.hovered?.tile || (this.keyboard && tile === this.tiles[this.at])) outline(colours.text, 1.5);
  }

  /** Outlines a row or column of a tile; if cells are small, marks it only at the edge. */
  mark(pen, colour, tile, axis, index) {
    const { x, y } = tile;
    const { size } = this;
    const step = size / (axis === "row" ? tile.cells.rows : tile.cells.columns);
    if (step < 2.5) return this.tick(pen, colour, tile, axis, index);
    Object.assign(pen, { strokeStyle: colour, lineWidth: 1 });
    if (axis === "row") pen.strokeRect(x, y + index * step, size, step);
    else pen.strokeRect(x + index * step, y, step, size);
  }

  /** Marks a row at the left edge of a tile, a column at the top; the mark lies in the gap and covers no cell. */
  tick(pen, colour, tile, axis, index) {
    const { x, y } = tile;
    const at = (index + 0.5) * (this.size / (axis === "row" ? tile.cells.rows : tile.cells.columns));
    const corners = [[0, at], [-4, at - 3], [-4, at + 3]];
    pen.fillStyle = colour;
    pen.beginPath();
    for (const [out, along] of corners) pen.lineTo(...(axis === "row" ? [x + out, y + along] : [x + along, y + out]));
    pen.fill();
  }

  /** The rectangles of the tiles, in CSS pixels of the drawing. */
  layout() {
    const { size: width, size: height } = this;
    const { x: left, y: top } = boxIn(this.atlas.root, this.canvas, { x: 0, y: 0, width, height });
    return this.shown.map(({ site, head, x, y, cells: { rows, columns } }) => (
      { site, head, x: left + x, y: top + y, width, height, row: 0, column: 0, rows, columns }
    ));
  }

  /** The tile and the cell at a point of the canvas. */
  cellAt(x, y) {
    const { size } = this;
    const tile = this.shown.find((each) => x >= each.x && y >= each.y && x < each.x + size && y < each.y + size);
    if (!tile) return null;
    const [u, v] = [(x - tile.x) / size, (y - tile.y) / size];
    return { tile, row: Math.floor(v * tile.cells.rows), column: Math.floor(u * tile.cells.columns) };
  }

  listen() {
    const { atlas, canvas } = this;
    const open = (x, y) => {
      const found = this.cellAt(x, y);
      if (found) atlas.large.show(found.tile);
    };
    watchTouch(canvas, {
      hover: (x, y) => this.hover(x, y),
      leave: () => atlas.leave(),
      pinch: (factor, x, y) => { if (factor > 1) open(x, y); },
      click: (x, y) => this.click(this.cellAt(x, y)),
    });
    this.scroll.addEventListener("scroll", () => atlas.redraw(), { passive: true });
    canvas.addEventListener("dblclick", (event) => open(...Object.values(pointerIn(event))));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return; // with ctrlKey it is a pinch on a trackpad; a plain wheel scrolls the page
      event.preventDefault();
      if (event.deltaY < 0) open(...Object.values(pointerIn(event)));
    }, { passive: false });
    canvas.addEventListener("focus", () => {
      if (canvas.matches(":focus-visible")) this.focus(this.tiles.indexOf(this.preferred()));
    });
    canvas.addEventListener("blur", () => { this.keyboard = false; atlas.redraw(); });
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  hover(x, y) {
    const found = this.cellAt(x, y);
    if (found) this.atlas.enter(found.tile, found, inWindow(this.canvas, x, y));
    else this.atlas.leave();
  }

  /** Selects the clicked tile and moves the keyboard's focus to it. */
  click(found) {
    if (!found) return;
    Object.assign(this, { at: this.tiles.indexOf(found.tile), keyboard: false });
    this.atlas.select(found.tile);
  }

  /** Moves the keyboard's focus to a tile and scrolls it into view. */
  focus(at) {
    const tile = this.tiles[at];
    const { name, site, head } = tile;
    Object.assign(this, { at, keyboard: true, layer: tile.row });
    this.atlas.say(fill(this.atlas.header.texts.head, { head: name }), { site, head });
    this.arrange();
    this.draw();
    this.names.reveal(this.scroll, tile, this.size);
    this.atlas.redraw();
  }

  onKey(event) {
    const { atlas } = this;
    const tile = this.tiles[this.at];
    const open = () => atlas.large.show(tile);
    const go = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const silence = () => atlas.silence((this.keyboard ? null : atlas.hovered?.tile) ?? tile);
    const act = { Enter: () => atlas.select(tile), " ": open, "+": open, "=": open, s: silence, S: silence }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !(go || act)) return;
    event.preventDefault();
    if (act) return act();
    const next = this.tiles.findIndex((each) => each.row === tile.row + go[0] && each.head === tile.head + go[1]);
    this.focus(next < 0 ? this.at : next);
  }
}
