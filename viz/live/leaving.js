// Leaving the page: a click on a link to another page waits until the page's script knows what the sentence box holds. Streamlit
// asks for the other page without the fields of this one, and after a quick click even before it sends what was typed last.

const LINK = "a[data-testid=stSidebarNavLink], a[data-testid=stPageLink-NavLink]";
const KNOWN_MS = 20; // how often it is looked whether the script knows
const LEAVING_MS = 5000; // after this time the page is left anyway

class Leaving {
  /** `holds()` is what the box holds; null: there is none. `tell()` tells the page's script. */
  constructor(holds, tell) {
    Object.assign(this, { holds, tell, known: null, link: null });
  }

  listen(signal) {
    document.addEventListener("click", (event) => this.onClick(event), { signal, capture: true });
  }

  /** True if the page's script knows what the box holds: `known` is the sentence of its last run. */
  get safe() {
    const text = this.holds();
    return text === null || text === this.known;
  }

  onClick(event) {
    const link = event.target.closest?.(LINK);
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
    this.tell();
    while (!this.safe && performance.now() - began < LEAVING_MS) await new Promise((done) => setTimeout(done, KNOWN_MS));
    const { link } = this;
    this.link = null;
    const drawn = link.isConnected ? link : [...document.querySelectorAll(LINK)].find(({ href }) => href === link.href);
    drawn?.click();
  }
}
