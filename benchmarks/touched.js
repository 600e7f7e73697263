// Notes what follows a click, or the next movement if asked to: the frame after the first stroke on a canvas, the frame after the last one, the moment when the weight
// under the pointer is read exactly; and the frames that are painted while somebody moves things.
(() => {
  const touched = (window.touched = { first: null, last: null, exact: null, frames: [] });
  let [pressed, stroke, shownOf] = [null, 0, 0];
  const begin = ({ timeStamp }) => {
    pressed = timeStamp;
    Object.assign(touched, { first: null, last: null, exact: null });
  };
  addEventListener("pointerup", begin, { capture: true });
  touched.atNextMove = () => {
    touched.exact = null;
    pressed = null;
    addEventListener("pointermove", begin, { capture: true, once: true });
  };

  for (const name of ["drawImage", "putImageData", "fillRect", "strokeRect", "fillText", "fill", "stroke"]) {
    const original = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...args) {
      stroke = performance.now();
      return original.apply(this, args);
    };
  }

  const find = (selector, root = document) => {
    const inside = [...root.querySelectorAll("*")].map((element) => element.shadowRoot && find(selector, element.shadowRoot));
    return root.querySelector(selector) ?? inside.find(Boolean) ?? null;
  };
  let readout = null;
  touched.read = () => ({ ...(readout = readout?.isConnected ? readout : find(".hl[data-drawing=atlas] .readout"))?.dataset });

  const look = (now) => {
    if (touched.recording) touched.frames.push(now);
    if (pressed !== null && stroke > pressed && stroke > shownOf) {
      shownOf = stroke;
      touched.first ??= now - pressed;
      touched.last = now - pressed;
    }
    if (pressed !== null && touched.exact === null && readout && touched.read().weight !== undefined) touched.exact = now - pressed;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})();
