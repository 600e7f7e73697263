"""Redraws the page when the reader changes between light and dark, as Plotly keeps its colors; tells the browser the language, and
closes open help.
"""

import streamlit as st

from viz.i18n import locales, streamlit_strings
from viz.widgets import panel_help

_WATCH = st.components.v2.component(
    "headlight.scheme",
    html="<span hidden></span>",
    js=streamlit_strings.SCRIPT
    + panel_help.CLOSES
    + """
const seen = new WeakMap();

// Streamlit calls this at each change of theme. The first call only takes note.
export default ({ parentElement, data, setTriggerValue }) => {
  document.documentElement.lang = data.language; // for fonts, hyphens, screen readers and numbers
  speakStreamlit(data.words);
  const root = parentElement.querySelector("span");
  const now = getComputedStyle(root).getPropertyValue("--st-background-color").trim();
  const before = seen.get(parentElement);
  seen.set(parentElement, now);
  if (before && before !== now) setTriggerValue("changed", now);
};
""",
)


def redraw_on_change() -> None:
    """Reruns the script when the reader's scheme changes. Takes no space on the page."""
    data = {"language": locales.current(), "words": streamlit_strings.words()}
    _WATCH(key="scheme", data=data, on_changed_change=_rerun_is_enough, height="content")


def _rerun_is_enough() -> None:
    """The script run that a trigger causes already sees the new scheme."""
