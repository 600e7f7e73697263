// A sheet: one picture, drawn in an element of its own. It is drawn hidden while its step is still ahead; showing it draws nothing.

/** Resolves when the browser has nothing else to do, or soon. */
const idle = () => new Promise((done) => (globalThis.requestIdleCallback ?? setTimeout)(done, { timeout: 100 }));

/** Resolves after the next frame was drawn. */
const framed = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

/**
 * Styles that put the picture before its words, by kind of drawing: a lecture's stage is low. Above the map of a film are only the
 * snapshot, its loss and what it writes.
 */
const PICTURE_FIRST = {
  Player: ".player > .strips { order: 1; }",
  Film: `.hl[data-drawing=film] { display: flex; flex-flow: row wrap; align-items: baseline; gap: 0.15em 1.6em; }
    .hl > :not(.tip), .film .own { flex: 1 1 100%; min-width: 0; }
    .film, .film .card, .film .strips, .film .numbers { display: contents !important; } .film .numbers > :first-child h4 { display: none; }
    .hl[data-drawing=film] > .transport { order: -2; flex-wrap: nowrap; margin-bottom: 0.15em; } .transport :is(output, label) { display: none; }
    .film h3, .film .numbers > :first-child { order: -1; }
    .film .own .chips { gap: 0.3em; } .film .own .chip { padding-inline: 0.3em; font-size: 0.86em; }
    .film .fed, .film .numbers > :last-child, .hl > .foot { order: 1; flex: 1 1 100%; margin-top: 1em; }`,
};

const BELOW_TILES = 28; // CSS pixels of a card and of the sheet below its tiles
const BELOW_LARGE = 19; // and below a large head
const LEAST_MAP = 60; // the map of the network shows the present box at least
const LEAST_TABLE = 140;
const LEAST_FULL = 0.5; // of the stage: a panel that would leave less than this above it stays, and ends where the stage ends
const MOST_BELOW = 0.25; // of a panel: of one that ends below the stage, what lies there are its hint and its legend

class Sheet {
  /** `chosen(choice)` hears what is selected by hand. */
  constructor(picture, chosen) {
    Object.assign(this, { picture, chosen, hidden: true, touched: false, ends: new Map() });
    picture.serve();
    this.choice = picture.within({});
    this.places = picture.panels.map((panel) => this.place(panel));
    const last = (place) => this.choice.large && place.panel.kind === "Strips"; // a large head has its tokens at its edges
    const boxes = [...this.places.filter((each) => !last(each)), ...this.places.filter(last)].map(({ box }) => box);
    this.box = el("div", { class: "sheet", inert: true }, ...boxes);
    this.turned = [];
    this.sizes = new ResizeObserver(() => this.turnSoon()); // turning a page changes sizes, which an observer must not do itself
    boxes.forEach((box) => this.sizes.observe(box));
    for (const kind of ["pointerdown", "keydown", "wheel"]) {
      this.box.addEventListener(kind, () => { this.touched = true; }, { passive: true, capture: true });
    }
  }

  place(panel) {
    const host = el("div", { class: "drawing" });
    const heading = panel.heading ? [el("h3", {}, panel.heading)] : [];
    const note = panel.note ? [el("p", { class: "note" }, panel.note)] : [];
    const output = panel.kind === "Strips" && this.picture.panels.filter(({ kind }) => kind === "Strips").length > 1;
    const width = { whole: "", half: " half", narrow: " half apart" }[panel.width]; // narrow: also beside each other on a projector
    const kind = `panel${width}${output ? " output" : ""}`;
    return { panel, host, box: el("section", { class: kind }, ...heading, ...note, host) };
  }

  /** Draws panel after panel in idle time; ends when the sheet is shown or removed meanwhile. True: it is drawn. */
  async drawAhead() {
    for (const place of this.places) {
      await idle();
      if (!this.hidden || !this.box.isConnected) return false;
      this.drawPlace(place);
      this.rest(place);
      await framed();
    }
    if (!this.hidden || !this.box.isConnected) return false;
    if (this.choice.large) this.enlarge();
    return true;
  }

  /** Shows the sheet; what was not drawn ahead is drawn now. */
  show() {
    this.hidden = false;
    this.box.inert = false;
    for (const place of this.places) {
      const drawing = place.parent && drawings.get(place.parent);
      if (!place.drawn || drawing?.coming) this.drawPlace(place);
      else if (drawing) this.wake(place, drawing);
    }
    if (this.choice.large) this.enlarge();
  }

  /** Hides the sheet; its drawings stop listening to the page. */
  hide() {
    this.hidden = true;
    this.box.inert = true;
    this.places.forEach((place) => this.rest(place));
  }

  remove() {
    this.sizes.disconnect();
    this.hide();
    this.box.remove();
  }

  /** Selects something; draws only if it is not selected yet. */
  choose(choice) {
    const wanted = this.picture.within(choice);
    const before = JSON.stringify(this.choice);
    this.choice = wanted;
    if (JSON.stringify(wanted) !== before) this.draw();
    if (wanted.large && choice.large !== false) this.enlarge();
  }

  draw() {
    this.places.forEach((place) => this.drawPlace(place));
  }

  drawPlace(place) {
    const { panel, host, box } = place;
    place.drawn = true;
    if (TABLES[panel.kind]) {
      host.replaceChildren(TABLES[panel.kind](unpack(this.picture.scenes[panel.scene]).header));
      return this.fitTables();
    }
    const data = this.picture.data(panel, this.choice);
    box.hidden = !data;
    if (!data) return;
    if (!place.parent) {
      const shadow = host.attachShadow({ mode: "open" }); // each kind has its own styles
      const first = panel.kind === "Player" || this.choice.large ? PICTURE_FIRST[panel.kind] ?? "" : "";
      shadow.append(el("style", {}, STYLES[panel.kind], first), (place.parent = el("div")));
    }
    const setStateValue = (_, selection) => this.select(selection, panel.follows);
    this.ends.set(place, mount({ parentElement: place.parent, data, setStateValue, setTriggerValue: () => {} }, DRAWINGS[panel.kind]));
    const drawing = drawings.get(place.parent);
    if (panel.kind === "Network") this.fitMap(drawing);
    this.fitTables();
    if (panel.fills) this.fitChanges(drawing);
  }

  /** Whether the sheet has an end below which a wheel leads; on phones the page scrolls as a whole. */
  get scrolls() {
    return getComputedStyle(this.box).overflowY === "auto";
  }

  /** The height from the top of a part of a drawing to the end of the stage, in pixels of the drawing. */
  room(node) {
    if (!this.scrolls) return Infinity;
    this.turnBack();
    return (this.box.getBoundingClientRect().bottom - node.getBoundingClientRect().top - this.box.scrollTop) / scaleOf(node);
  }

  /** Lets the map of the network end with the stage, so that the present box is in sight. */
  fitMap(network) {
    const height = this.room(network.window) - 6;
    if (height < LEAST_MAP || height >= heightOf(network.window)) return;
    Object.assign(network.window.style, { minHeight: 0, maxHeight: pixels(height) });
    network.mark();
  }

  get tables() {
    return this.places.flatMap(({ panel, parent }) => (panel.kind === "Cells" && parent ? [drawings.get(parent)] : []));
  }

  /** Lets tables end with the stage: one that is alone takes all of it, several share what the other panels leave. */
  fitTables() {
    if (!this.scrolls) return;
    const { tables } = this;
    for (const cells of tables) {
      cells.room = (usual) => {
        this.turnBack();
        const bottom = (node) => node.getBoundingClientRect().bottom; // of panels that are enlarged less than their drawings
        const over = Math.max(...this.places.map(({ box }) => bottom(box))) + this.box.scrollTop - bottom(this.box);
        const high = tables.reduce((sum, { canvas }) => sum + heightOf(canvas), 0);
        const shared = high - over / scaleOf(cells.canvas) - 6;
        const own = Math.max(shared / tables.length, LEAST_TABLE);
        return this.places.length === 1 ? own : Math.min(own, usual);
      };
      if (cells.header) cells.redraw();
    }
  }

  /** Lets the changes of each kind of attention take what the outputs leave of the stage, so that the first kind is in sight. */
  fitChanges(atlas) {
    if (!this.scrolls) return;
    atlas.tileRoom = () => this.room(atlas.cards[0].field) - BELOW_TILES;
    if (atlas.header) atlas.redraw();
  }

  /** Turns the page before the next frame, once, however often it is called. */
  turnSoon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.turnPage();
    });
  }

  /** Moves what the end of the stage would cut in two below it, where a wheel leads: a panel, or the hint below a drawing. */
  turnPage() {
    this.turning = false;
    if (!this.scrolls) return;
    this.putBack();
    const { top: start, bottom } = this.box.getBoundingClientRect();
    const end = bottom - this.box.scrollTop;
    const full = start - this.box.scrollTop + LEAST_FULL * (bottom - start);
    const move = (nodes, most) => {
      const boxes = nodes.map((node) => node.getBoundingClientRect());
      const cut = boxes.find(({ top, bottom, height }) => height && top < end && bottom - end > Math.max(1, most * height));
      if (!cut) return;
      nodes.filter((_, at) => boxes[at].top === cut.top).forEach((node) => {
        node.style.marginTop = `${end - cut.top + parseFloat(getComputedStyle(node).marginTop)}px`;
        this.turned.push(node);
      });
    };
    move([...this.box.children].slice(1).filter((node) => node.getBoundingClientRect().top > full), MOST_BELOW);
    const hints = this.places.flatMap(({ parent }) => drawings.get(parent) ?? []).map(({ foot, readout }) => foot ?? readout);
    move(hints.filter((hint) => !hint.classList.contains("unseen")), 0);
  }

  /** Puts everything back where it belongs, to be measured; its page is turned again before the next frame. */
  turnBack() {
    this.putBack();
    if (this.turning) return;
    this.turning = true;
    queueMicrotask(() => this.turnPage());
  }

  putBack() {
    for (const node of this.turned.splice(0)) node.style.marginTop = "";
  }

  wake(place, drawing) {
    drawing.connect();
    this.ends.set(place, () => drawing.disconnect());
  }

  rest(place) {
    this.ends.get(place)?.();
    this.ends.delete(place);
  }

  /** Takes a choice made by hand in a drawing. */
  select({ site, head, query, key, step, snapshot }, follows) {
    if (this.hidden) return; // the drawing came to rest after the lecture went on
    const given = Object.entries({ site, head, query, key, step, snapshot }).filter(([, value]) => value !== undefined);
    const large = this.atlas?.large?.open ?? this.choice.large;
    this.touched = true;
    this.choice = { ...this.choice, ...Object.fromEntries(given), large };
    if (follows) {
      this.choice = this.picture.within(this.choice);
      queueMicrotask(() => { if (!this.hidden) this.draw(); });
    }
    this.chosen(this.choice);
  }

  /** The drawing whose heads open large: the atlas that follows the selection, or the film. */
  get atlas() {
    const place = this.places.find(({ panel }) => (panel.kind === "Atlas" && panel.follows) || panel.kind === "Film");
    return place?.parent && drawings.get(place.parent);
  }

  /** Opens the selected head large. It ends with the stage, so that its last rows are in sight, whatever is written above it. */
  enlarge() {
    const { atlas, choice } = this;
    if (!atlas?.cards) return;
    const { large, root } = atlas;
    atlas.width = widthIn(root);
    const tile = atlas.cards.flatMap(({ tiles }) => tiles).find(({ site, head }) => site === choice.site && head === choice.head);
    if (!tile || !atlas.width || (large.open && large.tile.site === choice.site && large.tile.head === choice.head)) return;
    large.room = (usual) => Math.min(usual, this.room(large.canvas) - BELOW_LARGE);
    large.show(tile, false);
  }
}
