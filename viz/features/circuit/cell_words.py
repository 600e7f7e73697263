"""What a cell writes, in words: the tokens that its weighted value pushes up and down."""

from functools import partial
from typing import Any

import numpy as np

from model.features.circuit.sums import CellWords, CellWrites
from viz.canvas.scenes.attention import Asks
from viz.i18n.translate import _, number
from viz.labels import tokens
from viz.session import cell_route
from viz.session.state import Page

SMALL = 0.1
"""Below this, numbers have four decimals instead of two."""


def asks(page: Page) -> Asks | None:
    """How the drawing of the selected head asks what its cells write; None where nobody answers."""
    about = page.view.request(), str(page.attention.site), page.head
    if (address := cell_route.offered(page.engine, about, partial(CellWrites, *about), said)) is None:
        return None
    name = tokens.head_name(page.trace, page.attention.site, page.head)
    texts = {
        "hint": _("Hover over a cell to see which tokens its value pushes up and down."),
        "hintTouch": _("Tap a cell to see which tokens its value pushes up and down."),
        "cellsLabel": _("{head}. Arrow keys move between cells; each says which tokens its value pushes up and down.", head=name),
        "writes": _("Weight × value of this cell, as it adds to the logits of the tokens:"),
        "up": _("pushes up"),
        "down": _("pushes down"),
        "gone": _("This could not be computed. Reload the page."),
    }
    return Asks(address, texts)


def said(words: CellWords) -> dict[str, Any]:
    """The tokens that are pushed `up` and `down`, each with its number as text, or the sentence of an `error`."""
    if not words.ids:
        return {"error": _("The weight is 0, so this cell adds nothing.")}
    decimals = 2 if float(np.nan_to_num(np.abs(words.values)).max()) >= SMALL else 4

    def written(value: float) -> str:
        if abs(value) * 10**decimals < 0.5:
            return f"{'+' if value > 0 else '−'}{tokens.power_of_ten(abs(value))}"
        return number(value, f"+.{decimals}f")

    sides = {"up": words.up, "down": words.down}
    return {name: [[tokens.plain(text), written(value)] for text, value in side] for name, side in sides.items()}
