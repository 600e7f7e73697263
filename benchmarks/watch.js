// Notes when Enter was pressed, when the last message before the picture came, and when the last stroke of it was painted.
(() => {
  const messages = [];
  window.WebSocket = class extends WebSocket {
    constructor(...args) {
      super(...args);
      this.addEventListener("message", () => messages.push(performance.now()));
    }
  };

  const read = ReadableStreamDefaultReader.prototype.read; // an answer of the live route
  ReadableStreamDefaultReader.prototype.read = async function (...args) {
    const found = await read.apply(this, args);
    if (!found.done) messages.push(performance.now());
    return found;
  };

  let drawn = 0;
  for (const name of ["drawImage", "putImageData", "fillRect", "fillText", "fill", "stroke"]) {
    const original = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...args) {
      drawn = performance.now();
      return original.apply(this, args);
    };
  }

  // The document and its shadow roots. To look for them in each frame takes milliseconds of it, so they are looked for again only if
  // nothing is found, and not often.
  const rootsIn = (root) => [root, ...[...root.querySelectorAll("*")].flatMap(({ shadowRoot }) => (shadowRoot ? rootsIn(shadowRoot) : []))];
  const OFTEN = 200; // ms
  let roots = [];
  let looked = -OFTEN;
  const findAll = (selector) => {
    const inside = () => roots.flatMap((root) => [...root.querySelectorAll(selector)].filter((element) => element.isConnected));
    const found = inside();
    if (found.length || performance.now() - looked < OFTEN) return found;
    roots = rootsIn(document);
    looked = performance.now();
    return inside();
  };

  const QUIET = 400; // ms without a stroke: the picture is complete
  window.headlightWatch = {
    spans: null,
    text: (selector) => findAll(selector)[0]?.textContent ?? "",
    count: (selector) => findAll(selector).length,
    firstAt: null,
    gaps: [],
    /** Notes when `changed()` first holds in a painted frame after a key press, and from then on the time between two frames. */
    first(changed) {
      Object.assign(this, { firstAt: null, gaps: [] });
      let pressed = null;
      let before = null;
      addEventListener("keydown", () => (pressed = performance.now()), { once: true, capture: true });
      const watch = (this.watch = {});
      const look = (now) => {
        if (this.watch !== watch) return;
        if (this.firstAt !== null) this.gaps.push(now - before);
        else if (pressed !== null && changed()) this.firstAt = now - pressed;
        before = now;
        requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    },
    /** The longest time between two frames since `first` held; ends the watch. */
    longest() {
      this.watch = null;
      return Math.max(...this.gaps);
    },
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
