"""What can be done with a drawing, in a sentence for mouse and keyboard and one for fingers; the browser chooses (`hintOf`)."""

from viz.i18n.translate import _


def atlas() -> dict[str, str]:
    """Of the atlas."""
    return {
        "hint": _("Hover to read a weight, click to select a head, double-click to enlarge it."),
        "hintTouch": _("Tap a head to read a weight and to select it; spread two fingers on it to enlarge it."),
    }


def editing() -> dict[str, str]:
    """Of an atlas that takes edits."""
    return {
        "hint": _("Double-click a head to enlarge it and forbid cells. S silences the head under the pointer."),
        "hintTouch": _("Spread two fingers on a head to enlarge it and forbid cells. “Make an edit” silences heads."),
    }


def changes() -> dict[str, str]:
    """Of an atlas of differences."""
    return {
        "hint": _("Hover to see how much a weight changed, click to select a head, double-click to enlarge it."),
        "hintTouch": _("Tap a head to see how much a weight changed and to select it; spread two fingers on it to enlarge it."),
    }


def lines() -> dict[str, str]:
    """Of the lines."""
    return {
        "hint": _(
            "Hover over a token to isolate its lines. Click a query to select it, then a key to see how that weight was calculated."
        ),
        "hintTouch": _("Tap a query to select it and isolate its lines, then a key to see how that weight was calculated."),
    }


def lines_alone() -> dict[str, str]:
    """Of lines without a network: no calculation can be opened."""
    return {
        "hint": _("Hover over a token to isolate its lines. Click a query to select it."),
        "hintTouch": _("Tap a query to select it and isolate its lines."),
    }


def cells() -> dict[str, str]:
    """Of the cells of a stage."""
    return {
        "hint": _("Click a cell (or press Enter) to see how it was calculated."),
        "hintTouch": _("Tap a cell to see how it was calculated."),
    }


def tree() -> dict[str, str]:
    """Of the tree of a beam search."""
    return {
        "hint": _(
            "Hover over a box to trace it back to the start. Click a numbered box (or press Enter) to see the attention of "
            "that hypothesis."
        ),
        "hintTouch": _("Tap a numbered box to see the attention of that hypothesis."),
    }
