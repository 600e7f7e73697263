// A help that is open closes at a press elsewhere, or at Escape.

if (!globalThis.headlightHelpCloses) {
  globalThis.headlightHelpCloses = true;
  const close = (stays) => {
    for (const help of document.querySelectorAll(".help[open]")) if (!stays(help)) help.open = false;
  };
  document.addEventListener("pointerdown", ({ target }) => close((help) => help.contains(target)), { capture: true });
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") close(() => false); }, { capture: true });
}
