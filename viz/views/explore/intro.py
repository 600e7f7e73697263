"""The sentence above the overview of all heads that says what one sees. It can be put away, and stays away in that browser."""

import streamlit as st

from viz.i18n.translate import _

_INTRO = st.components.v2.component(
    "headlight.intro",
    html='<p role="note" hidden><span></span><button type="button">×</button></p>',
    css="""
p {
  display: flex; gap: 10px; align-items: baseline; margin: 0; color: var(--st-text-color);
  font: calc(14px * var(--headlight-zoom, 1))/1.4 var(--st-font);
}
p[hidden] { display: none; }
span { flex: 1; }
button { font: inherit; line-height: 1; color: inherit; background: none; border: 0; padding: 4px 8px; }
button { font-size: calc(18px * var(--headlight-zoom, 1)); }
button:focus-visible { outline: 2px solid var(--st-primary-color); }
p { margin-right: 34px; }
""",
    js="""
const KEY = "headlight.intro";

// A browser that keeps nothing shows the sentence again at the next visit.
const kept = (act) => { try { return act(localStorage); } catch { return null; } };

export default ({ parentElement, data }) => {
  const [note, text, button] = ["p", "span", "button"].map((tag) => parentElement.querySelector(tag));
  text.textContent = data.sentence;
  button.setAttribute("aria-label", data.close);
  button.title = data.close;
  note.hidden = kept((store) => store.getItem(KEY)) === "away";
  button.onclick = () => {
    note.hidden = true;
    kept((store) => store.setItem(KEY, "away"));
  };
};
""",
)


def draw(dark: bool) -> None:
    """Draws the sentence, unless this browser put it away.

    Args:
        dark: whether the page is dark: large weights are dark on a light page, and bright on a dark one.
    """
    _INTRO(key="intro", data={"sentence": sentence(dark), "close": _("Hide this sentence")}, height="content")


def sentence(dark: bool) -> str:
    """A sentence on what the overview of all heads shows."""
    if dark:
        return _(
            "Each small square is one attention head. Row: token that attends. Column: token attended to. Bright: large weight."
        )
    return _("Each small square is one attention head. Row: token that attends. Column: token attended to. Dark: large weight.")
