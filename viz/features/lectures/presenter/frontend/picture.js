// Pictures, which viz/features/lectures/presenter/panels.py packs, and one of them drawn in an element of its own.

/** The bytes of a scene without blobs, as `unpack` reads them. */
function sceneOf(header) {
  const text = new TextEncoder().encode(JSON.stringify({ ...header, blobs: {} }));
  const data = new Uint8Array(4 + text.length);
  new DataView(data.buffer).setUint32(0, text.length, true);
  data.set(text, 4);
  return data;
}

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
    const row = kind === "Overlay" ? Math.max(query, 0) : query; // over an image some token's row or column is always shown
    const own = { queryAxis, keyAxis, axes, queries, keys, queryStrip, keyStrip, name: names[head], site, head, query: row };
    return sceneOf({ ...header, ...own, opens: false, description: "", parts: { ...header.parts, exact: place } });
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
