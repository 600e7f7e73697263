"""Scene of the dots of a survey: every head by two numbers, in a plane."""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from model.trace.types import Trace
from viz.canvas.scenes.attention import base
from viz.canvas.wire.transport import pack
from viz.features.survey.heads_figure import SYMBOLS, Dot, Shade
from viz.i18n.translate import _
from viz.labels import tokens


def scene(
    trace: Trace,
    drawn: Sequence[Dot],
    heads: Sequence[tuple[str, int]],
    kinds: Sequence[str],
    titles: tuple[str, str],
    selected: int,
    marked: Sequence[int],
    description: str,
    shade: Shade | None = None,
) -> bytes:
    """The dots as bytes. A click reports site and head; a box around several reports their places in the survey as `marked`.

    Args:
        trace: the run beside the survey, which says nothing here but which page it is.
        drawn: the dots, those that lie below others first.
        heads: site and head of each place in the survey.
        kinds: names of the kinds of sites, in the order of their numbers.
        titles: of the two numbers.
        selected: the head with a ring; -1: none.
        marked: heads that somebody marked.
        description: the picture in words.
        shade: what decides the colors; None: the kind of site does.
    """
    texts = {
        "label": _("All heads as dots"),
        "hint": _("Click a dot, or walk with the arrow keys and press Enter, to select its head. Draw a box to mark several."),
        "hintTouch": _("Tap a dot to select its head."),
        "mark": _("Mark several heads: draw a box around them"),
        "marked": _("A click beside the dots, or Escape, removes the marks."),
    }
    header = {
        **base(trace),
        "texts": texts,
        "dots": [
            asdict(dot) | {"shade": _known(dot.shade), "chooses": {"site": heads[dot.head][0], "head": heads[dot.head][1]}}
            for dot in drawn
        ],
        "kinds": [{"name": name, "symbol": SYMBOLS[index % len(SYMBOLS)]} for index, name in enumerate(kinds)],
        "titles": titles,
        "scale": None if shade is None else _scale(shade),
        "selected": selected,
        "marked": list(marked),
        "description": description,
        "announce": next((dot.name for dot in drawn if dot.head == selected), ""),
    }
    return pack(header, {})


def _known(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None


def _scale(shade: Shade) -> dict[str, object]:
    """Title and ends of the scale of colors; `both`: its numbers are on both sides of 0, and have two hues."""
    low, high, both = shade.ends()
    return {
        "title": shade.title,
        "low": low,
        "high": high,
        "both": both,
        "ends": [tokens.number(end, ".3g") for end in (low, high)],
    }
