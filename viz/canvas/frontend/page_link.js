// Links to other pages. Between a click on one and the server's answer, Streamlit sends every report for the page that is left; the
// server would then draw a part of that page into the new one, which Streamlit cannot show. So what waits to be reported goes out
// before the click does, and nothing after it. After the browser's keys "back" and "forward" nothing goes out, either.

const PAGE_LINK = "a[data-testid=stSidebarNavLink], a[data-testid=stPageLink-NavLink]";
const SENT_MS = 100; // after this time Streamlit has sent a report: it collects those of a moment
const LEFT_MS = globalThis.headlightPatience ?? 5000; // after this time without another page, reports go out again

class PageLinks {
  constructor() {
    this.left = -Infinity; // when another page was asked for
    this.from = null; // the path in the address bar then; after a click it changes with the server's answer
    this.waiting = new Set(); // functions that report what waits to be reported; each says whether there was something
    document.addEventListener("click", (event) => this.onClick(event), { capture: true });
    window.addEventListener("popstate", () => this.onBack(), { capture: true });
  }

  /** True if another page was asked for after the time `since`, at which something was drawn, and has not come. */
  leaves(since) {
    return since < this.left && this.from === location.pathname && performance.now() - this.left < LEFT_MS;
  }

  /** `report` is called before a page is left, until `signal` aborts. */
  before(report, signal) {
    this.waiting.add(report);
    signal.addEventListener("abort", () => this.waiting.delete(report));
  }

  onClick(event) {
    const link = event.target.closest?.(PAGE_LINK);
    const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey; // another tab or window
    if (!link || elsewhere || new URL(link.href).pathname === location.pathname) return;
    if ([...this.waiting].filter((report) => report()).length) {
      event.preventDefault();
      event.stopImmediatePropagation();
      const clicked = performance.now();
      setTimeout(() => { if (this.left < clicked) this.follow(link); }, SENT_MS);
      return;
    }
    this.leave();
  }

  /** The browser's keys lead to another page, or only to other parameters of the one that the sidebar says is shown. */
  onBack() {
    const shown = document.querySelector(`:is(${PAGE_LINK})[aria-current]`);
    if (shown && new URL(shown.href).pathname !== location.pathname) this.leave();
  }

  /** From now on, drawings of this page report nothing. */
  leave() {
    Object.assign(this, { left: performance.now(), from: location.pathname });
  }

  /** Goes where a click led. The page may have been drawn again meanwhile. */
  follow(link) {
    const drawn = link.isConnected ? link : [...document.querySelectorAll(PAGE_LINK)].find(({ href }) => href === link.href);
    drawn?.click();
  }

  /** A function that calls `report`, of what was drawn at the time `since`, unless its page is being left. */
  here(report, since) {
    return (...told) => {
      if (!this.leaves(since)) report(...told);
    };
  }
}

const ANSWERED_MS = globalThis.headlightPatience ?? 3000; // within this time the last step of what played is in the address bar

/** The browser's history of what plays: the address bar follows each step, but all steps of a play are one entry. */
class PlayedEntry {
  constructor() {
    this.until = -Infinity;
    const push = history.pushState.bind(history);
    history.pushState = (state, unused, url) => {
      const plays = performance.now() < this.until && new URL(url ?? "", location.href).pathname === location.pathname;
      if (plays && this.entered) return history.replaceState(state, unused, url);
      this.entered = plays;
      return push(state, unused, url);
    };
  }

  begin() {
    if (this.until === Infinity) return;
    Object.assign(this, { until: Infinity, entered: false });
  }

  end() {
    this.until = performance.now() + ANSWERED_MS;
  }
}

const playedEntry = (globalThis.headlightPlayedEntry ??= new PlayedEntry());

const pageLinks = (globalThis.headlightPageLinks ??= new PageLinks());
