// The stage of a lecture: shows one sheet, keeps those of the steps around it drawn. Everything chosen in one stays in the browser.

const MOST_PICTURES = 12; // pictures that stay unpacked
const RESIZED_MS = 300; // after a change of the window's size

class Stage {
  /** Draws into `box`. `load(name)` fetches the bytes of a picture; `chosen(choice)` hears what is selected by hand. */
  constructor(box, { load, chosen = () => {} }) {
    Object.assign(this, { box, load, chosen, pictures: new Map(), sheets: new Map(), ahead: [], name: null });
    addEventListener("resize", () => this.resized());
    document.fonts.load('1em "Source Sans"').then((found) => { if (found.length) this.again(); }, () => {}); // labels are measured
  }

  /** The unpacked picture; a promise. */
  fetch(name) {
    const found = this.pictures.get(name) ?? this.load(name).then((data) => new Picture(data));
    this.pictures.delete(name);
    this.pictures.set(name, found);
    found.catch(() => this.pictures.delete(name));
    for (const old of this.pictures.keys()) {
      if (this.pictures.size <= MOST_PICTURES) break;
      if (old !== this.name) this.pictures.delete(old);
    }
    return found;
  }

  /** The sheet that is shown. */
  get sheet() {
    return this.sheets.get(this.name);
  }

  /** Shows a picture with a selection, immediately if it was prepared; null: nothing. While it is loaded, the stage is empty. */
  async show(name, choice = {}) {
    this.wanted = name;
    if (name !== this.name) this.hide();
    if (!name) return;
    if (!this.sheets.has(name)) {
      const picture = await this.fetch(name);
      if (this.wanted !== name) return; // another one was asked for meanwhile
      if (!this.sheets.has(name)) this.add(name, picture);
    }
    const { sheet } = Object.assign(this, { name });
    if (sheet.hidden) sheet.show();
    sheet.choose(choice);
  }

  /** Draws pictures ahead, one after the other, while the page has nothing else to do; those not named are forgotten. */
  prepare(names) {
    this.ahead = names.filter(Boolean);
    for (const name of this.sheets.keys()) if (name !== this.name && !this.ahead.includes(name)) this.forget(name);
    this.preparing ??= this.work().finally(() => { this.preparing = null; });
    return this.preparing;
  }

  async work() {
    const failed = new Set();
    for (let name; (name = this.ahead.find((each) => !this.sheets.has(each) && !failed.has(each)));) { // a resize may forget one again
      const picture = await this.fetch(name).catch(() => null);
      if (!picture) failed.add(name);
      else if (this.ahead.includes(name) && !this.sheets.has(name)) await this.add(name, picture).drawAhead();
    }
  }

  add(name, picture) {
    const sheet = new Sheet(picture, (choice) => this.chosen(choice));
    this.sheets.set(name, sheet);
    this.box.append(sheet.box);
    return sheet;
  }

  forget(name) {
    this.sheets.get(name).remove();
    this.sheets.delete(name);
  }

  /** Hides the sheet. One that was changed by hand is drawn again when it is needed. */
  hide() {
    const { sheet, name } = this;
    this.name = null;
    if (sheet?.touched) this.forget(name);
    else sheet?.hide();
  }

  /** Draws again, in another size of type or other colors. */
  again() {
    this.sheet?.draw();
    dispatchEvent(new Event("resize"));
  }

  /** What was drawn ahead has the old size and the old colors. */
  resized() {
    clearTimeout(this.resizing);
    this.resizing = setTimeout(() => {
      for (const name of this.sheets.keys()) if (name !== this.name) this.forget(name);
      this.prepare(this.ahead);
    }, RESIZED_MS);
  }
}
