"""The figures that every run has, and the captions of figures."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from model.errors import BadSetting
from model.trace.types import Array, Attention, Trace
from viz.canvas.scenes import overlay
from viz.features.print import line_plot as joined
from viz.features.print.atlas import atlas
from viz.features.print.beam_tree import tree
from viz.features.print.candidates import candidates
from viz.features.print.image_overlay import image_overlay
from viz.features.print.network_map import network
from viz.features.print.options import Options
from viz.features.print.plotly_chart import chart
from viz.features.print.shapes import Drawing
from viz.features.print.token_strips import strips
from viz.figures import arithmetic, heatmap, masks, positions
from viz.figures.annotated_heatmap import grid
from viz.i18n.translate import _, language_of, localized
from viz.i18n.translate import join_sentences as prose
from viz.labels import alt_text, edits
from viz.labels import tokens as labels
from viz.labels.images import name_of
from viz.labels.sounds import described

LEAST_WRITTEN = 0.045
"""Smaller weights have no number in their cell, as on the screen."""


@dataclass(frozen=True)
class Figure:
    """One picture that can be drawn for print.

    Attributes:
        name: short, for files and commands.
        title: what it shows, as its title.
        draw: makes the sheet.
    """

    name: str
    title: str
    draw: Callable[[Options], Drawing]


@dataclass(frozen=True)
class Choice:
    """The part of a run that a figure shows.

    Attributes:
        attention: the site.
        head: counted from 0.
        query, key: the cell, counted from 0; -1: none.
        hypothesis: rank of the hypothesis that a beam search's run describes.
        overlay: how weights lie over an image, as the parameter of a link says it.
    """

    attention: Attention
    head: int = 0
    query: int = -1
    key: int = -1
    hypothesis: int = 0
    overlay: str = ""


def standard_figures(trace: Trace, choice: Choice) -> tuple[Figure, ...]:
    """The figures of a run that need nothing but its trace: head, lines, the head over an image that was read, atlas, strips,
    candidates, map of the network, masks, positions, scores, beam tree, arithmetic.

    Raises:
        UnknownHead: the site has no such head.
    """
    choice.attention.head(choice.head)
    figures = [*_of_head(trace, choice), _atlas(trace), *_of_run(trace), *_masks(trace, choice), *_positions(trace)]
    figures += _scores(trace, choice)
    figures += [_tree(trace, choice)] if trace.tree else []
    return (*figures, *_arithmetic(trace, choice))


def figure_called(trace: Trace, choice: Choice, name: str) -> Figure:
    """The standard figure of a name.

    Raises:
        BadSetting: this run has no such figure.
        UnknownHead: the site has no such head.
    """
    figures = {figure.name: figure for figure in standard_figures(trace, choice)}
    if name not in figures:
        raise BadSetting(name="the picture", found=name, allowed=f"one of {', '.join(figures)} for this run")
    return figures[name]


def of_chart(name: str, title: str, drawn: go.Figure, description: str = "") -> Figure:
    """A Plotly figure of a page, for print."""
    return Figure(name, title, lambda options: chart(drawn, options, title, description))


def of_image(trace: Trace, choice: Choice, name: str, title: str, values: Array) -> Figure:
    """Values [query, key] of a site over the image that was read: the row or the column of the selected query."""
    token, site = overlay.token_of(choice.query, choice.attention), choice.attention.site
    keys = labels.keys(trace, choice.attention, longest=None)
    description = alt_text.row(labels.queries(trace, choice.attention, longest=None)[token], keys, np.nan_to_num(values[token]))
    return Figure(
        name, title, lambda options: image_overlay(trace, site, values, token, choice.overlay, options, title, description)
    )


def caption(trace: Trace, title: str, link: str = "") -> str:
    """Text to put below a figure: what it shows, the model, the sentence, what was altered, and the link that shows it again."""
    parts = [_("{title}. Model: {model}.", title=title, model=labels.model(trace)), *_sentences(trace)]
    if altered := edits.sentence(trace.request):
        parts.append(_("{sentence}.", sentence=altered))
    return " ".join([prose(parts), *([link] if link else [])])


def _sentences(trace: Trace) -> Iterator[str]:
    """Each strip as a sentence: “source: …”; of an image its name."""
    if trace.image is not None:
        yield _("Image: {name}.", name=name_of(trace))
    if trace.sound is not None:
        yield _("{sentence}.", sentence=described(trace))
    for name, tokens in trace.tokens.items():
        if name == "source" and (trace.image is not None or trace.sound is not None):
            continue
        texts = [text for text, special in zip(tokens.texts, tokens.special, strict=True) if not special]
        yield _("{language}: “{text}”.", language=language_of(trace, name), text=labels.line(texts))


def numbered(trace: Trace, choice: Choice) -> go.Figure:
    """The heatmap of a head with the weights in its cells, two decimals."""
    drawn = heatmap.head_weights(trace, choice.attention, choice.head, dark=False, query=choice.query)
    weights = choice.attention.head(choice.head)
    drawn.data[0].text = [[localized(f"{weight:.2f}") if weight >= LEAST_WRITTEN else "" for weight in row] for row in weights]
    drawn.data[0].texttemplate = "%{text}"
    return drawn


def _of_head(trace: Trace, choice: Choice) -> Iterator[Figure]:
    site = choice.attention.site
    name = labels.head_name(trace, site, choice.head)
    description = alt_text.head(trace, choice.attention, choice.head)
    drawn = numbered(trace, choice)
    yield of_chart("head", name, drawn, description)
    sides = joined.of_head(trace, site, choice.head, choice.query)
    yield Figure("lines", name, lambda options: joined.lines(sides, options, name, description))
    if overlay.fits(trace, site):
        yield of_image(trace, choice, "image", name, choice.attention.head(choice.head))


def _atlas(trace: Trace) -> Figure:
    title = _("All attention heads")
    return Figure("atlas", title, lambda options: atlas(trace, options, title, alt_text.overview(trace)))


def _of_run(trace: Trace) -> Iterator[Figure]:
    """The tokens, the steps of a decode, and the map of the network."""
    description = prose(_sentences(trace))
    tokens, decoding, plan = _("Tokens"), _("Most likely tokens of each step"), _("Map of the network")
    yield Figure("strips", tokens, lambda options: strips(trace, options, tokens, description))
    if trace.steps:
        yield Figure("candidates", decoding, lambda options: candidates(trace, options, decoding, description))
    yield Figure("network", plan, lambda options: network(trace, options, plan, description))


def _masks(trace: Trace, choice: Choice) -> Iterator[Figure]:
    attention, where = choice.attention, labels.site(choice.attention.site)
    by_name = {
        "mask": (_("Mask: {site}", site=where), attention.mask),
        "mask-causal": (_("Causal mask: {site}", site=where), attention.mask_causal),
        "mask-padding": (_("Padding mask: {site}", site=where), attention.mask_padding),
    }
    for name, (title, allowed) in by_name.items():
        if allowed is not None:
            drawn = masks.mask(trace, attention, allowed, "boolean", dark=False)
            yield of_chart(name, title, drawn, alt_text.mask(trace, attention, allowed))


def _scores(trace: Trace, choice: Choice) -> list[Figure]:
    """The scores of the head before the mask, where the run recorded them."""
    if choice.attention.scores is None:
        return []
    scores = choice.attention.scores[choice.head].astype(float)
    queries, keys = labels.queries(trace, choice.attention), labels.keys(trace, choice.attention)
    drawn = grid(queries, keys, np.where(np.isfinite(scores), scores, np.nan), [[""] * len(keys)] * len(queries), False, _("score"))
    title = _("Scores: {site}", site=labels.site(choice.attention.site, choice.head))
    return [of_chart("scores", title, drawn, alt_text.table(scores, labels.key_axis(trace, choice.attention.site)))]


def _positions(trace: Trace) -> Iterator[Figure]:
    for stack, table in trace.positions.items():
        fields = {"stack": labels.stack(stack)}
        description = alt_text.table(table, _("dimensions"))
        title = _("Positional encodings: {stack}", **fields)
        yield of_chart(f"positions-{stack}", title, positions.whole_table(table, dark=False), description)
        curves = sorted({0, table.shape[1] // 8, table.shape[1] // 4})
        yield of_chart(f"positions-{stack}-curves", title, positions.curves(table, curves, dark=False), description)


def _tree(trace: Trace, choice: Choice) -> Figure:
    title, description = _("Beam search"), alt_text.tree(trace.tree)
    return Figure("tree", title, lambda options: tree(trace, options, title, description, choice.hypothesis))


def _arithmetic(trace: Trace, choice: Choice) -> Iterator[Figure]:
    """The query and the key of one cell, dimension by dimension, where the run recorded them."""
    attention, query, key = choice.attention, choice.query, choice.key
    if attention.q is None or attention.k is None or not (0 <= query < attention.q.shape[1] and 0 <= key < attention.k.shape[1]):
        return
    fields = {"query": labels.queries(trace, attention)[query], "key": labels.keys(trace, attention)[key]}
    title = _("Query, key and their products: “{query}” attends to “{key}”", **fields)
    drawn = arithmetic.products(attention.q[choice.head, query], attention.k[choice.head, key], dark=False)
    yield of_chart("arithmetic", title, drawn, alt_text.head(trace, attention, choice.head))
