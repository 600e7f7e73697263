// Panels without a canvas: bars with names, tables of numbers, sentences, lines, and figures. Each is a function of the header of its scene.

const LANGUAGE = document.documentElement.lang || "en";
speak({ decimal: new Intl.NumberFormat(LANGUAGE).formatToParts(1.5).find(({ type }) => type === "decimal").value }); // also without a drawing

/** A number with at most so many digits that count, in the language of the page. */
function significant(value, digits) {
  const tiny = value !== 0 && !(Math.abs(value) >= 1e-4 && Math.abs(value) < 1e6);
  const notation = tiny ? "scientific" : "standard";
  return new Intl.NumberFormat(LANGUAGE, { maximumSignificantDigits: digits, useGrouping: false, notation }).format(value).replace("-", "−");
}

/** A number as a sentence says it: with at most so many digits that count, thousands in groups. */
function inSentence(value, digits) {
  const size = Math.abs(value);
  if (value !== 0 && (size < 1e-4 || size >= 1e12)) return significant(value, digits);
  return new Intl.NumberFormat(LANGUAGE, { maximumSignificantDigits: digits }).format(value).replace("-", "−");
}

/** Bars with names and values, these to so many decimals. */
function barList({ texts: names, values, chosen, digits = 2 }) {
  const most = Math.max(...values.map(Math.abs), 1e-9);
  const row = (text, at) => el("li", { class: at === chosen ? "chosen" : "" },
    el("bdi", {}, text), el("span", { class: "bar", style: `--share: ${Math.abs(values[at]) / most}` }), el("span", { class: "number" }, fixed(values[at], digits).replace("-", "−")));
  return el("ol", { class: "bars" }, ...names.map(row));
}

const LONG_CELL = 24; // letters of a cell whose text may take several lines
const letters = (text) => [...text].reduce((sum, each) => sum + (each > "\u2e7f" ? 2 : 1), 0); // a Chinese character is as wide as two

/** A table of texts. The first column names the rows; `shades` color the others. */
function dataTable({ columns, rows, chosen, shades }) {
  const cell = (row) => (text, at) => {
    const shade = shades[row]?.[at - 1];
    const kind = shade !== undefined ? "shaded" : letters(text) > LONG_CELL ? "long" : "";
    return at ? el("td", { class: kind, style: `--share: ${shade ?? 0}` }, text) : el("th", { scope: "row", class: letters(text) > LONG_CELL ? "" : "short" }, el("bdi", {}, text));
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

/** A number of an axis in few characters: 1.5, 12K, or a power of ten. */
function short(value, powers) {
  const power = Math.log10(value);
  if (powers && (power < 0 || power >= 4)) return `10${String(Math.round(power)).replace(/./g, (digit) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(digit)])}`;
  if (Math.abs(value) < 1e4) return significant(value, Number.isInteger(value) ? 4 : 3);
  return new Intl.NumberFormat(LANGUAGE, { notation: "compact", maximumSignificantDigits: 3 }).format(value);
}

/** One axis of a chart from `low` to `high`: `part` of a value from 0 to 1, and its ticks. */
function chartAxis(low, high, logarithmic) {
  const scaled = logarithmic ? Math.log10 : (value) => value;
  const [from, to] = [scaled(low), scaled(high)];
  const part = (value) => (scaled(value) - from) / (to - from || 1);
  if (logarithmic) {
    const powers = multiples(1, from, to);
    const every = Math.ceil(powers.length / 5);
    return { part, ticks: powers.filter((power) => power % every === 0).map((power) => 10 ** power) };
  }
  return { part, ticks: multiples(stepOf((to - from) / 4 || 1), from, to) };
}

/** Lines over any numbers, with a legend that says the values at the place that is pointed at, or at the last one. */
function lineChart({ across, lines, axes, logarithmic, mark, level }) {
  const [width, height, left, right, bottom, top] = [330, 200, 46, 14, 34, 18];
  const values = [...lines.flatMap((line) => line.values), ...(level === null ? [] : [level])];
  const lowest = Math.min(...values);
  const x = chartAxis(across[0], across.at(-1), logarithmic[0]);
  const y = chartAxis(logarithmic[1] ? lowest : Math.min(0, lowest), Math.max(...values), logarithmic[1]);
  const place = (number) => Math.round(number * 10) / 10;
  const at = (value) => place(left + (width - left - right) * x.part(value));
  const up = (value) => place(height - bottom - (height - bottom - top) * y.part(value));
  const text = (said, where, anchor, more = {}) => el("svg:text", { ...where, "text-anchor": anchor, ...more }, said);
  const path = ({ values: own, look }) => el("svg:path", { class: look, d: `M${own.map((value, index) => `${at(across[index])} ${up(value)}`).join("L")}` });
  const grid = y.ticks.map((value) => el("svg:path", { class: "grid", d: `M${left} ${up(value)}H${width - right}` }));
  const sides = y.ticks.map((value) => text(short(value, logarithmic[1]), { x: left - 5, y: up(value) + 4 }, "end"));
  const below = x.ticks.map((value) => text(short(value, logarithmic[0]), { x: at(value), y: height - bottom + 13 }, "middle"));
  const titles = [text(axes[0], { x: (left + width - right) / 2, y: height - 5 }, "middle"), text(axes[1], { x: 4, y: 11 }, "start")];
  const axis = el("svg:path", { class: "axis", d: `M${left} ${top}V${height - bottom}H${width - right}` });
  const dashed = level === null ? [] : [el("svg:path", { class: "other", d: `M${left} ${up(level)}H${width - right}` })];
  const dot = mark ? [el("svg:circle", { class: "mark", cx: at(mark[0]), cy: up(mark[1]), r: 5 })] : [];
  const numbers = lines.map(() => el("span", { class: "number" }));
  const where = el("li", { class: "place" });
  const cursor = el("svg:path", { class: "axis" });
  const whole = (value) => (Number.isInteger(value) && Math.abs(value) < 1e6 ? inSentence(value, 6) : short(value, false));
  const say = (index) => {
    lines.forEach((line, one) => { numbers[one].textContent = whole(line.values[index]); });
    where.textContent = `${axes[0]}: ${whole(across[index])}`;
    cursor.setAttribute("d", `M${at(across[index])} ${top}V${height - bottom}`);
  };
  const nearest = ({ clientX, currentTarget }) => {
    const box = currentTarget.getBoundingClientRect();
    const pointed = ((clientX - box.left) * width) / box.width;
    say(across.reduce((best, value, index) => (Math.abs(at(value) - pointed) < Math.abs(at(across[best]) - pointed) ? index : best), 0));
  };
  say(mark ? across.indexOf(mark[0]) : across.length - 1);
  const hears = { onpointermove: nearest, onpointerdown: nearest };
  const all = [...grid, axis, cursor, ...dashed, ...[...lines].reverse().map(path), ...dot, ...sides, ...below, ...titles];
  const drawn = el("svg:svg", { class: "curves chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${axes[1]}, ${axes[0]}`, ...hears }, ...all);
  const legend = lines.map(({ name, look }, one) => el("li", { class: look }, el("span", {}, name), numbers[one]));
  return el("div", {}, drawn, el("ul", { class: "legend" }, where, ...legend));
}

/** Pairs of columns, each in a plane of its own: dotted before they are turned, an arrow after. */
function arrowGrid({ names, before, after }) {
  const one = (name, at) => {
    const [from, to] = [before[at], after[at]].map(([across, up]) => [Math.round(400 * across) / 10, Math.round(-400 * up) / 10]);
    const angle = (Math.atan2(to[1], to[0]) * 180) / Math.PI;
    const parts = [
      el("svg:circle", { r: 40 }), el("svg:path", { class: "third", d: `M0 0L${from.join(" ")}` }), el("svg:path", { class: "own", d: `M0 0L${to.join(" ")}` }),
      el("svg:path", { class: "tip", d: "M0 0L-11 -5.5V5.5Z", transform: `translate(${to.join(" ")}) rotate(${Math.round(angle * 10) / 10})` }),
      el("svg:text", { y: 56, "text-anchor": "middle" }, name),
    ];
    return el("svg:svg", { class: "curves chart", viewBox: "-46 -44 92 104", role: "img", "aria-label": name }, ...parts);
  };
  return el("div", { class: "arrows" }, ...names.map(one));
}

/** A figure as print draws it, in the colors of the page. */
function printedPlot({ light, dark, alt }) {
  const drawn = (svg, scheme) => {
    const figure = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    for (const side of ["width", "height"]) figure.removeAttribute(side);
    figure.setAttribute("class", scheme);
    return document.adoptNode(figure);
  };
  return el("div", { class: "plot", role: "img", "aria-label": alt }, drawn(light, "in-light"), drawn(dark, "in-dark"));
}

/** By the kind of a panel, what draws it. */
const TABLES = { Bars: barList, Table: dataTable, Text: sentences, Curves: curveChart, Chart: lineChart, Arrows: arrowGrid, Plot: printedPlot };
