"""How the page looks: its language, with Streamlit's own words in it, light and dark, and big mode.

Streamlit has no setting for its words, so `streamlit_strings.js` replaces them in the page, wherever such a word appears as a text
of Streamlit or as the name of a control. A change of scheme redraws the page, as Plotly keeps its colors. The script also closes
open help. The key P and a button enter and leave big mode; the link keeps it.
"""

from functools import cache
from pathlib import Path

import streamlit as st

from viz.i18n import translate
from viz.i18n.translate import N_, _, current, translated
from viz.session import visits
from viz.session.state import get_view_state, instead_of_explore, update
from viz.url.view_state import ViewState
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
    "Ctrl + Shift + Z": N_("Ctrl + Shift + Z"),
    "Ctrl + Z": N_("Ctrl + Z"),
    "Dark": N_("Dark"),
    "Decrement": N_("Decrease"),
    "Dismiss": N_("Close"),
    "Download as CSV": N_("Download as CSV"),
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
    return {} if (language := current()) == "en" else _words(language)


@cache
def _words(_language: str) -> dict[str, str]:
    named = {
        "Help for {name}": _("Help: {name}", name=_GAP),
        "Remove {name}": _("Remove: {name}", name=_GAP),
        "File must be {name} or smaller.": _("The file is larger than {name}, the most that is read here.", name=_GAP),
        "{name} files are not allowed.": _("Files of this kind ({name}) are not read here.", name=_GAP),
        "Shortcut {name}": _("Key: {name}", name=_GAP),
        "The page that you have requested does not seem to exist. Running the app's main page.": _(
            "This page does not exist. Showing the first page."
        ),
        "You have requested page /{name}, but no corresponding file was found in the app's pages/ directory. Running the app's "
        "main page.": _("There is no page {name}. Showing the first page.", name=_GAP),
        "{name} per file": _("{name} per file", name=_GAP),
    }
    return {word: translated(ours) for word, ours in _WORDS.items()} | named


MOVES_DOTS = (Path(__file__).parent / "moving_dots.js").read_text(encoding="utf-8")
"""Moves a picture of many dots without drawing them anew."""

SCROLLS = """
// Where something can be selected, Streamlit turns the dragmode `false` of a figure into `pan`, with which plotly keeps each touch.
// So the page gets it, and a tap still arrives as a click. Where a line or a box was chosen above the figure, a finger draws it.
document.addEventListener("touchstart", (event) => {
  const figure = event.target.closest?.(".nsewdrag") && event.target.closest(".js-plotly-plot");
  if (figure?._fullLayout?.dragmode === "pan") event.stopPropagation();
}, { capture: true, passive: true });
"""
"""Lets a finger that begins on a figure scroll the page."""

PAGE_KEYS = (Path(__file__).parent / "page_keys.js").read_text(encoding="utf-8")
"""Makes a row of equal controls one stop of the Tab key, and brings the focus back from a dialog."""

FITS = (Path(__file__).parent / "cell_numbers.js").read_text(encoding="utf-8")
"""Fits the numbers in the cells of heatmaps that ask for it (`viz.figures.annotated_heatmap`) into the cells of this window."""

_WATCH = st.components.v2.component(
    "headlight.scheme",
    html="<span hidden></span>",
    js=SCRIPT
    + visits.KEEPS
    + panel_help.CLOSES
    + SCROLLS
    + MOVES_DOTS
    + FITS
    + PAGE_KEYS
    + """
const seen = new WeakMap();

// Streamlit calls this at each change of theme. The first call only takes note.
export default ({ parentElement, data, setTriggerValue }) => {
  document.documentElement.lang = data.language; // for fonts, hyphens, screen readers and numbers
  speakStreamlit(data.words);
  keepLink(data.keeps);
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
    data = {"language": translate.current(), "words": words(), "keeps": instead_of_explore() != "first"}
    _WATCH(key="scheme", data=data, on_changed_change=_rerun_is_enough, height="content")


def _rerun_is_enough() -> None:
    """The script run that a trigger causes already sees the new scheme."""


BIG_MODE = Path(__file__).parent / "projector_mode.css"
KEY = "P"

_SPOT = st.components.v2.component(
    "headlight.spot",
    html="<span hidden></span>",
    js="""
const SIZE = 64;
const lives = new WeakMap();

// Shows a ring under the pointer that the last row sees, until `signal` aborts.
function follow(signal) {
  const spot = document.createElement("div");
  spot.className = "headlight-spot";
  spot.setAttribute("aria-hidden", "true");
  spot.style.cssText = `position: fixed; left: 0; top: 0; width: ${SIZE}px; height: ${SIZE}px; margin: ${-SIZE / 2}px;
    border: 4px solid #f58a3c; border-radius: 50%; background: rgb(245 138 60 / 22%);
    display: none; pointer-events: none; z-index: 1000000;`;
  document.body.append(spot);
  const show = ({ clientX, clientY }) => {
    spot.style.display = "block";
    spot.style.transform = `translate(${clientX}px, ${clientY}px)`;
  };
  document.addEventListener("pointermove", show, { signal, capture: true, passive: true });
  document.documentElement.addEventListener("pointerleave", () => { spot.style.display = "none"; }, { signal });
  signal.addEventListener("abort", () => spot.remove());
}

export default ({ parentElement }) => {
  const mine = lives.get(parentElement);
  const life = !mine || mine.signal.aborted ? new AbortController() : mine;
  if (life !== mine) follow(life.signal);
  lives.set(parentElement, life);
  life.calls = (life.calls ?? 0) + 1;
  const call = life.calls;
  return () => { if (call === life.calls) life.abort(); }; // Streamlit may clean up late, after a newer call
};
""",
)


def big_mode_style() -> None:
    """Adds the style of big mode, if the state asks for it; comes before everything that is drawn.

    Big mode is for a projector: no sidebar, one thing on a screen, large text, and a spot that follows the pointer.
    """
    if get_view_state()[0].big:
        st.html(BIG_MODE)


def big_mode_button(view: ViewState) -> None:
    """Draws the button that enters big mode, in the sidebar, or the one that leaves it; the key P presses either."""
    if view.big:
        _SPOT(key="spot", height="content")
        with st.container(key="big"):
            st.button(_("Leave big mode"), key="big-button", shortcut=KEY, on_click=update, kwargs={"big": 0})
    else:
        st.sidebar.button(
            _("Big mode"),
            key="big-button",
            icon=":material/present_to_all:",
            shortcut=KEY,
            help=_("For a projector: no sidebar, one thing at a time, large text."),
            on_click=update,
            kwargs={"big": 1},
        )
