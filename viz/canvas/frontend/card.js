// A card of the atlas: all layers and heads of one kind of attention, as tiles (small heatmaps) on one canvas.

const LEAST_STAGE = 90; // of a stage lower than that, the tiles take more than is left
const TALLEST = 260; // least height that the tiles of a card together may have, in a low window

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
    this.folds = el("div", { class: "folds" });
    this.spot = el("i", { class: "spot", "aria-hidden": "true" });
    this.field = el("div", { class: "field" }, this.canvas, this.folds, this.spot);
    const enlarge = iconButton(SIGNS.enlarge, texts.enlarge, () => atlas.large.show(this.preferred()), { tabindex: -1 }); // Space does it, too
    const title = el("div", {}, el("h3", {}, group.title), el("p", { class: "axes" }, group.axes));
    const many = group.sites.reduce((sum, { names }) => sum + names.length, 0) > MANY;
    if (many && atlas.header.find) this.finder = new Finder(this);
    this.box = el("section", { class: "card" }, el("header", {}, title, enlarge), ...(this.finder ? [this.finder.box] : []), this.field);
    if (this.finder) this.box.append(this.finder.more);
    this.listen();
  }

  /** Makes the tiles from the numbers of an overview; `group` may be the same kind of attention in another run. */
  take(group, blobs) {
    this.group = group;
    const { sites, blocks, queries, keys } = group;
    this.tiles = sites.flatMap(({ site, mask, names, shared }, row) => names.map((name, head) => {
      const { shape: [, rows, columns], array } = blobs[`weights/${site}`];
      const stored = grid(rows, columns, headOf(array, head, rows, columns), blobs[mask].array, null, this.atlas.signed);
      return { card: this, site, head, name, row, shared, cells: pooledGrid(queries.length, keys.length, stored, blocks) };
    }));
    this.across = Math.max(...sites.map(({ names }) => names.length));
    this.painted = null;
    this.measure(blobs);
  }

  /** Gives each tile its readings, which are of all heads in the order of the cards; `share` is that of the first token. */
  measure({ readings, kinds }) {
    if (this.finder) this.finder.box.hidden = !readings;
    if (!readings) return;
    const { array, shape: [count, heads] } = readings;
    const before = this.atlas.groups.slice(0, this.atlas.groups.indexOf(this.group)).flatMap(({ sites }) => sites);
    const start = before.reduce((sum, { names }) => sum + names.length, 0);
    this.tiles.forEach((tile, i) => {
      tile.readings = Array.from({ length: count }, (_, reading) => array[reading * heads + start + i]);
      [tile.share] = tile.readings;
      tile.kind = kinds.array[start + i];
    });
    this.finder?.take();
  }

  /** The tile to open or focus first. */
  preferred() {
    const tiles = this.finder?.active && this.shown.length ? this.shown : this.tiles;
    return tiles.find((tile) => same(tile, this.atlas.chosen)) ?? (tiles.includes(this.tiles[this.at]) ? this.tiles[this.at] : tiles[0]);
  }

  /** Width of the layers' names. */
  labelWidth() {
    const pen = this.canvas.getContext("2d");
    pen.font = this.atlas.font(11.5, 650);
    return Math.ceil(Math.max(...this.group.sites.map(({ label }) => pen.measureText(label).width))) + 8;
  }

  /** What there is to be placed, and the room for it. A card of its own may be nearly as high as the window. */
  room() {
    const what = { layers: this.group.sites.length, across: this.across, room: widthIn(this.field), left: this.labelWidth() };
    if (fillsScreen()) return { ...what, tall: this.share(), fills: true };
    const own = this.atlas.tileRoom() - NAMES - 2;
    if (own > LEAST_STAGE) return { ...what, tall: own, fills: true };
    const scale = scaleOf(this.canvas);
    const share = this.atlas.cards.length > 1 ? 0.62 : scale > 1 ? 0.85 : 0.78;
    return { ...what, tall: Math.max(TALLEST, (innerHeight / scale) * share) };
  }

  /** The height that the tiles get where the cards of all kinds fill a screen. */
  share() {
    const { lines, cardBox, below } = this.atlas;
    const own = (roomBelow(cardBox, below) - (lines - 1) * BETWEEN) / lines;
    return Math.max(LOWEST, own - (heightOf(this.box) - heightOf(this.field))) - NAMES - 2;
  }

  /** Computes sizes and positions of the visible tiles. */
  arrange() {
    const room = this.room();
    if (this.finder?.active) return this.arrangeFound(room);
    const plan = room.fills ? filling(room) : columnsFor(room);
    const found = plan?.lines ? inNamedLines(plan, room) : plan ? inColumns(plan, room) : this.inBands(room);
    this.shown = this.tiles.filter((tile) => Object.assign(tile, found.place(tile.row, tile.head) ?? { x: null }).x !== null);
    Object.assign(this, { found, size: found.size, high: found.high ?? found.size, width: room.room, height: found.height });
  }

  /** The heads that were found, in lines. */
  arrangeFound(room) {
    const heads = this.finder.heads();
    const found = inLines(heads.length, room, this.finder.pages);
    this.shown = heads.slice(0, found.shown);
    this.shown.forEach((tile, i) => Object.assign(tile, found.at(i)));
    Object.assign(this, { found: { ...found, layers: [], heads: [], bands: [] }, size: found.size, high: found.size, width: room.room, height: found.height });
  }

  /** Layers in bands. A band that was opened or closed by hand stays so for as long as the bands are cut alike. */
  inBands(room) {
    const plan = bandsFor(room);
    const cut = [plan.size, plan.count].join();
    const selected = this.group.sites.findIndex(({ site }) => site === this.atlas.chosen.site);
    if (this.cut !== cut) this.open = firstOpen(plan, room, Math.max(selected, 0));
    Object.assign(this, { cut, plan, most: longest(room.room, resolution(this.canvas)) });
    return inBands(plan, room, this.open);
  }

  /** Opens or closes a band. The others close if the picture would become longer than a browser can draw. */
  toggle(band, open = !this.open.has(band)) {
    const { layer, size } = this.plan;
    if (open && (this.open.size + 1) * size * layer > this.most) this.open.clear();
    this.open[open ? "add" : "delete"](band);
    this.atlas.redraw();
  }

  /** Draws the tiles at the positions from `arrange`. */
  draw() {
    const { atlas, found } = this;
    this.drawFolds();
    this.finder?.tell(this.shown.length);
    const ratio = resolution(this.canvas, this.width, this.height);
    const pen = sized(this.canvas, this.width, this.height, ratio);
    const painted = [this.width, this.height, ratio, this.size, this.high, [...(this.open ?? [])], atlas.colours.background, atlas.header.first?.left, this.finder?.active && this.finder.made].join();
    if (this.painted !== painted) this.paint(ratio);
    this.painted = painted;
    pen.drawImage(this.base, 0, 0, this.base.width / ratio, this.base.height / ratio);
    const active = this.keyboard ? this.tiles[this.at] : atlas.hovered?.tile;
    if (active?.card === this) drawNames(this, pen, atlas.colours.text, atlas.font(11.5, 650), found, active);
    const lit = { ...atlas.litIn(this.group), selected: atlas.selectedRow(this.group) };
    for (const tile of this.shown) drawMarks(this, pen, tile, lit);
  }

  /** The buttons of the bands. */
  drawFolds() {
    const { bands } = this.found;
    const { texts } = this.atlas.header;
    const form = JSON.stringify([bands.map(({ first, last }) => [first, last]), texts.fold]);
    if (form !== this.foldForm) {
      this.buttons = bands.map(({ band, first, last }) => {
        const [from, to] = [first, last].map((layer) => this.group.sites[layer].label);
        const heads = this.tiles.filter(({ row }) => row >= first && row <= last).length;
        const name = fill(first === last ? texts.foldOne : texts.fold, { first: from, last: to, heads });
        return el("button", { type: "button", class: "fold", onclick: () => this.toggle(band) }, name);
      });
      this.folds.replaceChildren(...this.buttons);
    }
    this.foldForm = form;
    bands.forEach(({ open, y }, i) => {
      this.buttons[i].style.top = pixels(y);
      this.buttons[i].setAttribute("aria-expanded", open);
    });
  }

  /** Paints all cells once into an off-screen canvas; hovering redraws only the marks over a copy of it. */
  paint(ratio) {
    const { atlas, size, high, found } = this;
    const { colours } = atlas;
    const pen = sized(this.base, this.width, this.height, ratio);
    const pixel = (at) => Math.round(at * ratio);
    const [width, height] = [size, high].map((side) => Math.max(1, pixel(side)));
    const left = atlas.header.first?.left;
    const gap = gapOf(Math.min(size, high) + 2);
    drawNames(this, pen, colours.faint, atlas.font(11.5), found);
    for (const tile of this.shown) {
      const { x, y } = tile;
      paint(pen, tile.cells, colours, { x: pixel(x), y: pixel(y), width, height });
      const wide = left && tile.share >= 0 ? Math.min(2, gap / 2) : 1; // the frame shows the share that was left out
      Object.assign(pen, { strokeStyle: wide === 1 && !left ? colours.line : frameColour(colours, tile.share), lineWidth: wide });
      pen.strokeRect(x - wide / 2, y - wide / 2, size + wide, high + wide);
      if (this.finder?.active) drawName(this, pen, tile);
    }
  }

  /** The rectangles of the tiles, in CSS pixels of the drawing. */
  layout() {
    const { size: width, high: height } = this;
    const { x: left, y: top } = boxIn(this.atlas.root, this.canvas, { x: 0, y: 0, width, height });
    return this.shown.map(({ site, head, x, y, cells: { rows, columns } }) => (
      { site, head, x: left + x, y: top + y, width, height, row: 0, column: 0, rows, columns }
    ));
  }

  /** The tile and the cell at a point of the canvas. */
  cellAt(x, y) {
    const { size, high } = this;
    const tile = this.shown.find((each) => x >= each.x && y >= each.y && x < each.x + size && y < each.y + high);
    if (!tile) return null;
    const [u, v] = [(x - tile.x) / size, (y - tile.y) / high];
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

  /** Moves the keyboard's focus to a tile, opens its band and scrolls it into view. */
  focus(at) {
    const tile = this.tiles[at];
    const { name, site, head } = tile;
    const { texts, first } = this.atlas.header;
    Object.assign(this, { at, keyboard: true });
    const left = this.atlas.leftOut(tile);
    const more = [left && fill(first.ofHead, { share: left }), this.atlas.sharedKey(tile)].filter(Boolean).map((each) => ` ${each}.`);
    this.atlas.say(fill(texts.head, { head: name }) + more.join(""), { site, head });
    this.arrange();
    const band = this.found.bands.find(({ first, last }) => tile.row >= first && tile.row <= last);
    if (band && !band.open) {
      this.toggle(band.band, true);
      this.arrange();
    }
    this.draw();
    Object.assign(this.spot.style, { left: pixels(tile.x), top: pixels(tile.y), width: pixels(this.size), height: pixels(this.high) });
    this.spot.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.atlas.redraw();
  }

  /** The found head beside, above or below a tile; the next lines are shown where the keyboard goes on. */
  nextFound(tile, [down, right]) {
    const heads = this.finder.heads();
    const next = heads.indexOf(tile) + right + down * this.found.across;
    if (next >= this.shown.length && next < heads.length) this.finder.pages += 1;
    return heads[next];
  }

  /** The keyboard comes from the card on the left (`by` is 1) or on the right (-1), at a layer. */
  enter(layer, by) {
    const heads = this.tiles.filter(({ row }) => row === Math.min(layer, this.group.sites.length - 1));
    this.canvas.focus();
    this.focus(this.tiles.indexOf(heads.at(by > 0 ? 0 : -1)));
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
    const next = this.finder?.active ? this.nextFound(tile, go) : this.tiles.find((each) => each.row === tile.row + go[0] && each.head === tile.head + go[1]);
    const beside = !next && go[1] && !this.finder?.active && atlas.cards[atlas.cards.indexOf(this) + go[1]];
    if (beside) beside.enter(tile.row, go[1]);
    else this.focus(next ? this.tiles.indexOf(next) : this.at);
  }
}
