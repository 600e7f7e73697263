// Big mode enlarges the drawings by CSS: sizes, places and decimals in an enlarged drawing.

/** By how much CSS enlarges an element: in big mode more than 1. */
function zoomOf(node) {
  return node.currentCSSZoom ?? 1;
}

/** Device pixels per CSS pixel of an element. */
function resolution(node) {
  return (window.devicePixelRatio || 1) * zoomOf(node);
}

/** Sizes a canvas to `width` × `height` CSS pixels at the screen's resolution; returns its context, scaled to CSS pixels. */
function sized(canvas, width, height, ratio = resolution(canvas)) {
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  Object.assign(canvas.style, { width: `${wide / ratio}px`, height: `${high / ratio}px` }); // whole device pixels, also at a ratio of 1.5
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

/** Where a pointer event is, in CSS pixels of its element. */
function pointerIn({ offsetX, offsetY, currentTarget }) {
  const zoom = zoomOf(currentTarget);
  return { x: offsetX / zoom, y: offsetY / zoom };
}

/** A point of a canvas, in CSS pixels of the window. */
function inWindow(canvas, x, y) {
  const { left, top } = canvas.getBoundingClientRect();
  const zoom = zoomOf(canvas);
  return { x: left + x * zoom, y: top + y * zoom };
}

/** Converts a rectangle of a canvas to CSS pixels of the drawing. */
function boxIn(root, canvas, { x, y, width, height }) {
  const outer = root.getBoundingClientRect();
  const inner = canvas.getBoundingClientRect();
  const zoom = zoomOf(root);
  return { x: x + (inner.x - outer.x) / zoom, y: y + (inner.y - outer.y) / zoom, width, height };
}

const SCREEN = 270; // height of a map in big mode, where the window has only some 400 CSS pixels of a drawing

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
 * what stands under it, in CSS pixels of the drawing.
 */
function roomBelow(node, below) {
  return Math.max(LOWEST, (cellDialog.room - node.getBoundingClientRect().top) / zoomOf(node) - below);
}

/**
 * Height for a map: the window's without `around` pixels for other things, from `least` to `most` CSS pixels of the drawing; where the
 * picture fills the screen, what is left of it without `below` pixels.
 */
function mapHeight(node, around, least, most = Infinity, below = 44) {
  if (fillsScreen()) return roomBelow(node, below);
  const zoom = zoomOf(node);
  const high = Math.max(zoom > 1 ? SCREEN : least, Math.min(innerHeight / zoom - around, most));
  return Math.min(high, roomAbove() / zoom);
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
  return Number(getComputedStyle(document.documentElement).getPropertyValue("--headlight-zoom")) > 1 ? 2 : 4;
}
