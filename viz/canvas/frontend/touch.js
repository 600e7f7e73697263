// Gestures of mouse, pen and touch on a canvas.

/**
 * Calls `hover(x, y)`, `leave()`, `click(x, y)`, `drag(dx, dy)` and `pinch(factor, x, y)`, those that are given, in CSS pixels of the
 * canvas. A touch counts as hovering; lifting the finger does not count as leaving.
 */
function watchTouch(canvas, { hover, leave, click, drag, pinch }) {
  const down = new Map();
  if (pinch) watchTrackpad(canvas, (...pinched) => { if (!down.size) pinch(...pinched); });
  let moved = 0;
  const apart = ([one, other]) => Math.hypot(one.x - other.x, one.y - other.y);
  canvas.addEventListener("pointerdown", (event) => {
    if (!down.size) moved = 0;
    down.set(event.pointerId, pointerIn(event));
    const { x, y } = pointerIn(event);
    if (event.pointerType === "touch") hover?.(x, y);
    if (drag) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const to = pointerIn(event);
    const from = down.get(event.pointerId);
    if (!from) return hover?.(to.x, to.y);
    const before = down.size === 2 ? apart([...down.values()]) : 0;
    down.set(event.pointerId, to);
    moved += Math.hypot(to.x - from.x, to.y - from.y);
    if (before > 0) {
      const [one, other] = [...down.values()];
      pinch?.(apart([one, other]) / before, (one.x + other.x) / 2, (one.y + other.y) / 2);
    } else if (moved > 4) drag?.(to.x - from.x, to.y - from.y);
  });
  const up = (event) => {
    if (event.type === "pointerup" && down.has(event.pointerId) && moved <= 4) click?.(...Object.values(pointerIn(event)));
    down.delete(event.pointerId);
  };
  for (const name of ["pointerup", "pointercancel", "pointerleave", "lostpointercapture"]) canvas.addEventListener(name, up);
  canvas.addEventListener("pointerleave", ({ pointerType }) => { if (pointerType !== "touch") leave?.(); });
}

/** Safari tells of a pinch on a Mac's trackpad by events of its own, other browsers by a wheel with the key Ctrl. */
function watchTrackpad(canvas, pinch) {
  let before = 1; // `scale` counts from the beginning of the pinch
  canvas.addEventListener("gesturestart", (event) => {
    event.preventDefault(); // Safari would enlarge the page
    before = 1;
  });
  canvas.addEventListener("gesturechange", (event) => {
    event.preventDefault();
    const { x, y } = inElement(canvas, event);
    pinch(event.scale / before, x, y);
    before = event.scale;
  });
}
