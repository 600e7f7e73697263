// A dialog that a drawing opens: room for it, and the keyboard's focus after it.

const BESIDE = 1151; // from this width on, viz/widgets/page.css puts the dialog of a cell beside Explore's map
const BELOW_THE_MENU = 56; // CSS pixels
const SETTLED_DIALOG_MS = 50; // Streamlit moves the focus itself after a dialog: to the page, where a drawing had it

let watched = null;

/** Watches the next dialog of a cell: `begins()` is called when it is there, `ends()` when it is closed. */
function watchDialog(begins, ends) {
  const dialog = () => document.querySelector(".st-key-cell-dialog");
  let opened = false;
  watched?.disconnect();
  const watch = (watched = new MutationObserver(() => {
    if (dialog() && !opened) {
      opened = true;
      begins();
    } else if (opened && !dialog()) {
      watch.disconnect();
      setTimeout(ends, SETTLED_DIALOG_MS);
    }
  }));
  watch.observe(document.body, { childList: true, subtree: true });
}

/** Scrolls the map that has the focus above the dialog of a cell, where it lies below, and gives it the focus back at its end. */
function makeRoomForDialog(root) {
  const { activeElement } = root.getRootNode();
  const map = root.contains(activeElement) ? activeElement : root.querySelector("[role=application]");
  const scroll = () => {
    if (innerWidth >= BESIDE && document.querySelector(".st-key-card-heat")) return;
    map.style.scrollMarginTop = `${BELOW_THE_MENU}px`;
    map.scrollIntoView({ block: "start" });
  };
  watchDialog(scroll, () => {
    if (document.activeElement === document.body && map.isConnected) map.focus({ preventScroll: true });
  });
}
