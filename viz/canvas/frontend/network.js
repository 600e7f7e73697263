// Map of the network: encoder left, decoder right, input at the bottom, as in the paper's figure 1. Each box holds its stages as
// segments; clicks, keys and the transport move between them. The mark moves at once and is reported to Python after a pause, and
// beside the map one token moves through the network: of a whole play, only its end is reported.

const SETTLE_MS = 120;
const WAIT_MS = globalThis.headlightPatience ?? 4000; // how long a requested stage stays marked while Python has not answered
const AROUND_MOTION = 400; // pixels of the window for what is above the moving picture, and for the title of its stage below
const AROUND_NARROW_MOTION = 300; // where it is narrow, the page goes on below it
const [LOWEST_MOTION, LOWEST_NARROW_MOTION, HIGHEST_MOTION] = [430, 520, 620];
const BELOW_MOTION = 12;
const FILM_SIGN = "M2.5 4h8v8h-8zM10.5 7l3-2v6l-3-2z";
const STAGE_CARD = ".st-key-card-stage";

class Network extends Drawing {
  constructor(parent) {
    super(parent, "network");
    this.readout.classList.add("unseen");
    this.transport = new MovingTransport({
      moved: (at) => this.moved(at),
      rested: () => this.rested(),
      drawn: () => this.drawMotion(),
      nameOf: (at) => this.header.order[at].split("/").pop(),
    });
    this.motion = new SublayerMotion(this);
    this.recorder = new FilmRecorder(() => this.tellFilm());
    this.root.addEventListener("keydown", (event) => this.transport.onKey(event));
  }

  connect() {
    super.connect();
    this.transport.listen(this.life.signal);
  }

  disconnect() {
    this.transport.pause();
    this.transport.hold();
    clearTimeout(this.settling);
    this.settling = null;
    super.disconnect();
  }

  needs() {
    return (this.coming ?? this).header.motion ? ["motion"] : [];
  }

  form() {
    const { columns, texts, motion } = this.header;
    return JSON.stringify([columns, texts, motion?.heads]);
  }

  build() {
    const { columns, order, texts, motion } = this.header;
    this.segments = new Map();
    this.readers = [];
    this.inSight = null;
    this.arrows = el("svg:svg", { class: "arrows", "aria-hidden": "true" });
    this.columns = columns.map((column) => this.column(column));
    this.plan = el("div", { class: "plan" }, ...this.columns, this.arrows);
    this.window = el("div", { class: "window", tabindex: -1, role: "group", "aria-label": texts.mapLabel }, this.plan);
    const controls = this.transport.build(order.length, texts);
    this.root.classList.toggle("moves", Boolean(motion));
    if (!motion) return this.root.replaceChildren(controls, this.window, this.readout);
    this.listed = null;
    this.tokenList = el("select", { "aria-label": texts.token, onchange: () => this.follow({ query: Number(this.tokenList.value) }) });
    this.headList = el("select", { "aria-label": texts.head, onchange: () => this.follow({ head: Number(this.headList.value) }) });
    this.headList.replaceChildren(...Array.from({ length: motion.heads }, (_, head) => el("option", { value: head }, String(head + 1))));
    const choices = el("div", { class: "choices" }, el("label", {}, texts.token, this.tokenList), el("label", {}, texts.head, this.headList));
    this.motion.canvas.setAttribute("aria-label", texts.moves);
    this.filmButton = iconButton(FILM_SIGN, FilmRecorder.type ? texts.film : texts.noFilm, () => this.record(), { class: "icon film", disabled: !FilmRecorder.type });
    controls.append(choices, this.filmButton);
    this.root.replaceChildren(controls, el("div", { class: "inside" }, this.window, this.motion.canvas), this.readout);
  }

  /** Lists the tokens that can be followed, those of the current stage's stack. */
  listTokens() {
    const { motion } = this.header;
    const { labels, row } = motion.rows[this.motion.groupOf.get(this.transport.step).stack];
    if (this.listed !== labels) this.tokenList.replaceChildren(...labels.map((text, at) => el("option", { value: at }, `${at + 1} ${text}`)));
    this.listed = labels;
    this.tokenList.value = row;
    this.headList.value = motion.head;
  }

  /** Follows another token or head. */
  follow(change) {
    this.transport.pause();
    this.choose({ stage: this.header.order[this.transport.step], ...change });
  }

  /** Stops at a stage that was clicked in the picture, and shows where its formula and its code stand. */
  stopAt(at) {
    this.transport.pause();
    this.transport.hold();
    this.transport.t = 1;
    this.jump(at);
    if (at === this.transport.step) this.report();
    this.drawMotion();
    const card = document.querySelector(STAGE_CARD);
    if (card && card.getBoundingClientRect().top > innerHeight - 160) card.scrollIntoView({ block: "center" });
  }

  /** Records a film of what plays from here, or ends and saves it. */
  record() {
    if (this.recorder.records) return this.transport.playing ? this.transport.pause() : this.recorder.stop();
    this.recorder.start(this.motion.canvas, this.header.film);
    if (!this.transport.playing) this.transport.toggle();
    this.tellFilm();
  }

  /** Says what the button of the film does. */
  tellFilm() {
    const { records } = this.recorder;
    for (const attribute of ["aria-label", "title"]) this.filmButton.setAttribute(attribute, this.header.texts[records ? "filming" : "film"]);
    this.filmButton.classList.toggle("records", records);
  }

  /** The map marks no token. */
  onPointed() {}

  rested() {
    if (this.recorder.records) this.recorder.stop();
    if (this.header.motion) this.report();
  }

  /** Tells Python the current stage. */
  report() {
    clearTimeout(this.settling);
    this.asked = { stage: this.header.order[this.transport.step], at: performance.now() };
    this.settling = setTimeout(() => this.reportNow(), SETTLE_MS);
  }

  reportNow() {
    const waits = Boolean(this.settling);
    if (waits) this.choose({ stage: this.header.order[this.transport.step] });
    return waits;
  }

  /** What is chosen replaces the stage that waits to be reported. */
  choose(selection) {
    clearTimeout(this.settling);
    this.settling = null;
    super.choose(selection);
  }

  drawMotion() {
    const { step, t } = this.transport;
    this.transport.draw();
    if (!this.header.motion || !this.width) return;
    this.motion.draw(step, t, this.wide, this.high);
    this.root.dataset.come = t.toFixed(2);
    if (t === 1) this.tellLayout();
  }

  /** The shapes of the moving picture; null: there is only the map. */
  layout() {
    if (!this.header.motion) return null;
    return this.motion.shapes.map(({ stage, name, row, rows, columns, x, y, width, height }) => (
      { stage: this.header.order[stage], name, row, rows, columns, ...boxIn(this.root, this.motion.canvas, { x, y, width, height }) }
    ));
  }

  column({ title, parts }) {
    const layers = parts.map(({ title: name, boxes }) => el(
      "div", { class: name ? "layer" : "part" }, ...boxes.map((box) => this.box(box)), name ? el("span", { class: "name" }, name) : "",
    ));
    return el("section", { class: "column" }, ...layers, el("h3", {}, title));
  }

  box({ title, stages, reads_encoder: reads }) {
    const segments = stages.map(([id, name]) => {
      const at = this.header.order.indexOf(id);
      const button = el("button", { type: "button", tabindex: -1, class: "segment", title: name, "data-stage": id, "aria-label": fill(this.header.texts.of, { what: title, value: name }) });
      button.addEventListener("click", () => this.jump(at));
      this.segments.set(at, button);
      return button;
    });
    const first = this.header.order.indexOf(stages[0][0]);
    const head = el("button", { type: "button", class: "title", onclick: () => this.jump(first) }, title);
    const box = el("div", { class: "box" }, head, el("div", { class: "segments" }, ...segments));
    if (reads) this.readers.push(box);
    return box;
  }

  /** Goes to the clicked stage and focuses the map, so that Space plays and does not press the segment again. */
  jump(at) {
    this.window.focus({ preventScroll: true });
    this.transport.go(at);
  }

  /** Goes to Python's stage, unless a newer stage was chosen here since. */
  take() {
    const { order, stage } = this.header;
    if (this.header.motion) this.motion.take(this.header.motion, this.part("motion").blobs);
    const waiting = this.asked && performance.now() - this.asked.at < WAIT_MS;
    if (waiting && this.asked.stage !== stage) return;
    this.asked = null;
    if (this.transport.playing && this.header.motion) return;
    const step = Math.max(0, order.indexOf(stage));
    if (step !== this.transport.step) this.transport.t = 1;
    this.transport.step = step;
  }

  moved(at) {
    const { motion } = this.header;
    this.say(motion ? motion.captions[at].join(". ") : this.segments.get(at).getAttribute("aria-label"));
    this.mark();
    if (motion && this.transport.playing) return; // a play is one step for the page and one entry of the browser's history: its end
    this.report();
  }

  draw() {
    if (this.header.motion) {
      this.motion.broken.clear(); // the typeface or the width may be another
      const beside = this.window.offsetParent && this.window.offsetTop === this.motion.canvas.offsetTop;
      this.wide = widthIn(this.motion.canvas.parentElement) - (beside ? this.window.offsetWidth / scaleOf(this.root) + 14 : 0);
      const [around, lowest] = this.wide < WIDE ? [AROUND_NARROW_MOTION, LOWEST_NARROW_MOTION] : [AROUND_MOTION, LOWEST_MOTION];
      const high = Math.min(Math.max(innerHeight / scaleOf(this.root) - around, lowest), HIGHEST_MOTION);
      this.high = fillsScreen() ? roomBelow(this.motion.canvas, BELOW_MOTION) : high;
      this.window.style.maxHeight = beside ? pixels(this.high) : "";
      this.drawMotion();
    }
    this.mark();
    this.drawArrows();
    if (!this.welcomed && document.activeElement?.closest("[role=radio]")) this.window.focus({ preventScroll: true });
    this.welcomed = true; // arrow keys work at once after this clock is chosen
  }

  mark() {
    const { step } = this.transport;
    this.root.dataset.stage = this.header.order[step];
    this.segments.forEach((segment, at) => {
      segment.classList.toggle("past", at < step);
      segment.classList.toggle("now", at === step);
      if (at === step) segment.setAttribute("aria-current", "step");
      else segment.removeAttribute("aria-current");
    });
    for (const box of this.plan.querySelectorAll(".box")) box.classList.toggle("here", Boolean(box.querySelector(".now")));
    this.transport.draw();
    if (this.header.motion) this.listTokens();
    this.keepInSight(step);
  }

  /** Scrolls the map to a stage, once: who looks at another place of the map stays there until the stage or the map's height changes. */
  keepInSight(step) {
    const sight = `${step} ${this.window.clientHeight}`;
    if (sight === this.inSight) return;
    this.inSight = sight;
    const box = this.segments.get(step).closest(".box");
    const [outer, inner] = [this.window.getBoundingClientRect(), box.getBoundingClientRect()];
    const margin = Math.min(40, (outer.height - inner.height) / 2);
    if (inner.top < outer.top + margin) this.window.scrollTop -= outer.top + margin - inner.top;
    if (inner.bottom > outer.bottom - margin) this.window.scrollTop += inner.bottom - outer.bottom + margin;
  }

  /** Draws an arrow from the encoder's top to each box that reads its output. */
  drawArrows() {
    this.arrows.replaceChildren();
    const scale = scaleOf(this.plan);
    this.arrows.setAttribute("viewBox", `0 0 ${widthIn(this.plan)} ${this.plan.clientHeight / scale}`);
    if (this.columns.length < 2 || !this.readers.length) return;
    const boxes = this.columns[0].querySelectorAll(".layer, .part");
    const placed = (node) => boxIn(this.plan, node, { x: 0, y: 0, width: node.offsetWidth / scale, height: node.offsetHeight / scale });
    const top = placed(boxes[boxes.length - 1]);
    const [x, y] = [top.x + top.width / 2, top.y];
    for (const reader of this.readers) {
      const { x: to, y: above, height } = placed(reader);
      const level = above + height / 2;
      const gap = (top.x + top.width + to) / 2 - 3;
      const line = `M${x} ${y}V${y - 9}H${gap}V${level}H${to - 2}M${to - 6} ${level - 3.5}L${to - 1} ${level}L${to - 6} ${level + 3.5}`;
      this.arrows.append(el("svg:path", { d: line }));
    }
  }
}
