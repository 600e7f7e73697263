// Tools of a head that is open large on the page What if: a drag over its cells forbids or opens them, a click gives a row other weights.

const TOOLS = ["look", "forbid", "allow", "onehot", "uniform"];
const OF_ROWS = ["onehot", "uniform"]; // tools that change whole rows

class Brush {
  /** `large` is the Large that owns the canvas. */
  constructor(large) {
    this.large = large;
    this.tool = "look";
    const { canvas } = large;
    const cell = (event) => large.map.cellAt(...Object.values(pointerIn(event)));
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.active || event.button) return;
      this.from = this.to = cell(event);
      if (this.from) canvas.setPointerCapture(event.pointerId);
      large.atlas.redraw();
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.from) return;
      this.to = cell(event) ?? this.to;
      large.atlas.redraw();
    });
    canvas.addEventListener("pointerup", () => this.apply());
    canvas.addEventListener("pointercancel", () => this.drop());
  }

  /** True if a pointer changes cells, instead of moving the picture. */
  get active() {
    return this.large.atlas.editing && this.tool !== "look";
  }

  /** The buttons of the tools; none outside the page What if. */
  buttons({ tools, toolsLabel }) {
    if (!tools) return [];
    const choose = (tool) => { this.tool = tool; this.show(); this.large.atlas.redraw(); };
    this.choices = TOOLS.map((tool) => {
      const [label, title] = tools[tool];
      return el("button", { type: "button", class: "tool", title, "data-tool": tool, onclick: () => choose(tool) }, label);
    });
    this.show();
    return [el("div", { class: "brush", role: "group", "aria-label": toolsLabel }, ...this.choices)];
  }

  show() {
    for (const node of this.choices ?? []) node.setAttribute("aria-pressed", node.dataset.tool === this.tool);
  }

  /** Applies the tool to one cell; for the keyboard. */
  at(cell) {
    this.from = this.to = cell;
    this.apply();
  }

  /** Reports the marked cells to Python as an edit. */
  apply() {
    const { from, tool, large: { atlas, tile: { site, head } } } = this;
    if (!from) return;
    const { top, bottom, left, right } = this.area();
    this.drop();
    atlas.edit({ act: tool, site, head, queries: [top, bottom], keys: [left, right] });
  }

  drop() {
    this.from = this.to = null;
    this.large.atlas.redraw();
  }

  /** The marked cells: first and last row and column. */
  area() {
    const { from, to, tool } = this;
    const [top, bottom] = [Math.min(from.row, to.row), Math.max(from.row, to.row)];
    if (tool === "onehot") return { top, bottom, left: to.column, right: to.column };
    if (tool === "uniform") return { top, bottom, left: 0, right: this.large.map.cells.columns - 1 };
    return { top, bottom, left: Math.min(from.column, to.column), right: Math.max(from.column, to.column) };
  }

  /** Draws a cross into each forbidden cell, a ring into each opened one, and a frame around the marked cells. */
  draw(colours) {
    const { map, canvas, tile, atlas } = this.large;
    const pen = canvas.getContext("2d");
    const { cut = [], opened = [], rows = [] } = atlas.marks?.[keyOf(tile)] ?? {};
    const { columns } = map.cells;
    const place = (at) => map.place(Math.floor(at / columns), at % columns);
    pen.save();
    pen.beginPath();
    pen.rect(map.box.x, map.box.y, map.box.width, map.box.height);
    pen.clip();
    for (const at of cut) cross(pen, colours, place(at));
    for (const at of opened) ring(pen, colours, place(at));
    Object.assign(pen, { strokeStyle: colours.second, lineWidth: 2 });
    for (const row of rows) {
      const { y, height } = map.place(row, 0);
      pen.strokeRect(map.box.x + 1, y + 1, map.box.width - 2, height - 2);
    }
    if (this.from) this.frame(pen, colours, map);
    pen.restore();
  }

  frame(pen, colours, map) {
    const { top, bottom, left, right } = this.area();
    const [one, other] = [map.place(top, OF_ROWS.includes(this.tool) ? 0 : left), map.place(bottom, right)];
    const wide = this.tool === "onehot" ? map.box.width : other.x + other.width - one.x;
    Object.assign(pen, { strokeStyle: colours.accent, lineWidth: 2.5, fillStyle: colours.accent, globalAlpha: 0.25 });
    pen.fillRect(one.x, one.y, wide, other.y + other.height - one.y);
    pen.globalAlpha = 1;
    pen.strokeRect(one.x, one.y, wide, other.y + other.height - one.y);
    if (this.tool === "onehot") pen.strokeRect(other.x, one.y, other.width, other.y + other.height - one.y);
  }
}

/** A cross in the middle of a cell, readable on any weight. */
function cross(pen, colours, { x, y, width, height }) {
  const arm = Math.min(width, height) * 0.26;
  const [u, v] = [x + width / 2, y + height / 2];
  for (const [strokeStyle, lineWidth] of [[colours.card, 4], [colours.accent, 2]]) {
    Object.assign(pen, { strokeStyle, lineWidth });
    pen.beginPath();
    for (const side of [1, -1]) {
      pen.moveTo(u - arm, v - side * arm);
      pen.lineTo(u + arm, v + side * arm);
    }
    pen.stroke();
  }
}

/** A ring in the middle of a cell, readable on any weight. */
function ring(pen, colours, { x, y, width, height }) {
  for (const [strokeStyle, lineWidth] of [[colours.card, 4], [colours.second, 2]]) {
    Object.assign(pen, { strokeStyle, lineWidth });
    pen.beginPath();
    pen.arc(x + width / 2, y + height / 2, Math.min(width, height) * 0.26, 0, 2 * Math.PI);
    pen.stroke();
  }
}
