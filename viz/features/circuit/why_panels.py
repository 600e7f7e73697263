"""The panels of why a score is what it is: what wrote the query, times what wrote the key, as a matrix that adds up to it."""

from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from model.features.circuit.sums import ScoreSum
from model.trace.types import Array
from viz.features.circuit import stream_parts
from viz.features.circuit.stream_parts import Shown
from viz.features.circuit.view import CircuitView
from viz.figures.annotated_heatmap import grid
from viz.i18n.translate import _, number
from viz.labels import tokens
from viz.panels import Panel, Plot, Table
from viz.session.state import Page

MOST = 6
"""Parts of either side that have a row or column of their own."""


LONG = 26
"""Most characters of a part's name on an axis."""


def of_score(page: Page, score_sum: ScoreSum) -> Panel:
    """The score of a cell: parts of the query × parts of the key, with sums; a lecture has it as a table."""
    texts = cell_texts(page, score_sum)
    down, across, values = with_sums(score_sum)
    table = Table(pd.DataFrame(values, index=pd.Index(down, name=""), columns=list(across)), len(down) - 1, decimals=2)
    alt = _("Matrix: parts of the query × parts of the key; the table below has the numbers")
    plot = Plot(lambda dark: _matrix(score_sum, dark), alt, "why-matrix", instead=table)
    return Panel("why", title(score_sum, texts), plot, "\n".join(sentences(score_sum, texts)))


def _matrix(score_sum: ScoreSum, dark: bool) -> go.Figure:
    """The matrix with its sums; the colors are those of the parts."""
    rows, columns = shown(score_sum)
    down, across, values = with_sums(score_sum)
    total, form, inner = _("sum"), "z.2f", values[:-1, :-1]
    written = [[number(float(value), form) for value in row] for row in values]
    hover = [
        [f"{part} × {other}: {value}" for other, value in zip(across, row, strict=True)]
        for part, row in zip(down, written, strict=True)
    ]
    return grid(
        [part.short for part in rows] + [total],
        [part.short for part in columns] + [total],
        values,
        hover,
        dark,
        _("part of the query × part of the key"),
        float(np.abs(inner).max(initial=0)) if np.isfinite(inner).all() else None,
        form,
        LONG,
    )


def compared(page: Page) -> int | Literal["mean"] | None:
    """What the score is compared with; a key that the row does not have is left out."""
    minus = page.view.of(CircuitView).minus
    if minus in ("", "mean"):
        return "mean" if minus else None
    other = int(minus)
    return other if other < page.attention.weights.shape[2] else None


def cell_texts(page: Page, score_sum: ScoreSum) -> dict[str, str]:
    """The tokens of the query, the key, and the key that it is compared with."""
    reads = tokens.strip(page.trace.tokens[page.attention.query_tokens])
    keys = tokens.keys(page.trace, page.attention)
    other = keys[score_sum.minus] if isinstance(score_sum.minus, int) else ""
    return {"query": reads[min(score_sum.query, len(reads) - 1)], "key": keys[score_sum.key], "other": other}


def title(score_sum: ScoreSum, texts: dict[str, str]) -> str:
    """What is taken apart, in words."""
    if score_sum.minus is None:
        return _("Why this score: “{query}” and “{key}”", **texts)
    if score_sum.minus == "mean":
        return _("Why “{key}” more than the mean of the row, for “{query}”", **texts)
    return _("Why “{key}” and not “{other}”, for “{query}”", **texts)


def sentences(score_sum: ScoreSum, texts: dict[str, str]) -> list[str]:
    """The largest entry of the matrix in words, and what is special about the cell."""
    texts_of_cell = list[str]()
    if score_sum.closed:
        texts_of_cell.append(
            {
                "padding": _("This cell is masked, because the key is padding. This is the score that it would have."),
                "future": _("This cell is masked, because the key comes later. This is the score that it would have."),
                "edit": _("An edit hides this key from the query. This is the score that it would have."),
            }.get(score_sum.closed, _("This cell is masked. This is the score that it would have."))
        )
    if np.isfinite(score_sum.matrix).all():
        row, column = np.unravel_index(int(np.abs(score_sum.matrix).argmax()), score_sum.matrix.shape)
        form = "z.2f"
        fields = texts | {
            "value": number(float(score_sum.matrix[row, column]), form),
            "score": number(score_sum.score, form),
            "query_part": stream_parts.name(score_sum.parts_query[row]),
            "key_part": stream_parts.name(score_sum.parts_key[column]),
        }
        texts_of_cell.append(
            _(
                "Largest part: {query_part} at “{query}” × {key_part} at “{key}”: {value}. All parts together: {score}.",
                **fields,
            )
        )
    if score_sum.distance:
        distance = number(score_sum.distance, "z.2f")
        texts_of_cell.append(_("{distance} of it is a learned number for the distance between the two tokens.", distance=distance))
    texts_of_cell.append(
        _(
            "Rows: what wrote the query, at “{query}”. Columns: what wrote the key, at “{key}”. Each cell is what the two add to "
            "the score; the last row and column are sums. The scaling of each normalization is that of this run.",
            **texts,
        )
    )
    return texts_of_cell


def with_sums(score_sum: ScoreSum) -> tuple[list[str], list[str], Array]:
    """The names of the rows and columns that are shown, the last ones being sums, and the numbers."""
    rows, columns = shown(score_sum)
    inner = stream_parts.added(stream_parts.added(score_sum.matrix, rows, 0), columns, 1)
    values = np.pad(inner, ((0, 1), (0, 1)))
    values[-1, :-1], values[:-1, -1], values[-1, -1] = inner.sum(axis=0), inner.sum(axis=1), inner.sum()
    total = _("sum")
    return [part.name for part in rows] + [total], [part.name for part in columns] + [total], values


def shown(score_sum: ScoreSum) -> tuple[list[Shown], list[Shown]]:
    """The parts of the query and of the key that have a row or column of their own, the largest first."""
    sizes = np.abs(score_sum.matrix)
    rows = stream_parts.shown(score_sum.parts_query, sizes.sum(axis=1), MOST)
    return rows, stream_parts.shown(score_sum.parts_key, sizes.sum(axis=0), MOST)


def of_numbers(score_sum: ScoreSum) -> Panel:
    """The whole matrix as numbers, every part and bias by itself."""
    return Panel("why-numbers", _("All parts as numbers"), Table(whole(score_sum.matrix, score_sum), decimals=4))


def whole(matrix: Array, score_sum: ScoreSum) -> pd.DataFrame:
    """The matrix with a row for each part of the query, a column for each part of the key, and sums."""
    columns = [f"{place} {stream_parts.name(part)}" for place, part in enumerate(score_sum.parts_key, start=1)]
    rows = [f"{place} {stream_parts.name(part)}" for place, part in enumerate(score_sum.parts_query, start=1)]
    table = pd.DataFrame(matrix, index=pd.Index(rows, name=_("part of the query")), columns=columns)
    table.insert(0, _("sum"), matrix.sum(axis=1))
    table.loc[_("sum")] = [matrix.sum(), *matrix.sum(axis=0)]
    return table
