// A sound on one axis of time: the words that were written, the spectrogram, one head's attention over it, and a line that plays.

const LANE = 34; // height of the lane of words
const PICTURE = 96; // of the spectrogram
const CURVE = 64; // of the selected row as a curve
const AXIS = 34; // of the axis of time
const GAP = 8;
const READABLE = 11; // least height of a row that has its label
const LABELED = 60; // most rows that have one
const TOLD = 120; // least milliseconds between two moments that the other drawings are told while it plays

class Sound extends Drawing {
  constructor(parent) {
    super(parent, "sound");
    this.audio = el("audio", { controls: true, preload: "auto" });
    this.canvas = el("canvas", { tabindex: 0, role: "application" });
    this.now = el("i", { class: "now" });
    this.root.append(this.audio, el("div", { class: "over-time" }, this.canvas, this.now), this.readout);
    Object.assign(this, { at: null, row: -1, until: null, told: 0 });
    for (const name of ["play", "seeked", "timeupdate"]) this.audio.addEventListener(name, () => this.follow());
    watchTouch(this.canvas, { hover: (x, y) => this.hover(x, y), leave: () => this.leave(), click: (x, y) => this.click(x, y) });
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  needs() { return ["spectrogram", "map", "wav"]; }

  form() { return JSON.stringify([this.header.run, this.header.seconds]); }

  build() {
    if (this.address) URL.revokeObjectURL(this.address);
    this.address = URL.createObjectURL(new Blob([this.part("wav").blobs.bytes.array], { type: "audio/wav" }));
    this.audio.src = this.address;
    Object.assign(this, { at: null, row: -1, until: null });
  }

  take() {
    const { texts, name } = this.header;
    const { array, shape } = this.part("map").blobs.weights;
    [this.weights, this.shape, this.pictures] = [array, shape, null];
    this.largest = array.reduce((most, weight) => Math.max(most, weight), 0);
    for (const node of [this.canvas, this.audio]) node.setAttribute("aria-label", fill(texts.label, { head: name }));
    this.say(hintOf(texts));
  }

  disconnect() {
    super.disconnect();
    this.audio.pause();
  }

  /** The row that is read: the one under pointer or keyboard, else what another drawing points at, else the selected one. */
  get active() {
    const { queryStrip, query, block } = this.header;
    const pointed = this.pointed.queryStrip === queryStrip && this.pointed.query !== null ? this.pointed.query : query;
    const row = this.row >= 0 ? this.row : pointed >= 0 ? Math.floor(pointed / block[0]) : -1;
    return row < this.shape[0] ? row : -1;
  }

  arrange() {
    const pen = this.canvas.getContext("2d");
    pen.font = this.font();
    const { rows, texts } = this.header;
    const few = this.shape[0] <= LABELED;
    const titles = [texts.words, texts.spectrogram, ...(few ? rows : [])];
    const left = Math.ceil(Math.min(this.width * 0.3, Math.max(...titles.map((title) => pen.measureText(title).width)) + 10));
    const high = few ? Math.max(READABLE + 2, Math.min(18, 240 / this.shape[0])) : Math.max(2, 420 / this.shape[0]);
    const picture = LANE + GAP;
    const map = picture + PICTURE + GAP;
    const curve = map + high * this.shape[0] + GAP;
    this.box = { left, wide: Math.max(60, this.width - left - 8), high, picture, map, curve, axis: curve + CURVE, height: curve + CURVE + AXIS };
  }

  x(seconds) { return this.box.left + (seconds / this.header.seconds) * this.box.wide; }

  secondsAt(x) { return Math.min(Math.max((x - this.box.left) / this.box.wide, 0), 1) * this.header.seconds; }

  draw() {
    this.arrange();
    const { left, wide, high, picture, map, curve, height } = this.box;
    const pen = sized(this.canvas, this.width, height);
    if (this.pictures?.colours !== this.colours) this.pictures = { colours: this.colours, heard: this.spectrogram(), map: this.attention() };
    pen.imageSmoothingEnabled = false;
    pen.drawImage(this.pictures.heard, left, picture, wide, PICTURE);
    pen.drawImage(this.pictures.map, left, map, wide, high * this.shape[0]);
    pen.font = this.font();
    this.drawTitles(pen);
    this.drawWords(pen);
    this.drawCurve(pen, curve);
    this.drawAxis(pen);
    this.drawAt(pen);
    this.follow();
  }

  /** A small picture of cells [row, column], each with a color word. */
  cellsOf(rows, columns, colour) {
    const canvas = el("canvas", { width: columns, height: rows });
    const words = new Uint32Array(rows * columns);
    for (let at = 0; at < words.length; at++) words[at] = colour(at);
    canvas.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(words.buffer), columns, rows), 0, 0);
    return canvas;
  }

  /** The energy of each band, the highest one above: from the color of the card over the second one to that of text. */
  spectrogram() {
    const { array, shape: [bands, columns] } = this.part("spectrogram").blobs.codes;
    const { card, second, text } = this.colours;
    const shades = Uint32Array.from({ length: 256 }, (_, code) => word(between([card, second, text].map(rgb), code / 255)));
    return this.cellsOf(bands, columns, (at) => shades[array[(bands - 1 - Math.floor(at / columns)) * columns + (at % columns)]]);
  }

  /** The weights, on a scale up to the largest of them. */
  attention() {
    const [rows, columns] = this.shape;
    const scale = this.largest || 1;
    return this.cellsOf(rows, columns, (at) => this.colours.shades[1 + Math.round(255 * Math.sqrt(Math.max(0, this.weights[at]) / scale))]);
  }

  drawTitles(pen) {
    const { texts, rows } = this.header;
    const { left, high, picture, map } = this.box;
    const tell = (title, y, colour = this.colours.faint) => {
      Object.assign(pen, { textAlign: "right", textBaseline: "middle", fillStyle: colour });
      pen.fillText(fitted(pen, title, left - 10), left - 8, y);
    };
    tell(texts.words, LANE / 2);
    tell(texts.spectrogram, picture + PICTURE / 2);
    tell(texts.high, picture + 6);
    tell(texts.low, picture + PICTURE - 6);
    if (high < READABLE) return;
    pen.font = this.font(Math.min(12.5, high));
    for (let row = 0; row < this.shape[0]; row++) {
      tell(rows[row * this.header.block[0]], map + (row + 0.5) * high, row === this.active ? this.colours.accent : this.colours.text);
    }
    pen.font = this.font();
  }

  drawWords(pen) {
    const { words, block } = this.header;
    const now = this.audio.currentTime;
    for (const { text, start, end, rows, largest } of words) {
      const said = !this.audio.paused && now >= start && now < end;
      const mine = said || rows.some((row) => Math.floor(row / block[0]) === this.active);
      const [from, to] = [this.x(start), this.x(end)];
      Object.assign(pen, { fillStyle: mine ? this.colours.accent : this.colours.masked, globalAlpha: mine ? 0.35 : 1 });
      pen.fillRect(from + 0.5, 2, Math.max(1, to - from - 1), LANE - 10);
      Object.assign(pen, { globalAlpha: 1, fillStyle: this.colours.text, textAlign: "left", textBaseline: "middle" });
      if (to - from > 14) pen.fillText(fitted(pen, text, to - from - 6), from + 4, 2 + (LANE - 10) / 2);
      pen.fillStyle = this.colours.second; // where the mean weight of all heads is largest
      pen.fillRect(this.x(largest) - 1, LANE - 6, 2, 6);
    }
  }

  /** The weights of the active row over time, up to the largest of the map. */
  drawCurve(pen, top) {
    const { left, wide } = this.box;
    const { texts } = this.header;
    Object.assign(pen, { strokeStyle: this.colours.line, lineWidth: 1, textAlign: "right", textBaseline: "top", fillStyle: this.colours.faint });
    pen.strokeRect(left + 0.5, top + 0.5, wide - 1, CURVE - 1);
    pen.fillText(fill(texts.largest, { weight: exactly(this.largest) }), left + wide - 5, top + 4);
    if (this.active < 0) return;
    const columns = this.shape[1];
    Object.assign(pen, { strokeStyle: this.colours.accent, lineWidth: 1.6 });
    pen.beginPath();
    for (let column = 0; column < columns; column++) {
      const weight = this.weights[this.active * columns + column] / (this.largest || 1);
      pen.lineTo(left + ((column + 0.5) * wide) / columns, top + (CURVE - 2) * (1 - weight) + 1);
    }
    pen.stroke();
  }

  drawAxis(pen) {
    const { axis, left, wide } = this.box;
    const { seconds, texts } = this.header;
    const step = [0.1, 0.2, 0.5, 1, 2, 5, 10].find((each) => (each / seconds) * wide >= 44) ?? 30;
    Object.assign(pen, { fillStyle: this.colours.faint, strokeStyle: this.colours.line, textAlign: "center", textBaseline: "top" });
    for (let at = 0; at * step <= seconds + 1e-9; at++) {
      const x = this.x(at * step);
      pen.fillRect(x - 0.5, axis, 1, 4);
      pen.fillText(fixed(at * step, step < 1 ? 1 : 0), x, axis + 5);
    }
    pen.textAlign = "left";
    pen.fillText(texts.seconds, left, axis + 19);
  }

  /** The moment and row under the pointer or the keyboard. */
  drawAt(pen) {
    const { left, wide, map, high, axis } = this.box;
    if (this.active >= 0) {
      Object.assign(pen, { strokeStyle: this.colours.accent, lineWidth: 1 });
      pen.strokeRect(left - 0.5, map + this.active * high - 0.5, wide + 1, high + 1);
    }
    if (this.at === null) return;
    Object.assign(pen, { fillStyle: this.colours.accent, globalAlpha: 0.7 });
    pen.fillRect(this.x(this.at) - 0.5, 0, 1, axis);
    pen.globalAlpha = 1;
  }

  /** Moves the line to the moment that plays, tells the other drawings, and ends at the end of a word. */
  follow() {
    const { audio } = this;
    if (!this.box) return;
    if (this.until !== null && audio.currentTime >= this.until) {
      audio.pause();
      this.until = null;
    }
    this.now.style.transform = `translateX(${pixels(this.x(Math.min(audio.currentTime, this.header.seconds)))})`;
    this.now.style.height = pixels(this.box.axis);
    this.root.dataset.now = audio.currentTime.toFixed(3);
    if (audio.paused) return;
    if (performance.now() - this.told > TOLD) {
      this.told = performance.now();
      point({ keyStrip: "source", key: Math.floor(audio.currentTime / this.header.step) });
    }
    this.following ??= requestAnimationFrame(() => { this.following = null; this.follow(); });
  }

  /** What is under a point: a word, or a moment and the row of the map. */
  under(x, y) {
    const { map, high } = this.box;
    const at = this.secondsAt(x);
    const row = Math.floor((y - map) / high);
    const inMap = row >= 0 && row < this.shape[0];
    return { at, row: inMap ? row : -1, word: y < LANE ? this.header.words.find(({ start, end }) => at >= start && at < end) : undefined };
  }

  hover(x, y) {
    const { at, row, word: said } = this.under(x, y);
    if (said) {
      const number = (seconds) => fixed(seconds, 2);
      const { text, start, end, largest, even } = said;
      const gaps = { word: text, start: number(start), end: number(end), largest: number(largest), even: number(even) };
      this.row = Math.floor(said.rows[0] / this.header.block[0]);
      this.say(fill(this.header.texts.word, gaps));
    } else this.read(at, row);
    this.at = at;
    this.redraw();
  }

  /** Reads a moment of a row out, and tells the other drawings. */
  read(at, row) {
    const { texts, rows, block, step, queryStrip, beyond } = this.header;
    this.row = row;
    const read = this.active;
    const key = Math.min(Math.floor(at / step), this.shape[1] * block[1] - 1);
    point({ keyStrip: "source", key, ...(row >= 0 ? { queryStrip, query: row * block[0] } : {}) });
    if (read < 0) return this.say(fill(texts.moment, { time: fixed(at, 2) }));
    const weight = this.weights[read * this.shape[1] + Math.floor(key / block[1])];
    const query = read * block[0];
    const sentence = block[0] * block[1] > 1 ? texts.block : texts.cell;
    const gaps = { query: rows[query], time: fixed(at, 2), weight: exactly(weight), beyond: exactly(beyond[query]) };
    this.say(fill(sentence, gaps), { site: this.header.site, head: this.header.head, query, key, weight });
  }

  leave() {
    Object.assign(this, { at: null, row: -1 });
    this.say(hintOf(this.header.texts));
    point({});
    this.redraw();
  }

  click(x, y) {
    const { at, row, word: said } = this.under(x, y);
    if (row >= 0) this.choose({ site: this.header.site, head: this.header.head, query: row * this.header.block[0] });
    this.playFrom(said ? said.start : at, said ? said.end : null);
  }

  playFrom(seconds, until = null) {
    this.audio.currentTime = seconds;
    this.until = until;
    this.audio.play().catch(() => {}); // a browser may forbid it until somebody has clicked
  }

  onKey(event) {
    const { step, seconds, block } = this.header;
    const at = this.at ?? this.audio.currentTime;
    const row = this.active;
    const moved = {
      ArrowLeft: [at - step * block[1], row], ArrowRight: [at + step * block[1], row],
      ArrowUp: [at, Math.max(row - 1, 0)], ArrowDown: [at, Math.min(row + 1, this.shape[0] - 1)],
      Home: [0, row], End: [seconds, row],
    }[event.key];
    if (event.key === "Escape") this.leave();
    else if (event.key === "Enter") this.audio.paused ? this.playFrom(at) : this.audio.pause();
    else if (!moved || event.ctrlKey || event.metaKey || event.altKey) return;
    else {
      this.at = Math.min(Math.max(moved[0], 0), seconds);
      this.read(this.at, moved[1]);
      this.redraw();
    }
    event.preventDefault();
  }

  layout() {
    const { left, wide, high, map, picture } = this.box;
    const [rows, columns] = this.shape;
    return [{ site: this.header.site, head: this.header.head, x: left, y: this.canvas.offsetTop + this.canvas.parentElement.offsetTop + map, width: wide, height: high * rows, rows, columns, picture }];
  }
}
