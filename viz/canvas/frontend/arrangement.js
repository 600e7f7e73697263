// Where the tiles of a card stand. Layers stand in as few columns as fit the height; where tiles would be too small to read, each
// layer takes lines of its own, in bands that fold; chosen heads stand in lines, each with its name above. All fill the width.

const EDGE = 5; // room for outlines beside the first tile
const READABLE = 16; // smallest side of a tile
const NAMED = 50; // smallest side of a tile with a name above it
const STRETCHED = 1.75; // how many times as long as wide a tile may be, or as wide as long
const RANGE = 44; // room for the heads' names beside a line
const APART = 14; // between two columns
const NAMES = 19; // room for the heads' names
const FOLD = 32; // height of the button of a band
const MOST_BANDS = 16;
const BANDS = [1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 64]; // layers of a band
const LONGEST = 12000; // most device pixels of a canvas, up and down

/** The greatest height of a picture of this width that a browser can draw sharp, at so many device pixels per pixel. */
const longest = (width, ratio) => Math.min(LONGEST, MOST_PIXELS / (width * ratio)) / ratio;

/** The gap between tiles that stand so far apart. */
const gapOf = (step) => (step < 28 ? 2 : step < 48 ? 3 : 5);

/** Layers in columns: `rows` in each; null if their tiles would be smaller than READABLE. */
function columnsFor({ layers, across, room, left, tall }) {
  for (let count = 1; ; count++) {
    const rows = Math.ceil(layers / count);
    const columns = Math.ceil(layers / rows);
    const step = Math.floor(((room - EDGE - (columns - 1) * APART) / columns - left) / across);
    if (step - gapOf(step) < READABLE) return null;
    if (rows === 1 || rows * step <= tall) return { rows, columns, step: rows === 1 ? Math.min(step, tall) : step };
  }
}

/** Width and height of a step from tile to tile: to fill their room, tiles are up to STRETCHED times as long as wide, or as wide as long. */
function stepsIn(wide, high) {
  return { step: Math.floor(Math.min(wide, STRETCHED * high)), down: Math.floor(Math.min(high, STRETCHED * wide)) };
}

/** The plan whose tiles are largest; of two of one size, that with the squarer ones. */
function roomiest(plans) {
  const worth = ({ step, down }) => Math.min(step, down) * Math.sqrt(step * down);
  return plans.reduce((one, other) => (worth(other) > 1.05 * worth(one) ? other : one));
}

/**
 * How all layers of a card fill a screen: in columns, or the heads of each layer in several lines, whichever makes the tiles largest;
 * null if they would be smaller than READABLE.
 */
function filling({ layers, across, room, left, tall }) {
  const columns = Array.from({ length: layers }, (_, at) => {
    const rows = Math.ceil(layers / (at + 1));
    const columns = Math.ceil(layers / rows);
    return { rows, columns, ...stepsIn(((room - EDGE - (columns - 1) * APART) / columns - left) / across, tall / rows) };
  });
  const lines = Array.from({ length: across - 1 }, (_, at) => {
    const per = Math.ceil(across / (at + 2));
    const lines = Math.ceil(across / per);
    return { per, lines, ...stepsIn((room - EDGE - left - RANGE) / per, (tall + NAMES) / layers / lines) };
  });
  const best = roomiest([...columns, ...lines]);
  const least = Math.min(best.step, best.down);
  return least - gapOf(least) < READABLE ? null : best;
}

/** The places of all tiles where each layer has lines of its own, each with the names of its heads beside it. */
function inNamedLines({ per, lines, step, down }, { layers, across, room, left }) {
  const gap = gapOf(Math.min(step, down));
  const [size, high] = [step - gap, down - gap];
  const start = EDGE + left + RANGE + Math.max(0, Math.floor((room - EDGE - left - RANGE - per * step) / 2));
  const top = (layer, line) => (layer * lines + line) * down + 2;
  const all = Array.from({ length: layers * lines }, (_, at) => [Math.floor(at / lines), at % lines]);
  const range = (line) => [line * per, Math.min((line + 1) * per, across) - 1];
  return {
    size,
    high,
    place: (layer, head) => ({ x: start + (head % per) * step, y: top(layer, Math.floor(head / per)) }),
    layers: Array.from({ length: layers }, (_, layer) => ({ layer, x: start - RANGE - 5, y: top(layer, 0) + high / 2 })),
    ranges: all.map(([layer, line]) => ({ layer, heads: range(line), x: start - 7, y: top(layer, line) + high / 2 })),
    heads: [],
    bands: [],
    height: layers * lines * down + 4,
  };
}

/** The places of all tiles where layers stand in columns. */
function inColumns(plan, { layers, across, room, left }) {
  const { rows, columns, step, down = step } = plan;
  const wide = left + across * step;
  const apart = columns > 1 ? (room - EDGE - columns * wide) / (columns - 1) : 0; // what is left over
  const start = columns > 1 ? 0 : Math.max(0, Math.floor((room - EDGE - wide) / 2));
  const x = (layer) => EDGE + start + left + Math.floor(Math.floor(layer / rows) * (wide + Math.min(apart, 4 * APART)));
  const y = (layer) => NAMES + (layer % rows) * down;
  const gap = gapOf(Math.min(step, down));
  const [size, high] = [step - gap, down - gap];
  return {
    size,
    high,
    place: (layer, head) => ({ x: x(layer) + head * step, y: y(layer) }),
    layers: Array.from({ length: layers }, (_, layer) => ({ layer, x: x(layer) - 7, y: y(layer) + high / 2 })),
    heads: Array.from({ length: columns }, (_, column) => ({ first: column * rows, x: x(column * rows), y: NAMES - 11, step })),
    bands: [],
    height: NAMES + rows * down + 2,
  };
}

/** How the lines of a layer and the bands are cut. */
function bandsFor({ layers, across, room, left, tall }) {
  const lines = Math.ceil(across / Math.max(1, Math.floor((room - EDGE - left) / (READABLE + 2))));
  const step = Math.floor((room - EDGE - left) / Math.ceil(across / lines));
  const layer = lines * step + (lines > 1 ? 5 : 0);
  const wanted = Math.max(tall / 2 / layer, layers / MOST_BANDS, 1);
  const size = layers * layer <= tall ? layers : BANDS.find((each, i) => (BANDS[i + 1] ?? layers) > wanted && each >= layers / MOST_BANDS) ?? layers;
  return { per: Math.ceil(across / lines), step, layer, size, count: Math.ceil(layers / size) };
}

/** The bands that are open at first: that of the selected layer, and the nearest ones that fit. */
function firstOpen({ layer, size, count }, { tall }, selected) {
  const own = Math.floor(selected / size);
  const near = Array.from({ length: count }, (_, at) => at).sort((a, b) => Math.abs(a - own) - Math.abs(b - own));
  const fits = Math.max(1, Math.floor((tall - count * FOLD) / (size * layer)));
  return new Set(near.slice(0, fits));
}

/** The places of the tiles of the open bands. */
function inBands(plan, { layers, across, left }, open) {
  const { per, step, layer, size, count } = plan;
  const folds = count > 1;
  const tops = [];
  const bands = [];
  const heads = [];
  let y = folds ? 0 : NAMES;
  const named = per === across; // a head's name stands above its column
  if (named && !folds) heads.push({ first: 0, x: EDGE + left, y: NAMES - 11, step });
  for (let band = 0; band < count; band++) {
    const last = Math.min((band + 1) * size, layers) - 1;
    if (folds) bands.push({ band, first: band * size, last, open: open.has(band), y });
    y += folds ? FOLD : 0;
    if (folds && !open.has(band)) continue;
    if (folds && named) heads.push({ first: band * size, x: EDGE + left, y: y + NAMES - 11, step });
    if (folds && named) y += NAMES;
    for (let at = band * size; at <= last; at++, y += layer) tops[at] = y;
  }
  const tile = step - gapOf(step);
  return {
    size: tile,
    place: (at, head) => tops[at] === undefined ? null : { x: EDGE + left + (head % per) * step, y: tops[at] + Math.floor(head / per) * step },
    layers: tops.flatMap((top, at) => (top === undefined ? [] : [{ layer: at, x: EDGE + left - 7, y: top + tile / 2 }])),
    heads,
    bands,
    height: y + 4,
  };
}

/** The places of chosen heads, in their order: as many lines as `most` says. */
function inLines(count, { room, tall }, pages) {
  const per = Math.max(1, Math.floor((room - EDGE) / NAMED));
  const step = Math.min(Math.floor((room - EDGE) / Math.max(1, Math.min(per, count))), 160);
  const line = step + NAMES;
  const across = Math.max(1, Math.floor((room - EDGE) / step));
  const lines = Math.min(Math.ceil(count / across), Math.max(2, Math.floor((tall * pages) / line)));
  return {
    size: step - 5,
    across,
    shown: Math.min(count, lines * across),
    at: (index) => ({ x: EDGE + (index % across) * step, y: NAMES + Math.floor(index / across) * line }),
    height: lines * line + 4,
  };
}
