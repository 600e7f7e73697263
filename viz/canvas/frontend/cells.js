// Heatmap of one head at one stage, whose cells open their calculation; of a mask; of any table of numbers.

/** A heatmap whose numbers may have any size and sign. */
class NumberHeatmap extends Heatmap {
  /** Writes the numbers into the cells if they fit. */
  numbers(pen, colours, _box, shown) {
    const { width, height } = this.place(0, 0, shown);
    if (width < pen.measureText(this.widest).width + 2 || height < 15) return;
    Object.assign(pen, { textAlign: "center", textBaseline: "middle" });
    for (let row = Math.ceil(shown.top); row + 1 <= shown.bottom; row++) {
      for (let column = Math.ceil(shown.left); column + 1 <= shown.right; column++) {
        const { masked } = cellOf(this.cells, row, column);
        const { x, y } = this.place(row, column, shown);
        const code = this.cells.codes[row * this.cells.columns + column];
        pen.fillStyle = masked ? colours.text : inkOn(bytesOf(colours.shades[1 + code]));
        pen.fillText(this.short({ row, column }), x + width / 2, y + height / 2 + 0.5);
      }
    }
  }
}

/** [red, green, blue] of a color word. */
const bytesOf = (colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];

/** The palette of a mask: one color for allowed cells, one for masked ones. */
const maskPalette = (colours, allowed) => ({ ...colours, shades: shadesOf(colours.maskedWord, [allowed, allowed].map(rgb), () => 0) });

/** The mean of the codes of the allowed cells: the largest of signed numbers would hide those below 0. */
function mean(codes, mask, columns, top, bottom, left, right) {
  let [sum, count] = [0, 0];
  for (let row = top; row < bottom; row++) {
    for (let at = row * columns + left, end = row * columns + right; at < end; at++) {
      sum += mask[at] && codes[at];
      count += mask[at];
    }
  }
  return count ? Math.round(sum / count) : -1;
}

const RESTS_MS = 120; // a pointer that rests this long on a cell asks what it writes

class Cells extends Drawing {
  constructor(parent) {
    super(parent, "cells");
    this.room = (usual) => usual; // the height that it may take
    this.canvas = el("canvas", { tabindex: 0, role: "application" });
    this.map = new NumberHeatmap(this.canvas);
    this.map.short = (cell) => this.text(cell, 2);
    this.written = el("div", { class: "written", role: "status", "aria-live": "polite" });
    this.axes = el("p", { class: "axes" });
    this.legend = el("p", { class: "legend" });
    this.scale = el("p", { class: "scale" });
    this.above = el("div", { class: "above" }, this.axes, this.legend, this.scale);
    this.mixed = el("p", { class: "mixed", hidden: true });
    this.root.append(this.above, this.canvas, this.mixed, this.readout, this.written);
    watchTouch(this.canvas, {
      hover: (x, y) => this.hover(this.map.cellAt(x, y), x, y),
      leave: () => this.leave(),
      click: (x, y) => this.open(this.map.cellAt(x, y)),
    });
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    this.canvas.addEventListener("blur", () => this.leave());
  }

  form() {
    const { site, head, scale } = this.header;
    return JSON.stringify([site, head, scale]);
  }

  build() {
    this.canvas.setAttribute("aria-label", fill(this.header.texts.cellsLabel, { head: this.header.name }));
  }

  take() {
    const { queries, keys, opened: [query, key], texts } = this.header;
    const { exact, codes, there } = this.blobs;
    const pooled = this.header.scale === "scores" ? mean : undefined;
    this.map.take(grid(queries.length, keys.length, codes.array, there.array, exact.array, 0, pooled), queries, keys);
    if (query >= 0 && key >= 0) this.map.cursor ??= { row: query, column: key };
    this.opened = { row: query, column: key };
    this.map.widest = this.header.scale === "mask" ? "−∞" : "−00.00"; // a number's room
    this.say(hintOf(texts));
    const { writes } = this.header;
    this.written.hidden = !writes;
    if (writes === this.asks) return;
    clearTimeout(this.resting);
    this.asking?.abort();
    Object.assign(this, { asks: writes, asked: null });
    this.written.replaceChildren();
    if (writes && query >= 0 && key >= 0) this.ask({ row: query, column: key });
  }

  draw() {
    const { colours, header, pointed, opened } = this;
    const { queryStrip, keyStrip, scale, square } = header;
    const lit = pointed.queryStrip === queryStrip && pointed.keyStrip === keyStrip && pointed.query !== null && pointed.key !== null;
    const at = lit ? { row: pointed.query, column: pointed.key } : opened;
    const allowed = colours.weights[header.allowed];
    const scaled = scale === "mask" ? maskPalette(colours, allowed) : scale === "weights" ? colours : centredPalette(colours);
    this.explain(colours, allowed, scaled.stops);
    this.map.draw(this.width, this.room(mapHeight(this.canvas, 330, 300, 520)), {
      colours: scaled, font: this.font(), lit: at, selected: opened.row, square,
    });
    this.tellMixed();
    if (header.frame) this.outline(header.frame);
    if (header.used) this.end(header.used);
    if (header.first) this.tellPainted();
  }

  /** Says above the map what its colors mean, where nothing else does. */
  explain(colours, allowed, stops) {
    const { axes, signs, scale, bar } = this.header;
    const named = scale === "mask" ? [[signs[1], allowed], [signs[0], colours.masked]] : [];
    this.legend.replaceChildren(...named.map(([[, name], colour]) => el("span", {}, el("i", { style: `background: ${colour}` }), name)));
    this.scale.replaceChildren(...(bar ? colourBar(bar.title, bar.ends, stops) : []));
    this.axes.textContent = axes;
    this.above.hidden = !axes && !named.length && !bar;
  }

  /** Says where pixels show means of cells. */
  tellMixed() {
    const { map: { cells: { rows, columns, pooled }, box }, mixed } = this;
    const ratio = this.canvas.width / this.width;
    mixed.hidden = pooled !== mean || (box.width * ratio >= columns && box.height * ratio >= rows);
    mixed.textContent = this.header.texts.mixed;
  }

  /** A dashed line after the rows of the text at hand. */
  end(row) {
    const { x, y } = this.map.place(row, 0);
    const pen = this.canvas.getContext("2d");
    pen.save();
    pen.setLineDash([5, 4]);
    Object.assign(pen, { strokeStyle: this.colours.text, lineWidth: 1.5 });
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x + this.map.box.width, y);
    pen.stroke();
    pen.restore();
  }

  /** Outlines a block of cells. */
  outline([top, left, bottom, right]) {
    const [from, to] = [this.map.place(top, left), this.map.place(bottom, right)];
    const pen = this.canvas.getContext("2d");
    Object.assign(pen, { strokeStyle: this.colours.accent, lineWidth: 3 });
    pen.strokeRect(from.x, from.y, to.x - from.x, to.y - from.y);
  }

  layout() {
    const { rows, columns } = this.map.cells;
    const { site, head } = this.header;
    return [{ site, head, ...boxIn(this.root, this.canvas, this.map.box), row: 0, column: 0, rows, columns, named: this.map.named }];
  }

  /** Text of a cell: its number, or nothing if none is expected. */
  text({ row, column }, decimals) {
    const { weight, masked } = cellOf(this.map.cells, row, column);
    const { scale, signs } = this.header;
    if (scale === "mask") return signs[masked ? 0 : 1][0];
    return masked && !this.isWrong(row, column) ? "" : numberText(weight, decimals);
  }

  /** True if a cell should hold a finite number and does not. */
  isWrong(row, column) {
    return Boolean(this.blobs.wrong.array[row * this.map.cells.columns + column]);
  }

  hover(cell, x, y) {
    if (!cell) return this.leave();
    const { texts, queries, keys, queryStrip, keyStrip, name, site, head, scale } = this.header;
    const { weight, masked } = cellOf(this.map.cells, cell.row, cell.column);
    const number = scale === "mask" ? this.text(cell) : numberText(weight, precise(weight));
    const value = masked && !this.isWrong(cell.row, cell.column) ? fill(texts.none, { value: number }) : number;
    const [query, key] = [queries[cell.row], keys[cell.column]];
    this.say(fill(texts.cellValue, { query, key, value }), { site, head, query: cell.row, key: cell.column, weight });
    point({ queryStrip, query: cell.row, keyStrip, key: cell.column });
    if (this.header.writes) return this.ask(cell); // a tooltip would cover the answer
    this.showTip(inWindow(this.canvas, x, y), ...facts(name, [[texts.query, query], [texts.key, key], [texts.value, value]]));
  }

  leave() {
    clearTimeout(this.resting);
    this.hideTip();
    point({});
  }

  /** Asks, once the pointer has rested on a cell, which tokens its value pushes up and down. The answer stays until the next one. */
  ask(cell) {
    const asked = `${this.asks}?query=${cell.row}&key=${cell.column}`;
    if (asked === this.asked) return;
    clearTimeout(this.resting);
    this.resting = setTimeout(async () => {
      this.asking?.abort();
      this.asked = asked;
      const { signal } = (this.asking = new AbortController());
      try {
        const answer = await fetch(asked, { signal });
        if (!answer.ok) throw new TypeError(answer.statusText);
        this.tell(cell, await answer.json());
      } catch {
        if (!signal.aborted) this.tell(cell, { error: this.header.texts.gone });
      }
    }, RESTS_MS);
  }

  /** Writes what a cell's value pushes up and down below the map. */
  tell(cell, { up = [], down = [], error = "" }) {
    const { texts } = this.header;
    Object.assign(this.written.dataset, { query: cell.row, key: cell.column });
    const pair = ([text, value]) => [el("b", { dir: "auto" }, text), ` ${value} `];
    const side = (name, list) => el("p", {}, el("span", {}, name), ...list.flatMap(pair));
    const said = error ? [el("p", {}, error)] : [el("p", {}, texts.writes), side(texts.up, up), side(texts.down, down)];
    this.written.replaceChildren(...said);
  }

  /** Opens the calculation of a cell, or chooses the cell whose tokens stay; its outline moves at once. */
  open(cell) {
    if (!cell || !this.header.opens) return;
    this.opened = cell;
    this.map.cursor = cell;
    this.choose({ query: cell.row, key: cell.column });
    this.redraw();
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by && event.key !== "Enter") return;
    event.preventDefault();
    if (!by) return this.open(this.map.cursor);
    const cell = this.map.move(...by);
    const { x, y, width, height } = this.map.place(cell.row, cell.column);
    this.hover(cell, x + width / 2, y + height / 2);
  }
}
