// What is typed and the page's script does not know yet is not lost when the page is left or the server has forgotten the session.
// A click on a link to another page waits until the script knows what the sentence box holds: Streamlit asks for the other page
// without the fields of this one, and after a quick click even before it sends what was typed last. A server that was restarted
// draws the sentence of the URL: the box then gets back what was typed since.

const REST = "[data-testid=stApp][data-test-connection-state=CONNECTED][data-test-script-state=notRunning]";
const KNOWN_MS = 20; // how often it is checked whether the script knows
const LEAVING_MS = globalThis.headlightPatience ?? 5000; // after this time the page is left anyway

/** Puts a text into the box as if it were typed. */
function put(box, text) {
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(box, text);
  box.dispatchEvent(new InputEvent("input", { bubbles: true }));
}

class Leaving {
  /** `tell(box)` tells the page's script what the box holds; `rests()` waits until the script has ended. */
  constructor(tell, rests) {
    Object.assign(this, { tell, rests, known: null, link: null });
  }

  /** A person has typed a text, on a page whose session has the address `path`. */
  note(text, path) {
    liveScenes.unsaid = { text, path };
    this.expire();
  }

  /**
   * Forgets what was typed some seconds ago: the script knows it, or something else was chosen. Not while there is no connection, and
   * not before the script has run since then: a server that was just started takes long for its first run. `rested`: whether there
   * was rest at the last look.
   */
  expire(rested = false) {
    clearTimeout(liveScenes.expiring);
    liveScenes.expiring = setTimeout(() => {
      const rests = document.querySelector(REST) !== null;
      if (rests && rested) liveScenes.unsaid = null;
      else this.expire(rests);
    }, LEAVING_MS / 2);
  }

  /** The page's script draws a text, in the session with the address `path`. */
  take({ text, path }) {
    this.known = text;
    const { unsaid } = liveScenes;
    if (!unsaid || (unsaid.text !== text && unsaid.path === path)) return;
    liveScenes.unsaid = null;
    if (unsaid.text !== text) this.rests().then(() => put(document.querySelector(BOX), unsaid.text));
  }

  listen(signal) {
    document.addEventListener("click", (event) => this.onClick(event), { signal, capture: true });
  }

  /** True if the page's script knows what the box holds: `known` is the sentence of its last run. */
  get safe() {
    const box = document.querySelector(BOX);
    return !box || box.value === this.known;
  }

  onClick(event) {
    const link = event.target.closest?.(PAGE_LINK);
    if (!link || !event.isTrusted || event.ctrlKey || event.metaKey || event.shiftKey || this.safe) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const waits = this.link !== null;
    this.link = link;
    if (!waits) this.leave();
  }

  /** Goes where the last click led, once the script knows the sentence. */
  async leave() {
    const began = performance.now();
    this.tell(document.querySelector(BOX));
    while (!this.safe && performance.now() - began < LEAVING_MS) await new Promise((done) => setTimeout(done, KNOWN_MS));
    const { link } = this;
    this.link = null;
    pageLinks.follow(link);
  }
}
