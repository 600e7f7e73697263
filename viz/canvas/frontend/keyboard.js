// Whether the keyboard belongs to a field.

const TAKES_KEYS = [
  "input", "textarea", "select", "dialog", "[contenteditable='']", "[contenteditable=true]",
  ...["slider", "listbox", "combobox", "tab", "radio", "menuitem", "application", "grid"].map((role) => `[role=${role}]`),
].join();

/** True if the focused element uses the keyboard itself, as text fields and sliders do. */
function keyboardTaken() {
  let focus = document.activeElement;
  while (focus?.shadowRoot?.activeElement) focus = focus.shadowRoot.activeElement;
  return Boolean(focus?.closest(TAKES_KEYS));
}
