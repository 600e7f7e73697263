"""Which elements a keyboard reaches, and whether one sees that it is there."""

from typing import Any

from playwright.sync_api import Page

LEAST_CONTRAST = 3
"""Of a line that shows where the keyboard is, with what is around it (WCAG 2.2, success criterion 1.4.11)."""

UNSEEN = """(least) => {
  const numbers = (color) => (color.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const light = (color) => {
    const [r, g, b] = numbers(color).map((value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const above = (node) => node.parentElement ?? node.getRootNode().host;
  const behind = (node) => {
    for (; node; node = above(node)) {
      const color = getComputedStyle(node).backgroundColor, alpha = numbers(color)[3] ?? 1;
      if (alpha > 0.9) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const line = (node) => {
    const { outlineStyle, outlineWidth, outlineColor, outlineOffset } = getComputedStyle(node);
    const ground = parseFloat(outlineOffset) < 0 ? node : above(node);
    const width = parseFloat(outlineWidth);
    return outlineStyle !== "none" && width >= 2 && contrast(outlineColor, behind(ground)) >= least;
  };
  // A switch and a slider draw themselves around an input that is cut to a pixel.
  const cut = (node) => above(node).getBoundingClientRect().width <= 1 && getComputedStyle(above(node)).overflow === "hidden";
  const shows = (node) => getComputedStyle(node).opacity > 0 && !cut(node) && line(node);

  const active = () => {
    let node = document.activeElement;
    while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
    return node;
  };

  const found = [];
  const visit = (node) => {
    const can = node.matches?.("a[href], button, input, select, textarea, summary, [tabindex]:not([tabindex='-1'])");
    const seen = can && node.tabIndex >= 0 && !node.disabled && node.checkVisibility({ visibilityProperty: true });
    if (seen && node.getBoundingClientRect().width > 0) found.push(node);
    for (const child of [...(node.shadowRoot?.children ?? []), ...node.children]) visit(child);
  };
  visit(document.body);
  const unseen = found.filter((node) => {
    node.focus({ preventScroll: true });
    if (active() !== node) node.focus({ preventScroll: true }); // a row of choices gives the focus back to the one that had it last
    const seen = node.matches(":focus-visible") && [node, above(node), above(above(node))].some(shows);
    node.blur();
    return !seen;
  });
  return [found.length, unseen.map((node) => node.outerHTML.slice(0, 200))];
}"""

SCROLLED = """(top) => {
  const main = document.querySelector("[data-testid=stMain]");
  if (top !== null) main.scrollTop = top;
  return main.scrollTop;
}"""


def unseen(page: Page) -> tuple[int, list[Any]]:
    """How many elements the keyboard reaches, and those of them without a line around them while it is there."""
    top = page.evaluate(SCROLLED, None)
    page.keyboard.press("Tab")  # from here on the browser takes a focus for one of the keyboard
    count, found = page.evaluate(UNSEEN, LEAST_CONTRAST)
    page.evaluate(SCROLLED, top)  # what has the focus scrolls into view
    return count, found
