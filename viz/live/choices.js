// Choices beside the sentence: R samples again, S silences a head of the atlas, the slider of the temperature is moved. The route is
// asked at once. The page's script learns of a seed and of silenced heads when they are painted; the slider tells it itself.

const CHOICE_MS = 5000; // within this time the script draws a choice, or never will
const TEMPERATURE = ".st-key-widget-temperature input[type=range]";

class Choices {
  /** `ask()` draws what the box and the choices say, `tell(change)` reports them to the script. */
  constructor(ask, tell) {
    Object.assign(this, { ask, tell, change: {} });
  }

  /** Takes what the page's script draws: seed, silenced heads as in the URL, and whether tokens are drawn at random. */
  take({ seed, silence, samples }) {
    Object.assign(this, { seed, silence, samples });
  }

  listen(signal) {
    document.addEventListener("keydown", (event) => this.onKey(event), { signal, capture: true }); // Streamlit has an R of its own
    const sliding = new MutationObserver((changes) => changes.forEach(({ target }) => this.onSlider(target)));
    sliding.observe(document.body, { subtree: true, attributeFilter: ["aria-valuetext"] });
    liveScenes.onSilence = (head) => this.toggle(head);
    signal.addEventListener("abort", () => {
      sliding.disconnect();
      liveScenes.onSilence = () => {};
      this.drop();
    });
  }

  onKey(event) {
    const plain = !(event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.isComposing);
    if (event.key.toLowerCase() !== "r" || !plain || !this.samples || keyboardTaken()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    this.choose({ seed: String((Number(this.change.seed ?? this.seed) + 1) % Number.MAX_SAFE_INTEGER) }, true);
  }

  onSlider(slider) {
    const { value } = slider;
    if (!slider.matches(TEMPERATURE) || !slider.matches(":focus, :active") || value === this.change.temperature) return;
    this.choose({ temperature: value }, false);
  }

  toggle({ site, head }) {
    const heads = new Set((this.change.silence ?? this.silence).split(" ").filter(Boolean));
    const one = `${site}:${head}`;
    if (!heads.delete(one)) heads.add(one);
    this.choose({ silence: [...heads].join(" ") }, true);
  }

  /** Draws a choice, then tells the script, unless a newer one came; until the script has drawn it, its older scenes are held back. */
  async choose(change, tells) {
    const all = (this.change = liveScenes.chosen = { ...this.change, ...change });
    clearTimeout(this.ending);
    this.ending = setTimeout(() => this.drop(), CHOICE_MS);
    await this.ask();
    if (tells && this.change === all) this.tell(all);
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
