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
    el("bdi", {}, text), el("span", { class: "bar", style: `--share: ${Math.abs(values[at]) / most}` }), el("span", { class: "number" }, fixed(values[at], 2)));
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

/** By the kind of a panel, what draws it. */
const TABLES = { Bars: barList, Table: dataTable, Text: sentences };
