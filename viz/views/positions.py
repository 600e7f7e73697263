"""The page Positions: the model's positional encoding, beside the paper's sinusoids."""

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st

from model.engine.api import Explain, Tensors
from model.errors import HeadlightError
from model.requests.network import ROTARY, TABLELESS
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Array, Attention
from viz import canvas
from viz.figures import positions
from viz.i18n.translate import _, _n, error_message
from viz.labels import tokens
from viz.panels import Panel
from viz.session.state import Page, bind
from viz.views import position_panels as panels
from viz.views.position_panels import Encoding, first_dimensions, of_curves, of_similarity, of_values, tensor
from viz.widgets import drawn_panels, numeric_tables, offers
from viz.widgets.cards import by_pointer, card, chart, choose_picture, expander_state, one_screen, say

MOST_POSITIONS = 256
"""Most positions drawn; a longer table is cut, and a sentence says so."""


def show(page: Page) -> None:
    """Draws the page."""
    if page.info.recorded and not page.trace.positions and not any(page.info.spec.values()):
        st.info(_("This recording holds no positional encodings, so there is nothing to draw."))
        return
    stack = _chosen_stack(page)
    kind, name = _kind(page, stack), f"positions/{stack}"
    if kind == "unknown" and tensor(page, name) is not None:
        kind = "learned"  # a run told that a table of the network of images is added, and where
    if kind in TABLELESS and kind != "none":
        if not _draw_in_attention(page, stack, kind):
            st.info(_about_attention(kind))
        _others(page, kind)
        return
    if kind == "none":
        st.info(_("This stack adds no positional information to its embeddings, so there is nothing to draw."))
        _others(page, kind)
        return
    if page.info.recorded and stack not in page.trace.positions:
        st.info(_("This recording holds no positional encodings, so there is nothing to draw."))
        return
    whole = page.engine.ask(Tensors(page.info.name, names=(name,), settings=page.view.parsed_settings()))[name]
    used = len(page.trace.positions.get(stack, ()))
    encodings = _encodings(kind, whole[:MOST_POSITIONS])
    if page.view.big:
        _one_picture(page, encodings, used)
        return
    with card("introduction", "content"):
        if page.info.recorded:
            st.caption(_("A recorded run holds only the positions that it used; the model may have more."))
        _introduce(kind, whole, used)
    _tables(page, encodings, used)
    if not canvas.painted(f"table-{encodings[0].name}"):
        return  # the table reports it and the rest follows: Plotly keeps the browser busy for seconds
    with card("curves", "content"):
        _heading(_("Curves"), _("How each dimension changes from position to position."))
        dimensions = _chosen_dimensions(encodings[0].table.shape[1])
        _side_by_side(encodings, lambda encoding: _curves(page, encoding, dimensions, used))
    _numbers(encodings)
    _formula(page, kind, whole)
    _others(page, kind)


def _others(page: Page, kind: str) -> None:
    """Draws which other models show other kinds of positions; nothing in big mode."""
    if page.view.big:
        return
    if kind.startswith("rotary") or kind not in TABLELESS:
        st.caption(
            _(
                "Other models add a number for each distance to the scores. No bundled or known model does; folders of T5, BLOOM, "
                "MPT and DeBERTa do, and this page draws their numbers as a curve for each head."
            )
        )
    if not kind.startswith("rotary"):
        offers.offer(page, "rotary", _("Open a model with rotary positions"), offers.ROTARY)


def _about_attention(kind: str) -> str:
    """How positions enter the attention of a stack that adds none to its embeddings."""
    if kind.startswith("rotary"):
        return _(
            "This stack adds no positions to its embeddings. Instead, every layer rotates queries and keys by an angle "
            "that depends on their position (RoPE), so there is no table to draw."
        )
    if kind == "unknown":
        return _("How positions enter this network is not known here.")
    return _(
        "This stack adds no positions to its embeddings. Instead, every layer adds a learned number to the scores that "
        "depends on the distance between query and key, so there is no table to draw."
    )


def _kind(page: Page, stack: str) -> str:
    """The kind of a stack's positions; `stored` where only a trace of it is known."""
    return str((page.info.spec[stack] or {}).get("positions", "stored"))


def _chosen_stack(page: Page) -> str:
    """The stack whose positions are shown, by default the first one that has a table."""
    names = {"encoder": _("Encoder"), "decoder": _("Decoder")}
    recorded = page.trace.positions if page.info.recorded else ()
    stacks = [stack for stack in names if page.info.spec[stack] is not None or stack in recorded]
    if len(stacks) == 1:
        return stacks[0]
    tables = [stack for stack in stacks if _kind(page, stack) not in TABLELESS]
    start = (tables or stacks)[0]
    key = f"stack:{page.info.name}"
    label: Literal["collapsed", "visible"] = "collapsed" if page.view.big else "visible"
    chosen = st.segmented_control(
        _("Stack"), stacks, format_func=names.__getitem__, default=start, required=True, key=key, label_visibility=label
    )
    return str(chosen)


def _introduce(kind: str, whole: Array, used: int) -> None:
    numbers = {"positions": len(whole), "width": whole.shape[1], "used": used, "most": MOST_POSITIONS}
    if kind.startswith("learned"):
        does = _("Learned positions: {positions} vectors of {width} numbers, one for each position.", **numbers)
    elif kind == "stored":
        does = _("Stored positions: a table of {positions} vectors of {width} numbers, one for each position.", **numbers)
    else:
        does = _("Sinusoidal positions: {positions} vectors of {width} numbers, computed from sine waves.", **numbers)
    st.markdown(f"**{does}**")
    st.caption(
        _(
            "The vector is added to the embedding of the token at that position. Without it, attention could not tell in which "
            "order the tokens come."
        )
    )
    if used:
        st.caption(
            _n(
                "This sentence uses the first position; the dashed line marks its end.",
                "This sentence uses the first {used} positions; the dashed line marks its end.",
                used,
                **numbers,
            )
        )
    if len(whole) > MOST_POSITIONS:
        st.caption(_("Only the first {most} positions are shown.", **numbers))


def _encodings(kind: str, table: Array) -> list[Encoding]:
    """The model's own table; if it is learned, also the paper's."""
    if kind == "sinusoidal":
        return [Encoding("own", table, _("Sinusoidal"), _("this model"))]
    paper = positions.sinusoids(*table.shape)
    titles = {
        "learned": _("Learned"),
        "stored": _("Stored"),
        "sinusoidal-column": _("Sinusoidal, exponent counted by column"),
        "sinusoidal-halves": _("Sinusoidal, all sines before all cosines"),
        "learned-from-2": _("Learned"),
        "sinusoidal-from-2": _("Sinusoidal, all sines before all cosines"),
    }
    return [
        Encoding("own", table, titles[kind], _("this model")),
        Encoding("paper", paper, _("Sinusoidal"), _("for comparison, not part of this model")),
    ]


def _tables(page: Page, encodings: list[Encoding], used: int) -> None:
    """Draws the vectors and their similarity, each in its own card."""
    with card("table", "content"):
        _heading(_("All values"), _("One row per position, one column per dimension."))
        _side_by_side(encodings, lambda encoding: _values(page, encoding, used))
    with card("alike", "content"):
        _heading(_("Similarity between positions"), _("The dot products of the vectors of all pairs of positions."))
        cosine = st.toggle(_("Cosine similarity (divide by the lengths of both vectors)"), key="cosine")
        _side_by_side(encodings, lambda encoding: _alike(page, encoding, cosine))


def _values(page: Page, encoding: Encoding, used: int) -> None:
    """Draws all values of an encoding; the rest of the page waits until the browser has painted the first."""
    panel = of_values(encoding, used, first=encoding.name == "own")
    drawn_panels.draw(page, panel, f"table-{encoding.name}", keeps=("painted",))


def _alike(page: Page, encoding: Encoding, cosine: bool) -> None:
    """Draws how alike the positions of an encoding are."""
    drawn_panels.draw(page, of_similarity(encoding, cosine), f"alike-{encoding.name}")


def _curves(page: Page, encoding: Encoding, dimensions: list[int], used: int) -> None:
    """Draws some dimensions of an encoding as curves."""
    drawn_panels.draw(page, of_curves(encoding, dimensions, used), f"curves-{encoding.name}", fills=True)


def _one_picture(page: Page, encodings: list[Encoding], used: int) -> None:
    """Draws the picture that fills the screen in big mode, and the choice among them."""
    names = {"values": _("All values"), "curves": _("Curves"), "similarity": _("Similarity between positions")}
    with one_screen():
        picture = choose_picture(names)
        dimensions = first_dimensions(encodings[0].table.shape[1])
        drawn: dict[str, Callable[[Encoding], None]] = {
            "values": lambda encoding: _values(page, encoding, used),
            "curves": lambda encoding: _curves(page, encoding, dimensions, used),
            "similarity": lambda encoding: _alike(page, encoding, cosine=False),
        }
        _side_by_side(encodings, drawn[picture])


def _numbers(encodings: list[Encoding]) -> None:
    """Draws the vectors as tables, which the keyboard reaches; only while they are open."""
    title = _("The numbers behind these charts")
    with st.expander(title, icon=":material/table:", **expander_state("part-positions")) as part:
        for encoding in encodings if part.open else ():
            st.caption(_("{what}: {value}", what=encoding.title, value=encoding.whose))
            rows, columns = (range(1, size + 1) for size in encoding.table.shape)
            table = pd.DataFrame(
                encoding.table, index=pd.Index(rows, name=_("position")), columns=[str(column) for column in columns]
            )
            numeric_tables.draw(table)


def _side_by_side(encodings: list[Encoding], draw: Callable[[Encoding], None]) -> None:
    """Draws the same picture of each encoding in columns, which Streamlit stacks on a phone."""
    for column, encoding in zip(st.columns(len(encodings), gap="medium"), encodings, strict=True):
        with column.container(gap="xsmall"):
            draw(encoding)


def _chosen_dimensions(width: int) -> list[int]:
    """Dimensions to draw as curves, counted from 0."""
    numbers = st.multiselect(
        _("Dimensions (of {width})", width=width),
        range(1, width + 1),
        default=[dimension + 1 for dimension in first_dimensions(width)],
        max_selections=positions.MOST_CURVES,
        key=f"dimensions:{width}",
    )
    return [number - 1 for number in numbers]


def _formula(page: Page, kind: str, whole: Array) -> None:
    """Draws the formula and wavelengths of the sinusoids, the model's own or the ones compared with."""
    count, width = whole.shape
    with card("formula", "content"):
        title = (
            _("The formula of these sinusoids") if kind == "sinusoidal" else _("The formula of the sinusoids shown for comparison")
        )
        _heading(
            title,
            _(
                "Vaswani et al. 2017, “Attention Is All You Need”, section 3.5. In the formula, pos and i start at 0; the "
                "figures count from 1."
            ),
        )
        st.latex(r"PE_{(pos,\,2i)} = \sin\left(pos \,/\, 10000^{\,2i/d_{model}}\right)")
        st.latex(r"PE_{(pos,\,2i+1)} = \cos\left(pos \,/\, 10000^{\,2i/d_{model}}\right)")
        st.latex(r"\lambda_{2i} = \lambda_{2i+1} = 2\pi \cdot 10000^{\,2i/d_{model}}")
        waves = positions.wavelengths(width)
        gaps = {"width": width, "shortest": waves[0], "longest": waves[-1]}
        st.caption(
            _("Wavelengths range from {shortest:.1f} positions (dimension 1) to {longest:,.0f} (dimension {width}).", **gaps)
        )
        title = _("wavelength of each dimension")
        figure = positions.wavelength_curve(waves, page.dark, count, _("dimension"))
        chart(figure, (page.trace, title), key="wavelengths", alt=title)


def _heading(title: str, explanation: str) -> None:
    st.markdown(f"**{title}**")
    st.caption(explanation)


def _draw_in_attention(page: Page, stack: str, kind: str) -> bool:
    """Draws how positions enter the self-attention of a stack; False: its numbers are not known.

    Args:
        kind: the kind of its positions, one of TABLELESS.
    """
    sites = {site: attention for site, attention in page.trace.attention.items() if site.stack == stack and site.kind == "self"}
    if not sites or page.info.recorded:
        return False
    chosen = page.attention.site in sites
    attention, head = sites[page.attention.site if chosen else next(iter(sites))], page.head if chosen else 0
    for name in ("rotation",) if kind in ROTARY else ("biases", "wordless"):
        if (table := panels.tensor(page, f"{name}/{attention.site}")) is not None:
            break
    else:
        return False
    if name == "rotation":
        (_one_picture_in_attention if page.view.big else _rotary)(page, attention, head, table)
    else:
        with one_screen() if page.view.big else card("biases", "content"):
            drawn = panels.of_biases(page, attention, head, table, name if kind != "relative" else "learned")
            drawn_panels.draw(page, drawn, "biases-chart", fills=True)
    return True


def _one_picture_in_attention(page: Page, attention: Attention, head: int, rotation: Array) -> None:
    """Draws the picture of rotary positions that fills the screen in big mode, and the choice among them."""
    names = {"arrows": _("Arrows"), "score": _("The score at other distances"), "waves": _("Wavelength of each pair")}
    of_cell: Mapping[str, Callable[[Page, Attention, Explanation, Array], Panel]]
    of_cell = {"arrows": panels.of_arrows, "score": panels.of_score}
    with one_screen():
        picture = choose_picture(names | {"similarity": _("Similarity between positions")})
        if picture == "waves":
            _waves(page, attention, rotation)
        elif picture == "similarity":
            drawn_panels.draw(page, panels.of_angles(rotation), "rotary-alike-chart")
        elif (explained := _explained(page, attention, head, *_cell(page, attention, head))) is not None:
            key = {"arrows": "rotary-arrows", "score": "rotary-score-chart"}[picture]
            drawn_panels.draw(page, of_cell[picture](page, attention, explained, rotation), key, fills=True)


def _rotary(page: Page, attention: Attention, head: int, rotation: Array) -> None:
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
        explained = _explained(page, attention, head, *_chosen_cell(page, attention, head))
        if explained is not None:
            drawn_panels.draw_words(arrows := panels.of_arrows(page, attention, explained, rotation))
            st.html(by_pointer(_("Point at an arrow to see its actual length."), _("Tap an arrow to see its actual length.")))
            drawn_panels.draw_content(page, arrows, "rotary-arrows")
    left, right = st.columns(2, gap="medium")
    if explained is not None:
        with left, card("rotary-score"):
            drawn_panels.draw(page, panels.of_score(page, attention, explained, rotation), "rotary-score-chart")
    with right, card("rotary-waves"):
        _waves(page, attention, rotation)
    with card("alike", "content"):
        drawn_panels.draw(page, panels.of_angles(rotation), "rotary-alike-chart")


def _waves(page: Page, attention: Attention, rotation: Array) -> None:
    """Draws the wavelength of each pair of columns."""
    waves = panels.of_waves(rotation, len(page.trace.tokens[attention.query_tokens]))
    drawn_panels.draw(page, waves, "rotary-waves-chart", fills=True)


def _explained(page: Page, attention: Attention, head: int, query: int, key: int) -> Explanation | None:
    """The calculation of a cell; None: it cannot be had, and a sentence says why."""
    try:
        return page.engine.ask(Explain(page.view.request(), str(attention.site), head, query, key))
    except HeadlightError as error:
        say(error_message(error))
        return None


def _cell(page: Page, attention: Attention, head: int) -> tuple[int, int]:
    """The chosen query and key, as far as the site has them."""
    queries, keys = attention.mask.shape
    query, key = page.view.query if page.view.query < queries else -1, page.view.key if page.view.key < keys else -1
    return panels.cell_of(query, key, attention.weights[head])


def _chosen_cell(page: Page, attention: Attention, head: int) -> tuple[int, int]:
    """Draws the choice of a query and a key."""
    rows, columns = tokens.queries(page.trace, attention), tokens.keys(page.trace, attention)
    query, key = _cell(page, attention, head)
    left, right = st.columns(2)
    for column, title, field, names, now in ((left, _("Query"), "query", rows, query), (right, _("Key"), "key", columns, key)):
        tied = bind(field)
        st.session_state[tied["key"]] = now
        numbered = [f"{number} · {name}" for number, name in enumerate(names, start=1)]
        column.selectbox(title, range(len(names)), format_func=numbered.__getitem__, **tied)
    return query, key
