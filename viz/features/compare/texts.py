"""Texts of the feature Compare: the help of its panels, and what its drawing says."""

from typing import Any

from viz.canvas.wire.strings import atlas
from viz.i18n.translate import N_, _

PANELS: dict[str, tuple[str, str, str]] = {
    "against": (
        N_("What to compare"),
        N_("Side A is what the other pages show. Choose here what is different on side B: the model, the sentence or a setting."),
        "links.md",
    ),
    "outputs": (
        N_("The two outputs"),
        N_("Both outputs are aligned word by word. Marked words are in one output only."),
        "links.md",
    ),
    "changes": (
        N_("Change of every head"),
        N_(
            "Each small map is one head; its colors show where weights grew and where they shrank. Click or tap a map to see it "
            "below."
        ),
        "readings.md",
    ),
    "selected": (
        N_("The selected head on both sides"),
        N_("The same head in both runs, and the difference. Rows and columns without a counterpart are omitted."),
        "readings.md",
    ),
    "ranking": (
        N_("Heads, most changed first"),
        N_("Each row is a head and how much its weights changed. Choose a row to see that head."),
        "readings.md",
    ),
}
"""As `viz.feature.Feature.help`."""


def changes() -> dict[str, Any]:
    """Texts of an atlas of differences."""
    return {
        **atlas(),
        "weight": _("change in weight"),
        "scale": _("change in weight"),
        "cell": _("{head}: the weight from “{query}” to “{key}” changed by {weight}"),
        "hint": _("Hover to see how much a weight changed, click to select a head, double-click to enlarge it."),
        "hintTouch": _("Tap a head to see how much a weight changed and to select it; spread two fingers on it to enlarge it."),
    }
