// The atlas: every head of every site at one glance, one card for each kind of attention; a head opens large in their place.

const NARROWEST = 264; // a card narrower than this goes below the others
const BETWEEN = 16;
const PATIENCE_MS = 3000; // how long a head asked for is outlined before Python has answered

class Atlas extends Drawing {
  constructor(parent) {
    super(parent, "atlas");
    this.large = new Large(this);
    this.cardBox = el("div", { class: "cards" });
    this.ramp = el("span", { class: "ramp" });
    this.legend = el("div", { class: "legend", "aria-hidden": "true" });
    this.root.append(this.cardBox, this.large.box, el("div", { class: "foot" }, this.readout, this.legend));
  }

  form() {
    return JSON.stringify([this.header.groups, this.header.texts]);
  }

  build() {
    const { groups, texts } = this.header;
    this.cards = groups.map((group) => new Card(this, group));
    this.cardBox.replaceChildren(...this.cards.map(({ box }) => box));
    const [none, all, hole] = [el("span", {}, "0"), el("span", {}, "1"), el("span", { class: "hole" })];
    this.legend.replaceChildren(texts.scale, none, this.ramp, all, hole, texts.masked);
    this.say(texts.hint);
  }

  take() {
    const { selection } = this.header;
    if (this.asked && same(this.asked, selection)) this.asked = null;
    for (const card of this.cards) card.take(this.blobs, selection);
    if (!this.large.open) return;
    const opened = this.cards.flatMap(({ tiles }) => tiles).find((tile) => same(tile, this.large.tile));
    if (opened) this.large.take(opened);
    else this.large.hide();
  }

  /** The head that is outlined: the one asked for, until Python answers, else the one of the scene. */
  get chosen() {
    return this.asked && performance.now() - this.asked.at < PATIENCE_MS ? this.asked : this.header.selection;
  }

  /** The card of the selected head. */
  get home() {
    return this.cards.find(({ group }) => group.sites.some(({ site }) => site === this.chosen.site));
  }

  draw() {
    const { cards, large } = this;
    const side = Math.min(cards.length, Math.max(1, Math.floor((this.width + BETWEEN) / (NARROWEST + BETWEEN))));
    this.cardBox.style.setProperty("--columns", side);
    cards.forEach(({ box }, i) => box.classList.toggle("wide", i === cards.length - 1 && i % side === 0));
    this.ramp.style.background = `linear-gradient(90deg, ${this.colours.weights.join(", ")})`;
    if (large.open) large.draw();
    else for (const card of cards) card.draw();
    this.root.dataset.layout = JSON.stringify(large.open ? large.layout() : cards.flatMap((card) => card.layout()));
  }

  /** {row, column} of a group's tiles that something on the page points at. */
  litIn({ queryStrip, keyStrip }) {
    const { pointed } = this;
    return {
      row: pointed.queryStrip === queryStrip && pointed.query !== null ? pointed.query : undefined,
      column: pointed.keyStrip === keyStrip && pointed.key !== null ? pointed.key : undefined,
    };
  }

  /** The selected query row, in the groups that have the same query tokens. */
  selectedRow({ queryStrip }) {
    return this.home?.group.queryStrip === queryStrip ? this.header.selection.query : -1;
  }

  /** Something is under the pointer or the keyboard: read it out, and tell the other drawings. */
  enter(tile, { row, column }, place) {
    const { queries, keys, queryStrip, keyStrip } = tile.card.group;
    const { texts } = this.header;
    const { site, head, name, cells } = tile;
    const cell = cellOf(cells, row, column);
    const [query, key, weight] = [queries[row], keys[column], weightText(cell, texts)];
    this.hovered = { tile };
    this.say(fill(texts.cell, { head: name, query, key, weight }), { site, head, query: row, key: column, weight: cell.weight });
    const lens = this.large.open ? [] : [loupe(cells, row, column, this.colours)];
    this.showTip(place, ...facts(name, [[texts.query, query], [texts.key, key], [texts.weight, weight]]), ...lens);
    point({ queryStrip, query: row, keyStrip, key: column });
  }

  leave() {
    if (!this.hovered) return;
    this.hovered = null;
    this.hideTip();
    this.say(this.header.texts.hint);
    point({});
  }

  /** Asks for a head (and a row of it); the outline moves at once. A selected row is let go where the query tokens are others. */
  select({ site, head, card }, query) {
    if (same({ site, head }, this.chosen) && query === undefined) return;
    const stays = this.home?.group.queryStrip === card.group.queryStrip;
    this.asked = { site, head, at: performance.now() };
    this.choose({ site, head, query: query ?? (stays ? undefined : -1) });
    this.redraw();
  }
}

export default (component) => mount(component, Atlas);
