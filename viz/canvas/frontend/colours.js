// Colors of the page's scheme and of weights, and readable text colors on them.

/** [red, green, blue] of any CSS color. #rrggbb, which ours are, is parsed without a canvas. */
function rgb(colour) {
  if (/^#[0-9a-f]{6}$/i.test(colour)) return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

/** The scheme, light or dark, that matches the page's background. */
function schemeFor(root, schemes) {
  const background = getComputedStyle(root).getPropertyValue("--st-background-color").trim() || "white";
  const [red, green, blue] = rgb(background);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128 ? schemes.dark : schemes.light;
}

/** One color as a little-endian RGBA word for ImageData. */
function word([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** The color on the evenly spaced `stops` at `position` from 0 to 1. */
function between(stops, position) {
  const place = Math.min(Math.max(position, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  return stops[low].map((channel, i) => Math.round(channel + (place - low) * (stops[low + 1][i] - channel)));
}

/** The color of a head's frame: from the line's, where nothing was left out, to the second color, where all was. */
function frameColour({ line, second }, share) {
  return `rgb(${between([rgb(line), rgb(second)], share >= 0 ? share : 0).join()})`;
}

/** [red, green, blue] of a weight. */
function colourOf({ stops }, weight) {
  return between(stops, weight);
}

/** Black or white, whichever stands out more from a color: at least 4.58 : 1 (WCAG 2.2, relative luminance and contrast ratio). */
function inkOn(rgb) {
  const [red, green, blue] = rgb.map((channel) => linear(channel / 255));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

/** A channel of sRGB, from 0 to 1, as an amount of light. */
function linear(channel) {
  return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
}

/** Cache of palettes. It is global because each drawing is a module of its own. */
const palettes = (globalThis.headlightPalettes ??= new Map());

/** Palette of a scheme: its named colors, and `shades` for the codes round(255·sqrt(weight)). */
function palette(scheme) {
  const key = JSON.stringify(scheme);
  if (!palettes.has(key)) palettes.set(key, mixed(scheme));
  return palettes.get(key);
}

function mixed(scheme) {
  const stops = scheme.weights.map(rgb);
  const maskedWord = word(rgb(scheme.masked));
  const shades = shadesOf(maskedWord, stops, (code) => (code / 255) ** 2);
  return { ...scheme, stops, shades, maskedWord, cardWord: word(rgb(scheme.card)) };
}

/** Color words of the codes -1 (a masked cell) to 255; `placeOfCode` gives the position of a code on `stops`. */
function shadesOf(maskedWord, stops, placeOfCode) {
  return Uint32Array.from({ length: 257 }, (_, at) => (at ? word(between(stops, placeOfCode(at - 1))) : maskedWord));
}

/** A bar of colors above a drawing: what its numbers are, and those at its ends. */
function colourBar(title, [low, high], stops) {
  const bar = el("i", { style: `background: linear-gradient(to right, ${stops.map((stop) => `rgb(${stop.join()})`).join()})` });
  return [el("span", {}, title), el("span", {}, low), bar, el("span", {}, high)];
}
