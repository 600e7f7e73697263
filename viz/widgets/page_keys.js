// Keys of the page. A row of equal controls is one stop of the Tab key, and arrow keys move within it (WAI-ARIA APG, toolbar and grid). Tab
// leaves the row: for that moment its other controls are taken out of the order, so what the page draws anew, or removes, needs no bookkeeping.
// The focus comes back from a dialog, also where Streamlit loses it: an entry of a list has opened the dialog, and is gone.

const ROWS = Object.entries({
  "[data-testid=stSidebarNavItems]": "a",
  "[data-testid=stHorizontalBlock]": "a, button",
  "[data-testid=stElementToolbar]": "button",
  ".st-key-model-list": "button",
  ".modebar": "button, a",
  ".candidates": "button",
  ".tiles": "button",
  ".cards": "canvas", // arrow keys move between its heads (card.js)
});
const ELSE = "input, textarea, select, summary"; // a row with one of these is no row of equal controls
const BY = { ArrowUp: -1, ArrowLeft: -1, ArrowRight: 1, ArrowDown: 1, Home: -Infinity, End: Infinity };
const STEPS = ["ArrowLeft", "ArrowRight", "Home", "End"]; // keys of a player, whatever has the focus
const UPRIGHT = "[data-testid=stSidebarNavItems] *, .st-key-model-list *, .player *"; // rows that leave these keys to the player

/** The controls of the row that `path`, from an element outwards, leads through; undefined: it leads through none. */
function rowOn(path) {
  for (const node of path) {
    const found = node.matches && ROWS.find(([row]) => node.matches(row));
    if (!found || node.querySelector(ELSE)) continue;
    const controls = [...node.querySelectorAll(found[1])].filter((each) => !each.disabled && each.checkVisibility());
    if (controls.includes(path[0])) return controls;
  }
}

if (!globalThis.headlightPageKeys) {
  globalThis.headlightPageKeys = true;
  document.addEventListener("keydown", (event) => {
    const path = event.composedPath();
    const [control] = path;
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key === "Tab" || event.key in BY)) return;
    if (event.key === "Tab" && control.matches?.("[data-testid=data-grid-canvas]")) event.stopPropagation(); // the table would go cell by cell
    const row = rowOn(path);
    if (!row) return;
    if (event.key === "Tab") {
      const others = row.filter((each) => each !== control && each.tabIndex >= 0);
      const before = others.map((each) => each.getAttribute("tabindex"));
      others.forEach((each) => { each.tabIndex = -1; });
      setTimeout(() => others.forEach((each, at) => (before[at] === null ? each.removeAttribute("tabindex") : each.setAttribute("tabindex", before[at]))));
      return;
    }
    if (control.matches("canvas") || (control.matches(UPRIGHT) && STEPS.includes(event.key))) return;
    event.preventDefault();
    event.stopPropagation();
    row[Math.min(Math.max(row.indexOf(control) + BY[event.key], 0), row.length - 1)].focus();
  }, { capture: true });

  // Escape closes a dialog also where nothing has the focus: a button that makes a file is disabled meanwhile, and loses it.
  document.addEventListener("keydown", (event) => {
    const dialog = [...document.querySelectorAll("[data-testid=stDialog] [role=dialog]")].at(-1);
    if (event.key !== "Escape" || !dialog || document.activeElement !== document.body) return;
    dialog.focus();
    dialog.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true }));
  }, { capture: true });

  let last = null; // what had the focus outside of dialogs and lists
  document.addEventListener("focusin", (event) => {
    if (!event.target.closest("[data-testid=stDialog], [role=listbox]")) [last] = event.composedPath();
  }, { capture: true });

  const closed = ({ removedNodes }) => [...removedNodes].some((node) => node.dataset?.testid === "stDialog");
  new MutationObserver((mutations) => {
    if (!mutations.some(closed)) return;
    setTimeout(() => { if (document.activeElement === document.body) last?.focus(); });
  }).observe(document.body, { childList: true });
}
