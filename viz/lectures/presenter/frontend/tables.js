// Panels without a canvas: bars with names, tables of numbers, and sentences. Each is a function of the header of its scene.

const LANGUAGE = document.documentElement.lang || "en";
speak({ decimal: new Intl.NumberFormat(LANGUAGE).formatToParts(1.5).find(({ type }) => type === "decimal").value }); // also without a drawing

/** A number with at most so many digits that count, in the language of the page. */
function significant(value, digits) {
  const tiny = value !== 0 && !(Math.abs(value) >= 1e-4 && Math.abs(value) < 1e6);
  const notation = tiny ? "scientific" : "standard";
  return new Intl.NumberFormat(LANGUAGE, { maximumSignificantDigits: digits, useGrouping: false, notation }).format(value).replace("-", "−");
}

/** Bars with names. */
function barList({ texts: names, values, chosen }) {
  const most = Math.max(...values.map(Math.abs), 1e-9);
  const row = (text, at) => el("li", { class: at === chosen ? "chosen" : "" },
    el("bdi", {}, text), el("span", { class: "bar", style: `--share: ${Math.abs(values[at]) / most}` }), el("span", { class: "number" }, fixed(values[at], 2).replace("-", "−")));
  return el("ol", { class: "bars" }, ...names.map(row));
}

/** A table of texts. The first column names the rows; `shades` color the others. */
function dataTable({ columns, rows, chosen, shades }) {
  const cell = (row) => (text, at) => {
    const shade = shades[row]?.[at - 1];
    return at ? el("td", { class: shade === undefined ? "" : "shaded", style: `--share: ${shade ?? 0}` }, text) : el("th", { scope: "row" }, el("bdi", {}, text));
  };
  const head = el("thead", {}, el("tr", {}, ...columns.map((text) => el("th", { scope: "col" }, text))));
  const lines = rows.map((row, at) => el("tr", { class: at === chosen ? "chosen" : "" }, ...row.map(cell(at))));
  return el("div", { class: "scroll" }, el("table", { class: "data" }, head, el("tbody", {}, ...lines)));
}

/** Sentences and formulas. */
function sentences({ html }) {
  const box = el("div", { class: "words" });
  setWords(box, html);
  return box;
}

const NEAR_PX = 14;

/** Lines over the steps of a training, on a logarithmic axis; the chosen one is bold, each says its name where it is pointed at or tapped. */
function curveChart({ steps, lines, names, chosen }) {
  const [width, height, left, bottom] = [330, 130, 36, 18];
  const numbers = lines.flat().filter((value) => value !== null);
  const [low, top] = [Math.min(0, ...numbers), Math.max(1e-9, ...numbers)];
  const place = (number) => Math.round(number * 10) / 10;
  const x = (step) => place(left + ((width - left - 12) * Math.log1p(step)) / Math.max(1e-9, Math.log1p(steps.at(-1))));
  const y = (value) => place(8 + ((height - bottom - 8) * (top - value)) / (top - low));
  const path = (line, at) => {
    const known = line.flatMap((value, step) => (value === null ? [] : [`${x(steps[step])} ${y(value)}`]));
    return el("svg:path", { d: known.length ? `M${known.join("L")}` : "", class: at === chosen ? "chosen" : "", "data-line": at });
  };
  const order = lines.map((_, at) => at).sort((a, b) => (a === chosen) - (b === chosen)); // the chosen one lies on top
  const label = (text, at, anchor) => el("svg:text", { ...at, "text-anchor": anchor }, text);
  const marks = [steps.length - 1, Math.floor(steps.length / 2), 0].map((at) => label(significant(steps[at], 6), { x: x(steps[at]), y: height - 4 }, "middle"));
  const ends = [low, top].map((value) => label(significant(value, 3), { x: left - 6, y: y(value) + 4 }, "end"));
  const axis = el("svg:path", { class: "axis", d: `M${left} 8V${height - bottom}H${width - 12}` });
  const name = el("svg:text", { class: "name", y: 12, "text-anchor": "middle" });
  const paths = order.map((at) => path(lines[at], at));
  const nearest = ({ clientX, clientY, currentTarget }) => {
    const box = currentTarget.getBoundingClientRect();
    const scale = width / box.width;
    const [across, down] = [(clientX - box.left) * scale, (clientY - box.top) * scale];
    const to = steps.reduce((best, step, at) => (Math.abs(x(step) - across) < Math.abs(x(steps[best]) - across) ? at : best), 0);
    const apart = lines.map((line) => (line[to] === null ? Infinity : Math.abs(y(line[to]) - down)));
    const found = apart.indexOf(Math.min(...apart));
    const said = apart[found] < NEAR_PX * Math.max(1, scale) ? found : -1;
    name.textContent = names[said] ?? "";
    name.setAttribute("x", Math.min(Math.max(across, left + 50), width - 60));
    for (const each of paths) each.classList.toggle("pointed", Number(each.dataset.line) === said);
  };
  const hears = { onpointermove: nearest, onpointerdown: nearest };
  return el("svg:svg", { class: "curves", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": names[chosen], ...hears }, axis, ...paths, ...marks, ...ends, name);
}

/** A dot for each thing by two numbers; the chosen one has a ring, those with a label say it, each says its name under the pointer. */
function dotChart({ places, names, labels, axes, chosen }) {
  const [width, height, left, right, bottom, top] = [330, 250, 40, 12, 34, 12];
  const there = places.flatMap((place, at) => (place === null ? [] : [at]));
  const ends = [0, 1].map((axis) => {
    const numbers = there.map((at) => places[at][axis]);
    return [Math.min(0, ...numbers), Math.max(1e-9, ...numbers)];
  });
  const part = (axis, value) => (value - ends[axis][0]) / (ends[axis][1] - ends[axis][0]);
  const round = (number) => Math.round(number * 10) / 10;
  const x = (value) => round(left + (width - left - right) * part(0, value));
  const y = (value) => round(height - bottom - (height - bottom - top) * part(1, value));
  const text = (said, at, anchor, more = {}) => el("svg:text", { ...at, "text-anchor": anchor, ...more }, said);
  const dot = (at) => {
    const [across, up] = places[at];
    const said = `${names[at]}: ${fixed(across, 3)}, ${fixed(up, 3)}`;
    return el("svg:circle", { cx: x(across), cy: y(up), r: at === chosen ? 6 : 4, class: at === chosen ? "chosen" : "" }, el("svg:title", {}, said));
  };
  const label = (at) => {
    const near = part(0, places[at][0]);
    if (part(1, places[at][1]) > 0.9) { // there is no room above it
      const [by, side] = near > 0.8 ? [-10, "end"] : [10, "start"];
      return text(labels[at], { x: x(places[at][0]) + by, y: y(places[at][1]) + 4 }, side, { class: "named" });
    }
    const anchor = near > 0.8 ? "end" : near < 0.2 ? "start" : "middle";
    return text(labels[at], { x: x(places[at][0]), y: y(places[at][1]) - 8 }, anchor, { class: "named" });
  };
  const order = [...there].sort((a, b) => (a === chosen) - (b === chosen)); // the chosen one lies on top
  const low = text(significant(ends[0][0], 3), { x: left, y: height - bottom + 13 }, "start");
  const high = text(significant(ends[0][1], 3), { x: width - right, y: height - bottom + 13 }, "end");
  const sides = ends[1].map((value) => text(significant(value, 3), { x: left - 5, y: y(value) + 4 }, "end"));
  const middle = (top + height - bottom) / 2;
  const titles = [text(axes[0], { x: (left + width - right) / 2, y: height - 5 }, "middle"), text(axes[1], { x: 10, y: middle }, "middle", { transform: `rotate(-90 10 ${middle})` })];
  const axis = el("svg:path", { class: "axis", d: `M${left} ${top}V${height - bottom}H${width - right}` });
  const all = [axis, ...order.map(dot), ...there.filter((at) => labels[at]).map(label), low, high, ...sides, ...titles];
  return el("svg:svg", { class: "curves dots", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${axes[1]}, ${axes[0]}: ${names[chosen] ?? ""}` }, ...all);
}

/** By the kind of a panel, what draws it. */
const TABLES = { Bars: barList, Table: dataTable, Text: sentences, Curves: curveChart, Dots: dotChart };
