// Notes when Enter was pressed, when the last message before the picture came, and when the last stroke of it was painted.
(() => {
  const messages = [];
  window.WebSocket = class extends WebSocket {
    constructor(...args) {
      super(...args);
      this.addEventListener("message", () => messages.push(performance.now()));
    }
  };

  let drawn = 0;
  for (const name of ["drawImage", "putImageData", "fillRect", "fillText", "fill", "stroke"]) {
    const original = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...args) {
      drawn = performance.now();
      return original.apply(this, args);
    };
  }

  const find = (selector, root = document) => {
    const inside = [...root.querySelectorAll("*")].map((element) => element.shadowRoot && find(selector, element.shadowRoot));
    return root.querySelector(selector) ?? inside.find(Boolean) ?? null;
  };

  const QUIET = 400; // ms without a stroke: the picture is complete
  window.headlightWatch = {
    spans: null,
    text: (selector) => find(selector)?.textContent ?? "",
    start(changed) {
      this.spans = null;
      let pressed = null;
      let painted = null;
      addEventListener("keydown", () => (pressed = performance.now()), { once: true, capture: true });
      const look = (now) => {
        if (pressed !== null && painted === null && changed()) painted = now;
        if (painted !== null && drawn > painted) painted = now;
        if (painted === null || now - painted < QUIET) return requestAnimationFrame(look);
        const answered = messages.filter((time) => time > pressed && time <= painted).at(-1);
        this.spans = { painted: painted - pressed, answered: answered - pressed };
      };
      requestAnimationFrame(look);
    },
  };
})();
