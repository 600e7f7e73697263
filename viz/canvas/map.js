// Weights as coloured cells: the painting of one head at any size, and a large map with labels, zoom and a cell cursor.

/** One head's cells. `codes` are round(255·sqrt(weight)), `exact` the weights as float32 where they are here. */
function grid(rows, columns, codes, mask, exact) {
  return { rows, columns, codes, mask, exact };
}

/** Codes of exact weights. */
function encoded(weights) {
  return Uint8Array.from(weights, (weight) => Math.round(255 * Math.sqrt(Math.min(Math.max(weight, 0), 1))));
}

/** The part of `array` that holds head `index` of [head, query, key]. */
function headOf(array, index, rows, columns) {
  return array.subarray(index * rows * columns, (index + 1) * rows * columns);
}

/** The weight of a cell: {weight, exact, masked}. */
function cellOf(cells, row, column) {
  const at = row * cells.columns + column;
  const weight = cells.exact ? cells.exact[at] : (cells.codes[at] / 255) ** 2;
  return { weight, exact: Boolean(cells.exact), masked: !cells.mask[at] };
}

/** A weight in words: "0.8732", "≈ 0.87", "0.0000, masked". */
function weightText({ weight, exact, masked }, texts) {
  const number = exact ? exactly(weight) : fill(texts.about, { weight: weight.toFixed(2) });
  return masked ? fill(texts.maskedWeight, { weight: number }) : number;
}

/** For each of `pixels` the first and one past the last cell it shows, of cells [from, to): several where cells are smaller. */
function spans(pixels, from, to, cells) {
  const scale = (to - from) / pixels;
  return Array.from({ length: pixels }, (_, pixel) => {
    const first = Math.min(Math.floor(from + (pixel + (scale > 1 ? 0 : 0.5)) * scale), cells - 1);
    return [first, scale > 1 ? Math.min(Math.max(Math.ceil(from + (pixel + 1) * scale), first + 1), cells) : first + 1];
  });
}

/**
 * Paints cells into `width` × `height` pixels of the screen at (x, y), each pixel its cell, or the largest of the cells it covers.
 * `shown` is the part in cells; rows from `revealed` on stay empty.
 */
function paint(pen, cells, colours, { x, y, width, height }, shown = whole(cells), revealed = cells.rows) {
  const image = pen.createImageData(width, height);
  const words = new Uint32Array(image.data.buffer);
  const across = spans(width, shown.left, shown.right, cells.columns);
  spans(height, shown.top, shown.bottom, cells.rows).forEach(([top, bottom], line) => {
    if (top >= revealed) return words.fill(colours.cardWord, line * width, (line + 1) * width);
    across.forEach(([left, right], pixel) => {
      words[line * width + pixel] = largest(cells, colours, top, Math.min(bottom, revealed), left, right);
    });
  });
  pen.putImageData(image, x, y);
}

function largest({ columns, codes, mask }, { table, maskedWord }, top, bottom, left, right) {
  let best = -1;
  for (let row = top; row < bottom; row++) {
    for (let at = row * columns + left; at < row * columns + right; at++) if (mask[at] && codes[at] > best) best = codes[at];
  }
  return best < 0 ? maskedWord : table[best];
}

/** All cells of a head as the part that is shown. */
function whole({ rows, columns }) {
  return { left: 0, top: 0, right: columns, bottom: rows };
}

/** A large map of one head with labels. It keeps the part shown and the cell under the keyboard; the owner gives it room. */
class BigMap {
  constructor(canvas) {
    this.canvas = canvas;
    this.zoom = 1;
    this.centre = [0.5, 0.5];
  }

  /** Takes a head; a new one is shown whole. */
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

  /** The part shown, in cells. */
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

  /** Room for labels and cells in `width` × at most `tallest` CSS pixels. */
  layout(width, tallest, font) {
    const pen = this.canvas.getContext("2d");
    pen.font = font;
    const longest = (labels, most) => Math.min(most, Math.max(...labels.map((label) => pen.measureText(label).width)) + 1);
    const left = Math.ceil(longest(this.queries, width * 0.32)) + 8;
    const slant = Math.ceil(longest(this.keys, 92) * Math.SQRT1_2) + 12;
    const right = Math.min(slant, Math.ceil(pen.measureText(this.keys.at(-1)).width * Math.SQRT1_2) + 8);
    const { rows, columns } = this.cells;
    const cellWidth = Math.min((width - left - right) / columns, 44);
    const cellHeight = Math.min((tallest - slant - 2) / rows, 30, Math.max(cellWidth * 1.25, 13));
    return { x: left, y: slant, width: cellWidth * columns, height: cellHeight * rows, total: slant + cellHeight * rows + 2 };
  }

  /** Draws into `width` CSS pixels; `lit` is {row, column} pointed at, `selected` a row, `revealed` how many rows are there. */
  draw(width, tallest, { colours, font, lit = {}, selected = -1, revealed = this.cells.rows }) {
    const box = this.layout(width, tallest, font);
    const pen = sized(this.canvas, width, box.total);
    const ratio = window.devicePixelRatio || 1;
    const pixel = (at) => Math.round(at * ratio);
    const shown = this.shown();
    this.box = box;
    paint(pen, this.cells, colours, { x: pixel(box.x), y: pixel(box.y), width: pixel(box.width), height: pixel(box.height) }, shown, revealed);
    this.frame(pen, colours, box, shown, { lit, selected });
    pen.font = font;
    this.labels(pen, colours, box, shown, { lit, selected, revealed });
    return box.total;
  }

  /** Where a cell lies: {x, y, width, height} in CSS pixels of the canvas. */
  place(row, column, shown = this.shown()) {
    const { box } = this;
    const width = box.width / (shown.right - shown.left);
    const height = box.height / (shown.bottom - shown.top);
    return { x: box.x + (column - shown.left) * width, y: box.y + (row - shown.top) * height, width, height };
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

  labels(pen, colours, box, shown, { lit, selected, revealed }) {
    const { width, height } = this.place(0, 0, shown);
    const every = (size) => Math.max(1, Math.ceil(12 / size));
    const tint = (is, on) => (is ? on : colours.text);
    pen.textBaseline = "middle";
    for (let row = Math.floor(shown.top); row < shown.bottom; row++) {
      const strong = row === lit.row || row === selected;
      const y = this.place(row, 0, shown).y + height / 2;
      if ((row % every(height) && !strong) || y < box.y - 1 || y > box.y + box.height + 1) continue;
      pen.textAlign = "right";
      pen.fillStyle = row >= revealed ? colours.line : tint(strong, colours.accent);
      pen.fillText(fitted(pen, this.queries[row], box.x - 7), box.x - 6, y);
    }
    for (let column = Math.floor(shown.left); column < shown.right; column++) {
      const x = this.place(0, column, shown).x + width / 2;
      if ((column % every(width) && column !== lit.column) || x < box.x - 1 || x > box.x + box.width + 1) continue;
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

  /** Zooms by `factor` about a point of the canvas (default: the middle). False if it is already shown whole and goes out. */
  zoomBy(factor, x, y) {
    const { rows, columns } = this.cells;
    const next = Math.min(Math.max(this.zoom * factor, 1), Math.max(rows, columns) / 4, 32);
    if (next < 1 || next === this.zoom) return false;
    const { left, top, right, bottom } = this.shown();
    const at = (point, start, size) => (point === undefined ? 0.5 : (point - start) / size);
    const [u, v] = [at(x, this.box.x, this.box.width), at(y, this.box.y, this.box.height)];
    this.zoom = next;
    this.centre = [(left + (right - left) * u) / columns + (0.5 - u) / next, (top + (bottom - top) * v) / rows + (0.5 - v) / next];
    this.hold();
    return true;
  }

  /** Moves the part shown by CSS pixels. */
  pan(dx, dy) {
    this.centre[0] -= dx / this.box.width / this.zoom;
    this.centre[1] -= dy / this.box.height / this.zoom;
    this.hold();
  }

  hold() {
    const half = 0.5 / this.zoom;
    this.centre = this.centre.map((at) => Math.min(Math.max(at, half), 1 - half));
  }

  /** Moves the keyboard's cell, and the part shown along with it. */
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
