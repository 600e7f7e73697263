// Paints the weights of one head as colored cells, at any size.

/**
 * Cells of one head. `codes` are round(255·sqrt(weight)); `exact` are the weights as float32, if known. If `signed`, the largest
 * difference, is not 0, the cells hold differences, with codes 128 ± round(127·sqrt(size / largest)). `pooled` gives the code of a pixel
 * that covers several cells.
 */
function grid(rows, columns, codes, mask, exact, signed = 0, pooled = signed ? farthest : largest) {
  return { rows, columns, codes, mask, exact, signed, pooled };
}

/** The value of a code. */
function decoded(code, signed) {
  return signed ? signed * Math.sign(code - 128) * ((code - 128) / 127) ** 2 : (code / 255) ** 2;
}

/** Position of a value on its color scale, from 0 to 1. */
function placeOf(value, signed) {
  return signed ? 0.5 + (Math.sign(value) * Math.sqrt(Math.abs(value) / signed)) / 2 : value;
}

/** The palette of signed numbers, whose code 128 is zero. */
function centredPalette(colours) {
  const stops = colours.diverging.map(rgb);
  return { ...colours, stops, shades: shadesOf(colours.maskedWord, stops, (code) => 0.5 + (code - 128) / 254) };
}

/** Cells of a head that is stored pooled: each of `stored` is the largest weight of a block of `down` × `across` cells. */
function pooledGrid(rows, columns, stored, [down, across]) {
  return down * across > 1 ? { rows, columns, stored, down, across } : stored;
}

/** A rectangle of cells, counted in blocks. */
function inBlocks({ down, across }, { left, top, right, bottom }) {
  return { left: left / across, top: top / down, right: right / across, bottom: bottom / down };
}

/** Codes of exact weights. */
function encoded(weights) {
  const codes = new Uint8Array(weights.length); // `Uint8Array.from` takes a hundred times as long
  for (let at = 0; at < codes.length; at++) codes[at] = Math.round(255 * Math.sqrt(Math.min(Math.max(weights[at], 0), 1)));
  return codes;
}

/** Exact cells of a head from the blobs of its part; `left` are weights on the first key, if it is left out. The codes are computed on first painting: most heads are only read. */
function exactGrid({ exact: { array, shape: [rows, columns] }, codes, mask, left }, signed) {
  let made = codes?.array;
  return { ...grid(rows, columns, null, mask.array, array, signed), left: left?.array, get codes() { return (made ??= encoded(array)); } };
}

/** Head `index` of an array [head, query, key]. */
function headOf(array, index, rows, columns) {
  return array.subarray(index * rows * columns, (index + 1) * rows * columns);
}

/** The weight of a cell, {weight, exact, masked}; with `most` it is the largest weight of the cell's block. */
function cellOf(cells, row, column) {
  if (cells.cellAt) return cells.cellAt(row, column);
  if (cells.stored) {
    const block = cellOf(cells.stored, Math.floor(row / cells.down), Math.floor(column / cells.across));
    return { ...block, most: true };
  }
  const at = row * cells.columns + column;
  const weight = cells.exact ? cells.exact[at] : decoded(cells.codes[at], cells.signed);
  return { weight, exact: Boolean(cells.exact), masked: !cells.mask[at], signed: cells.signed };
}

/** A number as text; a difference carries its sign: "+0.12", "−0.12". */
function signedText(weight, decimals, signed) {
  const number = fixed(weight, decimals).replace("-", "−");
  return signed && weight > 0 ? `+${number}` : number;
}

/**
 * A weight as text: "0.8732", "≈ 0.87", "≈ 0.004", "at most ≈ 0.42", "0.0000, masked"; a difference with its sign; "…" while it is
 * being fetched.
 */
function weightText({ weight, exact, masked, most, signed }, texts) {
  if (weight === undefined) return "…";
  const rounded = () => signedText(weight, Math.abs(weight) < 0.095 ? 3 : 2, signed);
  const number = exact ? signedText(weight, precise(weight), signed) : fill(most ? texts.most : texts.about, { weight: rounded() });
  return masked ? fill(texts.maskedWeight, { weight: number }) : number;
}

const RUNS = new Map(); // results of `runs`: the heads of a card have the same
const MOST_RUNS = 64;

/**
 * Runs of pixels that cover the same cells, of `pixels` over cells [from, to): arrays of their first pixels (and, last, `pixels`),
 * and of the first and one past the last cell that they cover.
 */
function runs(pixels, from, to, cells) {
  const key = [pixels, from, to, cells].join();
  if (RUNS.has(key)) return RUNS.get(key);
  const scale = (to - from) / pixels;
  const found = { starts: [], first: [], end: [] };
  for (let pixel = 0; pixel < pixels; pixel++) {
    const first = Math.min(Math.floor(from + (pixel + (scale > 1 ? 0 : 0.5)) * scale), cells - 1);
    const end = scale > 1 ? Math.min(Math.max(Math.ceil(from + (pixel + 1) * scale), first + 1), cells) : first + 1;
    if (found.first.at(-1) === first && found.end.at(-1) === end) continue;
    found.starts.push(pixel);
    found.first.push(first);
    found.end.push(end);
  }
  found.starts.push(pixels);
  if (RUNS.size === MOST_RUNS) RUNS.clear();
  RUNS.set(key, found);
  return found;
}

/**
 * Paints cells into `width` × `height` device pixels at (x, y). A pixel shows its cell, or what `pooled` makes of the cells it covers.
 * `shown` is the visible part in cells; rows from `revealed` on stay empty.
 */
function paint(pen, cells, colours, place, shown = whole(cells), revealed = cells.rows) {
  if (cells.paintInto) return cells.paintInto(pen, colours, place, shown);
  if (cells.stored) return paint(pen, cells.stored, colours, place, inBlocks(cells, shown));
  const { x, y, width, height } = place;
  const image = imageOf(pen, width, height);
  const words = new Uint32Array(image.data.buffer);
  const { starts, first: from, end: to } = runs(width, shown.left, shown.right, cells.columns);
  const down = runs(height, shown.top, shown.bottom, cells.rows);
  const { columns, codes, mask, pooled } = cells;
  const { shades } = colours;
  for (let row = 0; row < down.first.length; row++) {
    const [top, bottom] = [down.first[row], Math.min(down.end[row], revealed)];
    const [at, end] = [down.starts[row] * width, down.starts[row + 1] * width];
    if (top >= revealed) words.fill(colours.cardWord, at, end);
    else {
      for (let column = 0; column < from.length; column++) { // a loop, because `fill` takes four times as long for a few pixels
        const shade = shades[1 + pooled(codes, mask, columns, top, bottom, from[column], to[column])];
        for (let pixel = at + starts[column], next = at + starts[column + 1]; pixel < next; pixel++) words[pixel] = shade;
      }
      for (let line = at + width; line < end; line += width) words.copyWithin(line, at, at + width);
    }
  }
  pen.putImageData(image, x, y);
}

let lastImage = null;

/** An image to paint into: the last one again, if it has this size. `putImageData` has copied it. */
function imageOf(pen, width, height) {
  if (lastImage?.width !== width || lastImage.height !== height) lastImage = pen.createImageData(width, height);
  return lastImage;
}

/** The largest code of the allowed cells, -1 if all are masked. It runs once per pixel, so it allocates nothing. */
function largest(codes, mask, columns, top, bottom, left, right) {
  let best = -1;
  for (let row = top; row < bottom; row++) {
    for (let at = row * columns + left, end = row * columns + right; at < end; at++) {
      if (codes[at] > best && mask[at]) best = codes[at];
    }
  }
  return best;
}

/** The same for signed codes: the code farthest from 128. */
function farthest(codes, mask, columns, top, bottom, left, right) {
  let best = -1;
  for (let row = top; row < bottom; row++) {
    for (let at = row * columns + left, end = row * columns + right; at < end; at++) {
      if (mask[at] && (best < 0 || Math.abs(codes[at] - 128) > Math.abs(best - 128))) best = codes[at];
    }
  }
  return best;
}

/** The visible part that covers all cells. */
function whole({ rows, columns }) {
  return { left: 0, top: 0, right: columns, bottom: rows };
}

/** Crosses a silenced head out: two diagonals that are readable on any weight. */
function crossOut(pen, colours, { x, y, width, height }) {
  const line = Math.max(1.5, width / 18);
  for (const [strokeStyle, lineWidth] of [[colours.card, line + 2], [colours.text, line]]) {
    Object.assign(pen, { strokeStyle, lineWidth });
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x + width, y + height);
    pen.moveTo(x + width, y);
    pen.lineTo(x, y + height);
    pen.stroke();
  }
}

const LOUPE_CELLS = 9;
const LOUPE_SIDE = 126;

/** The cells around one cell, magnified, as a canvas for the tooltip, with `ratio` device pixels per pixel of the drawing. */
function loupe(cells, row, column, colours, ratio) {
  if (cells.stored) return loupe(cells.stored, Math.floor(row / cells.down), Math.floor(column / cells.across), colours, ratio);
  const window = (at, count) => {
    const size = Math.min(LOUPE_CELLS, count);
    const first = Math.min(Math.max(at - (size - 1) / 2, 0), count - size);
    return [first, first + size];
  };
  const [left, right] = window(column, cells.columns);
  const [top, bottom] = window(row, cells.rows);
  const canvas = el("canvas", { class: "loupe" });
  const [width, height] = [right - left, bottom - top].map((count) => (count * LOUPE_SIDE) / LOUPE_CELLS);
  const pen = sized(canvas, width, height, ratio);
  paint(pen, cells, colours, { x: 0, y: 0, width: canvas.width, height: canvas.height }, { left, right, top, bottom });
  Object.assign(pen, { strokeStyle: colours.text, lineWidth: 2 });
  const side = LOUPE_SIDE / LOUPE_CELLS;
  pen.strokeRect((column - left) * side + 1, (row - top) * side + 1, side - 2, side - 2);
  return canvas;
}
