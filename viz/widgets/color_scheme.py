"""What a page tells the browser: the language, and Streamlit's own words in it; and what it hears: a change of light and dark.

Streamlit has no setting for its words, so `streamlit_strings.js` replaces them in the page, wherever such a word appears as a text
of Streamlit's or as the name of a control. A change of scheme redraws the page, as Plotly keeps its colors. The script also closes
open help.
"""

from pathlib import Path

import streamlit as st

from viz.i18n import locales
from viz.i18n.translate import N_, _, current, translated
from viz.widgets import panel_help

SCRIPT = (Path(__file__).parent / "streamlit_strings.js").read_text(encoding="utf-8")
"""Defines `speakStreamlit(words)`."""

_GAP = "{name}"

_WORDS = {
    "Add files": N_("Add files"),
    "App pages": N_("Pages"),
    "Autosize": N_("Fit the width"),
    "Choose an option": N_("choose …"),
    "Choose options": N_("choose …"),
    "Clear all": N_("Clear all"),
    "Clear value": N_("Clear"),
    "Close": N_("Close"),
    "Close Search": N_("Close the search"),
    "Close fullscreen": N_("Leave full screen"),
    "Collapse sidebar": N_("Collapse the sidebar"),
    "Copy to clipboard": N_("Copy"),
    "Copy version to clipboard": N_("Copy the version"),
    "Dark": N_("Dark"),
    "Decrement": N_("Decrease"),
    "Dismiss": N_("Close"),
    "Download as CSV": N_("Download as CSV"),
    "Download plot": N_("Download the picture"),
    "Drag and drop files here": N_("Drop files here"),
    "Expand sidebar": N_("Show the sidebar"),
    "Format": N_("Number format"),
    "Fullscreen": N_("Full screen"),
    "Hide column": N_("Hide this column"),
    "Increment": N_("Increase"),
    "Light": N_("Light"),
    "Link to heading": N_("Link to this heading"),
    "Logo": N_("Logo"),
    "Made with Streamlit v": N_("Made with Streamlit v"),
    "Main menu": N_("Menu"),
    "Navigate to home page": N_("To the first page"),
    "Next Result": N_("Next result"),
    "No results": N_("No results"),
    "Notifications": N_("Notices"),
    "Open": N_("Open the list"),
    "Page not found": N_("This page does not exist"),
    "Pin column": N_("Pin this column"),
    "Press Enter to apply": N_("Press Enter to apply"),
    "Previous Result": N_("Previous result"),
    "Print": N_("Print"),
    "Record screen": N_("Record the screen"),
    "Running...": N_("Running …"),
    "Search": N_("Search"),
    "Select all": N_("Select all"),
    "Selected values": N_("Selected"),
    "Show/hide columns": N_("Show or hide columns"),
    "Sidebar": N_("Sidebar"),
    "Skip to main content": N_("Skip to the content"),
    "Sort ascending": N_("Sort ascending"),
    "Sort descending": N_("Sort descending"),
    "Stop": N_("Stop"),
    "System": N_("Use system setting"),
    "Theme": N_("Light or dark"),
    "Type to search": N_("Type to search"),
    "Unpin column": N_("Unpin this column"),
    "Upload": N_("Upload"),
    "file upload": N_("Files"),
    "progress": N_("Progress"),
    "{name} icon": N_("icon"),
}


def words() -> dict[str, str]:
    """Streamlit's words with those of the current language; none in English."""
    if current() == "en":
        return {}
    named = {
        "Help for {name}": _("Help: {name}", name=_GAP),
        "Remove {name}": _("Remove: {name}", name=_GAP),
        "Shortcut {name}": _("Key: {name}", name=_GAP),
        "The page that you have requested does not seem to exist. Running the app's main page.": _(
            "This page does not exist. Showing the first page."
        ),
        "You have requested page /{name}, but no corresponding file was found in the app's pages/ directory. Running the app's "
        "main page.": _("There is no page {name}. Showing the first page.", name=_GAP),
        "{name} per file": _("{name} per file", name=_GAP),
    }
    return {word: translated(ours) for word, ours in _WORDS.items()} | named


_WATCH = st.components.v2.component(
    "headlight.scheme",
    html="<span hidden></span>",
    js=SCRIPT
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
    data = {"language": locales.current(), "words": words()}
    _WATCH(key="scheme", data=data, on_changed_change=_rerun_is_enough, height="content")


def _rerun_is_enough() -> None:
    """The script run that a trigger causes already sees the new scheme."""
