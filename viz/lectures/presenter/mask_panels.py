"""Panels of masks and positions of today: the mask of each layer, attention sinks, and what rotary positions do to a head."""

from collections.abc import Iterator, Sequence

import numpy as np

from model.engine.api import Explain, Tensors
from model.errors import UnknownTensor
from model.measures.of_run import weight_on
from model.trace.types import Array, Attention
from viz.canvas.scenes import matrix
from viz.canvas.wire import strings
from viz.features.modern_attention import mask_kinds
from viz.figures.costs import Line
from viz.figures.positions import alike
from viz.figures.rotary import shown_pairs
from viz.i18n.translate import _, _n
from viz.labels import tokens
from viz.lectures.presenter import tables
from viz.lectures.presenter.explore_panels import PanelWithScene
from viz.lectures.presenter.headless_page import NotDrawable
from viz.lectures.presenter.panels import Panel
from viz.metrics import sinks
from viz.metrics.rotary import position_vectors, scores_by_distance, turned
from viz.session.state import Page
from viz.views.relative_positions import ALIKE, FARTHEST


def of_kinds(page: Page) -> Iterator[PanelWithScene]:
    """The mask of the site, and a table of the masks of all layers of its stack."""
    own, layers = page.attention, page.trace.of(page.attention.site.stack, "self")
    scene = matrix.mask(own.mask, tokens.queries(page.trace, own), tokens.keys(page.trace, own), strings.cells("mask"))
    yield Panel("Cells", "mask", tokens.site(own.site)), scene
    table = tables.of_frame(mask_kinds.table(layers).iloc[:, :1])
    yield Panel("Table", "kinds", _("The mask of each layer"), mask_kinds.reaches(layers)), table


def of_sinks(page: Page) -> Iterator[PanelWithScene]:
    """The first token's share in every head, or, of a model with learned sinks, the selected head with its sink as a column.

    Raises:
        NotDrawable: the site is no self-attention, or layers differ in their heads.
    """
    layers = page.trace.of(page.attention.site.stack, "self")
    if len({own.heads for own in layers}) > 1 or page.attention not in layers:
        raise NotDrawable(_("This run contains no attention, so there is nothing to show here."))
    lacks = [sinks.sink_shares(own.weights, own.mask) for own in layers]
    if not any(lack.any() for lack in lacks):
        shares = np.array([weight_on(page.trace, own, [0]) for own in layers])
        note = strings.axes(_("head"), _("layer"))
        yield Panel("Cells", "first", _("The first token’s share, layer by layer"), note), _of_heads(shares)
        return
    own, lack = page.attention, lacks[layers.index(page.attention)][page.head]
    shown = np.concatenate([np.where(own.mask, own.weights[page.head], np.nan), lack[:, None]], axis=1)
    rows, keys = tokens.queries(page.trace, own), [*tokens.keys(page.trace, own), _("sink")]
    axes = tokens.query_axis(page.trace, own.site), tokens.key_axis(page.trace, own.site)
    title = _("{head}: its sink is the last column", head=tokens.head_name(page.trace, own.site, page.head))
    yield Panel("Cells", "learned", title), matrix.numbers(shown, rows, keys, axes, "weights")
    means = np.array([each.mean(axis=1) for each in lacks])
    yield Panel("Cells", "sink", _("Learned sinks"), strings.axes(_("head"), _("layer"))), _of_heads(means)


def _of_heads(shares: Array) -> bytes:
    """The scene of numbers [layer, head], layers from left to right."""
    heads, layers = (tuple(str(place + 1) for place in range(size)) for size in shares.T.shape)
    return matrix.numbers(shares.T, heads, layers, (_("head"), _("layer")), "weights")


def of_rotation(page: Page) -> Iterator[PanelWithScene]:
    """What rotary positions do to the link's cell; the link's `picture` leaves one kind of drawing.

    Raises:
        HeadlightError: the calculation of the cell is not known.
        NotDrawable: this model has no rotary positions, or their angles are not known.
    """
    own, rotation = page.attention, rotation_of(page, page.attention)
    query, key = cell_of(page.view.query, page.view.key, own.weights[page.head])
    found = page.engine.ask(Explain(page.view.request(), str(own.site), page.head, query, key))
    strip, waves = page.trace.tokens[own.query_tokens], 2 * np.pi / rotation[:, 2]
    wanted = page.view.picture if page.view.picture in ("arrows", "score", "waves", "similarity") else "all"
    if wanted in ("all", "arrows"):
        pairs = shown_pairs(rotation)
        columns = rotation[pairs, :2].astype(int)
        gaps = {
            "head": tokens.head_name(page.trace, own.site, page.head),
            "word": tokens.token(strip, query),
            "position": query + 1,
        }
        title = _("{head}: the query “{word}”, rotated for position {position}", **gaps)
        note = _("Dotted: before the rotation. All arrows are drawn with the same length.")
        names = [_("pair {number}", number=pair + 1) for pair in pairs]
        before = turned(found.q, rotation, -query)
        yield Panel("Arrows", "arrows", title, note), tables.arrows(names, before[columns], found.q[columns])
    if wanted in ("all", "score"):
        apart = query - key
        distances = np.arange(min(0, apart), max(FARTHEST, apart) + 1)
        scores = scores_by_distance(found.q, found.k, rotation, found.scale, apart, distances)
        said = _n(
            "“{query}” and “{key}” with the key moved. The dot is this run: {count} position apart, {score:.3f}.",
            "“{query}” and “{key}” with the key moved. The dot is this run: {count} positions apart, {score:.3f}.",
            abs(apart),
            count=abs(apart),
            query=tokens.token(strip, query),
            key=tokens.token(strip, key),
            score=found.score,
        )
        axes = _("positions before the query"), _("score")
        line = [Line(_("score"), scores.tolist())]
        scene = tables.chart(distances.tolist(), line, axes, mark=(apart, found.score))
        yield Panel("Chart", "distance", _("The score at other distances"), said), scene
    if wanted in ("all", "waves"):
        axes, title = (_("pair"), _("wavelength (positions)")), _("Wavelength of each pair")
        line = [Line(title, waves.tolist())]
        scene = tables.chart(range(1, len(waves) + 1), line, axes, (False, True), level=float(len(strip)))
        yield Panel("Chart", "waves", title, _("The dashed line is the length of the text.")), scene
    if wanted in ("all", "similarity"):
        vectors, places = position_vectors(rotation, ALIKE), [str(place + 1) for place in range(ALIKE)]
        note = _("The mean cosine, over all pairs, of the angle between two positions: it depends only on their distance.")
        scene = matrix.numbers(alike(vectors, cosine=True), places, places, (_("position"), _("position")))
        yield Panel("Cells", "alike", _("Similarity between positions"), note), scene


def rotation_of(page: Page, own: Attention) -> Array:
    """The rotation [pair, 3] of a site.

    Raises:
        NotDrawable: this model has none, or it is not known.
    """
    name = f"rotation/{own.site}"
    try:
        return page.engine.ask(Tensors(page.info.name, names=(name,), settings=page.view.parsed_settings()))[name]
    except UnknownTensor as error:
        raise NotDrawable(_("This model adds no positions to its embeddings, so there is no table to draw.")) from error


def cell_of(query: int, key: int, weights: Sequence[Array] | Array) -> tuple[int, int]:
    """A link's cell; without one the last query, and the key with its largest weight."""
    query = query if query >= 0 else len(weights) - 1
    return query, key if key >= 0 else int(np.nanargmax(weights[query]))
