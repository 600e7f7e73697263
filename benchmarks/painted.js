// Notes the last time that the page changed: an element, an attribute or a stroke on a canvas. A page that stays still is complete.
(() => {
  let changed = 0;
  const note = () => (changed = performance.now());
  const watch = new MutationObserver(note);
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

  const QUIET = 1000; // ms
  window.painted = null; // ms from the start of the navigation to the frame after the last change
  let frame = 0;
  let frameOf = -1;
  const look = (now) => {
    if (changed !== frameOf) [frame, frameOf] = [now, changed];
    if (document.readyState === "complete" && changed && performance.now() - changed > QUIET) window.painted = Math.max(frame, changed);
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})();
