// Images as canvases, and what is painted over their patches.

const LIGHTNESS = [0.299, 0.587, 0.114]; // shares of red, green and blue in the lightness of a pixel
const DENSEST = 0.88; // opacity of the largest weight: the image stays visible below it
const MAGNIFIED = 72; // side of the patch in the tooltip

/** Shares from 0 to 1 as an image with a pixel for each: one color, the more opaque the larger. It stands out from every gray. */
function tinted(shares, columns, color) {
  const rows = shares.length / columns;
  const image = new ImageData(columns, rows);
  shares.forEach((share, at) => image.data.set([...rgb(color), Math.round(255 * DENSEST * share)], 4 * at));
  return canvasWith(image);
}

/** A canvas that shows an image. */
function canvasWith(image) {
  const drawn = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
  drawn.getContext("2d").putImageData(image, 0, 0);
  return drawn;
}

/** Patch `at` of an image in its own colors, magnified. */
function magnified(image, { rows, columns }, at) {
  const [width, height] = [image.width / columns, image.height / rows];
  const drawn = Object.assign(document.createElement("canvas"), { width, height, className: "patch" });
  drawn.getContext("2d").drawImage(image, -(at % columns) * width, -Math.floor(at / columns) * height);
  Object.assign(drawn.style, { width: pixels(MAGNIFIED), height: pixels(MAGNIFIED) });
  return drawn;
}

/** A canvas with a pixel for each of an image's; `convert` makes its red, green and blue of those of the image. */
function canvasOf({ array, shape: [height, width] }, convert) {
  const image = new ImageData(width, height);
  for (let at = 0, from = 0; at < image.data.length; at += 4, from += 3) {
    convert(array, from, image.data, at);
    image.data[at + 3] = 255;
  }
  return canvasWith(image);
}

/** Copies a pixel. */
function plain(array, from, data, at) {
  for (let color = 0; color < 3; color++) data[at + color] = array[from + color];
}

/** Writes a pixel in gray, neither quite black nor quite white, so that the color of weights is seen on it. */
function grayed(array, from, data, at) {
  const light = LIGHTNESS.reduce((sum, share, color) => sum + share * array[from + color], 0);
  data.fill(28 + 0.78 * light, at, at + 3);
}

/** A frame around a patch, readable on any image. */
function framed(pen, colours, { x, y, width, height }, colour, line) {
  for (const [strokeStyle, lineWidth] of [[colours.card, line + 2], [colour, line]]) {
    Object.assign(pen, { strokeStyle, lineWidth });
    pen.strokeRect(x + line / 2, y + line / 2, width - line, height - line);
  }
}

/** Covers a hidden patch: what is below it was not read. */
function covered(pen, colours, { x, y, width, height }) {
  pen.fillStyle = colours.masked;
  pen.fillRect(x, y, width, height);
  Object.assign(pen, { strokeStyle: colours.faint, lineWidth: 1 });
  pen.beginPath();
  pen.moveTo(x + 1, y + height - 1);
  pen.lineTo(x + width - 1, y + 1);
  pen.stroke();
}

/** Lets a drag over an overlay hide patches. Its `brushed` are those of a drag under way, `shows` whether it shows hidden ones again. */
function brushes(overlay) {
  const { canvas } = overlay;
  let last;
  // Adds the patches between the last point of the drag and this one.
  const brush = (at) => {
    if (!overlay.brushed) return;
    const steps = Math.ceil((2 * Math.hypot(at.x - last.x, at.y - last.y)) / overlay.side) || 1;
    for (let step = 1; step <= steps; step++) {
      const token = overlay.patchAt(last.x + ((at.x - last.x) * step) / steps, last.y + ((at.y - last.y) * step) / steps);
      if (token !== null) overlay.brushed.add(token);
    }
    last = at;
    overlay.redraw();
  };
  canvas.addEventListener("pointerdown", (event) => {
    const at = pointerIn(event);
    const token = overlay.patchAt(at.x, at.y);
    if (!overlay.header.hides || event.button || token === null) return;
    overlay.leave(); // the tooltip would lie over what is brushed
    overlay.shows = overlay.header.hidden.includes(token); // a drag that begins on a hidden patch shows patches again
    overlay.brushed = new Set();
    last = at;
    canvas.setPointerCapture(event.pointerId);
    brush(at);
  });
  canvas.addEventListener("pointermove", (event) => brush(pointerIn(event)));
  canvas.addEventListener("pointerup", () => {
    if (!overlay.brushed) return;
    const positions = [...overlay.brushed].filter((position) => overlay.header.hidden.includes(position) === overlay.shows);
    overlay.header.hidden = [...overlay.hidden]; // until the new run is there
    overlay.brushed = null;
    overlay.hide(positions);
  });
  canvas.addEventListener("pointercancel", () => {
    overlay.brushed = null;
    overlay.redraw();
  });
}
