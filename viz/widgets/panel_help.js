// A help that is open closes at a press elsewhere, when the keyboard goes elsewhere, or at Escape.

if (!globalThis.headlightHelpCloses) {
  globalThis.headlightHelpCloses = true;
  const close = (stays) => {
    for (const help of document.querySelectorAll(".help[open]")) if (!stays(help)) help.open = false;
  };
  for (const name of ["pointerdown", "focusin"]) {
    document.addEventListener(name, ({ target }) => close((help) => help.contains(target)), { capture: true });
  }
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") close(() => false); }, { capture: true });
}
