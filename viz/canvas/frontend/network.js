// Map of the network: encoder left, decoder right, input at the bottom, as in the paper's figure 1. Each box holds its stages as
// segments; clicks, keys and the transport move between them. The mark moves at once and is reported to Python after a pause.

const SETTLE_MS = 120;
const WAIT_MS = 4000; // how long a requested stage stays marked while Python has not answered

class Network extends Drawing {
  constructor(parent) {
    super(parent, "network");
    this.readout.classList.add("unseen");
    this.transport = new Transport({ moved: (at) => this.moved(at), rested: () => {} });
    this.root.addEventListener("keydown", (event) => this.transport.onKey(event));
  }

  connect() {
    super.connect();
    this.transport.listen(this.life.signal);
  }

  disconnect() {
    this.transport.pause();
    clearTimeout(this.settling);
    super.disconnect();
  }

  form() {
    const { columns, texts } = this.header;
    return JSON.stringify([columns, texts]);
  }

  build() {
    const { columns, order, texts } = this.header;
    this.segments = new Map();
    this.readers = [];
    this.arrows = el("svg:svg", { class: "arrows", "aria-hidden": "true" });
    this.columns = columns.map((column) => this.column(column));
    this.plan = el("div", { class: "plan" }, ...this.columns, this.arrows);
    this.window = el("div", { class: "window", tabindex: -1, role: "group", "aria-label": texts.mapLabel }, this.plan);
    this.root.replaceChildren(this.transport.build(order.length, texts), this.window, this.readout);
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
    const waiting = this.asked && performance.now() - this.asked.at < WAIT_MS;
    if (waiting && this.asked.stage !== stage) return;
    this.asked = null;
    this.transport.step = Math.max(0, order.indexOf(stage));
  }

  moved(at) {
    const stage = this.header.order[at];
    this.asked = { stage, at: performance.now() };
    this.say(this.segments.get(at).getAttribute("aria-label"));
    this.mark();
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.choose({ stage }), SETTLE_MS);
  }

  draw() {
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
    this.keepInSight(this.segments.get(step).closest(".box"));
  }

  keepInSight(box) {
    const [outer, inner] = [this.window.getBoundingClientRect(), box.getBoundingClientRect()];
    const zoom = zoomOf(this.window);
    const margin = Math.min(40, (outer.height - inner.height) / 2);
    if (inner.top < outer.top + margin) this.window.scrollTop -= (outer.top + margin - inner.top) / zoom;
    if (inner.bottom > outer.bottom - margin) this.window.scrollTop += (inner.bottom - outer.bottom + margin) / zoom;
  }

  /** Draws an arrow from the encoder's top to each box that reads its output. */
  drawArrows() {
    this.arrows.replaceChildren();
    const { clientWidth: width, clientHeight: height } = this.plan;
    for (const [name, size] of [["width", width], ["height", height]]) this.arrows.setAttribute(name, size);
    if (this.columns.length < 2 || !this.readers.length) return;
    const boxes = this.columns[0].querySelectorAll(".layer, .part");
    const placed = (node) => boxIn(this.plan, node, { x: 0, y: 0, width: node.offsetWidth, height: node.offsetHeight });
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
