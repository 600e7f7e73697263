// Choices beside the sentence: R samples again. The route is asked at once, and the page's script learns of it when it is painted.

const CHOICE_MS = 5000; // within this time the script draws a choice, or never will

class Choices {
  /** `ask()` draws what the box and the choices say, `tell(change)` reports them to the script. */
  constructor(ask, tell) {
    Object.assign(this, { ask, tell, change: {} });
  }

  /** Takes what the page's script draws: the seed, and whether tokens are drawn at random. */
  take({ seed, samples }) {
    Object.assign(this, { seed, samples });
  }

  listen(signal) {
    document.addEventListener("keydown", (event) => this.onKey(event), { signal, capture: true }); // Streamlit has an R of its own
    signal.addEventListener("abort", () => this.drop());
  }

  onKey(event) {
    const plain = !(event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.isComposing);
    if (event.key.toLowerCase() !== "r" || !plain || !this.samples || keyboardTaken()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    this.choose({ seed: String((Number(this.change.seed ?? this.seed) + 1) % Number.MAX_SAFE_INTEGER) });
  }

  /** Draws a choice, then tells the script, unless a newer one came; until the script has drawn it, its older scenes are held back. */
  async choose(change) {
    const all = (this.change = liveScenes.chosen = { ...this.change, ...change });
    clearTimeout(this.ending);
    this.ending = setTimeout(() => this.drop(), CHOICE_MS);
    await this.ask();
    if (this.change === all) this.tell(all);
  }

  /** The page's script has drawn a scene, whose header says what it is of. */
  drawn(live) {
    if (liveScenes.chosen && liveScenes.agrees(live)) this.drop();
  }

  drop() {
    clearTimeout(this.ending);
    this.change = {};
    liveScenes.chosen = null;
    liveScenes.release();
  }
}
