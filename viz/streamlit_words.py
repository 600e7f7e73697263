"""Streamlit's own words in the language of the page: Streamlit has no setting for them, so a script replaces them in the page.

`streamlit_words.js` does it, wherever such a word appears as a text of Streamlit's or as the name of a control.
"""

from pathlib import Path

from viz.texts import _, current

SCRIPT = (Path(__file__).parent / "streamlit_words.js").read_text(encoding="utf-8")
"""Defines `speakStreamlit(words)`."""

_GAP = "{name}"


def words() -> dict[str, str]:
    """Streamlit's words with those of the current language; none in English."""
    return {} if current() == "en" else _words()


def _words() -> dict[str, str]:
    return {
        "App pages": _("Pages"),
        "Autosize": _("Fit the width"),
        "Choose an option": _("choose …"),
        "Choose options": _("choose …"),
        "Clear all": _("Clear all"),
        "Clear value": _("Clear"),
        "Close": _("Close"),
        "Close Search": _("Close the search"),
        "Close fullscreen": _("Leave full screen"),
        "Collapse sidebar": _("Collapse the sidebar"),
        "Copy to clipboard": _("Copy"),
        "Copy version to clipboard": _("Copy the version"),
        "Dark": _("Dark"),
        "Decrement": _("Decrease"),
        "Dismiss": _("Close"),
        "Download as CSV": _("Download as CSV"),
        "Download plot": _("Download the picture"),
        "Drag and drop files here": _("Drop files here"),
        "Expand sidebar": _("Show the sidebar"),
        "Format": _("Number format"),
        "Fullscreen": _("Full screen"),
        "Help for {name}": _("Help: {name}", name=_GAP),
        "Hide column": _("Hide this column"),
        "Increment": _("Increase"),
        "Light": _("Light"),
        "Link to heading": _("Link to this heading"),
        "Logo": _("Logo"),
        "Made with Streamlit v": _("Made with Streamlit v"),
        "Main menu": _("Menu"),
        "Navigate to home page": _("To the first page"),
        "Next Result": _("Next result"),
        "No results": _("No results"),
        "Notifications": _("Notices"),
        "Open": _("Open the list"),
        "Pin column": _("Pin this column"),
        "Press Enter to apply": _("Press Enter to apply"),
        "Previous Result": _("Previous result"),
        "Print": _("Print"),
        "Record screen": _("Record the screen"),
        "Remove {name}": _("Remove: {name}", name=_GAP),
        "Running...": _("Running …"),
        "Search": _("Search"),
        "Select all": _("Select all"),
        "Selected values": _("Selected"),
        "Shortcut {name}": _("Key: {name}", name=_GAP),
        "Show/hide columns": _("Show or hide columns"),
        "Sidebar": _("Sidebar"),
        "Skip to main content": _("Skip to the content"),
        "Sort ascending": _("Sort ascending"),
        "Sort descending": _("Sort descending"),
        "Stop": _("Stop"),
        "System": _("As the system"),
        "Theme": _("Light or dark"),
        "Type to search": _("Type to search"),
        "Unpin column": _("Unpin this column"),
        "Upload": _("Upload"),
        "file upload": _("Files"),
        "progress": _("Progress"),
        "{name} icon": _("icon"),
        "{name} per file": _("{name} per file", name=_GAP),
    }
