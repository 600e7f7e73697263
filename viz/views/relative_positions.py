"""The part of the page Positions for stacks that add no table: rotary positions, and learned numbers for each distance."""

import numpy as np
import streamlit as st

from model.engine.api import Explain, Tensors
from model.errors import HeadlightError, UnknownTensor
from model.spec.network import ROTARY
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Array, Attention, Trace
from viz import canvas
from viz.canvas.scenes import matrix
from viz.canvas.wire import strings
from viz.export.print.catalogue import Figure, of_chart
from viz.figures import positions, rotary
from viz.i18n.translate import _, _n, error_message
from viz.labels import alt_text, tokens
from viz.metrics.rotary import position_vectors, scores_by_distance, turned
from viz.session.state import Page, address, bind
from viz.widgets import print_dialog
from viz.widgets.cards import by_pointer, card, chart, choose_picture, one_screen, say

FARTHEST = 64
"""Distances at which a score is drawn."""

ALIKE = 64
"""Positions whose similarity is drawn."""


def show(page: Page, stack: str, kind: str) -> bool:
    """Draws how positions enter the self-attention of a stack; False: its numbers are not known.

    Args:
        kind: the kind of its positions, one of TABLELESS.
    """
    sites = {site: own for site, own in page.trace.attention.items() if site.stack == stack and site.kind == "self"}
    if not sites or page.info.recorded:
        return False
    chosen = page.attention.site in sites
    own, head = sites[page.attention.site if chosen else next(iter(sites))], page.head if chosen else 0
    for name in ("rotation",) if kind in ROTARY else ("biases", "wordless"):
        if (table := tensor(page, f"{name}/{own.site}")) is not None:
            break
    else:
        return False
    if name == "rotation":
        (_one_picture if page.view.big else _rotary)(page, own, head, table)
    else:
        _biases(page, own, head, table, name if kind != "relative" else "learned")
    return True


def _one_picture(page: Page, own: Attention, head: int, rotation: Array) -> None:
    """Draws the picture of rotary positions that fills the screen in big mode, and the choice among them."""
    names = {"arrows": _("Arrows"), "score": _("The score at other distances"), "waves": _("Wavelength of each pair")}
    with one_screen():
        picture = choose_picture(names | {"similarity": _("Similarity between positions")})
        if picture == "waves":
            _waves(page, own, 2 * np.pi / rotation[:, 2])
        elif picture == "similarity":
            _alike(page, rotation)
        elif (found := _explained(page, own, head, *_cell(page, own, head))) is not None:
            (_arrows if picture == "arrows" else _score)(page, own, found, rotation)


def _rotary(page: Page, own: Attention, head: int, rotation: Array) -> None:
    """Draws what rotary positions do to a head."""
    waves = 2 * np.pi / rotation[:, 2]
    with card("rotary", "content"):
        title = _("Rotary positions: queries and keys are rotated, nothing is added")
        st.markdown(f"**{title}**")
        st.caption(
            _(
                "Each head rotates {columns} columns of its queries and keys in pairs: the first pair once in {shortest:.1f} "
                "positions, the last one once in {longest:,.0f}. A score then depends on how far query and key are apart, and not "
                "on where they are.",
                columns=2 * len(rotation),
                shortest=waves[0],
                longest=waves[-1],
            )
        )
        found = _explained(page, own, head, *_chosen_cell(page, own, head))
        if found is not None:
            _arrows(page, own, found, rotation)
    left, right = st.columns(2, gap="medium")
    if found is not None:
        with left, card("rotary-score"):
            _score(page, own, found, rotation)
    with right, card("rotary-waves"):
        _waves(page, own, waves)
    with card("alike", "content"):
        _alike(page, rotation)


def _explained(page: Page, own: Attention, head: int, query: int, key: int) -> Explanation | None:
    """The calculation of a cell; None: it cannot be had, and a sentence says why."""
    try:
        return page.engine.ask(Explain(page.view.request(), str(own.site), head, query, key))
    except HeadlightError as error:
        say(error_message(error))
        return None


def _waves(page: Page, own: Attention, waves: Array) -> None:
    """Draws the wavelength of each pair of columns."""
    title = _("Wavelength of each pair")
    st.markdown(f"**{title}**")
    st.caption(
        _("Short waves tell neighbors apart; long ones distinguish near from far. The dashed line is the length of your text.")
    )
    figure = positions.wavelength_curve(waves, page.dark, len(page.trace.tokens[own.query_tokens]), _("pair"))
    chart(figure, (page.trace, title), fills=True, key="rotary-waves-chart", alt=title)


def _alike(page: Page, rotation: Array) -> None:
    """Draws how alike the positions are."""
    title = _("Similarity between positions")
    st.markdown(f"**{title}**")
    st.caption(_("The mean cosine, over all pairs, of the angle between two positions: it depends only on their distance."))
    vectors = position_vectors(rotation, ALIKE)
    words = alt_text.table(positions.alike(vectors, cosine=True), _("positions"))
    draw_similarity(page.trace, vectors, ("rotary-alike-chart", title), words, cosine=True)


def draw_similarity(trace: Trace, table: Array, named: tuple[str, str], alt: str, cosine: bool) -> None:
    """Draws the dot products, or the cosines, of all pairs of positions, and the button that saves them for print.

    Args:
        trace: the run.
        table: [position, model].
        named: the key of the drawing, and its title.
        alt: the picture in words.
        cosine: whether to show cosines.
    """
    key, title = named
    values, places, axes = positions.alike(table, cosine), [str(place + 1) for place in range(len(table))], (_("position"),) * 2
    bar = _("cosine") if cosine else _("dot product"), positions.Scale.of(values, bounded=cosine)
    told = matrix.Told(title, alt, strings.axes(*axes), bar, square=True)
    canvas.draw("cells", matrix.numbers(values, places, places, axes, told=told), key=key)

    def printed() -> list[Figure]:
        return [of_chart(key, title, positions.similarity(table, dark=False, cosine=cosine), alt)]

    print_dialog.button(printed, trace, address(), key)


def _cell(page: Page, own: Attention, head: int) -> tuple[int, int]:
    """The chosen query and key; without a choice, the last query and the key with its largest weight."""
    queries, keys = own.mask.shape
    query = page.view.query if 0 <= page.view.query < queries else queries - 1
    return query, page.view.key if 0 <= page.view.key < keys else int(np.nanargmax(own.weights[head, query]))


def _chosen_cell(page: Page, own: Attention, head: int) -> tuple[int, int]:
    """Draws the choice of a query and a key."""
    rows, columns = tokens.queries(page.trace, own), tokens.keys(page.trace, own)
    query, key = _cell(page, own, head)
    left, right = st.columns(2)
    for column, title, field, names, now in ((left, _("Query"), "query", rows, query), (right, _("Key"), "key", columns, key)):
        tied = bind(field)
        st.session_state[tied["key"]] = now
        numbered = [f"{place} · {name}" for place, name in enumerate(names, start=1)]
        column.selectbox(title, range(len(names)), format_func=numbered.__getitem__, **tied)
    return query, key


def _arrows(page: Page, own: Attention, found: Explanation, rotation: Array) -> None:
    """Draws the pairs of the query as arrows, before and after they are turned."""
    name = tokens.head_name(page.trace, own.site, found.head)
    gaps = {"head": name, "word": tokens.token(page.trace.tokens[own.query_tokens], found.query), "position": found.query + 1}
    title = _("{head}: the query “{word}”, rotated for position {position}", **gaps)
    st.markdown(f"**{tokens.markdown(title)}**")
    st.html(
        by_pointer(
            _("Dotted: before the rotation. All arrows are drawn with the same length; point at one to see its actual length."),
            _("Dotted: before the rotation. All arrows are drawn with the same length; tap one to see its actual length."),
        )
    )
    figure = rotary.arrows(turned(found.q, rotation, -found.query), found.q, rotation, page.dark, found.query)
    chart(figure, (page.trace, title), fills=True, key="rotary-arrows", alt=title)


def _score(page: Page, own: Attention, found: Explanation, rotation: Array) -> None:
    """Draws the score of the chosen query and key at all distances, and says that moving both changes nothing."""
    apart = found.query - found.key
    distances = np.arange(min(0, apart), max(FARTHEST, apart) + 1)
    scores = scores_by_distance(found.q, found.k, rotation, found.scale, apart, distances)
    moved = np.arange(1, 101)
    both = (turned(found.q, rotation, moved) * turned(found.k, rotation, moved)).sum(axis=-1) * found.scale
    title = _("The score at other distances")
    st.markdown(f"**{title}**")
    error = tokens.power_of_ten(float(np.abs(both - found.score).max()))
    strip = page.trace.tokens[own.query_tokens]
    st.caption(
        tokens.markdown(
            _n(
                "“{query}” and “{key}” with the key moved. The dot is this run: {count} position apart, {score:.3f}.",
                "“{query}” and “{key}” with the key moved. The dot is this run: {count} positions apart, {score:.3f}.",
                abs(apart),
                count=abs(apart),
                query=tokens.token(strip, found.query),
                key=tokens.token(strip, found.key),
                score=found.score,
            )
        )
    )
    st.caption(
        _("If both move together, by 1 to 100 positions, the score stays the same: largest difference {error}.", error=error)
    )
    figure = rotary.score_curve(distances, scores, (apart, found.score), page.dark)
    chart(figure, (page.trace, title), fills=True, key="rotary-score-chart", alt=title)


def _biases(page: Page, own: Attention, head: int, table: Array, kind: str) -> None:
    """Draws the numbers that each head adds to its scores, by distance.

    Args:
        kind: `learned`; `biases`: fixed slopes times the distance; `wordless`: the part of DeBERTa's that no word changes.
    """
    middle = table.shape[1] // 2
    far = middle if own.site.stack == "encoder" else 0  # a decoder's keys after the query are masked
    distances = range(-middle, far + 1)
    title = _("Numbers added to the scores, by distance")
    with one_screen() if page.view.big else card("biases", "content"):
        st.markdown(f"**{title}**")
        name = tokens.head_name(page.trace, own.site, head)
        said = {
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
        st.caption(said[kind])
        names = tokens.head_names(page.trace, own.site, range(own.heads))
        figure = rotary.bias_curves(table[:, : len(distances)], distances, names, head, page.dark)
        words = alt_text.table(table[:, : len(distances)], _("distances"))
        chart(figure, (page.trace, title), fills=True, key="biases-chart", alt=words)


def tensor(page: Page, name: str) -> Array | None:
    """A tensor of the model; None: it has none of that name."""
    try:
        return page.engine.ask(Tensors(page.info.name, names=(name,), settings=page.view.parsed_settings()))[name]
    except UnknownTensor:
        return None
