// Atlas: overview of all heads of all sites, one card for each kind of attention; a head opens large in place of the cards.

const NARROWEST = 264; // a card narrower than this goes below the others
const BETWEEN = 16;
const LEAST_FILLING = 200; // a card may be so narrow where all of them fill a screen
const FOOT = 58; // readout and scale below the cards
const PATIENCE_MS = globalThis.headlightPatience ?? 3000; // how long a requested head stays outlined while Python has not answered

/** What the elements of a card are built from. Tokens are left out, so a new sentence keeps the card and the keyboard's focus. */
const inWords = ({ title, axes, sites }) => [title, axes, sites.map(({ site, label, names }) => [site, label, names.length])];

/** A head as a key of a Map. */
const keyOf = ({ site, head }) => `${site}/${head}`;

class Atlas extends Drawing {
  constructor(parent) {
    super(parent, "atlas");
    this.tileRoom = () => 0; // height that a page has left for the tiles of each kind, if it shows one kind at a time
    this.large = new Large(this);
    this.cardBox = el("div", { class: "cards", role: "group" });
    this.ramp = el("span", { class: "ramp" });
    this.legend = el("div", { class: "legend", "aria-hidden": "true" });
    this.about = el("p", { class: "first", role: "note", hidden: true });
    this.root.append(this.about, this.cardBox, this.large.box, (this.foot = el("div", { class: "foot" }, this.readout, this.legend)));
  }

  needs() {
    return ["overview"];
  }

  form() {
    const { header, blobs } = this.part("overview");
    this.header.description ??= header.description;
    const { groups, ends, signed } = header;
    const changed = this.groups !== groups;
    Object.assign(this, { groups, ends, signed, overview: blobs });
    if (changed) this.places = new Map(); // parts with exact weights, by head
    return changed ? JSON.stringify([groups.map(inWords), signed, this.header.texts, this.header.find]) : this.built;
  }

  build() {
    const { groups, ends: [least, most], signed, header: { texts } } = this;
    this.cards = groups.map((group) => new Card(this, group));
    this.cardBox.replaceChildren(...this.cards.map(({ box }) => box));
    const hole = el("span", { class: "hole" });
    this.frames = el("span", { class: "frames", hidden: true });
    this.legend.replaceChildren(this.frames, texts.scale, el("span", {}, least), this.ramp, el("span", {}, most), hole, texts.masked);
    this.root.dataset.drawing = signed ? "changes" : "atlas";
    this.footOf = null;
    this.say(hintOf(texts));
  }

  take() {
    const { selection, parts, places = {}, silenced = [], marks } = this.header;
    this.silenced = new Set(silenced);
    this.marks = marks;
    if (this.asked && same(this.asked, selection)) this.asked = null;
    for (const [name, place] of Object.entries(places)) this.places.set(name, place);
    if (parts.exact) this.places.set(keyOf(selection), parts.exact);
    if (this.taken !== this.overview) this.cards.forEach((card, i) => card.take(this.groups[i], this.overview));
    this.taken = this.overview;
    this.tellFirst();
    const selected = this.cards.flatMap(({ tiles }) => tiles).find((each) => same(each, selection));
    if (selected) this.cellsOf(selected); // fetches the exact weights in advance
    const { tile } = this.large;
    if (!tile) return;
    const opened = this.cards.flatMap(({ tiles }) => tiles).find((each) => same(each, tile));
    if (opened) this.large.take(opened);
    else this.large.hide();
  }

  /** Says that the first token is left out, or that it could be, with a button for the other reading. */
  tellFirst() {
    const { first } = this.header;
    const form = JSON.stringify(first);
    if (form === this.toldFirst) return; // the button keeps the keyboard's focus
    this.toldFirst = form;
    this.about.hidden = !first;
    this.frames.hidden = !first?.left;
    if (!first) return;
    const other = el("button", { type: "button", hidden: !first.button, onclick: () => this.choose({ hide: first.hide }) }, first.button);
    this.about.replaceChildren(first.said, " ", other);
    if (first.left) this.frames.replaceChildren(first.scale, el("span", {}, "0"), el("span", { class: "ramp frame" }), el("span", {}, "1"));
  }

  /** The share of the first token that a tile leaves out, in percent; empty where nothing is left out. */
  leftOut({ share }) {
    const { first } = this.header;
    return first?.left && share >= 0 ? fill(first.percent, { number: fixed(100 * share, 0) }) : "";
  }

  /** The key head of a tile and the heads that share it, in words; empty where each head has its own. */
  sharedKey({ head, shared }) {
    if (!shared) return "";
    return fill(this.header.texts.shared, { key: Math.floor(head / shared) + 1, heads: this.heads({ head, shared }) });
  }

  /** The heads that share the key head of a tile. */
  heads({ head, shared }) {
    const { headShort, comma } = this.header.texts;
    const first = head - (head % shared);
    return Array.from({ length: shared }, (_, at) => fill(headShort, { head: first + at + 1 })).join(comma);
  }

  /** True on the page What if, where a pointer and keys change the run. */
  get editing() {
    return Boolean(this.header.marks);
  }

  connect() {
    if (!super.connect()) return false;
    document.addEventListener("keydown", (event) => {
      const plain = !(event.ctrlKey || event.metaKey || event.altKey);
      if (this.header && this.hovered && plain && event.key.toLowerCase() === "s" && !keyboardTaken()) this.silence(this.hovered.tile);
    }, { signal: this.life.signal });
    return true;
  }

  /** Reports a change that the run is to be made with. */
  edit(report) {
    this.setTriggerValue("edit", report);
  }

  /** Silences a head, or lets it speak again. */
  silence({ site, head }) {
    if (this.editing) this.edit({ act: "silence", site, head });
  }

  arrived() {
    const { exact } = this.coming?.header.parts ?? {};
    if (exact && !exact.levels) this.part("exact", this.coming); // fetched together with the overview, not after it
    super.arrived();
    if (this.header && this.large.open) this.large.take(this.large.tile);
    if (!this.hovered) return;
    const { tile: before, cell, place } = this.hovered;
    const tile = before.card.tiles.find((each) => same(each, before));
    if (tile && cell.row < tile.cells.rows && cell.column < tile.cells.columns) this.enter(tile, cell, place); // its weight may be exact now
    else this.leave(); // the new run has no such cell
  }

  /** Cells of a head: exact if it was selected once, else pooled as in the overview. */
  cellsOf(tile) {
    const place = this.places.get(keyOf(tile));
    if (!place) return tile.cells;
    if (place.levels) return (place.pyramid ??= new TilePyramid(place, this.header.partsAddress, (address) => this.fetched(address)));
    const part = this.part("exact", { header: { ...this.header, parts: { exact: place } }, blobs: this.blobsOf(place) });
    return part ? (part.cells ??= exactGrid(part.blobs, this.signed)) : tile.cells; // cached on the part, so that both are evicted together
  }

  /** The blobs inside the scene, if they are the part at `place`. */
  blobsOf({ name }) {
    return name === this.header.parts.exact?.name ? this.blobs : {};
  }

  /** The outlined head: the requested one until Python answers, else the scene's. */
  get chosen() {
    return this.asked && performance.now() - this.asked.at < PATIENCE_MS ? this.asked : this.header.selection;
  }

  /** True if the head of a tile was silenced in this run. */
  isSilenced(tile) {
    return this.silenced.has(keyOf(tile));
  }

  /** The card of the selected head. */
  get home() {
    return this.cards.find(({ group }) => group.sites.some(({ site }) => site === this.chosen.site));
  }

  draw() {
    const { cards, large } = this;
    if (!this.header.live?.begun) this.most = cards.length; // before the first token, the encoder's card stays where it was
    const least = fillsScreen() ? LEAST_FILLING : NARROWEST;
    if (this.footOf !== this.width) this.below = Math.max(FOOT, heightOf(this.foot) + 14); // the hint in its lines; what is pointed at moves nothing
    this.footOf = this.width;
    const side = Math.min(this.most ?? cards.length, Math.max(1, Math.floor((this.width + BETWEEN) / (least + BETWEEN))));
    this.cardBox.style.setProperty("--columns", side);
    this.lines = Math.ceil(cards.length / side); // of cards
    cards.forEach(({ box }, i) => box.classList.toggle("wide", i === cards.length - 1 && i % side === 0 && i + 1 >= side));
    const single = ({ tiles: [{ cells }] }) => this.header.writes && cells.rows * cells.columns === 1; // its weight is always 1
    for (const card of cards) card.box.classList.toggle("single", Boolean(single(card)));
    if (this.signed) this.colours = centredPalette(this.colours);
    const scale = this.signed ? this.colours.diverging : this.colours.weights;
    this.ramp.style.background = `linear-gradient(90deg, ${scale.join(", ")})`;
    if (large.open) large.draw();
    else for (const step of ["arrange", "draw"]) for (const card of cards) card[step](); // all layout reads before all writes
  }

  layout() {
    return this.large.open ? this.large.layout() : this.cards.flatMap((card) => card.layout());
  }

  /** {row, column} of a group that some drawing of the page points at. */
  litIn({ queryStrip, keyStrip }) {
    const { pointed } = this;
    return {
      row: pointed.queryStrip === queryStrip && pointed.query !== null ? pointed.query : undefined,
      column: pointed.keyStrip === keyStrip && pointed.key !== null ? pointed.key : undefined,
    };
  }

  /** The selected query row, for groups with the same query tokens; else -1. */
  selectedRow({ queryStrip }) {
    return this.home?.group.queryStrip === queryStrip ? this.header.selection.query : -1;
  }

  /** Handles a cell under pointer or keyboard: reads it out and tells the other drawings. */
  enter(tile, { row, column }, place) {
    const { queries, keys, queryStrip, keyStrip } = tile.card.group;
    const { texts } = this.header;
    const { site, head, name } = tile;
    const cells = this.cellsOf(tile);
    const found = cellOf(cells, row, column);
    if (cells.left && column === 0) found.weight = cells.left[row];
    const { first } = this.header;
    const out = first?.left && column === 0 && found.masked;
    const [query, key, weight] = [queries[row], keys[column], weightText(found, out ? { ...texts, maskedWeight: first.out } : texts)];
    this.hovered = { tile, cell: { row, column }, place };
    const about = { site, head, query: row, key: column, [found.most ? "most" : "weight"]: found.weight };
    this.say(fill(texts.cell, { head: name, query, key, weight }), about);
    const lens = this.large.open ? [] : [loupe(tile.cells, row, column, this.colours, resolution(this.root))];
    const left = this.leftOut(tile);
    const more = left ? [[first.scale, left]] : [];
    if (tile.shared) more.push([fill(texts.keyHead, { key: Math.floor(head / tile.shared) + 1 }), this.heads(tile)]);
    this.showTip(place, ...facts(name, [[texts.query, query], [texts.key, key], [texts.weight, weight], ...more]), ...lens);
    point({ queryStrip, query: row, keyStrip, key: column });
  }

  leave() {
    if (!this.hovered) return;
    this.hovered = null;
    this.hideTip();
    this.say(hintOf(this.header.texts));
    point({});
  }

  /** Selects a head, or a cell of it; the outline moves at once. The row is deselected if the query tokens are others. */
  select({ site, head, card }, query, key) {
    if (same({ site, head }, this.chosen) && query === undefined) return;
    const stays = this.home?.group.queryStrip === card.group.queryStrip;
    this.asked = { site, head, at: performance.now() };
    this.choose({ site, head, query: query ?? (stays ? undefined : -1), key });
    this.redraw();
  }
}
