// Playback controls: buttons, scrubber, speed, clock and keys. They count steps, whatever the steps show.

const TRANSPORT_SIGNS = {
  first: "M4 3v10M12.5 3.5L7 8l5.5 4.5z",
  back: "M11 3.5L5.5 8l5.5 4.5z",
  play: "M5 3l8 5-8 5z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  forward: "M5 3.5L10.5 8 5 12.5z",
  last: "M12 3v10M3.5 3.5L9 8l-5.5 4.5z",
};
const SPEEDS = [0.5, 1, 2, 4];
const STEP_MS = 900;

class Transport {
  /** Calls `moved(step)` whenever the step changes, `rested()` when playing ends. */
  constructor({ moved, rested }) {
    Object.assign(this, { moved, rested, step: 0, steps: 0, speed: 1 });
  }

  /** Handles the keys that nothing else on the page uses, until `signal` aborts. */
  listen(signal) {
    document.addEventListener("keydown", (event) => { if (!keyboardTaken()) this.onKey(event); }, { signal });
  }

  /** Builds the bar for `steps` steps. */
  build(steps, texts) {
    Object.assign(this, { steps, texts });
    const sign = (name, act) => iconButton(TRANSPORT_SIGNS[name], texts[name], act, { class: `icon ${name}` });
    const [first, back] = [sign("first", () => this.go(0)), sign("back", () => this.go(this.step - 1))];
    const [forward, last] = [sign("forward", () => this.go(this.step + 1)), sign("last", () => this.go(Infinity))];
    Object.assign(this, { backward: [first, back], onward: [forward, last], playButton: sign("play", () => this.toggle()) });
    const scrubbed = () => this.scrubbed(Number(this.scrub.value));
    this.scrub = el("input", { type: "range", min: 0, max: Math.max(steps - 1, 0), "aria-label": texts.scrub, oninput: scrubbed });
    this.count = el("output");
    const option = (speed) => el("option", { value: speed, selected: speed === this.speed }, fill(texts.times, { speed: fixed(speed, speed < 1 ? 1 : 0) }));
    const speeds = SPEEDS.map(option);
    const speed = el("select", { onchange: ({ target }) => this.setSpeed(Number(target.value)) }, ...speeds);
    const keys = el("div", { class: "keys" }, first, back, this.playButton, forward, last);
    this.step = this.inside(this.step);
    this.told = null;
    return el("div", { class: "transport", hidden: !steps }, keys, this.scrub, this.count, el("label", {}, texts.speed, speed));
  }

  inside(step) {
    return Math.min(Math.max(step, 0), Math.max(this.steps - 1, 0));
  }

  /** Goes to a step, or to the nearest existing one. */
  go(step) {
    const to = this.inside(step);
    if (to === this.step) return;
    this.step = to;
    this.moved(to);
  }

  /** The slider was moved. */
  scrubbed(place) {
    this.go(place);
  }

  /** Where the slider stands. */
  get place() {
    return this.step;
  }

  toggle() {
    if (this.playing) return this.pause();
    if (this.step >= this.steps - 1) this.go(0);
    this.run();
    this.draw();
  }

  run() {
    clearInterval(this.playing);
    playedEntry.begin();
    this.playing = setInterval(() => {
      this.go(this.step + 1);
      if (this.step >= this.steps - 1) this.pause();
    }, STEP_MS / this.speed);
  }

  pause() {
    if (!this.playing) return;
    clearInterval(this.playing);
    this.playing = null;
    playedEntry.end();
    this.draw();
    this.rested();
  }

  setSpeed(speed) {
    this.speed = speed;
    if (this.playing) this.run();
  }

  draw() {
    const { step, steps, texts } = this;
    this.scrub.value = this.place;
    const told = [step, steps, Boolean(this.playing)].join();
    if (told === this.told) return; // in most frames of a motion only the slider moves
    this.told = told;
    const name = this.playing ? "pause" : "play";
    this.playButton.querySelector("path").setAttribute("d", TRANSPORT_SIGNS[name]);
    for (const attribute of ["aria-label", "title"]) this.playButton.setAttribute(attribute, texts[name]);
    for (const button of this.backward) button.disabled = step === 0;
    for (const button of this.onward) button.disabled = step >= steps - 1;
    this.count.textContent = fill(texts.step, { step: step + 1, steps });
  }

  /** Handles a key. Keys inside a select stay its own, and Space on a button presses it. */
  onKey(event) {
    if (!this.steps || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.composedPath()[0];
    if (target.closest?.("select") || (event.key === " " && target.closest?.("button, a, summary"))) return;
    const act = {
      ArrowLeft: () => this.go(this.step - 1),
      ArrowRight: () => this.go(this.step + 1),
      Home: () => this.go(0),
      End: () => this.go(Infinity),
      " ": () => this.toggle(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}
