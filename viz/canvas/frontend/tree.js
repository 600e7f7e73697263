// Tree of a beam search: one column per step, kept hypotheses above, pruned ones below. A finished hypothesis can be chosen.

const NARROWEST_STEP = 92;
const WIDEST_STEP = 150;
const ROW = 40; // distance between nodes
const HEAD = 24; // height of the step numbers
const BAND = 26; // gap above the pruned nodes
const NODE = 33; // height of a node
const SAID = 46; // the sentence below the tree, in two lines

/** A log-probability as shown. */
const logText = (value) => (Number.isFinite(value) ? fixed(value, 2).replace("-", "−") : "−∞");

/** Place of the node that had the keyboard's focus when its tree was removed: Streamlit does so where a run is waited for. Null: none. */
let heldPlace = null;
let latestTree = null;

class Tree extends Drawing {
  constructor(parent) {
    super(parent, "tree");
    this.root.addEventListener("keydown", (event) => this.onKey(event));
    this.root.addEventListener("focusin", ({ target }) => { heldPlace = Number(target.dataset.place); });
    this.root.addEventListener("focusout", () => setTimeout(() => { if (this.root.isConnected && !this.root.matches(":focus-within")) heldPlace = null; }));
  }

  form() {
    return JSON.stringify(this.header.nodes);
  }

  build() {
    const { nodes, texts } = this.header;
    this.byPlace = new Map(nodes.map((node) => [node.place, node]));
    this.buttons = new Map(nodes.map((node) => [node.place, this.button(node)]));
    this.edges = el("svg:svg", { "aria-hidden": "true" });
    this.steps = Array.from({ length: this.header.columns }, (_, step) => el("span", { class: "step" }, `${step + 1}`));
    this.band = el("span", { class: "band" }, texts.pruned);
    this.plan = el("div", { class: "plan" }, this.edges, ...this.steps, this.band, ...this.buttons.values());
    this.window = el("div", { class: "window", role: "application", "aria-label": texts.treeLabel }, this.plan);
    const focused = this.root.matches(":focus-within") ? heldPlace : null; // another run of the same search differs in its last digits
    this.root.replaceChildren(this.window, this.readout);
    this.say(hintOf(texts));
    this.buttons.get(focused)?.focus({ preventScroll: true });
  }

  button(node) {
    const { place, text, total, fate, rank } = node;
    const badge = rank < 0 ? "" : el("span", { class: "rank" }, `${rank + 1}`);
    const lines = [el("span", { class: "word" }, text), el("span", { class: "total" }, logText(total)), badge];
    const told = { "aria-description": this.sentence(node), "data-place": place, "data-total": total, "data-rank": rank < 0 ? null : rank };
    const enter = () => this.enter(node);
    const listeners = { onpointerenter: enter, onfocus: enter, onpointerleave: () => this.leave(), onclick: () => this.open(node) };
    return el("button", { type: "button", tabindex: -1, class: `node ${fate}${rank < 0 ? "" : " ranked"}`, ...told, ...listeners }, ...lines);
  }

  take() {
    const { shown } = this.header;
    this.path = new Set(shown);
    this.fresh = !this.byPlace.has(this.at); // a tree opens at its root, where the search began
    if (this.fresh) this.at = this.byPlace.has(heldPlace) ? heldPlace : shown[0];
    latestTree = this;
  }

  sentence({ text, own, total, mean, fate, rank }) {
    const { texts } = this.header;
    const gaps = { token: text, own: logText(own), total: logText(total), mean: logText(mean), rank: rank + 1 };
    return fill(rank < 0 ? { kept: texts.kept, finished: texts.finished, pruned: texts.dropped }[fate] : texts.hypothesis, gaps);
  }

  enter(node) {
    this.over = node.place;
    this.say(this.sentence(node));
    this.mark();
  }

  leave() {
    this.over = null;
    this.say(hintOf(this.header.texts));
    this.mark();
  }

  /** Chooses the hypothesis that ends at a node. */
  open(node) {
    this.at = node.place;
    this.mark();
    if (node.rank >= 0) this.choose({ hypothesis: node.rank });
  }

  /** Places on the path from the first token to a node. */
  line(place) {
    const found = new Set();
    for (let node = this.byPlace.get(place); node; node = this.byPlace.get(node.parent)) found.add(node.place);
    return found;
  }

  draw() {
    const { columns, rows, nodes, pruned } = this.header;
    const pitch = Math.min(Math.max((this.width - 26) / columns, NARROWEST_STEP), WIDEST_STEP);
    const wide = pitch - 24;
    const left = (column) => column * pitch;
    const top = (row) => HEAD + row * ROW + (row >= pruned ? BAND : 0);
    const dropped = rows > pruned;
    Object.assign(this.plan.style, { width: pixels(left(columns) - 24), height: pixels(top(rows - 1) + ROW) });
    this.edges.setAttribute("viewBox", `0 0 ${left(columns) - 24} ${top(rows - 1) + ROW}`);
    this.steps.forEach((step, column) => Object.assign(step.style, { left: pixels(left(column)), width: pixels(wide) }));
    this.band.hidden = !dropped;
    this.band.style.top = pixels(top(pruned) - 21);
    for (const { place, column, row } of nodes) {
      Object.assign(this.buttons.get(place).style, { left: pixels(left(column)), top: pixels(top(row)), width: pixels(wide) });
    }
    this.window.style.maxHeight = fillsScreen() ? pixels(roomBelow(this.window, SAID)) : "";
    this.curves = new Map(nodes.flatMap(({ place, parent, column, row, fate }) => {
      const from = this.byPlace.get(parent);
      if (!from) return [];
      const [x, y, to, level] = [left(from.column) + wide, top(from.row) + NODE / 2, left(column), top(row) + NODE / 2];
      const curve = `M${x} ${y}C${x + 14} ${y} ${to - 14} ${level} ${to} ${level}`;
      return [[place, el("svg:path", { d: curve, class: fate })]];
    }));
    this.edges.replaceChildren(...this.curves.values());
    this.mark();
    if (this.fresh) this.keepInSight(this.buttons.get(this.at));
    const opens = this.fresh && this.byPlace.get(this.header.opens);
    if (opens) this.scrollTo(this.buttons.get(opens.parent) ?? this.buttons.get(opens.place)); // with the word before it
    if (this.fresh) this.holdAgain();
    this.fresh = false;
  }

  /** Focuses the node that had the focus in the tree before, unless something else has it now. */
  holdAgain() {
    if (document.activeElement === document.body) this.buttons.get(heldPlace)?.focus({ preventScroll: true });
  }

  disconnect() {
    super.disconnect();
    setTimeout(() => latestTree?.holdAgain()); // the new tree may have been drawn before this one was removed
  }

  /** Marks the shown hypothesis and the path to the node under pointer or keyboard, and makes one node the tab stop. */
  mark() {
    const line = this.line(this.over);
    this.buttons.forEach((button, place) => {
      button.classList.toggle("shown", this.path.has(place));
      button.classList.toggle("line", line.has(place));
      button.tabIndex = place === this.at ? 0 : -1;
      if (place === this.header.shown.at(-1)) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
    this.curves?.forEach((curve, place) => {
      curve.classList.toggle("shown", this.path.has(place));
      curve.classList.toggle("line", line.has(place));
    });
  }

  /** Scrolls to the column of a node. */
  scrollTo(button) {
    this.window.scrollLeft += button.getBoundingClientRect().left - this.window.getBoundingClientRect().left;
  }

  keepInSight(button) {
    const [outer, inner] = [this.window.getBoundingClientRect(), button.getBoundingClientRect()];
    this.window.scrollLeft += Math.min(0, inner.left - outer.left - 30) + Math.max(0, inner.right - outer.right + 30);
    this.window.scrollTop += Math.min(0, inner.top - outer.top - 30) + Math.max(0, inner.bottom - outer.bottom + 30);
  }

  /** Left goes to a node's parent, right to its likeliest continuation, up and down to its neighbors in the step. */
  next(key) {
    const node = this.byPlace.get(this.at);
    const near = (of, row) => of.sort((one, other) => Math.abs(one.row - row) - Math.abs(other.row - row))[0];
    const { nodes } = this.header;
    const beside = (by) => near(nodes.filter(({ column, row }) => column === node.column && Math.sign(row - node.row) === by), node.row);
    return {
      ArrowLeft: () => this.byPlace.get(node.parent),
      ArrowRight: () => nodes.filter(({ parent }) => parent === node.place).sort((one, other) => one.row - other.row)[0],
      ArrowUp: () => beside(-1),
      ArrowDown: () => beside(1),
    }[key];
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const go = this.next(event.key);
    if (!go) return;
    event.preventDefault();
    const found = go();
    if (!found) return;
    this.at = found.place;
    this.mark();
    this.buttons.get(found.place).focus({ preventScroll: true });
    this.keepInSight(this.buttons.get(found.place));
  }
}
