"""The panels of the page Positions: tables that are added to embeddings, rotary positions, and numbers for each distance."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from model.engine.api import Explain, Tensors
from model.errors import UnknownTensor
from model.requests.network import TABLELESS
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Array, Attention
from viz.canvas.scenes import matrix
from viz.canvas.wire import strings
from viz.figures import positions, rotary
from viz.figures.costs import Line
from viz.i18n.translate import _, _n, titled
from viz.labels import alt_text, tokens
from viz.metrics.rotary import position_vectors, scores_by_distance, turned
from viz.panels import Arrows, Chart, NotDrawable, Panel, Plot, Scene
from viz.session.state import Page
from viz.url.view_state import ViewState

FARTHEST = 64
"""Distances at which a score is drawn."""

ALIKE = 64
"""Positions whose similarity is drawn."""

MOST_COLUMNS = 128
"""Most dimensions of a vector that a lecture draws."""

MOST_POSITIONS = 64
"""Most positions of a table that a lecture draws."""


@dataclass(frozen=True, eq=False)
class Encoding:
    """A table [position, model] with the texts above its pictures; `name` is short, for keys and files."""

    name: str
    table: Array
    title: str
    whose: str


def panels(page: Page, link: ViewState) -> list[Panel]:
    """The table of the first stack that has one; else what enters its attention. The link's `picture` leaves one of them."""
    stacks = [stack for stack in ("encoder", "decoder") if page.info.spec[stack] is not None]
    with_table = [stack for stack in stacks if page.info.spec[stack]["positions"] not in TABLELESS]
    every = _of_table(page, with_table[0]) if with_table else _of_attention(page)
    return [every[link.picture]()] if link.picture in every else [make() for make in every.values()][: 2 if with_table else None]


def _of_table(page: Page, stack: str) -> Mapping[str, Callable[[], Panel]]:
    """What is drawn of the table of a stack, by the name in a link's `picture`."""
    name = f"positions/{stack}"
    table = page.engine.ask(Tensors(page.info.name, names=(name,), settings=page.view.parsed_settings()))[name][:MOST_POSITIONS]
    encoding = Encoding("own", table, "", _("this model"))
    wide = Encoding("own", table[:, :MOST_COLUMNS], "", _("this model"))
    return {
        "values": lambda: beside(of_values(wide), _("All values"), _("One row per position, one column per dimension.")),
        "similarity": lambda: beside(
            of_similarity(encoding),
            _("Similarity between positions"),
            _("The dot products of the vectors of all pairs of positions."),
        ),
        "curves": lambda: beside(
            of_curves(encoding, first_dimensions(table.shape[1])),
            _("Curves"),
            _("How each dimension changes from position to position."),
        ),
    }


def _of_attention(page: Page) -> Mapping[str, Callable[[], Panel]]:
    """What is drawn of positions that enter the attention itself, by the name in a link's `picture`.

    Raises:
        NotDrawable: this model has none, or its numbers are not known.
    """
    attention, head = page.attention, page.head
    if (rotation := tensor(page, f"rotation/{attention.site}")) is None:
        return {"biases": lambda: of_biases(page, attention, head, *_biases(page, attention))}
    cell = cell_of(page.view.query, page.view.key, attention.weights[head])
    explained = page.engine.ask(Explain(page.view.request(), str(attention.site), head, *cell))
    return {
        "arrows": lambda: of_arrows(page, attention, explained, rotation),
        "score": lambda: of_score(page, attention, explained, rotation),
        "waves": lambda: of_waves(rotation, len(page.trace.tokens[attention.query_tokens])),
        "similarity": lambda: of_angles(rotation),
    }


def _biases(page: Page, attention: Attention) -> tuple[Array, str]:
    """The numbers of a site [head, distance], and their kind.

    Raises:
        NotDrawable: this model has none, or they are not known.
    """
    spec = page.info.spec[attention.site.stack] or {}
    for name in ("biases", "wordless"):
        if (table := tensor(page, f"{name}/{attention.site}")) is not None:
            return table, name if spec.get("positions") != "relative" else "learned"
    raise NotDrawable(_("This model adds no positions to its embeddings, so there is no table to draw."))


def of_values(encoding: Encoding, used: int = 0, first: bool = False) -> Panel:
    """All values of an encoding.

    Args:
        used: positions of the text at hand, after which there is a dashed line; 0: no line.
        first: whether its page draws the rest once this is painted.
    """
    alt = described(encoding, encoding.table, _("dimensions"))
    rows, columns = ([str(position + 1) for position in range(size)] for size in encoding.table.shape)
    axes, bar = (_("position"), _("dimension")), (_("value"), positions.Scale.of(encoding.table, bounded=False))
    description = matrix.Told(encoding.title, alt, strings.axes(*axes), bar, used, first=first)
    plot = Plot(lambda dark: positions.whole_table(encoding.table, dark, used=used), alt, f"table-{encoding.name}", encoding.title)
    scene = Scene("Cells", matrix.numbers(encoding.table, rows, columns, axes, told=description))
    return Panel("table", encoding.title, scene, encoding.whose, paper=lambda: (plot,))


def of_similarity(encoding: Encoding, cosine: bool = False) -> Panel:
    """How alike the positions of an encoding are."""
    alt = described(encoding, positions.alike(encoding.table, cosine), _("positions"))
    return _similarity(encoding.table, encoding.title, encoding.whose, alt, cosine, f"alike-{encoding.name}")


def _similarity(table: Array, title: str, words: str, alt: str, cosine: bool, name: str) -> Panel:
    """The dot products, or the cosines, of all pairs of rows."""
    values, numbers = positions.alike(table, cosine), [str(position + 1) for position in range(len(table))]
    axes = _("position"), _("position")
    bar = _("cosine") if cosine else _("dot product"), positions.Scale.of(values, bounded=cosine)
    description = matrix.Told(title, alt, strings.axes(*axes), bar, square=True)
    plot = Plot(lambda dark: positions.similarity(table, dark, cosine=cosine), alt, name, title)
    scene = Scene("Cells", matrix.numbers(values, numbers, numbers, axes, told=description))
    return Panel("alike", title, scene, words, paper=lambda: (plot,))


def of_curves(encoding: Encoding, dimensions: Sequence[int], used: int = 0) -> Panel:
    """Some dimensions of an encoding as curves.

    Args:
        dimensions: counted from 0.
        used: as for `of_values`.
    """
    alt = described(encoding, encoding.table, _("dimensions"))
    plot = Plot(lambda dark: positions.curves(encoding.table, list(dimensions), dark, used), alt, f"curves-{encoding.name}")
    return Panel("curves", encoding.title, plot, encoding.whose)


def beside(panel: Panel, title: str, words: str) -> Panel:
    """A panel of the only encoding, under the title of what is drawn."""
    return replace(panel, title=title, words=words, width="half")


def described(encoding: Encoding, values: Array, across: str) -> str:
    """Numbers of an encoding in words."""
    whose = _("{what}: {value}", what=encoding.title, value=encoding.whose) if encoding.title else encoding.whose
    return titled(whose, alt_text.table(values, across))


def first_dimensions(width: int) -> list[int]:
    """Dimensions whose curves are drawn until others are chosen, counted from 0."""
    return sorted({min(width - 1, width // part) for part in (8, 4)} | {0})


def of_arrows(page: Page, attention: Attention, explained: Explanation, rotation: Array) -> Panel:
    """The pairs of a cell's query as arrows, before and after they are turned.

    Args:
        explained: the calculation of the cell.
        rotation: [pair, 3].
    """
    pairs, before = rotary.shown_pairs(rotation), turned(explained.q, rotation, -explained.query)
    columns = rotation[pairs, :2].astype(int)
    where = {
        "head": tokens.head_name(page.trace, attention.site, explained.head),
        "word": tokens.token(page.trace.tokens[attention.query_tokens], explained.query),
        "position": explained.query + 1,
    }
    title = _("{head}: the query “{word}”, rotated for position {position}", **where)
    names = [_("pair {number}", number=pair + 1) for pair in pairs]
    arrows = Arrows(
        names,
        before[columns],
        explained.q[columns],
        lambda dark: rotary.arrows(before, explained.q, rotation, dark, explained.query),
    )
    return Panel("arrows", title, arrows, _("Dotted: before the rotation. All arrows are drawn with the same length."))


def of_score(page: Page, attention: Attention, explained: Explanation, rotation: Array) -> Panel:
    """The score of a cell at all distances, and how little moving query and key together changes; arguments as for `of_arrows`."""
    apart, strip = explained.query - explained.key, page.trace.tokens[attention.query_tokens]
    distances = np.arange(min(0, apart), max(FARTHEST, apart) + 1)
    scores = scores_by_distance(explained.q, explained.k, rotation, explained.scale, apart, distances)
    moved = np.arange(1, 101)
    both = (turned(explained.q, rotation, moved) * turned(explained.k, rotation, moved)).sum(axis=-1) * explained.scale
    words = _n(
        "“{query}” and “{key}” with the key moved. The dot is this run: {count} position apart, {score:.3f}.",
        "“{query}” and “{key}” with the key moved. The dot is this run: {count} positions apart, {score:.3f}.",
        abs(apart),
        count=abs(apart),
        query=tokens.token(strip, explained.query),
        key=tokens.token(strip, explained.key),
        score=explained.score,
    )
    error = tokens.power_of_ten(float(np.abs(both - explained.score).max()))
    about = _("If both move together, by 1 to 100 positions, the score stays the same: largest difference {error}.", error=error)
    chart = Chart(
        distances.tolist(),
        [Line(_("score"), scores.tolist())],
        (_("positions before the query"), _("score")),
        mark=(apart, explained.score),
        plot=lambda dark: rotary.score_curve(distances, scores, (apart, explained.score), dark),
    )
    return Panel("distance", _("The score at other distances"), chart, words, about)


def of_waves(rotation: Array, length: int) -> Panel:
    """The wavelength of each pair of columns.

    Args:
        rotation: [pair, 3].
        length: of the text, in tokens.
    """
    waves, title = 2 * np.pi / rotation[:, 2], _("Wavelength of each pair")
    about = _("Short waves tell neighbors apart; long ones distinguish near from far.")
    chart = Chart(
        range(1, len(waves) + 1),
        [Line(title, waves.tolist())],
        (_("pair"), _("wavelength (positions)")),
        (False, True),
        level=float(length),
        plot=lambda dark: positions.wavelength_curve(waves, dark, length, _("pair")),
    )
    return Panel("waves", title, chart, _("The dashed line is the length of the text."), about)


def of_angles(rotation: Array) -> Panel:
    """How alike the positions are that a rotation [pair, 3] tells apart."""
    vectors, title = position_vectors(rotation, ALIKE), _("Similarity between positions")
    words = _("The mean cosine, over all pairs, of the angle between two positions: it depends only on their distance.")
    alt = alt_text.table(positions.alike(vectors, cosine=True), _("positions"))
    return _similarity(vectors, title, words, alt, cosine=True, name="rotary-alike")


def of_biases(page: Page, attention: Attention, head: int, table: Array, kind: str) -> Panel:
    """The numbers that each head adds to its scores, by distance.

    Args:
        table: [head, distance].
        kind: `learned`; `biases`: fixed slopes times the distance; `wordless`: the part of DeBERTa's that no word changes.
    """
    middle = table.shape[1] // 2
    far = middle if attention.site.stack == "encoder" else 0  # a decoder's keys after the query are masked
    distances = range(-middle, far + 1)
    title = _("Numbers added to the scores, by distance")
    name = tokens.head_name(page.trace, attention.site, head)
    words = {
        "biases": _(
            "This stack adds no positions to its embeddings. Each head takes a number from each score instead: its slope, "
            "which is fixed, times the distance between query and key (ALiBi). In color: {head}.",
            head=name,
        ),
        "learned": _(
            "This stack adds no positions to its embeddings. Each head adds a learned number to each score instead, which "
            "depends on the distance between query and key. All layers share these numbers. In color: {head}.",
            head=name,
        ),
        "wordless": _(
            "Each head multiplies its query, and its key, with a learned vector for the distance between them, and adds both "
            "products to the score (DeBERTa). They depend on the words. These curves are the part that is the same for all "
            "words: the products with the biases of queries and keys. In color: {head}.",
            head=name,
        ),
    }
    names, kept = tokens.head_names(page.trace, attention.site, range(attention.heads)), table[:, : len(distances)]
    plot = Plot(lambda dark: rotary.bias_curves(kept, distances, names, head, dark), alt_text.table(kept, _("distances")), "biases")
    return Panel("biases", title, plot, about=words[kind])


def tensor(page: Page, name: str) -> Array | None:
    """A tensor of the model; None: it has none of that name."""
    try:
        return page.engine.ask(Tensors(page.info.name, names=(name,), settings=page.view.parsed_settings()))[name]
    except UnknownTensor:
        return None


def cell_of(query: int, key: int, weights: Sequence[Array] | Array) -> tuple[int, int]:
    """A link's cell; without one the last query, and the key with its largest weight."""
    query = query if query >= 0 else len(weights) - 1
    return query, key if key >= 0 else int(np.nanargmax(weights[query]))
