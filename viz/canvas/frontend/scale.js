// Drawings count in pixels of their own. Styles multiply each by --headlight-scale (viz/canvas/assets.py), scripts by `pixels` and
// `scaleOf`: sizes, places and decimals in an enlarged drawing. The window and its events count in pixels of the window.

const LETTERS = 14; // pixels of the drawing that its letters have (common.css)

/** By how many times an element of a drawing is enlarged: in big mode more than 1. The size of letters says it in every browser. */
function scaleOf(node) {
  const root = node.closest(".hl");
  return root?.isConnected ? parseFloat(getComputedStyle(root).fontSize) / LETTERS : 1;
}

/** A length in pixels of the drawing, for a style. */
function pixels(length) {
  return `calc(${length}px * var(--headlight-scale, 1))`;
}

/** Width inside an element, in pixels of the drawing. */
function widthIn(node) {
  return node.clientWidth / scaleOf(node);
}

/** Height of an element with its border, in pixels of the drawing. */
function heightOf(node) {
  return node.offsetHeight / scaleOf(node);
}

const MOST_PIXELS = 16_700_000; // of a canvas: Safari leaves one of more than 2 ** 24 blank on an iPhone or iPad

/** Device pixels per pixel of the drawing, for a canvas of `width` × `height`; of a very large one fewer than the screen has. */
function resolution(node, width = 0, height = 0) {
  return Math.min((window.devicePixelRatio || 1) * scaleOf(node), Math.sqrt(MOST_PIXELS / Math.max(1, width * height)));
}

/** Sizes a canvas to `width` × `height` pixels of the drawing at the screen's resolution; returns its context, scaled to them. */
function sized(canvas, width, height, ratio = resolution(canvas, width, height)) {
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  Object.assign(canvas.style, { width: pixels(wide / ratio), height: pixels(high / ratio) }); // whole device pixels, also at a ratio of 1.5
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

/** Where a pointer event is in its element, in pixels of the drawing. */
function pointerIn({ offsetX, offsetY, currentTarget }) {
  const scale = scaleOf(currentTarget);
  return { x: offsetX / scale, y: offsetY / scale };
}

/** Where a point of the window is in an element, in pixels of the drawing. */
function inElement(node, { clientX, clientY }) {
  const { left, top } = node.getBoundingClientRect();
  const scale = scaleOf(node);
  return { x: (clientX - left) / scale, y: (clientY - top) / scale };
}

/** A point of a canvas, in pixels of the window. */
function inWindow(canvas, x, y) {
  const { left, top } = canvas.getBoundingClientRect();
  const scale = scaleOf(canvas);
  return { x: left + x * scale, y: top + y * scale };
}

/** A rectangle of a canvas as one of the whole drawing. */
function boxIn(root, canvas, { x, y, width, height }) {
  const outer = root.getBoundingClientRect();
  const inner = canvas.getBoundingClientRect();
  const scale = scaleOf(root);
  return { x: x + (inner.x - outer.x) / scale, y: y + (inner.y - outer.y) / scale, width, height };
}

const SCREEN = 270; // height of a map in big mode, where the window has only some 400 pixels of a drawing

/** True where a page is one screen that its picture fills, in big mode. */
function fillsScreen() {
  return getComputedStyle(document.documentElement).getPropertyValue("--headlight-fill").trim() === "1";
}

const tops = new WeakMap();

/** Notes where a drawing begins in the window, and whether it fills the screen. */
function notePlace(root) {
  tops.set(root, root.getBoundingClientRect().top);
  root.classList.toggle("fills", fillsScreen());
}

/** True if what stands above a drawing that fills the screen has become higher or lower. */
function hasMoved(root) {
  return fillsScreen() && Math.abs(root.getBoundingClientRect().top - tops.get(root)) > 1;
}

const LOWEST = 80; // a picture keeps some height, however little room there is

/**
 * Height from the top of an element to the end of the window, or to the dialog of a cell that stands there, without `below` pixels for
 * what stands under it, in pixels of the drawing.
 */
function roomBelow(node, below) {
  return Math.max(LOWEST, (cellDialog.room - node.getBoundingClientRect().top) / scaleOf(node) - below);
}

/**
 * Height for a map: the window's without `around` pixels for other things, from `least` to `most` pixels of the drawing; where the
 * picture fills the screen, what is left of it without `below` pixels.
 */
function mapHeight(node, around, least, most = Infinity, below = 44) {
  if (fillsScreen()) return roomBelow(node, below);
  const scale = scaleOf(node);
  const high = Math.max(scale > 1 ? SCREEN : least, Math.min(innerHeight / scale - around, most));
  return Math.min(high, roomAbove() / scale);
}

/** The height that a map has above the dialog of a cell where that stands below; else as much as it likes. */
function roomAbove() {
  return cellDialog.room < innerHeight ? cellDialog.room - BELOW_THE_MENU - AROUND_A_MAP : Infinity;
}

let decimalSign = "."; // all drawings of a page speak the same language

/** Takes the sign between whole part and decimals from the header of a scene. */
function speak({ decimal }) {
  decimalSign = decimal ?? decimalSign;
}

/** A number with so many decimals, in the language of the page. */
function fixed(value, digits) {
  return value.toFixed(digits).replace(".", decimalSign);
}

/** Decimals of a number that is known exactly: enough for two significant digits, at most seven; in big mode always two. */
function precise(value) {
  const least = decimals();
  if (least < 4 || !value || !Number.isFinite(value)) return least;
  return Math.min(7, Math.max(least, 1 - Math.floor(Math.log10(Math.abs(value)))));
}

/** A number as text with `decimals` decimals; NaN and infinities as their symbols. */
function numberText(value, decimals) {
  if (Number.isNaN(value)) return "NaN";
  return Number.isFinite(value) ? fixed(value, decimals).replace("-", "−") : `${value < 0 ? "−" : ""}∞`;
}

/** Decimals of a weight that is known exactly: two in big mode, else four. */
function decimals() {
  return Number(getComputedStyle(document.documentElement).getPropertyValue("--headlight-scale")) > 1 ? 2 : 4;
}
