// Weights as coloured cells: one head, painted at any size.


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

/** A weight in words: "0.8732", "≈ 0.87", "≈ 0.004", "0.0000, masked". */
function weightText({ weight, exact, masked }, texts) {
  const number = exact ? exactly(weight) : fill(texts.about, { weight: weight.toFixed(weight < 0.095 ? 3 : 2) });
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

const LOUPE_CELLS = 9;
const LOUPE_SIDE = 126;

/** The cells around one cell, large enough to be seen, as a canvas for the tooltip. */
function loupe(cells, row, column, colours) {
  const window = (at, count) => {
    const size = Math.min(LOUPE_CELLS, count);
    const first = Math.min(Math.max(at - (size - 1) / 2, 0), count - size);
    return [first, first + size];
  };
  const [left, right] = window(column, cells.columns);
  const [top, bottom] = window(row, cells.rows);
  const canvas = el("canvas", { class: "loupe" });
  const [width, height] = [right - left, bottom - top].map((count) => (count * LOUPE_SIDE) / LOUPE_CELLS);
  const pen = sized(canvas, width, height);
  paint(pen, cells, colours, { x: 0, y: 0, width: canvas.width, height: canvas.height }, { left, right, top, bottom });
  Object.assign(pen, { strokeStyle: colours.text, lineWidth: 2 });
  const side = LOUPE_SIDE / LOUPE_CELLS;
  pen.strokeRect((column - left) * side + 1, (row - top) * side + 1, side - 2, side - 2);
  return canvas;
}
