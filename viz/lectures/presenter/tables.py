"""Scenes of panels without a canvas: bars with names, tables, texts with formulas, lines, and arrows."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from model.trace.types import Array
from viz.canvas.wire.transport import pack
from viz.figures.costs import Line
from viz.i18n.translate import number
from viz.labels.tokens import markdown
from viz.lectures.presenter import markdown as markup
from viz.views.step.cell_calculation import Line as Said

MOST_ROWS = 200
"""Most rows of a table."""

MOST_COLUMNS = 64
"""Most columns of a table."""


def bars(texts: Sequence[str], values: Sequence[float], chosen: int = -1) -> bytes:
    """The scene of a panel `Bars`: probabilities or other numbers with names.

    Args:
        chosen: index of the one to emphasize; -1: none.
    """
    return pack({"texts": list(texts), "values": [float(value) for value in values], "chosen": chosen}, {})


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], chosen: int = -1, shades: Array | None = None) -> bytes:
    """The scene of a panel `Table`.

    Args:
        columns: titles; the first column names the rows.
        rows: texts of the cells.
        chosen: index of the row to emphasize; -1: none.
        shades: [row, column after the first] of numbers from 0 to 1 that shade the cells.
    """
    header = {
        "columns": list(columns[:MOST_COLUMNS]),
        "rows": [list(row[:MOST_COLUMNS]) for row in rows[:MOST_ROWS]],
        "chosen": chosen,
    }
    return pack(header | {"shades": [] if shades is None else shades[:MOST_ROWS].tolist()}, {})


def of_frame(frame: pd.DataFrame, chosen: int = -1, decimals: int = 3) -> bytes:
    """The scene of a panel `Table` with the numbers of a table of the app."""
    rows = [
        [str(name), *(_text(value, decimals) for value in row)]
        for name, row in zip(frame.index, frame.to_numpy(object), strict=True)
    ]
    return table([str(frame.index.name or ""), *map(str, frame.columns)], rows, chosen)


def _text(value: object, decimals: int) -> str:
    if isinstance(value, bool) or not isinstance(value, float | int):
        return "✓" if value is True else "" if value is False else str(value)
    if isinstance(value, int):
        return str(value)
    return "–" if math.isnan(value) else "−∞" if value == -math.inf else number(value, f".{decimals}f")


def text(lines: Iterable[Said]) -> bytes:
    """The scene of a panel `Text`: sentences and formulas, one below the other."""
    markdown_of = "\n\n".join(f"$${line.text}$$" if line.formula else markdown(line.text) for line in lines)
    return pack({"html": markup.html(markdown_of), "markdown": markdown_of}, {})


def curves(steps: Sequence[int], lines: Array, names: Sequence[str], chosen: int) -> bytes:
    """The scene of a panel `Curves`: numbers over the steps of a training.

    Args:
        lines: [line, step]; NaN where there is no number.
        names: of the lines.
        chosen: index of the line to emphasize.
    """
    known = [[float(value) if math.isfinite(value) else None for value in line] for line in lines]
    return pack({"steps": list(steps), "lines": known, "names": list(names), "chosen": chosen}, {})


def chart(
    across: Sequence[float],
    lines: Sequence[Line],
    axes: tuple[str, str],
    logarithmic: tuple[bool, bool] = (False, False),
    mark: tuple[float, float] | None = None,
    level: float | None = None,
) -> bytes:
    """The scene of a panel `Chart`: lines over any numbers, with a legend that says their values.

    Args:
        across: numbers on the horizontal axis, ascending.
        lines: the lines.
        axes: titles of the horizontal and the vertical axis.
        logarithmic: whether each axis is.
        mark: a place with a dot; None: there is none.
        level: height of a dashed line across; None: there is none.
    """
    drawn = [{"name": line.name, "values": [float(value) for value in line.values], "look": line.look} for line in lines]
    header = {"across": [float(place) for place in across], "lines": drawn, "axes": list(axes), "logarithmic": list(logarithmic)}
    return pack(header | {"mark": list(mark) if mark else None, "level": level}, {})


def arrows(names: Sequence[str], before: Array, after: Array) -> bytes:
    """The scene of a panel `Arrows`: pairs of columns in planes of their own, before and after they are turned.

    Args:
        names: of the pairs.
        before, after: [pair, 2].
    """
    sizes = np.maximum(np.linalg.norm(before, axis=1, keepdims=True), 1e-9)
    return pack({"names": list(names), "before": (before / sizes).tolist(), "after": (after / sizes).tolist()}, {})
