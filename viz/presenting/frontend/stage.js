// The stage of a lecture: draws pictures, which viz/presenting/panels.py packs. Everything chosen in one stays in the browser.

const MOST_PICTURES = 12; // pictures that stay unpacked

/** The bytes of a scene without blobs, as `unpack` reads them. */
function sceneOf(header) {
  const text = new TextEncoder().encode(JSON.stringify({ ...header, blobs: {} }));
  const data = new Uint8Array(4 + text.length);
  new DataView(data.buffer).setUint32(0, text.length, true);
  data.set(text, 4);
  return data;
}

/** A picture: its panels, their scenes, and what the panels that follow the selection need to know. */
class Picture {
  constructor(data) {
    const { header, blobs } = unpack(data);
    Object.assign(this, { panels: header.panels, choice: header.choice, address: header.partsAddress, scenes: {}, pieces: {} });
    for (const [name, { array }] of Object.entries(blobs)) (name.includes("/") ? this.pieces : this.scenes)[name] = array;
  }

  /** Puts the parts where drawings look for them; they may have been evicted since the picture was shown last. */
  serve() {
    for (const [path, array] of Object.entries(this.pieces)) {
      const address = `${this.address}/${path}`;
      if (!partFetcher.get(address)) partFetcher.put(address, array);
    }
    const atlas = this.panels.find(({ kind, follows }) => kind === "Atlas" && follows);
    if (!atlas || this.groups) return;
    this.atlas = unpack(this.scenes[atlas.scene]).header;
    this.groups = partFetcher.get(`${this.address}/${this.atlas.parts.overview.name}/whole`).header.groups;
  }

  /** The group of sites that `site` belongs to. */
  groupOf(site) {
    return this.groups.find(({ sites }) => sites.some((each) => each.site === site));
  }

  /** Bytes of a panel's scene with the selection; null: it cannot show this head. */
  data({ kind, scene, follows }, { site, head, query }) {
    if (!follows) return this.scenes[scene];
    const { header } = unpack(this.scenes[scene]);
    const group = this.groupOf(site);
    if (kind === "Atlas") return sceneOf({ ...header, selection: { site, head, query } });
    if (kind === "Strips") return sceneOf({ ...header, queryStrip: group.queryStrip, rows: group.queries.length, query, continues: null });
    const place = this.atlas.places[`${site}/${head}`];
    if (!place || place.levels) return null;
    const { queryAxis, keyAxis, axes, queries, keys, queryStrip, keyStrip } = group;
    const { names } = group.sites.find((each) => each.site === site);
    const own = { queryAxis, keyAxis, axes, queries, keys, queryStrip, keyStrip, name: names[head], site, head, query };
    return sceneOf({ ...header, ...own, opens: false, description: "", parts: { exact: place } });
  }

  /** `choice` with what this picture has of it. */
  within(choice) {
    const wanted = { ...this.choice, ...choice };
    const group = this.groups && this.groupOf(wanted.site);
    if (!group) return this.choice;
    const { names } = group.sites.find(({ site }) => site === wanted.site);
    return { ...wanted, head: wanted.head < names.length ? wanted.head : 0, query: wanted.query < group.queries.length ? wanted.query : -1 };
  }
}

/** Bars with names, for a panel of kind `Bars`. */
function barList({ texts: names, values, chosen }) {
  const most = Math.max(...values.map(Math.abs), 1e-9);
  const row = (text, at) => el("li", { class: at === chosen ? "chosen" : "" },
    el("bdi", {}, text), el("span", { class: "bar", style: `--share: ${Math.abs(values[at]) / most}` }), el("span", { class: "number" }, fixed(values[at], 2)));
  return el("ol", { class: "bars" }, ...names.map(row));
}

class Stage {
  /** Draws into `box`. `load(name)` fetches the bytes of a picture; `chosen(choice)` hears what is selected by hand. */
  constructor(box, { load, chosen = () => {} }) {
    Object.assign(this, { box, load, chosen, pictures: new Map() });
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

  /** Shows a picture with a selection; null: nothing. The picture before stays until the new one is there. */
  async show(name, choice = {}) {
    this.wanted = name;
    if (!name) return this.clear();
    const picture = await this.fetch(name);
    if (this.wanted !== name) return; // another one was asked for meanwhile
    picture.serve();
    this.choice = picture.within(choice);
    if (this.name !== name) this.build(picture);
    Object.assign(this, { name, picture });
    this.draw();
    if (this.choice.large && choice.large !== false) this.enlarge();
  }

  clear() {
    this.leave();
    this.box.replaceChildren();
    Object.assign(this, { name: null, picture: null });
  }

  leave() {
    for (const end of this.ends ?? []) end();
    this.ends = [];
  }

  build(picture) {
    this.leave();
    this.places = picture.panels.map((panel) => {
      const host = el("div", { class: "drawing" });
      const heading = panel.heading ? [el("h3", {}, panel.heading)] : [];
      const note = panel.note ? [el("p", { class: "note" }, panel.note)] : [];
      return { panel, host, box: el("section", { class: panel.half ? "panel half" : "panel" }, ...heading, ...note, host) };
    });
    const small = this.choice.large ? ["Strips"] : []; // a large head has its tokens at its edges
    const last = (place) => small.includes(place.panel.kind);
    this.box.replaceChildren(...[...this.places.filter((each) => !last(each)), ...this.places.filter(last)].map(({ box }) => box));
    this.box.scrollTop = 0;
  }

  draw() {
    this.ends = this.places.flatMap((place) => this.drawPanel(place) ?? []);
  }

  drawPanel(place) {
    const { panel, host, box } = place;
    if (panel.kind === "Bars") return void host.replaceChildren(barList(unpack(this.picture.scenes[panel.scene]).header));
    const data = this.picture.data(panel, this.choice);
    box.hidden = !data;
    if (!data) return;
    if (!place.parent) {
      const shadow = host.attachShadow({ mode: "open" }); // each kind has its own styles
      shadow.append(el("style", {}, STYLES[panel.kind]), (place.parent = el("div")));
    }
    const setStateValue = (_, selection) => this.select(selection, panel.follows);
    return mount({ parentElement: place.parent, data, setStateValue, setTriggerValue: () => {} }, DRAWINGS[panel.kind]);
  }

  /** Takes a choice made by hand in a drawing. */
  select({ site, head, query, key, step, snapshot }, follows) {
    const given = Object.entries({ site, head, query, key, step, snapshot }).filter(([, value]) => value !== undefined);
    const large = this.atlas?.large?.open ?? this.choice.large;
    this.choice = { ...this.choice, ...Object.fromEntries(given), large };
    if (follows) {
      this.choice = this.picture.within(this.choice);
      queueMicrotask(() => this.picture && this.draw());
    }
    this.chosen(this.choice);
  }

  /** The drawing of the atlas that follows the selection. */
  get atlas() {
    const place = this.places?.find(({ panel }) => panel.kind === "Atlas" && panel.follows);
    return place?.parent && drawings.get(place.parent);
  }

  /** Opens the selected head large, without taking the keyboard. */
  enlarge() {
    const { atlas, choice } = this;
    if (!atlas?.cards) return;
    atlas.width = atlas.root.clientWidth;
    const tile = atlas.cards.flatMap(({ tiles }) => tiles).find(({ site, head }) => site === choice.site && head === choice.head);
    if (!tile || !atlas.width) return;
    atlas.large.show(tile);
    atlas.large.canvas.blur();
    this.box.scrollTop = 0;
  }

  /** Draws again, in another size of type or other colors. */
  again() {
    if (this.picture) this.draw();
    dispatchEvent(new Event("resize"));
  }
}
