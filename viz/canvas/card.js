// One card of the atlas: all layers and heads of one kind of attention, as small maps on one canvas.

const GAP = 5;
const SMALLEST = 16;
const TALLEST = 260; // of a card's tiles together, unless they would become tiny
const NAMES = 17; // room for the heads' names above the tiles

/** True if two tiles are one head. */
function same(one, other) {
  return one.site === other.site && one.head === other.head;
}

class Card {
  /** `atlas` owns what is selected and pointed at; `group` is what the scene says about this kind of attention. */
  constructor(atlas, group) {
    const { texts } = atlas.header;
    Object.assign(this, { atlas, group, at: 0, keyboard: false, base: document.createElement("canvas") });
    this.canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": fill(texts.label, { title: group.title }) });
    this.scroll = el("div", { class: "scroll" }, this.canvas);
    const enlarge = iconButton(SIGNS.enlarge, texts.enlarge, () => atlas.large.show(this.preferred()));
    const title = el("div", {}, el("h3", {}, group.title), el("p", { class: "axes" }, group.axes));
    this.box = el("section", { class: "card" }, el("header", {}, title, enlarge), this.scroll);
    this.listen();
  }

  /** Puts the numbers of a scene into tiles; the selected head has exact ones. */
  take(blobs, selection) {
    this.tiles = this.group.sites.flatMap(({ site, mask, names }, row) => names.map((name, head) => {
      const { shape: [, rows, columns], array } = blobs[`weights/${site}`];
      const exact = same({ site, head }, selection) ? blobs.exact.array : null;
      const cells = grid(rows, columns, headOf(array, head, rows, columns), blobs[mask].array, exact);
      return { card: this, site, head, name, row, cells };
    }));
    this.across = Math.max(...this.group.sites.map(({ names }) => names.length));
    this.painted = null;
  }

  /** The tile that is opened or focused first. */
  preferred() {
    return this.tiles.find((tile) => same(tile, this.atlas.chosen)) ?? this.tiles[this.at] ?? this.tiles[0];
  }

  /** Sizes: the side of a tile, and where tiles begin. */
  arrange() {
    const { sites } = this.group;
    const pen = this.canvas.getContext("2d");
    pen.font = this.atlas.font(11.5);
    const left = Math.ceil(Math.max(...sites.map(({ label }) => pen.measureText(label).width))) + 7;
    const widest = Math.floor((this.scroll.clientWidth - 4 - left) / this.across) - GAP;
    const tallest = Math.max(30, Math.floor(TALLEST / sites.length) - GAP);
    const size = Math.max(SMALLEST, Math.min(widest, tallest));
    const [width, height] = [left + this.across * (size + GAP), NAMES + sites.length * (size + GAP)];
    Object.assign(this, { left, top: NAMES, size, width, height });
  }

  draw() {
    this.arrange();
    const ratio = window.devicePixelRatio || 1;
    const pen = sized(this.canvas, this.width, this.height);
    const painted = [this.width, this.height, ratio, this.atlas.colours.background].join();
    if (this.painted !== painted) this.paint(ratio);
    this.painted = painted;
    pen.drawImage(this.base, 0, 0, this.base.width / ratio, this.base.height / ratio);
    this.drawNames(pen);
    for (const tile of this.tiles) this.drawMarks(pen, tile);
  }

  /** Paints all cells once; hovering draws over a copy. */
  paint(ratio) {
    const { colours } = this.atlas;
    const pen = sized(this.base, this.width, this.height);
    const pixel = (at) => Math.round(at * ratio);
    const side = pixel(this.size);
    pen.strokeStyle = colours.line;
    for (const tile of this.tiles) {
      const { x, y } = this.corner(tile);
      paint(pen, tile.cells, colours, { x: pixel(x), y: pixel(y), width: side, height: side });
      pen.strokeRect(x - 0.5, y - 0.5, this.size + 1, this.size + 1);
    }
  }

  drawNames(pen) {
    const { colours, header, hovered } = this.atlas;
    const { left, top, size } = this;
    const active = hovered?.tile.card === this ? hovered.tile : null;
    const tint = (on) => (on ? colours.text : colours.faint);
    const middle = (index) => index * (size + GAP) + size / 2;
    Object.assign(pen, { font: this.atlas.font(11.5), textBaseline: "middle", textAlign: "right" });
    this.group.sites.forEach(({ label }, row) => {
      pen.fillStyle = tint(active?.row === row);
      pen.fillText(label, left - 6, top + middle(row));
    });
    pen.textAlign = "center";
    for (let head = 0; head < this.across; head++) {
      pen.fillStyle = tint(active?.head === head);
      pen.fillText(fill(header.texts.headShort, { head: head + 1 }), left + middle(head), 8);
    }
  }

  /** The rows and columns pointed at or selected, the selected head, the head under the pointer or the keyboard. */
  drawMarks(pen, tile) {
    const { atlas, size } = this;
    const { colours } = atlas;
    const { x, y } = this.corner(tile);
    const { row, column } = atlas.litIn(this.group);
    const selected = atlas.selectedRow(this.group);
    if (selected >= 0) this.tick(pen, colours.accent, tile, "row", selected);
    if (row >= 0) this.mark(pen, colours.text, tile, "row", row);
    if (column >= 0) this.mark(pen, colours.second, tile, "column", column);
    const outline = (colour, line) => {
      Object.assign(pen, { strokeStyle: colour, lineWidth: line });
      pen.strokeRect(x - line / 2, y - line / 2, size + line, size + line);
    };
    if (same(tile, atlas.chosen)) outline(colours.accent, 2.5);
    if (tile === atlas.hovered?.tile || (this.keyboard && tile === this.tiles[this.at])) outline(colours.text, 1.5);
  }

  /** Outlines a row or column of a tile; where cells are small, marks it at the edge alone. */
  mark(pen, colour, tile, axis, index) {
    const { x, y } = this.corner(tile);
    const { size } = this;
    const step = size / (axis === "row" ? tile.cells.rows : tile.cells.columns);
    if (step < 2.5) return this.tick(pen, colour, tile, axis, index);
    Object.assign(pen, { strokeStyle: colour, lineWidth: 1 });
    if (axis === "row") pen.strokeRect(x, y + index * step, size, step);
    else pen.strokeRect(x + index * step, y, step, size);
  }

  /** Marks a row at the left edge of a tile, a column at the top, in the gap, so that no cell is covered. */
  tick(pen, colour, tile, axis, index) {
    const { x, y } = this.corner(tile);
    const at = (index + 0.5) * (this.size / (axis === "row" ? tile.cells.rows : tile.cells.columns));
    const corners = [[0, at], [-4, at - 3], [-4, at + 3]];
    pen.fillStyle = colour;
    pen.beginPath();
    for (const [out, along] of corners) pen.lineTo(...(axis === "row" ? [x + out, y + along] : [x + along, y + out]));
    pen.fill();
  }

  corner({ row, head }) {
    return { x: this.left + head * (this.size + GAP), y: this.top + row * (this.size + GAP) };
  }

  /** The rectangles of the tiles, in CSS pixels of the drawing. */
  layout() {
    const { size: width, size: height } = this;
    return this.tiles.map((tile) => {
      const { site, head, cells: { rows, columns } } = tile;
      const box = boxIn(this.atlas.root, this.canvas, { ...this.corner(tile), width, height });
      return { site, head, ...box, row: 0, column: 0, rows, columns };
    });
  }

  /** The tile and the cell at a point of the canvas. */
  cellAt(x, y) {
    const step = this.size + GAP;
    const [head, row] = [Math.floor((x - this.left) / step), Math.floor((y - this.top) / step)];
    const tile = this.tiles.find((each) => each.row === row && each.head === head);
    const [u, v] = [(x - this.left - head * step) / this.size, (y - this.top - row * step) / this.size];
    if (!tile || u < 0 || v < 0 || u >= 1 || v >= 1) return null;
    return { tile, row: Math.floor(v * tile.cells.rows), column: Math.floor(u * tile.cells.columns) };
  }

  listen() {
    const { atlas, canvas } = this;
    const open = (x, y) => {
      const found = this.cellAt(x, y);
      if (found) atlas.large.show(found.tile);
    };
    watchFingers(canvas, {
      hover: (x, y) => this.hover(x, y),
      leave: () => atlas.leave(),
      pinch: (factor, x, y) => { if (factor > 1) open(x, y); },
      click: (x, y) => this.click(this.cellAt(x, y)),
    });
    canvas.addEventListener("dblclick", ({ offsetX, offsetY }) => open(offsetX, offsetY));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return; // a pinch on a trackpad; the wheel alone scrolls the page
      event.preventDefault();
      if (event.deltaY < 0) open(event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("focus", () => {
      if (canvas.matches(":focus-visible")) this.focus(this.tiles.indexOf(this.preferred()));
    });
    canvas.addEventListener("blur", () => { this.keyboard = false; atlas.redraw(); });
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  hover(x, y) {
    const found = this.cellAt(x, y);
    const { left, top } = this.canvas.getBoundingClientRect();
    if (found) this.atlas.enter(found.tile, found, { x: left + x, y: top + y });
    else this.atlas.leave();
  }

  /** Selects the tile under a click; the arrow keys go on from it. */
  click(found) {
    if (!found) return;
    Object.assign(this, { at: this.tiles.indexOf(found.tile), keyboard: false });
    this.atlas.select(found.tile);
  }

  /** Puts the keyboard on a tile. */
  focus(at) {
    Object.assign(this, { at, keyboard: true });
    const { name, site, head } = this.tiles[at];
    this.atlas.say(fill(this.atlas.header.texts.head, { head: name }), { site, head });
    this.atlas.redraw();
  }

  onKey(event) {
    const { atlas } = this;
    const tile = this.tiles[this.at];
    const open = () => atlas.large.show(tile);
    const go = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const act = { Enter: () => atlas.select(tile), " ": open, "+": open, "=": open }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !(go || act)) return;
    event.preventDefault();
    if (act) return act();
    const next = this.tiles.findIndex((each) => each.row === tile.row + go[0] && each.head === tile.head + go[1]);
    this.focus(next < 0 ? this.at : next);
  }
}
