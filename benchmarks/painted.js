// Notes the last time that the page changed: an element, an attribute or a stroke on a canvas. A page that stays still is complete.
(() => {
  let changed = 0;
  const note = () => (changed = performance.now());
  const shows = ({ type, attributeName }) => type !== "attributes" || !attributeName.startsWith("data-"); // those are notes for scripts
  const watch = new MutationObserver((changes) => { if (changes.some(shows)) note(); });
  watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (options) {
    const root = attach.call(this, options);
    watch.observe(root, { subtree: true, childList: true, attributes: true });
    return root;
  };
  for (const name of ["drawImage", "putImageData", "fillRect", "fillText", "fill", "stroke"]) {
    const original = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...args) {
      note();
      return original.apply(this, args);
    };
  }

  let said = 0; // the last message of a server that keeps in touch
  window.WebSocket = class extends WebSocket {
    constructor(...args) {
      super(...args);
      this.addEventListener("message", () => (said = performance.now()));
    }
  };

  const QUIET = 1000; // ms
  window.painted = null; // ms from the start of the navigation to the frame after the last change; null: it may change again
  window.arrived = null; // … to the last byte before it
  let [frame, frameOf, before] = [0, -1, 0];
  const look = (now) => {
    if (changed !== frameOf) {
      [frame, frameOf, before] = [now, changed, said];
      window.painted = null;
    } else if (window.painted === null && document.readyState === "complete" && changed && performance.now() - changed > QUIET) {
      const fetched = performance.getEntriesByType("resource").map(({ responseEnd }) => responseEnd).filter((end) => end <= changed);
      [window.painted, window.arrived] = [Math.max(frame, changed), Math.max(before, 0, ...fetched)];
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})();
