// The calculation of a cell, a dialog beside the maps of its page, or below them: its keys, the focus after it, and room for the map.
// The page stays in use, and the focus on its map: another cell changes what stands in the dialog. Tab leads from the map into it.

const CELL_DIALOG = ".st-key-cell-dialog";
const CLOSES = ".st-key-close-cell button";
const BELOW_THE_MENU = 56; // CSS pixels
const AROUND_A_MAP = 72; // CSS pixels above a map that stands over the dialog, and for what is pointed at
const REACHED = "a[href], button:not(:disabled), input:not(:disabled), select, textarea, summary, [tabindex='0']";

/** The innermost element that has the focus. */
function focused() {
  let node = document.activeElement;
  while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
  return node;
}

class CellDialog {
  constructor() {
    this.map = null; // the map whose cell was opened
    this.dialog = document.querySelector(CELL_DIALOG);
    new MutationObserver(() => this.look()).observe(document.documentElement, { childList: true, subtree: true });
    document.addEventListener("keydown", (event) => this.onKey(event), { capture: true });
    document.addEventListener("focusin", () => this.note(), { capture: true });
    if (this.dialog) this.begin();
  }

  /** The upper edge of the dialog in the window, if it stands below the maps; else the lower edge of the window. */
  get room() {
    if (!this.dialog) return innerHeight;
    const { top } = this.dialog.getBoundingClientRect();
    return top > innerHeight / 3 ? top : innerHeight;
  }

  look() {
    const before = this.dialog;
    this.dialog = document.querySelector(CELL_DIALOG);
    if (this.dialog && this.dialog !== before) this.begin();
    if (before && !this.dialog) this.end();
  }

  begin() {
    const main = this.dialog.closest("[data-testid=stMain]");
    this.sized?.disconnect();
    this.sized = new ResizeObserver(() => this.dialog?.style.setProperty("--headlight-left", `${main.getBoundingClientRect().left}px`));
    this.sized.observe(main); // the sidebar lies over what is behind it
    this.dialog.setAttribute("role", "dialog");
    this.dialog.setAttribute("aria-label", this.dialog.querySelector("strong")?.textContent ?? "");
    dispatchEvent(new Event("resize")); // maps that stand above it become lower
    this.show();
  }

  /** Scrolls the map whose cell is open to where the dialog does not lie over it. */
  show() {
    const { map } = this;
    if (!map?.isConnected) return;
    requestAnimationFrame(() => requestAnimationFrame(() => {
      map.style.scrollMarginTop = `${BELOW_THE_MENU}px`;
      map.scrollIntoView({ block: this.room < innerHeight ? "start" : "nearest" });
    }));
  }

  /** Remembers whether the keyboard is in the dialog: it is gone before its focus can be asked for. */
  note() {
    this.holds = Boolean(this.dialog?.contains(document.activeElement));
  }

  end() {
    dispatchEvent(new Event("resize"));
    if ((this.holds || document.activeElement === document.body) && this.map?.isConnected) this.map.focus({ preventScroll: true });
    this.holds = false;
  }

  onKey(event) {
    const { dialog, map } = this;
    const plain = !(event.ctrlKey || event.metaKey || event.altKey);
    if (!dialog || !plain || document.querySelector("[data-testid=stDialog]")) return;
    const target = event.composedPath()[0];
    const go = (node) => {
      event.preventDefault();
      event.stopImmediatePropagation();
      node?.focus();
    };
    if (event.key === "Escape" && !target.closest?.("[aria-expanded=true], [role=listbox]")) {
      go(dialog.contains(target) ? map : null);
      dialog.querySelector(CLOSES)?.click();
    }
    if (event.key !== "Tab") return;
    const [first] = [...dialog.querySelectorAll(REACHED)].filter(isSeen);
    if (!event.shiftKey && target === map) go(first);
    if (event.shiftKey && target === first) go(map);
  }
}

const cellDialog = (globalThis.headlightCellDialog ??= new CellDialog());

/** A cell of a map of this drawing is opened. */
function opensCell(root) {
  const active = focused();
  cellDialog.map = root.contains(active) && active.matches("canvas") ? active : root.querySelector("[role=application]");
}
