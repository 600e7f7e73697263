// Shared by all drawings: reading a scene, colors, small DOM helpers, the tooltip, and a base class that outlives script runs.

const CHANNEL = "headlight:query";
const POPOVERS = "popover" in HTMLElement.prototype; // without them a tooltip is placed in the same way, but a dialog may lie over it
const NOTHING = { queryStrip: null, query: null, keyStrip: null, key: null };

/** Unpacks the bytes of a scene into {header, blobs}; viz/canvas/wire/transport.py packs them. */
function unpack(data) {
  const { buffer, byteOffset } = data.byteOffset % 4 ? data.slice() : data; // bytes of a message are not aligned, a copy is
  const length = new DataView(buffer, byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, byteOffset + 4, length)));
  const start = byteOffset + Math.ceil((4 + length) / 4) * 4;
  const blobs = {};
  for (const [name, { at, shape, type }] of Object.entries(header.blobs)) {
    const count = shape.reduce((product, size) => product * size, 1);
    const array = type === "float32" ? new Float32Array(buffer, start + at, count) : new Uint8Array(buffer, start + at, count);
    blobs[name] = { shape, array };
  }
  return { header, blobs };
}

/** Fills the {gaps} of a sentence. */
function fill(sentence, gaps) {
  return sentence.replace(/\{(\w+)\}/g, (gap, name) => (name in gaps ? gaps[name] : gap));
}

/** Creates an element with attributes and children; strings become text, never markup. SVG tags are written "svg:path". */
function el(tag, attributes = {}, ...children) {
  const drawn = tag.startsWith("svg:");
  const node = drawn ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

/** A button with an icon. `path` is SVG path data in a 16 × 16 box. */
function iconButton(path, label, onclick, attributes = {}) {
  const drawn = el("svg:svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, el("svg:path", { d: path }));
  return el("button", { type: "button", class: "icon", title: label, "aria-label": label, onclick, ...attributes }, drawn);
}

/** `text`, shortened with an ellipsis to at most `width`; whole characters only. */
function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  const letters = [...text];
  while (letters.length && pen.measureText(letters.join("") + "…").width > width) letters.pop();
  return letters.join("") + "…";
}

/** A weight as shown. */
const exactly = (weight) => fixed(weight, precise(weight));

/** Tells all drawings of the page which token or cell is pointed at. */
function point(detail) {
  document.dispatchEvent(new CustomEvent(CHANNEL, { detail: { ...NOTHING, ...detail } }));
}

/** Base class of drawings: elements are built for a new scene, pixels drawn on any change. Keeps zoom and focus between script runs. */
class Drawing {
  constructor(parent, name) {
    Object.assign(this, { name, born: performance.now() });
    this.readout = el("p", { class: "readout", role: "status", "aria-live": "polite" });
    this.tip = el("div", { class: "tip", popover: "manual", "aria-hidden": "true" });
    this.root = el("div", { class: "hl", "data-drawing": name });
    this.words = new Words();
    this.pointed = NOTHING;
    this.wanted = new Set(); // addresses being fetched
    this.lost = new LostParts((address) => this.fetched(address));
    parent.append(this.root, this.words.box, this.tip);
  }

  /** Handles a call of the component's function: a new scene, a new color scheme, or both. What stands already is not drawn again. */
  show({ data, setStateValue, setTriggerValue }) {
    const here = (report) => pageLinks.here(report, this.born);
    Object.assign(this, { setStateValue: here(setStateValue), setTriggerValue: here(setTriggerValue) });
    if (data !== this.given) liveScenes.offer(this, data);
    this.given = data;
    const changed = [this.connect(), this.paintedIn(palette(schemeFor(this.root, (this.coming ?? this).header.schemes)))];
    if (changed.some(Boolean) || this.coming || this.lost.addresses.size || scaleOf(this.root) !== this.enlargedBy) this.arrived();
  }

  /** Takes a scene, unless the same one stands already; true if it is another. */
  accept(data, scene = unpack(data)) {
    if (this.data && sameBytes(this.data, data)) return false;
    speak(scene.header);
    this.coming = scene;
    this.data = data;
    this.lost.addresses.clear();
    return true;
  }

  /** Sets the palette; true if it is new. Only then styles are set: the browser would have to recompute them. */
  paintedIn(colours) {
    this.colours = colours;
    if (colours === this.worn) return false;
    this.worn = colours;
    for (const name of ["background", "card", "line", "text", "faint", "accent", "second", "masked"]) {
      for (const part of [this.root, this.tip]) part.style.setProperty(`--hl-${name}`, colours[name]);
    }
    return true;
  }

  /** Switches to the new scene once all parts it needs are fetched; until then the old one stays. */
  arrived() {
    const scene = this.coming;
    if (scene && this.needs().every((name) => this.part(name, scene))) {
      this.coming = null;
      Object.assign(this, scene);
      const form = this.form();
      if (form !== this.built) this.build(); // a new selection keeps the elements, and so the keyboard's focus
      this.built = form;
      this.take();
      liveScenes.register(this);
    }
    this.root.setAttribute("aria-busy", Boolean(this.coming) && !this.lost.addresses.size);
    this.lost.tell(this.root, (this.coming ?? this).header.lost ?? {});
    if (this.header) this.redraw();
    if (this.header) this.words.describe(this.root, this.header);
  }

  /** Names of the parts that a scene needs before it can be drawn. */
  needs() { return []; }

  /** A part of a scene, {header, blobs}; null while it is being fetched: `arrived` is called afterwards. */
  part(name, { header, blobs } = this) {
    const address = `${header.partsAddress}/${header.parts[name].name}/whole`;
    return partFetcher.get(address) ?? (blobs[name] ? partFetcher.put(address, blobs[name].array) : this.fetched(address));
  }

  /** The scene at an address; null while it is being fetched: `arrived` is called afterwards. */
  fetched(address) {
    const found = partFetcher.get(address);
    if (found || this.wanted.has(address) || this.lost.addresses.has(address)) return found;
    this.wanted.add(address);
    const { wanted, life: { signal } } = this;
    const gone = () => this.setTriggerValue("gone", true); // any script run recreates it
    partFetcher.load(address, gone, signal).then((here) => {
      wanted.delete(address);
      if (signal.aborted) return;
      if (!here) this.lost.addresses.add(address);
      this.arrived();
    });
    return null;
  }

  /** Listens to the page: size, resolution, the other drawings; true if it did not before. */
  connect() {
    if (this.life && !this.life.signal.aborted) return false;
    this.life = new AbortController();
    liveScenes.register(this);
    pageLinks.before(() => this.reportNow(), this.life.signal);
    this.wanted = new Set();
    const { signal } = this.life;
    document.addEventListener(CHANNEL, ({ detail }) => { this.pointed = detail; if (this.header) this.onPointed(); }, { signal });
    const again = () => { if (this.header) this.redraw(); };
    window.addEventListener("resize", again, { signal });
    window.addEventListener("scroll", () => this.hideTip(), { signal, capture: true, passive: true });
    document.fonts?.addEventListener("loadingdone", again, { signal }); // labels were drawn in a fallback font until then
    const observer = new ResizeObserver(() => { if (widthIn(this.root) !== this.width || hasMoved(this.root)) again(); });
    for (const node of [this.root, ...document.querySelectorAll(".stMainBlockContainer > *")]) observer.observe(node);
    signal.addEventListener("abort", () => observer.disconnect());
    return true;
  }

  /** Stops listening to the page. */
  disconnect() {
    this.life.abort();
    liveScenes.forget(this);
    this.hideTip();
  }

  /** Schedules one drawing for the next frame, however often it is called. */
  redraw() {
    this.frame ??= requestAnimationFrame(() => this.drawNow());
  }

  /** Draws before the next frame begins, so that this frame shows it. */
  drawNow() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    this.width = widthIn(this.root);
    notePlace(this.root);
    if (this.width === 0 || this.enlarged()) return;
    this.family = getComputedStyle(this.root).fontFamily;
    this.draw();
    this.tellLayout();
  }

  /** Builds the elements again if big mode was entered or left, because they hold numbers; true if so. */
  enlarged() {
    const [before, scale] = [this.enlargedBy, scaleOf(this.root)];
    this.enlargedBy = scale;
    if (before === undefined || before === scale) return false;
    this.coming ??= { header: this.header, blobs: this.blobs };
    this.built = null;
    this.arrived();
    return true;
  }

  /** Writes `data-layout` after the frame: measuring earlier would force one page layout per drawing. */
  tellLayout() {
    this.telling ??= setTimeout(() => {
      this.telling = null;
      const layout = this.layout();
      if (layout) this.root.dataset.layout = JSON.stringify(layout);
    });
  }

  /** Reports, once, that it is painted: the page then draws the rest. */
  tellPainted() {
    if (!this.painted) requestAnimationFrame(() => setTimeout(() => this.setStateValue("painted", true)));
    this.painted = true;
  }

  /** Rectangles for `data-layout`, in pixels of the drawing; null: none. */
  layout() {
    return null;
  }

  /** Text that identifies what the elements are built from: they are rebuilt only if it changes. */
  form() {
    return this.header.run;
  }

  /** Builds the elements. */
  build() {}

  /** Takes the numbers of a new scene. */
  take() {}

  /** Called when the pointed-at token or cell changes, in any drawing of the page. */
  onPointed() {
    this.redraw();
  }

  /** The page's font for a canvas. */
  font(size = 12.5, weight = 400) {
    return `${weight} ${size}px ${(this.family ??= getComputedStyle(this.root).fontFamily)}`;
  }

  /** Reports a choice to Python. `at` makes the same choice, made twice, two reports. A cell opens a dialog beside or below the map. */
  choose(selection) {
    if (selection.key >= 0 && !this.header.writes && document.querySelector(".stApp")) opensCell(this.root);
    this.setStateValue("selection", { ...selection, at: performance.timeOrigin + performance.now() });
  }

  /** Reports at once what waits to be reported; true if there was something. */
  reportNow() { return false; }

  /** Writes the readout below the drawing; `about` becomes its data attributes. */
  say(sentence, about = {}) {
    if (this.readout.textContent !== sentence) this.readout.textContent = sentence;
    for (const name of ["site", "head", "query", "key", "weight", "most"]) {
      if (about[name] === undefined) delete this.readout.dataset[name];
      else this.readout.dataset[name] = about[name];
    }
  }

  /** Shows `children` in the tooltip, near a point or beside a box, within the window. */
  showTip({ x, y, height = 0 }, ...children) {
    this.tip.replaceChildren(...children);
    if (POPOVERS && !this.tip.matches(":popover-open")) this.tip.showPopover();
    this.tip.classList.add("shown");
    const { width: wide, height: high } = this.tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, height ? x : x + 14), innerWidth - wide - 8);
    const below = y + height + (height ? 6 : 16);
    const top = below + high + 8 <= document.documentElement.clientHeight ? below : Math.max(8, y - high - 8);
    Object.assign(this.tip.style, { left: `${left}px`, top: `${top}px` });
  }

  hideTip() {
    if (POPOVERS && this.tip.matches(":popover-open")) this.tip.hidePopover();
    this.tip.classList.remove("shown");
  }
}

/** A title and rows of [name, value] for the tooltip. */
function facts(title, rows) {
  return [el("b", {}, title), el("dl", {}, ...rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]))];
}

const drawings = new WeakMap();

/** Body of each component's function: keeps one Drawing per place on the page over all script runs. */
function mount(component, Kind) {
  const { parentElement } = component;
  if (!drawings.has(parentElement)) drawings.set(parentElement, new Kind(parentElement));
  const drawing = drawings.get(parentElement);
  drawing.show(component);
  const call = (drawing.call = (drawing.call ?? 0) + 1);
  return () => { if (call === drawing.call) drawing.disconnect(); }; // Streamlit may clean up late, after a newer call
}
