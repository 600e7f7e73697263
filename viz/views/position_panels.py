"""The panels of the page Positions: the table that is added to embeddings, or what rotary positions do to a head."""

from collections.abc import Iterator, Sequence

import numpy as np

from model.engine.api import Explain, Tensors
from model.errors import UnknownTensor
from model.spec.network import TABLELESS
from model.trace.types import Array, Attention
from viz.canvas.scenes import matrix
from viz.figures.costs import Line
from viz.figures.positions import alike
from viz.figures.rotary import shown_pairs
from viz.i18n.translate import _, _n
from viz.labels import tokens
from viz.metrics.rotary import position_vectors, scores_by_distance, turned
from viz.panels import Arrows, Chart, NotDrawable, Panel, Scene
from viz.session.state import Page
from viz.url.view_state import ViewState
from viz.views.relative_positions import ALIKE, FARTHEST

MOST_COLUMNS = 128
"""Most dimensions of a vector that are drawn."""

MOST_POSITIONS = 64
"""Most positions of a table that are drawn."""


def panels(page: Page, link: ViewState) -> list[Panel]:
    """The table of the first stack that has one, and how alike its positions are; else what rotary positions do."""
    stacks = [stack for stack in ("encoder", "decoder") if page.info.spec[stack] is not None]
    with_table = [stack for stack in stacks if page.info.spec[stack]["positions"] not in TABLELESS]
    if not with_table:
        return list(of_rotation(page))
    name = f"positions/{with_table[0]}"
    table = page.engine.ask(Tensors(page.info.name, names=(name,), settings=page.view.parsed_settings()))[name][:MOST_POSITIONS]
    places = [str(place + 1) for place in range(len(table))]
    wide = table[:, :MOST_COLUMNS]
    dimensions = [str(place + 1) for place in range(wide.shape[1])]
    values = Scene("Cells", matrix.numbers(wide, places, dimensions, (_("position"), _("dimension"))))
    similar = Scene("Cells", matrix.numbers(alike(table), places, places, (_("position"), _("position"))))
    about = _("The dot products of the vectors of all pairs of positions.")
    return [
        Panel("table", _("All values"), values, _("One row per position, one column per dimension."), width="half"),
        Panel("alike", _("Similarity between positions"), similar, about, width="half"),
    ]


def of_rotation(page: Page) -> Iterator[Panel]:
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
        yield Panel("arrows", title, Arrows(names, before[columns], found.q[columns]), note)
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
        chart = Chart(distances.tolist(), line, axes, mark=(apart, found.score))
        yield Panel("distance", _("The score at other distances"), chart, said)
    if wanted in ("all", "waves"):
        axes, title = (_("pair"), _("wavelength (positions)")), _("Wavelength of each pair")
        line = [Line(title, waves.tolist())]
        chart = Chart(range(1, len(waves) + 1), line, axes, (False, True), level=float(len(strip)))
        yield Panel("waves", title, chart, _("The dashed line is the length of the text."))
    if wanted in ("all", "similarity"):
        vectors, places = position_vectors(rotation, ALIKE), [str(place + 1) for place in range(ALIKE)]
        note = _("The mean cosine, over all pairs, of the angle between two positions: it depends only on their distance.")
        scene = matrix.numbers(alike(vectors, cosine=True), places, places, (_("position"), _("position")))
        yield Panel("alike", _("Similarity between positions"), Scene("Cells", scene), note)


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
