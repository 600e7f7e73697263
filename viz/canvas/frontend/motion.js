// The moving picture of one token: its vector leaves the embedding, is split into query, key and value, meets the keys, and goes on,
// sublayer by sublayer, to the prediction. Here are its shapes; sublayer_motion.js and keys_motion.js say where they go.

const EDGE = 8; // CSS pixels around everything
const LABEL = 15; // height of the words above a shape
const LARGEST_CELL = 7; // CSS pixels across; a line of cells may be half as high again
const WIDE = 560; // from this width on, what comes in stands left of the keys, and what goes out right of them; else above and below
const [ABOVE, BELOW] = [0.17, 0.26]; // shares of a narrow picture's height
const [CAPTION, NARROW_CAPTION] = [76, 112]; // height of title and sentence below the picture
const CAPTION_LINE = 17;
const SIZES = { title: 13, text: 12.5, small: 11 };

/** A stretch [from, to] of a time from 0 to 1, as a time from 0 to 1 that begins and ends slowly. */
function during(t, from = 0, to = 1) {
  const share = Math.min(Math.max((t - from) / (to - from), 0), 1);
  return share * share * (3 - 2 * share);
}

/** A rectangle between two others. */
function midway(one, other, t) {
  return Object.fromEntries(["x", "y", "width", "height"].map((side) => [side, one[side] + (other[side] - one[side]) * t]));
}

class Motion {
  /** `network` is the drawing that owns this picture, and its transport the time. */
  constructor(network) {
    this.network = network;
    this.canvas = el("canvas", { role: "img" });
    this.images = new Map(); // of arrays, by the name of their blob
    this.broken = new Map(); // words that were shortened or broken into lines, which takes longer than to draw them
    watchTouch(this.canvas, {
      hover: (x, y) => this.hover(x, y),
      leave: () => network.hideTip(),
      click: (x, y) => this.click(x, y),
    });
  }

  /** Takes the numbers of a scene. */
  take(header, blobs) {
    if (this.blobs !== blobs) this.images.clear();
    Object.assign(this, { header, blobs });
    this.groupOf = new Map(header.groups.flatMap((group) => group.stages.map((at) => [at, group])));
  }

  /** Draws stage `at` of the walk, `t` of whose work is done, and what the sublayer has made before it. */
  draw(at, t, width, height) {
    const { network: { colours } } = this;
    if (this.painted !== colours) {
      this.images.clear();
      Object.assign(this, { painted: colours, centred: centredPalette(colours) });
    }
    const pen = (this.pen = sized(this.canvas, width, height));
    pen.fillStyle = colours.card; // a film has no page behind it
    pen.fillRect(0, 0, width, height);
    pen.imageSmoothingEnabled = false;
    Object.assign(this, { at, t, width, height: height - (width < WIDE ? NARROW_CAPTION : CAPTION), shapes: [], group: this.groupOf.get(at) });
    this.names = new Map(this.group.stages.map((stage) => [this.nameOf(stage), stage]));
    this[this.group.kind]();
    this.drawCaption();
  }

  nameOf(stage) {
    return this.network.header.order[stage].split("/").pop();
  }

  /** How far a stage of the group has come, from 0 to 1; null: it has not begun, or the group has none of this name. */
  come(name) {
    const stage = this.names.get(name);
    return stage === undefined || stage > this.at ? null : stage < this.at ? 1 : this.t;
  }

  /** The room of one of `count` shapes beside the keys: on the side where vectors come in, or go out. */
  slot(side, index, count) {
    const { width, height } = this;
    if (width < WIDE) { // two beside each other, so that their words have room
      const each = (width - 2 * EDGE) / Math.min(count, 2);
      const all = height * (side === "in" ? ABOVE : BELOW);
      const high = all / Math.ceil(count / 2);
      const y = (side === "in" ? EDGE : height - all - EDGE) + Math.floor(index / 2) * high;
      return { x: EDGE + (index % 2) * each, y, width: each - EDGE, height: high - 3 };
    }
    const each = (height - 3 * EDGE) / count;
    const wide = width * 0.23;
    return { x: side === "in" ? EDGE : width - wide - EDGE, y: EDGE + index * each, width: wide, height: each - EDGE };
  }

  /** The room between the two sides. */
  get middle() {
    const { width, height } = this;
    if (width < WIDE) return { x: EDGE, y: height * ABOVE + 2 * EDGE, width: width - 2 * EDGE, height: height * (1 - ABOVE - BELOW) - 4 * EDGE };
    const x = width * 0.23 + 4 * EDGE;
    return { x, y: EDGE, width: width - 2 * x, height: height - 4 * EDGE };
  }

  /** Rows and columns in which an array is drawn: a vector is folded into lines as wide as a head. */
  folded(name) {
    const { shape: [rows, columns = 1] } = this.blobs[name];
    if (rows > 1) return { rows, columns };
    const heads = this.header.heads;
    const line = columns > 64 && columns % heads === 0 && columns / heads <= 128 ? columns / heads : Math.min(columns, 64);
    const lines = Math.ceil(columns / line);
    return lines > 40 ? { rows: Math.ceil(columns / 128), columns: 128 } : { rows: lines, columns: line };
  }

  /** The array of a blob with a pixel for each number, on the scale around 0. */
  image(name) {
    if (this.images.has(name)) return this.images.get(name);
    const { rows, columns } = this.folded(name);
    const { array } = this.blobs[name];
    const largest = array.reduce((most, value) => (Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most), 0) || 1;
    const drawn = Object.assign(document.createElement("canvas"), { width: columns, height: rows });
    const pen = drawn.getContext("2d");
    const pixels = pen.createImageData(columns, rows);
    const words = new Uint32Array(pixels.data.buffer);
    array.forEach((value, i) => { words[i] = Number.isFinite(value) ? this.centred.shades[129 + Math.round((127 * value) / largest)] : this.centred.maskedWord; });
    pen.putImageData(pixels, 0, 0);
    this.images.set(name, drawn);
    return drawn;
  }

  /** Where an array stands inside a slot, below its words. */
  place(name, slot) {
    const { rows, columns } = this.folded(name);
    const side = Math.min(slot.width / columns, LARGEST_CELL);
    const high = rows === 1 ? 14 : Math.min((slot.height - LABEL) / rows, Math.max(1.5 * side, 2));
    return { x: slot.x, y: slot.y + LABEL, width: side * columns, height: high * rows };
  }

  words(text, x, y, { colour = this.network.colours.faint, size = SIZES.small, weight = 400, align = "left", width = Infinity } = {}) {
    const { pen } = this;
    Object.assign(pen, { font: this.network.font(size, weight), fillStyle: colour, textAlign: align, textBaseline: "middle" });
    pen.fillText(width === Infinity ? text : this.once(`${pen.font} ${width} ${text}`, () => fitted(pen, text, width)), x, y);
  }

  /** What `make` makes, made once for all frames. */
  once(key, make) {
    if (!this.broken.has(key)) this.broken.set(key, make());
    return this.broken.get(key);
  }

  /** Remembers a shape, whose cells answer the pointer: `stage` is the one that a click leads to. */
  answers(box, name, stage, { title, row = 0, rows, columns, label = "" }) {
    this.shapes.push({ ...box, name, stage, title, row, rows, columns, label });
  }

  /** Draws a stage's vector in a slot, on its way from another place. Returns where it stands; null if it is not there yet. */
  vector(name, slot, from = null, t = this.come(name)) {
    const stage = this.names.get(name);
    if (t === null) {
      if (stage !== undefined) this.outline(stage, slot);
      return null;
    }
    return this.shape(String(stage), stage, slot, from, t, this.network.header.titles[name]);
  }

  /** Draws an array in a slot. */
  shape(name, stage, slot, from, t, title) {
    this.words(title, slot.x, slot.y + 6, { width: slot.width });
    if (!this.blobs[name]) {
      this.words(this.network.header.texts.absent, slot.x, slot.y + LABEL + 8, { width: slot.width });
      return null;
    }
    const to = this.place(name, slot);
    const now = from ? midway(from, to, during(t)) : to;
    this.pen.globalAlpha = from ? Math.min(1, 0.25 + t) : during(t);
    const { x, y, width, height } = now;
    this.pen.drawImage(this.image(name), x, y, width, height);
    this.pen.globalAlpha = 1;
    this.frame(now, stage === this.at && t < 1 ? "accent" : "line");
    this.answers(now, name, stage, { title, ...this.folded(name) });
    return { ...to, name };
  }

  frame({ x, y, width, height }, colour) {
    Object.assign(this.pen, { strokeStyle: this.network.colours[colour], lineWidth: 1 });
    this.pen.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1);
  }

  /** The place of a vector that is still to come: empty while a token is on its way, else with its numbers, faintly. */
  outline(stage, slot) {
    const name = String(stage);
    if (!this.blobs[name]) return;
    const title = this.network.header.titles[this.nameOf(stage)];
    const box = this.place(name, slot);
    this.words(title, slot.x, slot.y + 6, { width: slot.width });
    this.pen.setLineDash([3, 3]);
    this.frame(box, "line");
    this.pen.setLineDash([]);
    if (this.t < 1 || this.network.transport.playing) return;
    this.pen.globalAlpha = 0.35;
    this.pen.drawImage(this.image(name), box.x, box.y, box.width, box.height);
    this.pen.globalAlpha = 1;
    this.answers(box, name, stage, { title, ...this.folded(name) });
  }

  /** A line between points, with an arrow at its end. */
  arrow(...points) {
    const { pen } = this;
    Object.assign(pen, { strokeStyle: this.network.colours.faint, lineWidth: 1.2 });
    const [[x, y], [fromX, fromY]] = [points.at(-1), points.at(-2)];
    const angle = Math.atan2(y - fromY, x - fromX);
    pen.beginPath();
    pen.moveTo(...points[0]);
    for (const point of points.slice(1)) pen.lineTo(...point);
    for (const turn of [2.6, -2.6]) {
      pen.moveTo(x, y);
      pen.lineTo(x + 5 * Math.cos(angle + turn), y + 5 * Math.sin(angle + turn));
    }
    pen.stroke();
  }

  /** A text in lines. */
  lines(text, width, { size = SIZES.small, weight = 400 } = {}) {
    this.pen.font = this.network.font(size, weight);
    return this.once(`${this.pen.font} ${width} lines ${text}`, () => brokenInto(this.pen, text, width));
  }

  /** Title and sentence of the stage. */
  drawCaption() {
    const width = this.width - 2 * EDGE;
    const styles = [{ size: SIZES.title, weight: 650, colour: this.network.colours.text }, { size: SIZES.text }];
    let y = this.height + 10 - CAPTION_LINE;
    this.header.captions[this.at].forEach((text, at) => {
      for (const line of this.lines(text, width, styles[at])) this.words(line, EDGE, (y += CAPTION_LINE), { ...styles[at], width });
    });
  }

  shapeAt(x, y) {
    return this.shapes.findLast((box) => x >= box.x && y >= box.y && x < box.x + box.width && y < box.y + box.height);
  }

  /** The number of a shape under a point: its place among the numbers of its vector, and itself. */
  cell({ name, row, rows, columns, ...box }, x, y) {
    const down = Math.min(rows - 1, Math.floor(((y - box.y) / box.height) * rows));
    const across = Math.min(columns - 1, Math.floor(((x - box.x) / box.width) * columns));
    const place = (row + down) * columns + across;
    return { down, across, place, value: this.blobs[name].array[place] };
  }

  hover(x, y) {
    const { network, canvas } = this;
    const found = this.shapeAt(x, y);
    canvas.style.cursor = found ? "pointer" : "";
    if (!found) return network.hideTip();
    const { texts } = network.header;
    const { name, title, label, rows, columns } = found;
    if (!name) return network.showTip(inWindow(canvas, x, y), el("b", {}, label));
    const { down, across, place, value } = this.cell(found, x, y);
    if (value === undefined) return network.hideTip();
    const several = this.blobs[name].shape[0] > 1 && rows > 1;
    const which = [
      ...(label ? [[texts.key, label]] : several ? [[texts.head, String(down + 1)]] : []),
      ...(columns > 1 ? [[texts.dimension, String((label || several ? across : place) + 1)]] : []),
    ];
    return network.showTip(inWindow(canvas, x, y), ...facts(title, [...which, [texts.value, significant(value)]]));
  }

  click(x, y) {
    const found = this.shapeAt(x, y);
    if (!found) return;
    if (found.token !== undefined) this.network.follow({ query: found.token });
    else this.network.stopAt(found.stage);
  }
}
