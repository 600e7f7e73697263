// Streamlit has no setting for its language: the menu, the file uploader, the buttons of tables. This replaces its words by those of
// the page's language. React writes a text or an attribute again only if it changes, so what is replaced here stays.

const ATTRIBUTES = ["alt", "aria-label", "data-title", "placeholder", "title"];
const TEXTS = [
  "InputInstructions",
  "stBaseButton-tertiary",
  "stDataFrameColumnFormattingMenu",
  "stDataFrameColumnMenu",
  "stDataFrameColumnVisibilityMenu",
  "stDataFrameResizable] label",
  "stFileUploader",
  "stDialog]:not(:has([data-testid=stVerticalBlock]))",
  "stMainMenuPopover",
  "stMultiSelectDropdown",
  "stSelectboxVirtualDropdown",
  "stSkipToContent",
  "stStatusWidget",
  "stTooltipContent",
].map((id) => `[data-testid=${id}${id.includes("]") ? "" : "]"}`).join() + ",kbd";
// Where texts are Streamlit's; elsewhere they are the page's, and a token may well be “Search”.

const replaced = new WeakMap(); // by node and attribute ("" for a text): Streamlit's words, and ours in their place
let exact = {};
let patterns = [];

// A label without its Markdown, which Streamlit puts into aria-label as it is, and a size with the space before its unit: “128 MB”.
const plain = (label) =>
  label.replace(/^:material\/\w+:\s*/, "").replace(/\\([!-/:-@[-`{-~])/g, "$1").replace(/^(\d+)([KMG]?B)$/, "$1\u00a0$2");

function ours(theirs, name) {
  if (Object.hasOwn(exact, theirs)) return exact[theirs];
  for (const { pattern, text } of patterns) {
    const found = pattern.exec(theirs);
    if (found) return text.replace("{name}", () => exact[found[1]] ?? plain(found[1]));
  }
  return name === "aria-label" ? plain(theirs) : theirs;
}

function replace(node, name, now, write) {
  const known = replaced.get(node)?.[name];
  const theirs = known?.now === now ? known.theirs : now;
  const text = ours(theirs, name);
  if (text === now) return;
  replaced.set(node, { ...replaced.get(node), [name]: { theirs, now: text } });
  write(text);
}

function attributes(node) {
  for (const name of ATTRIBUTES) {
    if (node.hasAttribute(name)) replace(node, name, node.getAttribute(name), (text) => node.setAttribute(name, text));
  }
}

function texts(root) {
  const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
    const [, before, words, after] = /^(\s*)(.*?)(\s*)$/s.exec(node.data);
    if (words) replace(node, "", words, (text) => { node.data = before + text + after; });
  }
}

function look(root) {
  attributes(root);
  root.querySelectorAll(ATTRIBUTES.map((name) => `[${name}]`).join()).forEach(attributes);
  if (root.closest(TEXTS)) texts(root);
  else root.querySelectorAll(TEXTS).forEach(texts);
}

const observer = new MutationObserver((mutations) => {
  for (const { type, target, addedNodes } of mutations) {
    if (type === "attributes") attributes(target);
    else if (type === "characterData") { if (target.parentElement?.closest(TEXTS)) texts(target.parentElement); }
    else addedNodes.forEach((node) => { if (node instanceof HTMLElement) look(node); }); // a figure adds thousands of shapes
  }
});

// Streamlit formats numbers and dates as navigator.languages asks: here this is the language of the page. Negative numbers get a
// minus sign, as everywhere on the pages, and not a hyphen.
if (!Object.hasOwn(navigator, "languages")) {
  const { get } = Object.getOwnPropertyDescriptor(Intl.NumberFormat.prototype, "format");
  Object.defineProperty(Intl.NumberFormat.prototype, "format", {
    configurable: true,
    get() { return (number) => get.call(this)(number).replaceAll("-", "−"); },
  });
  const { languages } = navigator;
  Object.defineProperty(navigator, "languages", { get: () => [document.documentElement.lang || "en", ...languages] });
}

let signs = null; // the language whose numbers the tables show that were painted so far

/** Paints the tables again that were painted with other signs. Streamlit paints a table whenever its height changes: for one frame. */
function repaintTables() {
  if (signs === (signs = navigator.languages[0])) return;
  for (const { style } of document.querySelectorAll(".stDataFrameGlideDataEditor > :first-child")) {
    style.height = "calc(100% - 1px)";
    requestAnimationFrame(() => requestAnimationFrame(() => { style.height = ""; }));
  }
}

/** Sets the language, also of what Streamlit drew before. `words`: ours by Streamlit's; “Help for {name}” matches all that begin so. */
function speakStreamlit(words) {
  exact = words;
  patterns = Object.entries(words).filter(([theirs]) => theirs.includes("{name}")).map(([theirs, text]) => {
    const [before, after] = theirs.split("{name}").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return { pattern: new RegExp(`^${before}(.+)${after}$`, "s"), text };
  });
  look(document.body);
  repaintTables();
  observer.observe(document.body, { attributes: true, attributeFilter: ATTRIBUTES, characterData: true, childList: true, subtree: true });
}
