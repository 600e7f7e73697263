"""Why a score is what it is: what wrote the query, times what wrote the key, as a small matrix that adds up to it."""

import math
from functools import partial

import numpy as np
import streamlit as st

from model.errors import HeadlightError
from model.features.circuit.sums import LogitSum, ScoreSum, Why
from model.trace.cell_arithmetic import TOLERANCE
from model.trace.types import Site
from viz.features.circuit import stream_parts
from viz.features.circuit import why_panels as panels
from viz.features.circuit.stream_parts import Shown
from viz.features.circuit.view import LONGEST_TRAIL, CircuitView, cells
from viz.i18n.translate import _, error_message
from viz.labels import tokens
from viz.session.state import Page, bind, update
from viz.widgets import download, drawn_panels
from viz.widgets.cards import card, say


def draw(page: Page, query: int, key: int) -> None:
    """Draws why the score of a cell is what it is, or says why that is not known.

    Args:
        query, key: counted from 0.
    """
    with card("why", "content"):
        _trail(page, query, key)
        _comparison(page, key)
        try:
            question = Why(page.view.request(), str(page.attention.site), page.head, query, key, panels.compared(page))
            score_sum = page.engine.ask(question)
        except HeadlightError as error:
            say(error_message(error))
            _saved(page)
            return
        matrix = panels.of_score(page, score_sum)
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**{tokens.markdown(matrix.title)}**", width="content")
            badge(score_sum)
        for sentence in (*matrix.words.splitlines(), *stream_parts.about_the_run(page, bool(np.isfinite(score_sum.matrix).all()))):
            st.caption(tokens.markdown(sentence))
        drawn_panels.draw_content(page, matrix, "why-matrix")
        _heads(page, score_sum, *panels.shown(score_sum), panels.cell_texts(page, score_sum))
        _table(page, score_sum)


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


def badge(total: ScoreSum | LogitSum) -> None:
    """Draws whether the sum is what the run recorded: in words, with an icon and a color."""
    fields = {"difference": tokens.power_of_ten(total.difference), "tolerance": tokens.power_of_ten(total.tolerance)}
    if total.agrees:
        words = _("Adds up to what the run recorded, difference {difference}", **fields)
        if total.tolerance > TOLERANCE["float32"]:  # of a lower precision, or where large parts cancel
            words = _("Adds up to what the run recorded: difference {difference}, tolerance {tolerance}", **fields)
        st.badge(words, icon=":material/check:", color="green")
    elif math.isfinite(total.difference):
        words = _("Does not add up to what the run recorded: difference {difference}, tolerance {tolerance}", **fields)
        st.badge(words, icon=":material/error:", color="red")
    else:
        st.badge(_("Cannot be checked: it contains NaN or infinite values"), icon=":material/error:", color="red")


def _comparison(page: Page, key: int) -> None:
    """Draws the choice of what the score is compared with."""
    keys = tokens.keys(page.trace, page.attention, longest=None)
    titles = {"": _("the score itself"), "mean": _("the mean score of the row")}
    titles |= {str(index): f"{index + 1} {text}" for index, text in enumerate(keys) if index != key}
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


def _heads(page: Page, score_sum: ScoreSum, rows: list[Shown], columns: list[Shown], texts: dict[str, str]) -> None:
    """Draws a button for each head that wrote a part which is shown: it opens that head's row."""
    sides = (
        ("query", rows, score_sum.query, _("Follow a head that wrote the query, at “{query}”:", **texts)),
        ("key", columns, score_sum.key, _("Follow a head that wrote the key, at “{key}”:", **texts)),
    )
    for side, groups, position, title in sides:
        heads = [part for part in groups if part.head is not None]
        if heads:
            st.caption(tokens.markdown(title))
        with st.container(horizontal=True, gap="small", key=f"follow-{side}"):
            for index, part in enumerate(heads):
                assert part.head is not None
                fields = stream_parts.row_of(page.trace, part.head, position)
                walked = (*_walked(page, score_sum.query, score_sum.key), "{site}:{head}:{query}:{key}".format(**fields))
                st.button(
                    tokens.markdown(part.name),
                    key=f"follow-{side}-{index}",
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
        for step, (site, head, row, column) in enumerate(cells(" ".join(walked[:-1]))):
            if (attention := page.trace.attention.get(Site.parse(site))) is None:
                continue
            keys, reads = tokens.keys(page.trace, attention), tokens.strip(page.trace.tokens[attention.query_tokens])
            gaps = {"head": tokens.site(attention.site, head), "query": _one(reads, row), "key": _one(keys, column)}
            fields: dict[str, str | int] = {"site": site, "head": head, "query": row, "key": column}
            st.button(
                tokens.markdown(_("{head}: “{query}” × “{key}”", **gaps)),
                key=f"trail-{step}",
                icon=":material/arrow_back:",
                type="tertiary",
                on_click=partial(_go, walked[: step + 1], page.view.stage.partition("/")[2], fields),
            )


def _one(labels: list[str], index: int) -> str:
    return labels[index] if index < len(labels) else "?"


def _table(page: Page, score_sum: ScoreSum) -> None:
    """Draws the whole matrix as numbers, every part and bias by itself."""
    all_parts = panels.of_numbers(score_sum)
    with st.expander(all_parts.title, icon=":material/table:"):
        drawn_panels.draw_content(page, all_parts, all_parts.name)
        parts = (score_sum.site, f"head-{score_sum.head + 1}", f"query-{score_sum.query + 1}", f"key-{score_sum.key + 1}", "why")
        table = panels.whole(score_sum.matrix, score_sum)
        download.csv(table, page.trace, *parts, label=_("Download all parts as CSV"), key="why-csv")
