// Heatmap of one head: labels, numbers, zoom, and a cell cursor.

const NARROW = 530; // a map narrower than this has shorter labels, so that its cells have room
const SLANTED = 16; // distance at which slanted labels do not touch
const LINE_HEIGHT = 12.5; // of labels one below the other
const WIDEST = 3; // by how much a cell that fills a screen may be wider than high
const ALL_NAMED = 24; // rows that are all named, however low the window is

/** Heatmap of one head with labels. It holds the visible part and the keyboard's cell; its owner sets the size. */
class Heatmap {
  constructor(canvas) {
    this.canvas = canvas;
    this.zoom = 1;
    this.centre = [0.5, 0.5];
  }

  /** Sets the head. A head of another shape is shown whole. */
  take(cells, queries, keys) {
    const same = this.cells && this.cells.rows === cells.rows && this.cells.columns === cells.columns;
    Object.assign(this, { cells, queries, keys });
    if (!same) this.reset();
  }

  reset() {
    this.zoom = 1;
    this.centre = [0.5, 0.5];
    this.cursor = null;
  }

  /** The visible part, in cells. */
  shown() {
    const { rows, columns } = this.cells;
    const side = (count, at) => {
      const half = 0.5 / this.zoom;
      const middle = Math.min(Math.max(at, half), 1 - half);
      return [(middle - half) * count, (middle + half) * count];
    };
    const [left, right] = side(columns, this.centre[0]);
    const [top, bottom] = side(rows, this.centre[1]);
    return { left, right, top, bottom };
  }

  /** Widths of the longest labels and of each key's; measured once, since there may be thousands. */
  measured(font) {
    const { queries, keys, widths } = this;
    if (widths?.font === font && widths.of === queries && widths.and === keys) return widths;
    const pen = this.canvas.getContext("2d");
    pen.font = font;
    const width = (label) => pen.measureText(label).width;
    const longest = (widths) => widths.reduce((most, each) => Math.max(most, each), 0) + 1;
    const above = keys.map(width);
    this.widths = { font, of: queries, and: keys, queries: longest(queries.map(width)), keys: longest(above), above };
    return this.widths;
  }

  /** Lays out labels and cells in `width` × at most `tallest` CSS pixels. */
  layout(width, tallest, font, square) {
    const { queries, keys, above } = this.measured(font);
    const left = Math.ceil(Math.min(queries, width * (width < NARROW ? 0.3 : 0.32))) + 8;
    const slant = Math.ceil(Math.min(keys, 92) * Math.SQRT1_2) + 12;
    const { rows, columns } = this.cells;
    const fills = fillsScreen();
    const narrowest = Math.min(Math.max(width - left - slant, 0) / columns, fills ? Infinity : 54);
    const right = above.reduce((most, each, column) => { // a long label leads out of the map from the columns before the last, too
      return Math.max(most, Math.ceil(Math.min(each, 92) * Math.SQRT1_2) + 8 - narrowest * (columns - 1 - column));
    }, 0);
    const widest = Math.min((width - left - right) / columns, fills ? Infinity : 54);
    const room = rows <= ALL_NAMED && !fills && roomAbove() === Infinity ? Math.max(tallest, slant + 2 + LINE_HEIGHT * rows) : tallest;
    const cellHeight = Math.min((room - slant - 2) / rows, fills ? Infinity : 34, Math.max(widest * 1.25, 13));
    const cellWidth = square ? Math.min(widest, cellHeight) : fills ? Math.min(widest, Math.max(cellHeight * WIDEST, 8)) : widest;
    const spare = Math.max(0, Math.floor((width - left - right - cellWidth * columns) / 2));
    const [wide, high] = [cellWidth * columns, cellHeight * rows];
    return { x: left + spare, y: slant, width: wide, height: high, total: slant + high + 2 };
  }

  /**
   * Draws into `width` CSS pixels. `lit` is the {row, column} pointed at, `selected` the selected row, `revealed` the number of rows
   * computed so far, `known` the number of keys known so far; cells that are `square` are no wider than high.
   */
  draw(width, tallest, { colours, font, lit = {}, selected = -1, revealed = this.cells.rows, known = this.cells.columns, square }) {
    const box = this.layout(width, tallest, font, square);
    const ratio = resolution(this.canvas, width, box.total);
    const pen = sized(this.canvas, width, box.total, ratio);
    const pixel = (at) => Math.round(at * ratio);
    const shown = this.shown();
    this.box = box;
    const some = (size) => Math.max(1, pixel(size)); // also if the page is zoomed out to 10 %
    const place = { x: pixel(box.x), y: pixel(box.y), width: some(box.width), height: some(box.height) };
    paint(pen, this.cells, colours, place, shown, revealed);
    pen.font = font.replace(/[\d.]+px/, "11px");
    this.numbers(pen, colours, box, shown, revealed);
    if (revealed < this.cells.rows) this.hatch(pen, colours, box, this.place(revealed, 0, shown).y);
    this.frame(pen, colours, box, shown, { lit, selected });
    pen.font = font;
    this.labels(pen, colours, box, shown, { lit, selected, revealed, known, square });
    return box.total;
  }

  /** Rectangle of a cell, {x, y, width, height} in CSS pixels of the canvas. */
  place(row, column, shown = this.shown()) {
    const { box } = this;
    const width = box.width / (shown.right - shown.left);
    const height = box.height / (shown.bottom - shown.top);
    return { x: box.x + (column - shown.left) * width, y: box.y + (row - shown.top) * height, width, height };
  }

  /** Writes the weights into the cells if they fit. */
  numbers(pen, colours, box, shown, revealed) {
    const { width, height } = this.place(0, 0, shown);
    if (width < 34 || height < 15) return;
    const { signed } = this.cells;
    Object.assign(pen, { textAlign: "center", textBaseline: "middle" });
    for (let row = Math.ceil(shown.top); row + 1 <= Math.min(shown.bottom, revealed); row++) {
      for (let column = Math.ceil(shown.left); column + 1 <= shown.right; column++) {
        const { weight, masked, most } = cellOf(this.cells, row, column);
        if (masked || most || !(Math.abs(weight) >= 0.045 * (signed || 1))) continue;
        const { x, y } = this.place(row, column, shown);
        pen.fillStyle = inkOn(colourOf(colours, placeOf(weight, signed)));
        pen.fillText(signedText(weight, signed && signed < 0.1 ? 3 : 2, signed), x + width / 2, y + height / 2 + 0.5);
      }
    }
  }

  /** Hatches the rows not computed yet, so that they look neither like weights of 0 nor like masked cells. */
  hatch(pen, colours, { x, y, width, height }, top) {
    pen.save();
    pen.beginPath();
    pen.rect(x, top, width, y + height - top);
    pen.clip();
    pen.beginPath();
    for (let at = x - height; at < x + width; at += 9) {
      pen.moveTo(at, y + height);
      pen.lineTo(at + height, y);
    }
    Object.assign(pen, { strokeStyle: colours.line, lineWidth: 1, globalAlpha: 0.7 });
    pen.stroke();
    pen.restore();
  }

  frame(pen, colours, box, shown, { lit, selected }) {
    pen.save();
    pen.strokeStyle = colours.line;
    pen.strokeRect(box.x - 0.5, box.y - 0.5, box.width + 1, box.height + 1);
    pen.beginPath();
    pen.rect(box.x - 1, box.y - 1, box.width + 2, box.height + 2);
    pen.clip();
    const outline = (colour, line, { x, y, width, height }) => {
      Object.assign(pen, { strokeStyle: colour, lineWidth: line });
      pen.strokeRect(x, y, width, height);
    };
    const row = (index) => ({ ...this.place(index, 0, shown), x: box.x, width: box.width });
    if (selected >= 0) outline(colours.accent, 1.5, row(selected));
    if (lit.row >= 0) outline(colours.text, 1, row(lit.row));
    if (lit.column >= 0) outline(colours.second, 1, { ...this.place(0, lit.column, shown), y: box.y, height: box.height });
    if (lit.row >= 0 && lit.column >= 0) outline(colours.text, 2, this.place(lit.row, lit.column, shown));
    pen.restore();
  }

  labels(pen, colours, box, shown, { lit, selected, revealed, known, square }) {
    const { width, height } = this.place(0, 0, shown);
    const [down, across] = [stepOfLabels(this.queries, 12 / height), stepOfLabels(this.keys, SLANTED / width)];
    if (square && down.counts && across.counts) down.step = across.step = Math.max(down.step, across.step);
    const named = (labels, step) => labels.filter((_, place) => isNamed(labels, place, step));
    this.named = { rows: named(this.queries, down), columns: named(this.keys, across) };
    const tint = (is, on) => (is ? on : colours.text);
    pen.textBaseline = "middle";
    for (let row = Math.floor(shown.top); row < Math.min(shown.bottom, revealed); row++) {
      const strong = row === lit.row || row === selected;
      const y = this.place(row, 0, shown).y + height / 2;
      if ((!isNamed(this.queries, row, down) && !strong) || y < box.y - 1 || y > box.y + box.height + 1) continue;
      pen.textAlign = "right";
      pen.fillStyle = tint(strong, colours.accent);
      pen.fillText(fitted(pen, this.queries[row], box.x - 7), box.x - 6, y);
    }
    for (let column = Math.floor(shown.left); column < Math.min(shown.right, known); column++) {
      const x = this.place(0, column, shown).x + width / 2;
      if ((!isNamed(this.keys, column, across) && column !== lit.column) || x < box.x - 1 || x > box.x + box.width + 1) continue;
      pen.save();
      pen.translate(x, box.y - 5);
      pen.rotate(-Math.PI / 4);
      pen.textAlign = "left";
      pen.fillStyle = tint(column === lit.column, colours.second);
      pen.fillText(fitted(pen, this.keys[column], 92), 0, 0);
      pen.restore();
    }
  }

  /** The cell at a point of the canvas, or null. */
  cellAt(x, y) {
    const { box } = this;
    if (!box || x < box.x || y < box.y || x >= box.x + box.width || y >= box.y + box.height) return null;
    const shown = this.shown();
    const { width, height } = this.place(0, 0, shown);
    const row = Math.floor(shown.top + (y - box.y) / height);
    const column = Math.floor(shown.left + (x - box.x) / width);
    return { row: Math.min(row, this.cells.rows - 1), column: Math.min(column, this.cells.columns - 1) };
  }

  /** Zooms by `factor` about a point of the canvas (default: the middle). Returns false when zooming out of the whole map. */
  zoomBy(factor, x, y) {
    const { rows, columns } = this.cells;
    const next = Math.min(Math.max(this.zoom * factor, 1), Math.max(rows, columns) / 4);
    if (next < 1 || next === this.zoom) return false;
    const { left, top, right, bottom } = this.shown();
    const at = (point, start, size) => (point === undefined ? 0.5 : (point - start) / size);
    const [u, v] = [at(x, this.box.x, this.box.width), at(y, this.box.y, this.box.height)];
    this.zoom = next;
    this.centre = [(left + (right - left) * u) / columns + (0.5 - u) / next, (top + (bottom - top) * v) / rows + (0.5 - v) / next];
    this.hold();
    return true;
  }

  /** Moves the visible part by CSS pixels. */
  pan(dx, dy) {
    this.centre[0] -= dx / this.box.width / this.zoom;
    this.centre[1] -= dy / this.box.height / this.zoom;
    this.hold();
  }

  hold() {
    const half = 0.5 / this.zoom;
    this.centre = this.centre.map((at) => Math.min(Math.max(at, half), 1 - half));
  }

  /** Moves the keyboard's cell and scrolls it into view. */
  move(down, right) {
    const { rows, columns } = this.cells;
    const { row, column } = this.cursor ?? { row: down > 0 ? -1 : 0, column: right > 0 ? -1 : 0 };
    const inside = (at, count) => Math.min(Math.max(at, 0), count - 1);
    this.cursor = { row: inside(row + down, rows), column: inside(column + right, columns) };
    const shown = this.shown();
    const { row: r, column: c } = this.cursor;
    if (r < shown.top || r + 1 > shown.bottom) this.centre[1] = (r + 0.5) / rows;
    if (c < shown.left || c + 1 > shown.right) this.centre[0] = (c + 0.5) / columns;
    this.hold();
    return this.cursor;
  }
}
