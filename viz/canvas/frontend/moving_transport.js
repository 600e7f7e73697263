// A transport whose steps are motion: `t`, from 0 to 1, is how far the current step has come. It asks for a picture in each frame.

const GLIDE_MS = 450; // a step that was chosen by hand
const LONGER = { scores: 2.4, weights: 1.5, context: 2, output: 1.6, embedding: 1.4 }; // stages in which much happens, in steps
const LONGEST_FRAME_MS = 100; // after a longer pause of the browser, the motion goes on from where it was

const still = matchMedia("(prefers-reduced-motion: reduce)"); // then there are steps and no motion

class MovingTransport extends Transport {
  /** `drawn()` is called in each frame while something moves; `nameOf(step)` is the name of its stage. */
  constructor({ drawn, nameOf, ...calls }) {
    super(calls);
    Object.assign(this, { drawn, nameOf, t: 1 });
  }

  build(steps, texts) {
    const bar = super.build(steps, texts);
    if (!still.matches) this.scrub.step = 0.02;
    return bar;
  }

  get place() {
    return this.step - 1 + this.t;
  }

  scrubbed(place) {
    const step = this.inside(Math.ceil(place));
    this.hold();
    Object.assign(this, { t: still.matches ? 1 : 1 - (step - Math.max(place, 0)) });
    if (step === this.step) return this.drawn();
    this.step = step;
    this.moved(step);
  }

  go(step) {
    const before = this.step;
    super.go(step);
    if (this.step === before) return;
    this.t = still.matches ? 1 : 0;
    if (still.matches) this.drawn();
    else this.glide();
  }

  run() {
    if (still.matches) return super.run();
    playedEntry.begin();
    this.playing = true;
    this.glide();
  }

  pause() {
    if (this.playing && !still.matches) this.hold();
    super.pause();
  }

  /** Stops the motion where it is. */
  hold() {
    cancelAnimationFrame(this.moving);
    this.moving = null;
  }

  /** Moves on from frame to frame: to the end of this step, or of all steps while it plays. */
  glide() {
    this.hold();
    let before = performance.now();
    const next = (now) => {
      this.moving = requestAnimationFrame(next);
      const took = this.playing ? (STEP_MS * (LONGER[this.nameOf(this.step)] ?? 1)) / this.speed : GLIDE_MS;
      this.t += Math.min(Math.max(now - before, 0), LONGEST_FRAME_MS) / took;
      before = now;
      if (this.t >= 1) this.arrive();
      this.drawn();
    };
    this.moving = requestAnimationFrame(next);
  }

  /** The end of a step: on to the next one while it plays. */
  arrive() {
    const last = this.step >= this.steps - 1;
    if (this.playing && !last) {
      this.t = 0;
      this.step += 1;
      return this.moved(this.step);
    }
    this.t = 1;
    if (this.playing) this.pause();
    else this.hold();
  }
}
