// Choices beside the sentence: R samples again, S silences a head of the atlas or lets it speak again, the slider of the temperature
// is moved. The route is asked at once. The page's script learns of R and S when they are painted; the slider tells it itself.

const CHOICE_MS = globalThis.headlightPatience ?? 5000; // within this time the script draws a choice, or never will
const TEMPERATURE = ".st-key-widget-temperature input[type=range]";

class Choices {
  /** `ask()` draws what the box and the choices say, and says whether it can be drawn; `tell(change)` reports them to the script. */
  constructor(ask, tell) {
    Object.assign(this, { ask, tell, change: {} });
  }

  /** Takes what the page's script draws: the seed, whether tokens are drawn at random, silenced heads, whether there are other edits. */
  take({ seed, samples, silence, silences, pause }) {
    Object.assign(this, { seed, samples, silence, silences, pause });
  }

  listen(signal) {
    document.addEventListener("keydown", (event) => this.onKey(event), { signal, capture: true }); // Streamlit has an R of its own
    document.addEventListener("pointermove", (event) => this.onPointer(event), { signal, capture: true, passive: true });
    const sliding = new MutationObserver((changes) => changes.forEach(({ target }) => this.onSlider(target)));
    sliding.observe(document.body, { subtree: true, attributeFilter: ["aria-valuetext"] });
    signal.addEventListener("abort", () => {
      sliding.disconnect();
      clearTimeout(this.slid);
      this.drop();
    });
  }

  onKey(event) {
    const plain = !(event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.isComposing);
    const key = event.key.toLowerCase();
    if (key !== "s") this.last = null;
    if (!plain || keyboardTaken()) return;
    if (key === "r" && this.samples) {
      event.preventDefault();
      event.stopImmediatePropagation();
      if (!event.repeat) this.choose({ seed: String((Number(this.change.seed ?? this.seed) + 1) % Number.MAX_SAFE_INTEGER) });
    } else if (key === "s" && this.silences && !event.repeat) this.toggle();
  }

  /** The pointer has moved, or the page below it, which browsers report in the same way. */
  onPointer({ clientX, clientY }) {
    const place = `${clientX},${clientY}`;
    if (place !== this.pointer) this.last = null;
    this.pointer = place;
  }

  /** Silences the head under the pointer, else the selected one, or lets it speak again. A second S means the same head even if the
   * page, which says what is silenced, has moved below the pointer. */
  toggle() {
    const atlas = [...liveScenes.drawings].find(({ name, root, header }) => name === "atlas" && root.isConnected && header);
    if (!atlas) return;
    const { site, head } = (this.last ??= atlas.hovered?.tile ?? atlas.header.selection);
    const heads = new Set((this.change.silence ?? this.silence).split(" ").filter(Boolean));
    const one = `${site}:${head}`;
    if (!heads.delete(one)) heads.add(one);
    this.choose({ silence: [...heads].join(" ") });
  }

  onSlider(slider) {
    if (!slider.matches(TEMPERATURE) || !slider.matches(":focus, :active")) return;
    clearTimeout(this.slid);
    const { value } = slider;
    this.slid = setTimeout(() => this.choose({ temperature: value }, false), this.pause);
  }

  /** Draws a choice, then tells the script, unless a newer one came; until the script has drawn it, its older scenes are held back.
   * A choice that cannot be drawn is dropped. */
  async choose(change, tells = true) {
    const all = (this.change = liveScenes.chosen = { ...this.change, ...change });
    clearTimeout(this.ending);
    this.ending = setTimeout(() => this.drop(), CHOICE_MS);
    const drawn = await this.ask();
    if (this.change !== all) return;
    if (!drawn) this.drop();
    else if (tells) this.tell(all);
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
