// Circuit: heads as nodes, layer above layer, and an edge from each head to the later heads that used what it wrote. Cytoscape draws;
// the app serves it, and it is loaded when the first graph is drawn. The keyboard walks from head to head; the table beside it has all.

const GRAPH_ROW = 54; // distance between layers; twice as much where there are few, less where there are many
const GRAPH_HEAD = 120; // largest distance between heads
const GRAPH_EDGE = 26; // free space at the edges
const GRAPH_SHARE = 0.5; // the part of the window's height that a graph of few layers takes
const GRAPH_MANY = 60; // edges of which all stand out; of more, those of the selected head
const GRAPH_TURN = 0.25; // the largest part of a row's height by which the turns of its edges differ from the middle
const GRAPH_CLEAR = 22; // least distance of a turn from the middle of a head
const GRAPH_LAYER = 56; // room for a layer's name at the left of each row
const GRAPH_BELOW = 8; // room for the sentence below a graph that fills a screen
const SIDES_DRAWN = { query: ["accent", "dashed"], key: ["second", "solid"], value: ["text", "dotted"] };
const graphLibraries = new Map();

/** The library at an address, loaded once for all drawings of the page. */
function graphLibrary(address) {
  if (!graphLibraries.has(address)) graphLibraries.set(address, import(new URL(address, location.href).href).then((module) => module.default));
  return graphLibraries.get(address);
}

/**
 * The course of an edge, as Cytoscape takes it: it leaves its head upwards and arrives from below, so it crosses no other head of these
 * rows. It turns `above` its first and `below` its last head, `aside` pixels to the right.
 */
function courseOf(from, to, above, below, aside) {
  const [across, up] = [to.x - from.x, to.y - from.y];
  const turns = [{ x: aside, y: -above }, { x: across + aside, y: up + below }];
  const length = Math.hypot(across, up);
  return {
    "control-point-weights": turns.map(({ x, y }) => (x * across + y * up) / length ** 2),
    "control-point-distances": turns.map(({ x, y }) => (y * across - x * up) / length),
  };
}

class Circuit extends Drawing {
  constructor(parent) {
    super(parent, "circuit");
    this.root.addEventListener("keydown", (event) => this.onKey(event));
  }

  form() {
    const { nodes, edges } = this.header;
    return JSON.stringify([nodes, edges]);
  }

  build() {
    const { texts, library } = this.header;
    this.at = null;
    this.cy?.destroy();
    this.cy = null;
    this.box = el("div", { class: "graph", tabindex: 0, role: "application", "aria-label": texts.graphLabel });
    this.legend = el("p", { class: "legend", "aria-hidden": "true" }, ...Object.keys(SIDES_DRAWN).map((side) => {
      const line = el("i");
      line.dataset.side = side;
      return el("span", {}, line, texts[side]);
    }));
    this.box.addEventListener("focus", () => this.point(this.at ?? this.header.selected));
    this.box.addEventListener("blur", () => this.point(null));
    this.root.replaceChildren(this.box, this.legend, this.readout);
    this.say(hintOf(texts));
    graphLibrary(library).then((made) => { this.made = made; this.redraw(); }, () => {
      this.box.replaceChildren(el("p", { class: "failed" }, texts.failed));
    });
  }

  /** Width of a row of heads. */
  room() {
    const stacks = 1 + Math.max(...this.header.nodes.map(({ stack }) => stack));
    return this.width / stacks - GRAPH_EDGE - GRAPH_LAYER;
  }

  /** The distance between layers; it fills the screen where the graph is the only picture of a page. */
  between(rows) {
    const least = rows > 12 ? 0.7 * GRAPH_ROW : GRAPH_ROW;
    if (!fillsScreen()) return Math.max(least, Math.min(2 * GRAPH_ROW, (GRAPH_SHARE * innerHeight) / (rows - 1)));
    const below = this.root.getBoundingClientRect().bottom - this.box.getBoundingClientRect().bottom;
    return (roomBelow(this.box, below / scaleOf(this.box) + GRAPH_BELOW) - 2 * GRAPH_EDGE) / Math.max(1, rows - 1);
  }

  /** Places of the heads: stacks side by side, the first layer at the bottom. */
  places() {
    const { nodes } = this.header;
    const rows = 1 + Math.max(...nodes.map(({ row }) => row));
    const high = this.between(rows);
    const whole = this.room();
    this.box.style.height = pixels(Math.max(1, rows - 1) * high + 2 * GRAPH_EDGE);
    return new Map(nodes.flatMap(({ id, stack, row, head, heads }) => {
      const wide = Math.min(whole, heads * GRAPH_HEAD);
      const left = GRAPH_LAYER + stack * (whole + GRAPH_EDGE + GRAPH_LAYER) + (whole - wide) / 2;
      const y = GRAPH_EDGE + (rows - 1 - row) * high;
      const place = [id, { x: left + ((head + 0.5) / heads) * wide, y }];
      return head ? [place] : [place, [`${id} layer`, { x: left - 4, y }]];
    }));
  }

  draw() {
    if (!this.made) return;
    const { nodes, edges } = this.header;
    const places = this.places();
    const size = Math.max(7, Math.min(26, ...nodes.map(({ heads }) => (0.86 * this.room()) / heads)));
    if (!this.cy) {
      this.cy = this.made({
        container: this.box,
        elements: [
          ...nodes.map(({ id, head }) => ({ group: "nodes", data: { id, label: `${head + 1}` }, classes: "head" })),
          ...nodes.filter(({ head }) => !head).map(({ id, layer }) => ({ group: "nodes", data: { id: `${id} layer`, label: layer }, classes: "layer" })),
          ...edges.map((edge, place) => ({ group: "edges", data: { id: `edge-${place}`, ...edge, place } })),
        ],
        layout: { name: "preset" },
        autoungrabify: true, boxSelectionEnabled: false, userZoomingEnabled: false, userPanningEnabled: false, autounselectify: true,
      });
      this.cy.on("tap", "node.head", ({ target }) => this.open(target.id()));
      this.cy.on("mouseover", "node.head", ({ target }) => this.point(target.id()));
      this.cy.on("mouseover tap", "edge", ({ target }) => this.say(target.data("said")));
      this.cy.on("mouseout", "node, edge", () => this.point(this.box.matches(":focus") ? this.at : null));
    }
    this.cy.style(this.styles(size));
    this.cy.resize();
    this.cy.nodes().positions((node) => places.get(node.id()));
    this.cy.viewport({ zoom: scaleOf(this.box), pan: { x: 0, y: 0 } });
    this.turn(places);
    this.mark();
    this.legend.querySelectorAll("i").forEach((line) => {
      const [colour, dash] = SIDES_DRAWN[line.dataset.side];
      Object.assign(line.style, { borderTopColor: this.colours[colour], borderTopStyle: dash });
    });
  }

  /** Lays the edges around the heads: those of each head turn at a height of their own, queries, keys and values beside each other. */
  turn(places) {
    const { nodes } = this.header;
    const of = new Map(nodes.map((node) => [node.id, node]));
    const high = this.between(1 + Math.max(...nodes.map(({ row }) => row)));
    this.cy.edges().forEach((edge) => {
      const [from, to] = [edge.data("source"), edge.data("target")];
      const { row, head, heads } = of.get(from);
      const beside = Object.keys(SIDES_DRAWN).indexOf(edge.data("side")) - 1;
      const straight = of.get(to).row > row + 1 && Math.abs(places.get(to).x - places.get(from).x) < 2;
      const aside = 5 * beside + (straight ? Math.min(GRAPH_HEAD, this.room() / heads) / 2 : 0);
      const range = Math.min(GRAPH_TURN * high, Math.max(0, high / 2 - GRAPH_CLEAR));
      const above = high / 2 + range * ((2 * head + 1) / heads - 1);
      edge.style(courseOf(places.get(from), places.get(to), above, high - above, aside));
    });
  }

  styles(size) {
    const { colours } = this;
    const side = Object.entries(SIDES_DRAWN).map(([name, [colour, dash]]) => ({
      selector: `edge[side="${name}"]`, style: { "line-color": colours[colour], "target-arrow-color": colours[colour], "line-style": dash },
    }));
    return [
      { selector: "node.layer", style: { width: 1, height: 1, label: "data(label)", "text-valign": "center", "text-halign": "left", "font-size": 11,
        color: colours.faint, "text-background-color": colours.background, "text-background-opacity": 1, "background-opacity": 0, events: "no" } },
      { selector: "node.head", style: { width: size, height: size, label: size > 14 ? "data(label)" : "", "text-valign": "center", "text-halign": "center",
        "font-size": Math.min(12, size * 0.55), color: colours.text, "background-color": colours.card, "border-width": 1.4, "border-color": colours.faint } },
      { selector: "edge", style: { "curve-style": "unbundled-bezier", "edge-distances": "node-position", width: "mapData(width, 0, 1, 1, 8)", opacity: 0.75, "target-arrow-shape": "triangle", "arrow-scale": 0.8 } },
      ...side,
      { selector: "edge[?negative]", style: { "target-arrow-shape": "tee" } },
      { selector: "node.selected", style: { "border-width": 3.5, "border-color": colours.accent } },
      { selector: "node.pointed", style: { "background-color": colours.line, "border-color": colours.text } },
      { selector: "edge.aside", style: { opacity: 0.14 } },
    ];
  }

  take() {
    this.at = this.header.nodes.some(({ id }) => id === this.at) ? this.at : null;
  }

  /** Marks the selected head and the one under pointer or keyboard, whose edges stand out. */
  mark() {
    if (!this.cy) return;
    const many = this.header.edges.length > GRAPH_MANY;
    const standsOut = this.over ?? (many ? this.header.selected : null);
    this.cy.batch(() => {
      for (const name of ["selected", "pointed", "aside"]) this.cy.elements().removeClass(name);
      this.cy.getElementById(this.header.selected).addClass("selected");
      if (standsOut === null) return;
      const node = this.cy.getElementById(standsOut);
      node.toggleClass("pointed", Boolean(this.over));
      this.cy.edges().not(node.connectedEdges()).addClass("aside");
    });
  }

  /** Says what is known of a head; null: the hint. */
  point(id) {
    this.over = id;
    const node = this.header.nodes.find((one) => one.id === id);
    if (node) {
      const own = this.header.edges.filter(({ source, target }) => source === id || target === id).sort((one, other) => other.width - one.width);
      const said = own.slice(0, 4).map((edge) => edge.said).join(" · ");
      this.say(fill(said ? this.header.texts.ofHead : this.header.texts.alone, { head: node.name, edges: said }), { site: node.site, head: node.head });
    } else this.say(hintOf(this.header.texts));
    this.mark();
  }

  open(id) {
    this.at = id;
    const { site, head } = this.header.nodes.find((one) => one.id === id);
    this.point(id);
    this.choose({ site, head });
  }

  /** Arrow keys go to a neighbor in the row, or to the nearest head of the next layer; Enter selects. */
  onKey(event) {
    const { nodes, selected } = this.header;
    const here = nodes.find(({ id }) => id === (this.at ?? selected)) ?? nodes[0];
    if (event.key === "Enter" || event.key === " ") this.open(here.id);
    else {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!step) return;
      const same = nodes.filter(({ stack, row }) => stack === here.stack && row === here.row + step[1]);
      const wanted = step[1] && same.length ? Math.round(((here.head + 0.5) / here.heads) * same[0].heads - 0.5) : here.head + step[0];
      const next = same.find(({ head }) => head === wanted) ?? this.beside(here, step);
      if (next) { this.at = next.id; this.point(next.id); }
    }
    event.preventDefault();
  }

  /** The head at the end of the row in the other stack, in the same layer or the highest one. */
  beside(here, [across]) {
    const row = this.header.nodes.filter(({ stack }) => across && stack === here.stack + across);
    const levels = row.map((one) => one.row);
    const level = Math.max(Math.min(...levels), Math.min(here.row, Math.max(...levels)));
    const there = row.filter((one) => one.row === level);
    return across > 0 ? there[0] : there.at(-1);
  }

  layout() {
    return this.cy?.nodes().map((node) => {
      const { site, head } = this.header.nodes.find(({ id }) => id === node.id()) ?? { site: node.data("label") };
      const { x, y } = node.renderedPosition();
      return { site, head, x, y };
    }) ?? null;
  }
}
