// The names of layers and heads around a card's tiles. They stay in view while the tiles scroll beneath them.

class CardNames {
  constructor({ sites }, { headShort }) {
    const heads = Math.max(...sites.map(({ names }) => names.length));
    this.labels = sites.map(({ label }) => label);
    this.layers = this.labels.map((label) => el("span", {}, label));
    this.heads = Array.from({ length: heads }, (_, head) => el("span", {}, fill(headShort, { head: head + 1 })));
    const hidden = { "aria-hidden": "true" };
    this.boxes = [
      el("div", { class: "corner", ...hidden }),
      el("div", { class: "heads", ...hidden }, ...this.heads),
      el("div", { class: "layers", ...hidden }, ...this.layers),
    ];
  }

  /** Width of the layers' names. */
  width(pen, font) {
    pen.font = font;
    return Math.ceil(Math.max(...this.labels.map((label) => pen.measureText(label).width))) + 7;
  }

  /** Puts the names beside the tiles of a card and highlights those of the tile `active`. Tiles with names of their own need none. */
  draw({ named, left, size, step }, active) {
    for (const box of this.boxes) box.hidden = named;
    this.boxes[0].parentElement.style.setProperty("--left", `${left}px`);
    if (named) return;
    const form = [left, size].join();
    if (form !== this.form) this.arrange(size, step);
    this.form = form;
    this.heads.forEach((node, head) => node.classList.toggle("active", active?.head === head));
    this.layers.forEach((node, row) => node.classList.toggle("active", active?.row === row));
  }

  arrange(size, step) {
    this.heads.forEach(({ style }, head) => Object.assign(style, { left: `${EDGE + head * step}px`, width: `${size}px` }));
    this.layers.forEach(({ style }, row) => Object.assign(style, { top: `${EDGE + row * step}px`, lineHeight: `${size}px` }));
  }

  /** Scrolls until the names no longer cover a tile. */
  reveal(scroll, { x, y }, size) {
    const [left, top] = this.boxes[0].hidden ? [0, 0] : [this.boxes[0].offsetWidth, this.boxes[0].offsetHeight];
    const into = (from, room, at) => Math.min(Math.max(from, at + size + GAP - room), Math.max(0, at - GAP));
    scroll.scrollTo({
      left: into(scroll.scrollLeft, scroll.clientWidth - left, x),
      top: into(scroll.scrollTop, scroll.clientHeight - top, y),
    });
  }
}
