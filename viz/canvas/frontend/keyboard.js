// Whether the keyboard belongs to a field.

const TAKES_KEYS = [
  "input", "textarea", "select", "dialog", "[contenteditable='']", "[contenteditable=true]",
  ...["slider", "listbox", "combobox", "tab", "radio", "menuitem", "application", "grid"].map((role) => `[role=${role}]`),
].join();

/** True if an element is seen. A browser from before March 2024 may be unable to say so; it knows what takes room. */
const isSeen = (node) => node.checkVisibility?.() ?? node.getClientRects().length > 0;

/** True if the focused element uses the keyboard itself, as text fields and sliders do. */
function keyboardTaken() {
  let focus = document.activeElement;
  while (focus?.shadowRoot?.activeElement) focus = focus.shadowRoot.activeElement;
  const taking = focus?.closest(TAKES_KEYS);
  return Boolean(taking) && isSeen(taking); // a dialog that was just closed may still have the focus
}

/** Lets Streamlit's link to the content, the first thing that the keyboard reaches, lead to the first map, where a page has one. */
function skipsToTheMap() {
  if (globalThis.headlightSkips) return;
  globalThis.headlightSkips = true;
  document.addEventListener("click", ({ target }) => {
    if (!target.closest?.("[data-testid=stSkipToContent]")) return;
    const roots = [...document.querySelectorAll(".stMainBlockContainer *")].flatMap(({ shadowRoot }) => shadowRoot ?? []);
    const maps = roots.flatMap((root) => [...root.querySelectorAll("[role=application]")]);
    maps.find(isSeen)?.focus();
  });
}

skipsToTheMap();
