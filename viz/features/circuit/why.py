"""Why a score is what it is: what wrote the query, times what wrote the key, as a small matrix that adds up to it."""

import math
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st

from model.errors import HeadlightError
from model.features.circuit.sums import LogitSum, ScoreSum, Why
from model.trace.cell_arithmetic import TOLERANCE
from model.trace.types import Array, Site, Trace
from viz.features.circuit import stream_parts
from viz.features.circuit.stream_parts import Shown
from viz.features.circuit.view import LONGEST_TRAIL, CircuitView, cells
from viz.figures.annotated_heatmap import grid
from viz.i18n.translate import _, error_message, number
from viz.labels import tokens
from viz.session.state import Page, bind, update
from viz.widgets import download, numeric_tables
from viz.widgets.cards import card, chart, say

MOST = 6
"""Parts of either side that have a row or column of their own."""

LONG = 26
"""Most characters of a part's name on an axis."""


def draw(page: Page, query: int, key: int) -> None:
    """Draws why the score of a cell is what it is, or says why that is not known.

    Args:
        query, key: counted from 0.
    """
    with card("why", "content"):
        _trail(page, query, key)
        _comparison(page, key)
        try:
            found = page.engine.ask(Why(page.view.request(), str(page.attention.site), page.head, query, key, compared(page)))
        except HeadlightError as error:
            say(error_message(error))
            _saved(page)
            return
        rows, columns = shown(found)
        texts = cell_texts(page, found)
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**{tokens.markdown(title(found, texts))}**", width="content")
            badge(found)
        for sentence in sentences(found, texts):
            st.caption(tokens.markdown(sentence))
        for sentence in stream_parts.about_the_run(page, bool(np.isfinite(found.matrix).all())):
            st.caption(sentence)
        _matrix(page, found, rows, columns, (page.trace, title(found, texts)))
        _heads(page, found, rows, columns, texts)
        _table(page, found)


def _saved(page: Page) -> None:
    """Draws, for a recording that was saved with the sum of a score, a button that shows it."""
    if page.info.recorded and (saved := page.trace.sums.get("why")):
        minus = "" if saved["minus"] is None else str(saved["minus"])
        fields = {name: saved[name] for name in ("site", "head", "query", "key")} | {"minus": minus, "cell": "why"}
        st.button(
            _("Show the score whose sum was saved with this recording"),
            key="saved-why",
            icon=":material/functions:",
            on_click=partial(update, **fields),
        )


def badge(found: ScoreSum | LogitSum) -> None:
    """Draws whether the sum is what the run recorded: in words, with an icon and a color."""
    gaps = {"difference": tokens.power_of_ten(found.difference), "tolerance": tokens.power_of_ten(found.tolerance)}
    if found.agrees:
        said = _("Adds up to what the run recorded, difference {difference}", **gaps)
        if found.tolerance > TOLERANCE["float32"]:  # of a lower precision, or where large parts cancel
            said = _("Adds up to what the run recorded: difference {difference}, tolerance {tolerance}", **gaps)
        st.badge(said, icon=":material/check:", color="green")
    elif math.isfinite(found.difference):
        said = _("Does not add up to what the run recorded: difference {difference}, tolerance {tolerance}", **gaps)
        st.badge(said, icon=":material/error:", color="red")
    else:
        st.badge(_("Cannot be checked: it contains NaN or infinite values"), icon=":material/error:", color="red")


def compared(page: Page) -> int | Literal["mean"] | None:
    """What the score is compared with; a key that the row does not have is left out."""
    minus = page.view.of(CircuitView).minus
    if minus in ("", "mean"):
        return "mean" if minus else None
    other = int(minus)
    return other if other < page.attention.weights.shape[2] else None


def _comparison(page: Page, key: int) -> None:
    """Draws the choice of what the score is compared with."""
    keys = tokens.keys(page.trace, page.attention, longest=None)
    titles = {"": _("the score itself"), "mean": _("the mean score of the row")}
    titles |= {str(place): f"{place + 1} {text}" for place, text in enumerate(keys) if place != key}
    tied = bind("minus")
    if page.view.of(CircuitView).minus not in titles:
        st.session_state[tied["key"]] = ""
    st.selectbox(
        _("Compared with"),
        list(titles),
        format_func=titles.__getitem__,
        help=_("The softmax compares scores, so the difference from another key says why this one has the larger weight."),
        **tied,
    )


def cell_texts(page: Page, found: ScoreSum) -> dict[str, str]:
    """The tokens of the query, the key, and the key that it is compared with."""
    reads = tokens.strip(page.trace.tokens[page.attention.query_tokens])
    keys = tokens.keys(page.trace, page.attention)
    other = keys[found.minus] if isinstance(found.minus, int) else ""
    return {"query": reads[min(found.query, len(reads) - 1)], "key": keys[found.key], "other": other}


def title(found: ScoreSum, texts: dict[str, str]) -> str:
    """What is taken apart, in words."""
    if found.minus is None:
        return _("Why this score: “{query}” and “{key}”", **texts)
    if found.minus == "mean":
        return _("Why “{key}” more than the mean of the row, for “{query}”", **texts)
    return _("Why “{key}” and not “{other}”, for “{query}”", **texts)


def sentences(found: ScoreSum, texts: dict[str, str]) -> list[str]:
    """The largest entry of the matrix in words, and what is special about the cell."""
    said = []
    if found.closed:
        said.append(
            {
                "padding": _("This cell is masked, because the key is padding. This is the score that it would have."),
                "future": _("This cell is masked, because the key comes later. This is the score that it would have."),
                "edit": _("An edit hides this key from the query. This is the score that it would have."),
            }.get(found.closed, _("This cell is masked. This is the score that it would have."))
        )
    if np.isfinite(found.matrix).all():
        row, column = np.unravel_index(int(np.abs(found.matrix).argmax()), found.matrix.shape)
        form = "z.2f"
        gaps = texts | {
            "value": number(float(found.matrix[row, column]), form),
            "score": number(found.score, form),
            "query_part": stream_parts.name(found.parts_query[row]),
            "key_part": stream_parts.name(found.parts_key[column]),
        }
        said.append(
            _(
                "Largest part: {query_part} at “{query}” × {key_part} at “{key}”: {value}. All parts together: {score}.",
                **gaps,
            )
        )
    if found.distance:
        distance = number(found.distance, "z.2f")
        said.append(_("{distance} of it is a learned number for the distance between the two tokens.", distance=distance))
    said.append(
        _(
            "Rows: what wrote the query, at “{query}”. Columns: what wrote the key, at “{key}”. Each cell is what the two add to "
            "the score; the last row and column are sums. The scaling of each normalization is that of this run.",
            **texts,
        )
    )
    return said


def with_sums(found: ScoreSum) -> tuple[list[str], list[str], Array]:
    """The names of the rows and columns that are shown, the last ones being sums, and the numbers."""
    rows, columns = shown(found)
    inner = stream_parts.added(stream_parts.added(found.matrix, rows, 0), columns, 1)
    values = np.pad(inner, ((0, 1), (0, 1)))
    values[-1, :-1], values[:-1, -1], values[-1, -1] = inner.sum(axis=0), inner.sum(axis=1), inner.sum()
    total = _("sum")
    return [one.name for one in rows] + [total], [one.name for one in columns] + [total], values


def shown(found: ScoreSum) -> tuple[list[Shown], list[Shown]]:
    """The parts of the query and of the key that have a row or column of their own, the largest first."""
    sizes = np.abs(found.matrix)
    rows = stream_parts.shown(found.parts_query, sizes.sum(axis=1), MOST)
    return rows, stream_parts.shown(found.parts_key, sizes.sum(axis=0), MOST)


def _matrix(page: Page, found: ScoreSum, rows: list[Shown], columns: list[Shown], printed: tuple[Trace, str]) -> None:
    """Draws the matrix with its sums."""
    down, across, values = with_sums(found)
    total, form, inner = _("sum"), "z.2f", values[:-1, :-1]
    written = [[number(float(value), form) for value in row] for row in values]
    hover = [
        [f"{one} × {other}: {value}" for other, value in zip(across, row, strict=True)]
        for one, row in zip(down, written, strict=True)
    ]
    figure = grid(
        [one.short for one in rows] + [total],
        [one.short for one in columns] + [total],
        values,
        hover,
        page.dark,
        _("part of the query × part of the key"),
        float(np.abs(inner).max(initial=0)) if np.isfinite(inner).all() else None,
        form,
        LONG,
    )
    alt = _("Matrix: parts of the query × parts of the key; the table below has the numbers")
    chart(figure, printed, key="why-matrix", alt=alt)


def _heads(page: Page, found: ScoreSum, rows: list[Shown], columns: list[Shown], texts: dict[str, str]) -> None:
    """Draws a button for each head that wrote a part which is shown: it opens that head's row."""
    sides = (
        ("query", rows, found.query, _("Follow a head that wrote the query, at “{query}”:", **texts)),
        ("key", columns, found.key, _("Follow a head that wrote the key, at “{key}”:", **texts)),
    )
    for side, groups, position, title in sides:
        heads = [one for one in groups if one.head is not None]
        if heads:
            st.caption(tokens.markdown(title))
        with st.container(horizontal=True, gap="small", key=f"follow-{side}"):
            for place, one in enumerate(heads):
                assert one.head is not None
                fields = stream_parts.row_of(page.trace, one.head, position)
                walked = (*_walked(page, found.query, found.key), "{site}:{head}:{query}:{key}".format(**fields))
                st.button(
                    tokens.markdown(one.name),
                    key=f"follow-{side}-{place}",
                    icon=":material/subdirectory_arrow_right:",
                    type="tertiary",
                    on_click=partial(_go, walked, page.view.stage.partition("/")[2], fields),
                    help=_("Opens the row of this head where it wrote this part."),
                )


def _go(walked: tuple[str, ...], stage: str, fields: dict[str, str | int]) -> None:
    """Goes to a cell, with the cells that led to it."""
    trail = " ".join(walked[-LONGEST_TRAIL:]) if len(walked) > 1 else ""
    update(**fields, minus="", trail=trail, **({"stage": f"{fields['site']}/{stage}"} if stage else {}))


def _walked(page: Page, query: int, key: int) -> tuple[str, ...]:
    """The cells that led here, this one last."""
    here = f"{page.attention.site}:{page.head}:{query}:{key}"
    walked = page.view.of(CircuitView).trail.split()
    return tuple(walked) if walked[-1:] == [here] else (here,)


def _trail(page: Page, query: int, key: int) -> None:
    """Draws the cells that led here; each leads back."""
    walked = _walked(page, query, key)
    if len(walked) < 2:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="trail", gap="small"):
        for place, (site, head, row, column) in enumerate(cells(" ".join(walked[:-1]))):
            if (attention := page.trace.attention.get(Site.parse(site))) is None:
                continue
            keys, reads = tokens.keys(page.trace, attention), tokens.strip(page.trace.tokens[attention.query_tokens])
            gaps = {"head": tokens.site(attention.site, head), "query": _one(reads, row), "key": _one(keys, column)}
            fields: dict[str, str | int] = {"site": site, "head": head, "query": row, "key": column}
            st.button(
                tokens.markdown(_("{head}: “{query}” × “{key}”", **gaps)),
                key=f"trail-{place}",
                icon=":material/arrow_back:",
                type="tertiary",
                on_click=partial(_go, walked[: place + 1], page.view.stage.partition("/")[2], fields),
            )


def _one(labels: list[str], place: int) -> str:
    return labels[place] if place < len(labels) else "?"


def _table(page: Page, found: ScoreSum) -> None:
    """Draws the whole matrix as numbers, every part and bias by itself."""
    table = whole(found.matrix, found)
    with st.expander(_("All parts as numbers"), icon=":material/table:"):
        numeric_tables.draw(table)
        parts = (found.site, f"head-{found.head + 1}", f"query-{found.query + 1}", f"key-{found.key + 1}", "why")
        download.csv(table, page.trace, *parts, label=_("Download all parts as CSV"), key="why-csv")


def whole(matrix: Array, found: ScoreSum) -> pd.DataFrame:
    """The matrix with a row for each part of the query, a column for each part of the key, and sums."""
    columns = [f"{place} {stream_parts.name(part)}" for place, part in enumerate(found.parts_key, start=1)]
    rows = [f"{place} {stream_parts.name(part)}" for place, part in enumerate(found.parts_query, start=1)]
    table = pd.DataFrame(matrix, index=pd.Index(rows, name=_("part of the query")), columns=columns)
    table.insert(0, _("sum"), matrix.sum(axis=1))
    table.loc[_("sum")] = [matrix.sum(), *matrix.sum(axis=0)]
    return table
