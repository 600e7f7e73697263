// Finds heads among many: sorts the heads of a card by a reading, keeps those that have enough of it, and looks for kinds and names.

const MANY = 64; // from so many heads on, a card has a finder

class Finder {
  /** `card` is the Card whose heads are found. */
  constructor(card) {
    const { find } = card.atlas.header;
    Object.assign(this, { card, order: "", kind: "", words: "", least: 0, pages: 1 });
    const again = () => { this.pages = 1; card.found = null; card.atlas.redraw(); };
    const option = ([value, text]) => el("option", { value }, text);
    const sorted = ({ target }) => { this.order = target.value; this.least = 0; this.range.value = 0; again(); };
    this.sort = el("select", { "aria-label": find.sort, onchange: sorted }, ...[["", find.asBuilt], ...find.orders.map(({ name, title }) => [name, title])].map(option));
    this.kinds = el("select", { "aria-label": find.kind, onchange: ({ target }) => { this.kind = target.value; again(); } });
    this.search = el("input", { type: "search", placeholder: find.hint, "aria-label": find.search, oninput: ({ target }) => { this.words = target.value; again(); } });
    this.range = el("input", { type: "range", min: 0, max: 100, value: 0, "aria-label": find.least, oninput: ({ target }) => { this.least = Number(target.value); again(); } });
    this.said = el("output", {});
    this.more = el("button", { type: "button", class: "more", onclick: () => { this.pages += 1; card.atlas.redraw(); } }, find.more);
    this.box = el("div", { class: "finder" }, this.search, this.kinds, this.sort, this.range, this.said);
    this.search.addEventListener("keydown", (event) => { if (event.key === "Enter" && this.active) card.canvas.focus(); });
  }

  get texts() {
    return this.card.atlas.header.find;
  }

  /** True if heads are chosen or sorted, so that they stand in lines with their names. */
  get active() {
    return Boolean(this.order || this.kind || this.words.trim());
  }

  /** Takes the heads of a run; the kinds that it has, with how many heads each. */
  take() {
    const { tiles } = this.card;
    const { kinds } = this.texts;
    const counts = kinds.map((title, place) => [String(place), title, tiles.filter((tile) => tile.kind === place).length]);
    const form = JSON.stringify(counts);
    if (form !== this.form) {
      const options = counts.map(([value, title, count]) => el("option", { value, disabled: !count }, `${title} (${count})`));
      this.kinds.replaceChildren(el("option", { value: "" }, `${this.texts.all} (${tiles.length})`), ...options);
      this.kinds.value = this.kind;
    }
    this.form = form;
    this.made = null;
  }

  /** The reading that sorts: {name, title, place, down, what}; undefined if none does. */
  get reading() {
    return this.texts.orders.find(({ name }) => name === this.order);
  }

  /** The heads that are found, in their order. */
  heads() {
    const asked = JSON.stringify([this.order, this.kind, this.words, this.least]);
    if (this.made === asked) return this.result;
    const { tiles } = this.card;
    const words = this.words.toLowerCase().split(/[\s,]+/).filter(Boolean);
    const { reading } = this;
    let found = tiles.filter((tile) => (!this.kind || tile.kind === Number(this.kind)) && words.every((word) => this.names(tile).some((name) => name.startsWith(word))));
    if (reading) {
      const value = (tile) => tile.readings[reading.place];
      found = found.filter((tile) => !Number.isNaN(value(tile))).sort((a, b) => (reading.down ? value(b) - value(a) : value(a) - value(b)));
      found = found.slice(0, Math.ceil(found.length * (1 - this.least / 100)));
    }
    Object.assign(this, { made: asked, result: found });
    return found;
  }

  /** What a typed word may begin with: names of layer and head, and the words of the head's kind. */
  names({ row, head, kind }) {
    const { sites } = this.card.group;
    const title = this.texts.kinds[kind] ?? "";
    const short = fill(this.card.atlas.header.texts.headShort, { head: head + 1 });
    return [sites[row].label, short, `${row + 1}.${head + 1}`, ...sites[row].label.split(" "), ...title.split(/\s+/), title].map((name) => name.toLowerCase());
  }

  /** Says how many heads are shown, and what the slider leaves. */
  tell(shown) {
    const { reading, card } = this;
    const found = this.heads();
    this.range.hidden = !reading;
    this.said.textContent = this.active ? fill(card.atlas.header.texts.count, { shown: found.length, all: card.tiles.length }) : "";
    if (reading && found.length) {
      const [first, last] = [found[0], found.at(-1)].map((tile) => fixed(tile.readings[reading.place], 2));
      this.said.textContent += ` · ${fill(card.atlas.header.texts.span, { what: reading.what, first, last })}`;
    }
    this.more.hidden = !this.active || shown >= found.length;
  }

  /** The number of the reading that sorts, for the name above a tile. */
  number(tile) {
    const { reading } = this;
    return reading ? ` ${fixed(tile.readings[reading.place], 2)}` : "";
  }
}
