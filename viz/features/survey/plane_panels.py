"""The panels of one head read again in many texts: its queries and keys in a plane, and examples of its cells."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from model.features.survey.examples import Examples, matching
from model.features.survey.plane import Plane, clusters
from model.features.survey.reading import HeadInText, HeadTexts
from model.trace.types import Array, Tokens
from viz.features.survey import plane_figure as figures
from viz.features.survey.head_panels import line
from viz.i18n.translate import _, number
from viz.labels import tokens
from viz.panels import Panel, Plot, Table

PartsOfSpeech = Sequence[tuple[Sequence[str], Sequence[str]]]
"""For each text the parts of speech of its queries and of its keys; empty where none is known."""


Way: TypeAlias = Literal["kind", "position", "token", "cluster", "part"]


@dataclass(frozen=True)
class Colouring:
    """What colors the dots of a plane.

    Attributes:
        way: by what.
        word: the word whose tokens are colored; empty: the most frequent ones.
    """

    way: Way = "kind"
    word: str = ""


def of_plane(read: HeadTexts, plane: Plane, parts: PartsOfSpeech, colouring: Colouring) -> Panel:
    """The queries and keys of a head in a plane, and how well it tells the scores."""
    groups, values = _groups(read, plane, parts, colouring), None
    if colouring.way == "position":
        values = plane.positions, _("position")
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
    shapes, fitness = _("Circles are queries, diamonds are keys."), fit(plane)
    dots = _("Queries and keys as dots in a plane: {count:,}.", count=len(plane.points))

    def draw(dark: bool) -> go.Figure:
        return figures.plane(
            plane.points, plane.keys, labels, hover, places, named, (axes[0], axes[1]), dark, groups=groups, values=values
        )

    return Panel("survey-plane", "", Plot(draw, f"{dots} {fitness}", "survey-plane"), f"{shapes} {fitness}")


def _groups(read: HeadTexts, plane: Plane, parts: PartsOfSpeech, colouring: Colouring) -> tuple[Array, Sequence[str]] | None:
    """The number of each dot's group, and the names of the groups; None: there are none."""
    match colouring.way:
        case "cluster":
            numbers = clusters(plane.points, figures.GROUPS)
            return numbers, [_("cluster {number}", number=index + 1) for index in range(int(numbers.max()) + 1)]
        case "part":
            return frequent([part for side in (0, 1) for known in _known(read, parts) for part in known[side]])
        case "token":
            return _of_word(read.texts, colouring.word) if colouring.word.strip() else frequent(labels_of(read.texts))
    return None


def fit(plane: Plane) -> str:
    """How well the plane tells the scores, in words."""
    spread = (
        _("The plane shows {plane}% of the variance.", plane=number(sum(plane.variance) * 100, ".0f"))
        if plane.variance
        else _("UMAP keeps neighbors together; its distances and axes have no meaning.")
    )
    if not plane.rows:
        none = _("No row has three keys to compare.")
        return f"{spread} {none}"
    agreement = _(
        "Rank correlation between nearness here and the true scores: within rows {rows} (compared: {count:,}; before the "
        "projection: {whole}), for random pairs {pairs}. 1: the nearest key always has the largest score; 0: nearness says "
        "nothing.",
        rows=number(plane.in_rows, ".2f"),
        whole=number(plane.in_rows_unprojected, ".2f"),
        count=plane.rows,
        pairs=number(plane.in_pairs, ".2f"),
    )
    return f"{spread} {agreement}"


def labels_of(texts: Sequence[HeadInText]) -> list[str]:
    """The text of each point's token."""
    strips = (own.queries if side == 0 else own.keys for side in (0, 1) for own in texts)
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
    places = {name: index for index, name in enumerate(names)}
    return np.array([places.get(label, -1) for label in labels]), names


def _of_word(texts: Sequence[HeadInText], word: str) -> tuple[Array, list[str]]:
    """0 for each point whose token is, or belongs to, a word; -1 for the others."""
    strips: list[Tokens] = [text.queries if side == 0 else text.keys for side in (0, 1) for text in texts]
    return np.concatenate([matching(strip, word) for strip in strips]).astype(int) - 1, [word.strip()]


def of_examples(read: HeadTexts, examples: Examples) -> Panel:
    """The cells with the largest weights among those that were looked for."""
    rows = []
    for example in examples.examples:
        text = read.texts[example.text]
        words = tokens.plain(text.queries.texts[example.query]), tokens.plain(text.keys.texts[example.key])
        rows.append((example.weight, *words, line(read.asked[read.places[example.text]])))
    titles = {"weight": _("weight"), "row": _("row"), "key": _("key"), "text": _("text")}
    frame = pd.DataFrame(rows, columns=list(titles))
    return Panel("survey-examples", _("Examples of this head"), Table(frame, titles=titles, named=False))


def about_examples(examples: Examples, least: float) -> str:
    """How many cells there are, and how many chance would give."""
    if not examples.of:
        return _("No row with more than one key has such a cell.")
    fields = {
        "of": examples.of,
        "count": examples.count,
        "least": number(least, ".2f"),
        "texts": examples.texts,
        "uniform": examples.uniform,
    }
    fields |= {
        "dealt": number(examples.dealt, ",.1f"),
        "mean": number(examples.mean, ".3f"),
        "even": number(examples.uniform_mean, ".3f"),
    }
    return _(
        "Cells with these words: {of:,}. With a weight of at least {least}: {count:,} (texts: {texts:,}). By "
        "chance, if the weights of each row were in random order: {dealt}; with equal weights: {uniform:,}. "
        "Mean weight: {mean}; with equal weights: {even}.",
        **fields,
    )
