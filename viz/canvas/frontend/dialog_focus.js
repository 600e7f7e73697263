// A dialog that a drawing opens: room for it, and the keyboard's focus after it.

const BESIDE = 1151; // from this width on, viz/page.css puts the dialog of a cell beside the map
const SETTLED_DIALOG_MS = 50; // Streamlit moves the focus itself after a dialog: to the page, where a drawing had it

let watched = null;

/** Gives the focus back to `node` once the next dialog is closed. */
function focusAfterDialog(node) {
  const dialog = () => document.querySelector("[role=dialog]");
  let opened = Boolean(dialog());
  watched?.disconnect();
  const watch = (watched = new MutationObserver(() => {
    if (dialog()) opened = true;
    else if (opened) {
      watch.disconnect();
      setTimeout(() => { if (document.activeElement === document.body && node.isConnected) node.focus({ preventScroll: true }); }, SETTLED_DIALOG_MS);
    }
  }));
  watch.observe(document.body, { childList: true, subtree: true });
}

/** Scrolls a map above the place of the dialog of a cell, and waits for the dialog's end to take the focus again. */
function makeRoomForDialog(root) {
  if (innerWidth < BESIDE) root.scrollIntoView({ block: "start" });
  const { activeElement } = root.getRootNode();
  focusAfterDialog(root.contains(activeElement) ? activeElement : root.querySelector("[role=application]"));
}
