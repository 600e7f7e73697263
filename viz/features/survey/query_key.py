"""The queries and keys of a head in a plane, colored as asked; the sentences of those that are selected there."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import streamlit as st

from model.errors import HeadlightError
from model.features.survey.examples import matching
from model.features.survey.plane import Plane, clusters
from model.features.survey.reading import HeadInText, HeadTexts
from model.trace.types import Array, Tokens
from viz.features.survey import plane_figure as figures
from viz.features.survey.selected_head import line, open_button
from viz.i18n.translate import _, error_message, number
from viz.labels import tokens
from viz.session.state import Page
from viz.widgets import numeric_tables
from viz.widgets.cards import chart, say, with_tools

MOST_ROWS = 200
"""Sentences of a selection that are listed."""

CHART = "survey-plane-chart"

NOTHING: Mapping[str, Mapping[str, Any]] = {"selection": {"points": [], "rows": []}}
"""What is selected before anybody selected anything."""


def draw(
    page: Page,
    read: HeadTexts,
    plane: Plane | None,
    no_plane: HeadlightError | None,
    parts: Sequence[tuple[Sequence[str], Sequence[str]]],
) -> None:
    """Draws the plane with how well it tells the scores, and lists the sentences of the selected dots."""
    if no_plane is not None:
        say(error_message(no_plane))
    if plane is None:
        return
    ways = {"kind": _("queries and keys"), "position": _("position"), "token": _("token"), "cluster": _("cluster")}
    ways |= {"part": _("part of speech")} if any(any(named_parts) for named_parts in parts) else {}
    with st.container(horizontal=True, vertical_alignment="bottom", key="survey-plane-colours"):
        way = st.selectbox(_("Color"), list(ways), format_func=ways.__getitem__, key="survey-plane-colour")
        word = st.text_input(_("This word (empty: the most frequent ones)"), key="survey-plane-word") if way == "token" else ""
    groups, values = None, None
    if way == "position":
        values = plane.positions, _("position")
    elif way == "cluster":
        numbers = clusters(plane.points, figures.GROUPS)
        groups = numbers, [_("cluster {number}", number=cluster + 1) for cluster in range(int(numbers.max()) + 1)]
    elif way == "part":
        groups = frequent([part for side in (0, 1) for sides in _known(read, parts) for part in sides[side]])
    elif way == "token":
        groups = _of_word(read.texts, word) if word.strip() else frequent(labels_of(read.texts))
    named = _("queries"), _("keys")
    axes = [
        _("component {number}: {share}% of the variance", number=n + 1, share=number(100 * share, ".0f"))
        for n, share in enumerate(plane.variance)
    ] or ["UMAP 1", "UMAP 2"]
    labels = labels_of(read.texts)
    hover = (
        _("{token} · query {position} · text {text}", **figures.PLACEHOLDERS),
        _("{token} · key {position} · text {text}", **figures.PLACEHOLDERS),
    )
    places = np.stack([plane.positions, plane.texts + 1], axis=1)
    figure = figures.plane(
        plane.points, plane.keys, labels, hover, places, named, (axes[0], axes[1]), page.dark, groups=groups, values=values
    )
    sentence = fit(plane)
    shapes = _("Circles are queries, diamonds are keys.")
    st.caption(tokens.markdown(f"{shapes} {sentence}"))
    config = with_tools(figures.MODES)
    dots = _("Queries and keys as dots in a plane: {count:,}.", count=len(plane.points))
    modes: tuple[Literal["box", "lasso", "points"], ...] = ("box", "lasso", "points")
    chart(figure, fills=True, key=CHART, alt=f"{dots} {sentence}", config=config, on_select="rerun", selection_mode=modes)
    if not page.view.big:
        _selected(page, read, plane)


def fit(plane: Plane) -> str:
    """How well the plane tells the scores, in words."""
    dots = (
        _("The plane shows {plane}% of the variance.", plane=number(sum(plane.variance) * 100, ".0f"))
        if plane.variance
        else _("UMAP keeps neighbors together; its distances and axes have no meaning.")
    )
    if not plane.rows:
        none = _("No row has three keys to compare.")
        return f"{dots} {none}"
    sentence = _(
        "Rank correlation between nearness here and the true scores: within rows {rows} (compared: {count:,}; before the "
        "projection: {whole}), for random pairs {pairs}. 1: the nearest key always has the largest score; 0: nearness says "
        "nothing.",
        rows=number(plane.in_rows, ".2f"),
        whole=number(plane.in_rows_unprojected, ".2f"),
        count=plane.rows,
        pairs=number(plane.in_pairs, ".2f"),
    )
    return f"{dots} {sentence}"


def labels_of(texts: Sequence[HeadInText]) -> list[str]:
    """The text of each point's token."""
    strips = (read.queries if side == 0 else read.keys for side in (0, 1) for read in texts)
    return [tokens.plain(text) for strip in strips for text in strip.texts]


def _known(read: HeadTexts, parts: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[tuple[Sequence[str], Sequence[str]]]:
    """For each text a part of speech of every query and key; empty where none is known."""
    return [
        (named[0] or [""] * len(text.queries), named[1] or [""] * len(text.keys))
        for text, named in zip(read.texts, parts, strict=True)
    ]


def frequent(labels: Sequence[str]) -> tuple[Array, list[str]]:
    """The number of each label among the most frequent ones, -1 for the others and for empty ones; and the names of these."""
    names = [name for name, _times in Counter(filter(None, labels)).most_common(figures.GROUPS)]
    places = {name: number for number, name in enumerate(names)}
    return np.array([places.get(label, -1) for label in labels]), names


def _of_word(texts: Sequence[HeadInText], word: str) -> tuple[Array, list[str]]:
    """0 for each point whose token is, or belongs to, a word; -1 for the others."""
    strips: list[Tokens] = [text.queries if side == 0 else text.keys for side in (0, 1) for text in texts]
    return np.concatenate([matching(strip, word) for strip in strips]).astype(int) - 1, [word.strip()]


def _selected(page: Page, read: HeadTexts, plane: Plane) -> None:
    """Lists the sentences of the selected dots, those with most of them first."""
    event = st.session_state.get(CHART) or NOTHING
    dots = [int(point["customdata"][0]) for point in event["selection"]["points"] if point.get("customdata") is not None]
    rows = sentences([dot for dot in dots if dot < len(plane.points)], read.texts, plane)
    if not rows:
        st.caption(_("To list the texts of dots, choose the line or the box above the picture, then draw it around them."))
        return
    table = pd.DataFrame(
        [(count, ", ".join(words), line(read.asked[read.places[text]])) for text, count, words in rows[:MOST_ROWS]],
        columns=["dots", "tokens", "text"],
    )
    numeric_tables.draw(
        table,
        titles={"dots": _("dots"), "tokens": _("tokens"), "text": _("text")},
        hide_index=True,
        key="survey-plane-rows",
        on_select="rerun",
        selection_mode="single-row",
    )
    chosen = [row for row in (st.session_state.get("survey-plane-rows") or NOTHING)["selection"]["rows"] if row < len(table)]
    text = read.asked[read.places[rows[chosen[0] if chosen else 0][0]]]
    head = read.question.site, read.question.head
    open_button(page, text, head, "survey-plane-open", edits=read.question.edits)


def sentences(dots: Sequence[int], texts: Sequence[HeadInText], plane: Plane) -> list[tuple[int, int, list[str]]]:
    """For each text with selected dots its number, how many there are and the tokens of these, those with most dots first."""
    words_of: dict[int, list[str]] = {}
    for dot in dots:
        head_in_text = texts[text := int(plane.texts[dot])]
        strip = head_in_text.keys if plane.keys[dot] else head_in_text.queries
        words_of.setdefault(text, []).append(tokens.plain(strip.texts[int(plane.positions[dot])]))
    rows = [(text, len(words), list(dict.fromkeys(words))) for text, words in words_of.items()]
    return sorted(rows, key=lambda row: (-row[1], row[0]))
