// The standalone page inside the output of a notebook's cell: its frame becomes as high as the picture, and the picture follows the
// notebook's scheme. Where a notebook closes its document to the frame, the frame keeps its height and the scheme is the system's.

const TALLEST_VIEW = 900; // drawings use the height of the window, which here would follow the height of the drawings

/** The frame around this page; null if the notebook does not let it be seen. */
function frameOfPage() {
  try {
    return window.frameElement;
  } catch {
    return null;
  }
}

/** The scheme of a notebook: what it says itself (JupyterLab, VS Code, Colab), else that of its background. */
function schemeAround(frame) {
  const { body, documentElement } = frame.ownerDocument;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false" ? "dark" : "light";
  const said = body.dataset.vscodeThemeKind ?? documentElement.getAttribute("theme");
  if (said) return /dark|high-contrast$/.test(said) ? "dark" : "light";
  for (let node = frame.parentElement; node; node = node.parentElement) {
    const [red, green, blue, opacity = 1] = getComputedStyle(node).backgroundColor.match(/[\d.]+/g).map(Number);
    if (opacity > 0.5) return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128 ? "dark" : "light";
  }
  return null;
}

const frame = frameOfPage();
if (frame) {
  const around = frame.ownerDocument;
  const height = Math.min(TALLEST_VIEW, around.defaultView.innerHeight || TALLEST_VIEW);
  Object.defineProperty(window, "innerHeight", { get: () => height });
  const follow = () => {
    const scheme = schemeAround(frame);
    if (!scheme || scheme === document.documentElement.dataset.scheme) return;
    document.documentElement.dataset.scheme = scheme;
    draw();
  };
  const watch = new MutationObserver(() => { follow(); setTimeout(follow, 500); }); // a theme's colors may load after its name
  for (const node of [around.body, around.documentElement]) watch.observe(node, { attributes: true });
  const page = document.querySelector("main");
  new ResizeObserver(() => { frame.style.height = `${Math.ceil(page.getBoundingClientRect().height)}px`; }).observe(page);
  follow();
  draw();
}
