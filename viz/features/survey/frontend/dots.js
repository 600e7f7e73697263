// Dots: every head of a survey by two numbers. A click selects a head, a box marks several, arrow keys walk to the nearest dot.

const DOT_FREE = 0.06; // free share of an axis at both ends, which viz/features/survey/heads_figure.py counts on when it places the labels
const DOT_LABEL = { line: 15.6, gap: 8 };
const DOT_PLOT = 400; // height of the picture
const DOT_SHAPE = 0.8; // of it in a lecture, by its width
const DOT_MARGIN = { top: 8, right: 14, bottom: 40, titles: 22 };
const DOT_NEAR = 20; // pixels beside a dot that still mean it
const DOT_DRAGGED = 5; // a pointer that moved further has drawn a box
const DOT_PAINTS = ["second", "faint", "accent", "text"]; // of the kinds of sites
const DOT_SHAPES = {
  circle: "M-1 0A1 1 0 1 0 1 0A1 1 0 1 0 -1 0Z",
  diamond: "M0 -1.3L1.3 0L0 1.3L-1.3 0Z",
  square: "M-.9 -.9H.9V.9H-.9Z",
  cross: "M-.4 -1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4Z",
};
const MARK_ICON = "M3 3H5M7 3H9M11 3H13V5M13 7V9M13 11V13H11M9 13H7M5 13H3V11M3 9V7M3 5V3";

/** One axis over some numbers: `part` of a value from 0 to 1, and its ticks as [value, text]. */
function dotAxis(values) {
  const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
  const span = high - low || 1;
  const part = (value) => (high > low ? DOT_FREE + (1 - 2 * DOT_FREE) * ((value - low) / span) : 0.5);
  const free = (DOT_FREE / (1 - 2 * DOT_FREE)) * span;
  const step = stepOf(span / 4);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return { part, ticks: multiples(step, low - free, high + free).map((value) => [value, fixed(value, digits).replace("-", "−")]) };
}

class Dots extends Drawing {
  constructor(parent) {
    super(parent, "dots");
    this.inApp = Boolean(document.querySelector(".stApp")); // else in a lecture, where there is no table of marked heads
    this.svg = el("svg:svg", { tabindex: 0, role: "application" });
    this.kinds = el("p", { class: "legend" });
    this.scale = el("p", { class: "scale" });
    this.marker = iconButton(MARK_ICON, "", () => this.toggle(), { "aria-pressed": "false" });
    this.root.append(el("div", { class: "above" }, this.kinds, this.scale, this.marker), this.svg, this.readout);
    const on = (type, act) => this.svg.addEventListener(type, (event) => act(event));
    on("pointerdown", (event) => this.onDown(event));
    on("pointermove", (event) => this.onMove(event));
    on("pointerup", (event) => this.onUp(event));
    on("pointercancel", () => { this.drag = null; this.mark(); });
    on("pointerleave", () => this.point(null));
    on("keydown", (event) => this.onKey(event));
    on("focus", () => { if (this.svg.matches(":focus-visible")) this.point(this.here()); });
    on("blur", () => this.point(null));
  }

  form() {
    const { dots, kinds, titles, scale } = this.header;
    return JSON.stringify([dots, kinds, titles, scale]);
  }

  build() {
    const { texts } = this.header;
    this.svg.setAttribute("aria-label", texts.label);
    this.marker.title = texts.mark;
    this.marker.setAttribute("aria-label", texts.mark);
    this.marker.hidden = !this.inApp;
    this.at = null;
  }

  take() {
    this.marked = new Set(this.header.marked);
    this.point(null);
  }

  onPointed() {} // a dot is no token

  draw() {
    const { dots, titles } = this.header;
    const [x, y] = [0, 1].map((axis) => dotAxis(dots.map(({ at }) => at[axis])));
    const { top, right, bottom, titles: room } = DOT_MARGIN;
    const left = room + 7 * Math.max(3, ...y.ticks.map(([, text]) => text.length));
    const high = fillsScreen() ? roomBelow(this.svg, 30) : this.inApp ? DOT_PLOT : Math.min(DOT_PLOT, DOT_SHAPE * this.width);
    this.above();
    this.svg.style.height = pixels(high);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${high}`);
    const [wide, tall] = [this.width - left - right, high - top - bottom];
    this.places = new Map(dots.map(({ head, at }) => [head, { x: left + wide * x.part(at[0]), y: top + tall * (1 - y.part(at[1])) }]));
    const text = (said, at, anchor, more = {}) => el("svg:text", { ...at, "text-anchor": anchor, ...more }, said);
    const across = x.ticks.filter((_, at) => x.ticks.length * 46 < wide || at % 2 === 0);
    const [end, middle] = [top + tall, top + tall / 2];
    const grid = [
      ...across.map(([value]) => `M${left + wide * x.part(value)} ${top}V${end}`), ...y.ticks.map(([value]) => `M${left} ${top + tall * (1 - y.part(value))}h${wide}`),
    ];
    this.ring = el("svg:circle", { class: "ring" });
    this.around = el("svg:circle", { class: "pointed" });
    this.box = el("svg:rect", { class: "box" });
    this.svg.replaceChildren(
      el("svg:path", { class: "grid", d: grid.join("") }),
      ...across.map(([value, said]) => text(said, { x: left + wide * x.part(value), y: end + 15 }, "middle", { class: "tick" })),
      ...y.ticks.map(([value, said]) => text(said, { x: left - 6, y: top + tall * (1 - y.part(value)) + 4 }, "end", { class: "tick" })),
      text(titles[0], { x: left + wide / 2, y: high - 6 }, "middle"),
      text(titles[1], { x: 12, y: middle }, "middle", { transform: `rotate(-90 12 ${middle})` }),
      ...dots.map((dot) => this.dot(dot)), this.ring, this.around, ...dots.flatMap((dot) => this.label(dot)), this.box,
    );
    this.mark();
    if (this.inApp) this.tellPainted();
  }

  /** What stands above the dots: the kinds of sites with their symbols, and the scale of colors. */
  above() {
    const { dots, scale } = this.header;
    const kinds = this.header.kinds.map((kind, place) => [kind, place]).filter(([, place]) => dots.some(({ kind }) => kind === place));
    const symbol = (kind, place) => el("svg:svg", { viewBox: "-8 -8 16 16", width: 16, height: 16, "aria-hidden": "true" },
      el("svg:path", { d: DOT_SHAPES[kind.symbol], transform: "scale(5)", style: `fill: ${scale ? this.colours.card : this.paint(place)}` }));
    this.kinds.replaceChildren(...(kinds.length > 1 ? kinds.map(([kind, place]) => el("span", {}, symbol(kind, place), kind.name)) : []));
    this.scale.hidden = !scale;
    if (scale) this.scale.replaceChildren(...colourBar(scale.title, scale.ends, this.stops()));
  }

  paint(kind) {
    return this.colours[DOT_PAINTS[kind % DOT_PAINTS.length]];
  }

  stops() {
    return (this.header.scale.both ? this.colours.diverging : this.colours.weights.slice(1)).map(rgb);
  }

  /** The symbol of a head; without the number that colors the others it is empty. */
  dot({ head, kind, size, shade }) {
    const { scale, kinds } = this.header;
    const part = scale && (shade - scale.low) / (scale.high - scale.low);
    const fill = !scale ? this.paint(kind) : shade === null ? this.colours.card : `rgb(${between(this.stops(), part).join()})`;
    const { x, y } = this.places.get(head);
    const half = size / 2;
    return el("svg:path", { class: "dot", "data-head": head, d: DOT_SHAPES[kinds[kind].symbol], transform: `translate(${x} ${y}) scale(${half})`, style: `fill: ${fill}; stroke-width: ${1 / half}` });
  }

  /** The lines of a head's label beside its dot. */
  label({ head, label, place }) {
    const { line, gap } = DOT_LABEL;
    const { x, y } = this.places.get(head);
    const [across, down] = [place.includes("right") - place.includes("left"), place.includes("bottom") - place.includes("top")];
    const tall = line * label.length;
    const top = y + down * (tall / 2 + gap) - tall / 2;
    const anchor = ["end", "middle", "start"][across + 1];
    const aside = gap + (head === this.header.selected ? 7 : 2); // the ring of the selected dot ends 4 beyond it
    const lines = label.map((said, at) => el("svg:text", { x: x + across * aside, y: top + line * at + 12, "text-anchor": anchor }, said));
    return lines.length ? [el("svg:g", { class: "label" }, ...lines)] : [];
  }

  /** Shows which dots are selected, marked and pointed at, and the box that is being drawn. */
  mark() {
    if (!this.places) return;
    const { dots, selected } = this.header;
    for (const node of this.svg.querySelectorAll(".dot")) node.classList.toggle("aside", this.marked.size > 0 && !this.marked.has(Number(node.dataset.head)));
    for (const [circle, head] of [[this.ring, selected], [this.around, this.at]]) {
      const dot = dots.find((one) => one.head === head);
      circle.style.display = dot ? "" : "none";
      if (dot) for (const [name, value] of Object.entries({ cx: this.places.get(head).x, cy: this.places.get(head).y, r: dot.size / 2 + 4 })) circle.setAttribute(name, value);
    }
    const drawn = this.drag?.moved ? this.boxed() : { x: 0, y: 0, width: 0, height: 0 };
    for (const [name, value] of Object.entries(drawn)) this.box.setAttribute(name, value);
  }

  /** Says what is known of a head, and shows it beside the dot; null: the hint. */
  point(head) {
    this.at = head;
    this.mark();
    const dot = this.header.dots.find((one) => one.head === head);
    const { texts, titles } = this.header;
    if (!dot) {
      this.hideTip();
      return this.say(this.marked.size ? texts.marked : this.inApp ? hintOf(texts) : "");
    }
    const rows = titles.map((title, axis) => [title, fixed(dot.at[axis], 3).replace("-", "−")]);
    this.say(`${dot.name}: ${[...rows.map((row) => row.join(" ")), ...dot.told].join("; ")}`, { head });
    const { x, y } = this.places.get(head);
    this.showTip(inWindow(this.svg, x, y), ...facts(dot.name, rows), ...dot.told.map((line) => el("p", {}, line)));
  }

  /** The head whose dot is nearest to a pointer; null: none is near. */
  nearest({ x, y }) {
    const apart = ([, place]) => Math.hypot(place.x - x, place.y - y);
    const found = [...this.places].sort((one, other) => apart(one) - apart(other))[0];
    return found && apart(found) < DOT_NEAR ? found[0] : null;
  }

  onDown(event) {
    if (!this.inApp || event.button || (event.pointerType === "touch" && !this.marking)) return;
    this.drag = { from: inElement(this.svg, event), to: inElement(this.svg, event), moved: false };
    this.svg.setPointerCapture(event.pointerId);
  }

  onMove(event) {
    const { drag } = this;
    if (!drag) return event.pointerType === "touch" ? undefined : this.point(this.nearest(inElement(this.svg, event)));
    drag.to = inElement(this.svg, event);
    drag.moved ||= Math.hypot(drag.to.x - drag.from.x, drag.to.y - drag.from.y) > DOT_DRAGGED;
    if (drag.moved) this.hideTip();
    this.mark();
  }

  onUp(event) {
    const { drag } = this;
    if (drag?.moved) {
      const { x, y, width, height } = this.boxed();
      const inside = [...this.places].filter(([, place]) => place.x >= x && place.x <= x + width && place.y >= y && place.y <= y + height);
      this.drag = null;
      if (this.marking) this.toggle();
      return this.setMarks(inside.map(([head]) => head));
    }
    this.drag = null;
    if (event.button) return; // the browser's own menu
    const head = this.nearest(inElement(this.svg, event));
    if (head !== null) this.open(head);
    else if (this.marked.size) this.setMarks([]);
  }

  /** The box that is being drawn. */
  boxed() {
    const { from, to } = this.drag;
    return { x: Math.min(from.x, to.x), y: Math.min(from.y, to.y), width: Math.abs(to.x - from.x), height: Math.abs(to.y - from.y) };
  }

  /** Whether a finger draws a box instead of scrolling the page. */
  toggle() {
    this.marking = !this.marking;
    this.marker.setAttribute("aria-pressed", this.marking);
    this.svg.classList.toggle("marking", this.marking);
  }

  setMarks(heads) {
    this.marked = new Set(heads);
    this.point(null);
    this.setStateValue("marked", heads);
  }

  open(head) {
    this.header.selected = head; // the page's answer says the same
    this.point(head);
    this.choose(this.header.dots.find((dot) => dot.head === head).chooses);
  }

  /** The dot at which the keyboard is. */
  here() {
    const { dots, selected } = this.header;
    return [this.at, selected, dots[0]?.head].find((head) => this.places?.has(head)) ?? null;
  }

  /** Arrow keys walk to the nearest dot in their direction, Enter selects, Escape removes the marks. */
  onKey(event) {
    const here = this.here();
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (here === null || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") this.open(here);
    else if (event.key === "Escape" && this.marked.size) this.setMarks([]);
    else if (step) {
      const from = this.places.get(here);
      const far = ({ x, y }) => {
        const [along, aside] = [(x - from.x) * step[0] + (y - from.y) * step[1], (x - from.x) * step[1] + (y - from.y) * step[0]];
        return along > 0.5 ? along + 2 * Math.abs(aside) : Infinity;
      };
      const next = [...this.places].sort(([, one], [, other]) => far(one) - far(other)).find(([, place]) => far(place) < Infinity);
      if (next) this.point(next[0]);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  layout() {
    return this.places && [...this.places].map(([head, { x, y }]) => ({ head, ...boxIn(this.root, this.svg, { x, y, width: 0, height: 0 }) }));
  }
}
