// Big mode enlarges the drawings by CSS: sizes, places and decimals in an enlarged drawing.

/** By how much CSS enlarges an element: in big mode more than 1. */
function zoomOf(node) {
  return node.currentCSSZoom ?? 1;
}

/** Device pixels per CSS pixel of an element. */
function resolution(node) {
  return (window.devicePixelRatio || 1) * zoomOf(node);
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

/** Height from the top of an element to the end of the window without `below` pixels for what stands under it, in CSS pixels of the drawing. */
function roomBelow(node, below) {
  return Math.max(LOWEST, (innerHeight - node.getBoundingClientRect().top) / zoomOf(node) - below);
}

/**
 * Height for a map: the window's without `around` pixels for other things, from `least` to `most` CSS pixels of the drawing; where the
 * picture fills the screen, what is left of it without `below` pixels.
 */
function mapHeight(node, around, least, most = Infinity, below = 44) {
  if (fillsScreen()) return roomBelow(node, below);
  const zoom = zoomOf(node);
  return Math.max(zoom > 1 ? SCREEN : least, Math.min(innerHeight / zoom - around, most));
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

/** Decimals of a weight that is known exactly: two in big mode, else four. */
function decimals() {
  return Number(getComputedStyle(document.documentElement).getPropertyValue("--headlight-zoom")) > 1 ? 2 : 4;
}
