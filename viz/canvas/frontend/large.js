// One head of the atlas, opened large in place of the cards: labels, zoom, a cell cursor.

const SIGNS = {
  closer: "M8 3v10M3 8h10",
  farther: "M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  enlarge: "M9.5 2.5h4v4M13.5 2.5l-5 5M6.5 13.5h-4v-4M2.5 13.5l5-5",
};

const AROUND_LARGE = 190; // CSS pixels of the window that a large head leaves to other things

class Large {
  /** `atlas` is the Atlas that owns this view. */
  constructor(atlas) {
    this.atlas = atlas;
    this.canvas = el("canvas", { tabindex: 0, role: "application" });
    this.map = new Heatmap(this.canvas);
    this.room = (usual) => usual; // the height that it may take
    this.brush = new Brush(this);
    this.title = el("h3");
    this.axes = el("p", { class: "axes" });
    this.tools = el("div", { class: "tools" });
    const header = el("header", {}, el("div", {}, this.title, this.axes), this.tools);
    this.box = el("div", { class: "large", hidden: true }, header, this.canvas);
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.canvas.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    watchTouch(this.canvas, {
      hover: (x, y) => this.hover(this.map.cellAt(x, y), x, y),
      leave: () => atlas.leave(),
      drag: (dx, dy) => { if (!this.brush.active) this.moved(() => this.map.pan(dx, dy)); },
      pinch: (factor, x, y) => this.moved(() => this.map.zoomBy(factor, x, y)),
      click: (x, y) => this.select(this.map.cellAt(x, y)),
    });
  }

  get open() {
    return Boolean(this.tile);
  }

  /** Opens a tile of the atlas, and moves the keyboard's focus there unless nobody asked for it. */
  show(tile, focused = true) {
    const { texts } = this.atlas.header;
    this.atlas.select(tile); // Python sends exact weights for the selected head
    this.take(tile);
    this.map.reset();
    const mean = { type: "button", class: "pooling", title: texts.meanHelp, onclick: () => this.togglePooling() };
    this.pooling = el("button", mean, texts.mean);
    this.tools.replaceChildren(
      ...this.brush.buttons(texts),
      this.pooling,
      iconButton(SIGNS.farther, texts.farther, () => this.zoom(1 / 1.5)),
      iconButton(SIGNS.closer, texts.closer, () => this.zoom(1.5)),
      iconButton(SIGNS.close, texts.close, () => this.hide()),
    );
    this.box.hidden = false;
    this.atlas.cardBox.hidden = true;
    this.atlas.draw(); // not `redraw`: the next key may come before the next frame
    this.atlas.tellLayout();
    if (!focused) return;
    this.canvas.focus({ preventScroll: true });
    this.box.scrollIntoView({ block: "nearest" });
  }

  /** Updates the numbers of the tile; they become exact once the head is selected. */
  take(tile) {
    this.tile = tile;
    this.title.textContent = tile.name;
    const left = this.atlas.leftOut(tile);
    const { first } = this.atlas.header;
    const more = [left && fill(first.ofHead, { share: left }), this.atlas.sharedKey(tile)].filter(Boolean);
    this.axes.textContent = [tile.card.group.axes, ...more].join(" · ");
    this.canvas.setAttribute("aria-label", fill(this.atlas.header.texts.openLabel, { head: tile.name }));
    this.map.take(this.atlas.cellsOf(tile), tile.card.group.queries, tile.card.group.keys);
  }

  /** Closes the view and returns the keyboard's focus to the card, if the focus was here. */
  hide() {
    const { tile } = this;
    const focused = this.box.contains(this.box.getRootNode().activeElement);
    this.tile = null;
    this.box.hidden = true;
    this.atlas.cardBox.hidden = false;
    this.atlas.leave();
    tile.card.at = tile.card.tiles.findIndex((each) => same(each, tile));
    if (focused) tile.card.canvas.focus();
    this.atlas.redraw();
  }

  /** Switches the pooling of cells smaller than pixels between mean and largest weight. */
  togglePooling() {
    const { cells } = this.map;
    cells.pooling = cells.pooling === "max" ? "mean" : "max";
    this.atlas.redraw();
  }

  draw() {
    const { atlas, tile } = this;
    const { group } = tile.card;
    const { pooling } = this.map.cells;
    this.pooling.hidden = !pooling;
    this.pooling.setAttribute("aria-pressed", pooling === "mean");
    const width = widthIn(this.box) - 28;
    this.canvas.style.touchAction = this.map.zoom > 1 || this.brush.active ? "none" : "pan-y";
    this.map.draw(width, this.room(mapHeight(this.canvas, AROUND_LARGE, 420, 760, atlas.below + 16)), {
      colours: atlas.colours, font: atlas.font(), lit: atlas.litIn(group), selected: atlas.selectedRow(group),
    });
    this.brush.draw(atlas.colours);
  }

  /** Rectangle of the heatmap, in pixels of the drawing. */
  layout() {
    const { left, top, right, bottom } = this.map.shown();
    const { site, head } = this.tile;
    const place = boxIn(this.atlas.root, this.canvas, this.map.box);
    return [{ site, head, ...place, row: top, column: left, rows: bottom - top, columns: right - left }];
  }

  hover(cell, x, y) {
    if (cell) this.map.cells.rest?.(cell.row, cell.column);
    if (cell) this.atlas.enter(this.tile, cell, inWindow(this.canvas, x, y));
    else this.atlas.leave();
  }

  /** Opens the calculation of a cell and selects its row, unless a tool of the brush takes the click. */
  select(cell) {
    if (cell && !this.brush.active) this.atlas.select(this.tile, cell.row, cell.column);
  }

  /** Selects the keyboard's cell, or applies the tool of the brush to it. */
  enter(cell) {
    if (cell && this.brush.active) this.brush.at(cell);
    else this.select(cell);
  }

  moved(change) {
    change();
    this.atlas.leave();
    this.atlas.redraw();
  }

  /** Zooms about the middle; zooming out of the whole map closes the view. */
  zoom(factor) {
    if (!this.map.zoomBy(factor) && factor < 1) this.hide();
    this.atlas.redraw();
  }

  onWheel(event) {
    const { x, y } = pointerIn(event);
    if (!this.map.zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0022)), x, y)) return;
    event.preventDefault();
    this.atlas.redraw();
  }

  onKey(event) {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const act = {
      Escape: () => this.hide(),
      "+": () => this.zoom(1.5),
      "=": () => this.zoom(1.5),
      "-": () => this.zoom(1 / 1.5),
      Enter: event.target === this.canvas && (() => this.enter(this.map.cursor)),
      s: () => this.atlas.silence(this.tile),
      S: () => this.atlas.silence(this.tile),
    }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !(by || act)) return;
    event.preventDefault();
    if (act) return act();
    const cell = this.map.move(...by);
    const { x, y, width, height } = this.map.place(cell.row, cell.column);
    this.hover(cell, x + width / 2, y + height / 2);
  }
}
