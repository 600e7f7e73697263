// Plotly writes the numbers in the cells of a heatmap at one size, however narrow the cells are in this window. Here they become smaller
// where they would run into each other, and are left out where they would be too small to be read. Pointing at a cell says its number.

const SMALLEST = 0.8; // share of their size, which is 11 pixels, and 21 in big mode: there no text has fewer than 16
const BETWEEN = 4; // pixels between two numbers side by side

/** Fits the numbers of a heatmap, Plotly's group of it, into its cells. */
function fitNumbers(map) {
  const { meta, xaxis } = map.closest(".js-plotly-plot")?._fullLayout ?? {};
  if (meta !== "fitted-numbers") return;
  const texts = [...map.querySelectorAll("g.heatmap-label text")];
  const widest = Math.max(...texts.map((text) => text.getBBox().width));
  const share = Math.min(1, (Math.abs(xaxis.c2p(1) - xaxis.c2p(0)) - BETWEEN) / widest);
  for (const text of texts) {
    text.style.fontSize = `${parseFloat(text.style.fontSize) * Math.max(share, SMALLEST)}px`;
    text.style.visibility = share < SMALLEST ? "hidden" : "";
  }
}

// At every change of its size Plotly writes all numbers of a heatmap again.
new MutationObserver((mutations) => {
  const maps = mutations.filter(({ target, addedNodes }) => addedNodes.length && target.matches?.("g.hm")).map(({ target }) => target);
  new Set(maps).forEach(fitNumbers);
}).observe(document.body, { childList: true, subtree: true });
document.querySelectorAll("g.hm").forEach(fitNumbers); // those that were drawn before this was loaded
