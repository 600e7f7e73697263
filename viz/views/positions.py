"""The page Positions: the model's positional encoding, beside the paper's sinusoids."""

from collections.abc import Callable
from dataclasses import dataclass

import plotly.graph_objects as go
import streamlit as st

from model.trace.types import Array
from viz.figures import positions
from viz.figures.frame import CONFIG
from viz.page import Page
from viz.texts import _

MOST_POSITIONS = 256
"""Most positions drawn; a longer table is cut, and a sentence says so."""


@dataclass(frozen=True)
class Encoding:
    """A table [position, model] with the texts above its pictures."""

    name: str
    table: Array
    title: str
    whose: str


def show(page: Page) -> None:
    """Draws the page."""
    stack = _chosen_stack(page)
    kind = page.info.spec[stack]["positions"]
    if kind in ("rotary", "relative"):
        st.info(_about_attention(kind))
        return
    if kind == "none":
        st.info(_("This stack adds nothing to its embeddings that would tell positions apart: there is nothing to draw."))
        return
    whole = page.engine.tensors(page.info.name, (f"positions/{stack}",), page.view.told())[f"positions/{stack}"]
    used = len(page.trace.positions.get(stack, ()))
    with st.container(border=True, key="card-introduction"):
        _introduce(kind, whole, used)
    _pictures(page, _encodings(kind, whole[:MOST_POSITIONS]), used)
    _formula(page, kind, whole)


def _about_attention(kind: str) -> str:
    """How positions enter the attention of a stack that adds none to its embeddings."""
    if kind == "rotary":
        return _(
            "This stack adds no positions to its embeddings: in each layer, queries and keys are rotated by theirs before they are "
            "compared. There is no table to draw."
        )
    return _(
        "This stack adds no positions to its embeddings: in each layer, scores get a learned number for the distance of query and "
        "key. There is no table to draw."
    )


def _chosen_stack(page: Page) -> str:
    """The stack whose positions are shown, by default that of the selected site."""
    names = {"encoder": _("Encoder"), "decoder": _("Decoder")}
    stacks = [stack for stack in names if page.info.spec[stack] is not None]
    if len(stacks) == 1:
        return stacks[0]
    start = page.attention.site.stack
    return str(st.segmented_control(_("Positions of"), stacks, format_func=names.__getitem__, default=start, required=True))


def _introduce(kind: str, whole: Array, used: int) -> None:
    gaps = {"positions": len(whole), "width": whole.shape[1], "used": used, "most": MOST_POSITIONS}
    if kind == "learned":
        does = _("This stack learned a vector of {width} numbers for each of its {positions} positions.", **gaps)
    elif kind == "stored":
        does = _("This stack has a vector of {width} numbers for each of its {positions} positions: a table in its file.", **gaps)
    else:
        does = _("This stack has a vector of {width} numbers for each of its {positions} positions: waves, by a formula.", **gaps)
    st.markdown(f"**{does}**")
    st.caption(_("It is added to the embedding of the token that stands there. Without it, attention would not know any order."))
    if used:
        st.caption(_("The sentence at hand takes the first {used} positions: a dashed line marks where it ends.", **gaps))
    if len(whole) > MOST_POSITIONS:
        st.caption(_("The pictures show the first {most} positions.", **gaps))


def _encodings(kind: str, table: Array) -> list[Encoding]:
    """The model's own table; if it is learned, also the paper's."""
    if kind == "sinusoidal":
        return [Encoding("own", table, _("Sinusoidal"), _("this model"))]
    paper = positions.sinusoids(*table.shape)
    titles = {
        "learned": _("Learned"),
        "stored": _("Stored"),
        "sinusoidal-column": _("Sinusoidal, counted by column"),
        "sinusoidal-halves": _("Sinusoidal, all sines before all cosines"),
    }
    return [
        Encoding("own", table, titles[kind], _("this model")),
        Encoding("paper", paper, _("Sinusoidal"), _("for comparison, not part of this model")),
    ]


def _pictures(page: Page, encodings: list[Encoding], used: int) -> None:
    """Draws each kind of picture in its own card."""
    with st.container(border=True, key="card-table"):
        _heading(_("Every value"), _("A row for each position, a column for each dimension."))
        _side_by_side(encodings, "table", lambda table: positions.whole_table(table, page.dark, used))
    with st.container(border=True, key="card-curves"):
        _heading(_("Curves"), _("How the value of a dimension goes from position to position."))
        dimensions = _chosen_dimensions(encodings[0].table.shape[1])
        _side_by_side(encodings, "curves", lambda table: positions.curves(table, dimensions, page.dark, used))
    with st.container(border=True, key="card-alike"):
        _heading(_("Which positions are alike"), _("The dot product of the vectors of two positions, for all pairs."))
        cosine = st.toggle(_("Cosine: divide by the lengths of both vectors"))
        _side_by_side(encodings, "alike", lambda table: positions.similarity(table, page.dark, cosine))


def _side_by_side(encodings: list[Encoding], name: str, draw: Callable[[Array], go.Figure]) -> None:
    """Draws the same picture of each encoding in columns, which Streamlit stacks on a phone."""
    for column, encoding in zip(st.columns(len(encodings), gap="medium"), encodings, strict=True):
        with column.container(gap="xsmall"):
            _heading(encoding.title, encoding.whose)
            _chart(draw(encoding.table), f"{name}-{encoding.name}", f"{encoding.title}: {encoding.whose}")


def _chart(figure: go.Figure, key: str, alt: str) -> None:
    st.plotly_chart(figure, width="stretch", config=CONFIG, theme=None, key=key, alt=alt)


def _chosen_dimensions(width: int) -> list[int]:
    """Dimensions to draw as curves, counted from 0."""
    first = sorted({min(width - 1, width // part) for part in (8, 4)} | {0})
    numbers = st.multiselect(
        _("Dimensions (of {width})", width=width),
        range(1, width + 1),
        default=[dimension + 1 for dimension in first],
        max_selections=positions.MOST_CURVES,
        key=f"dimensions:{width}",
    )
    return [number - 1 for number in numbers]


def _formula(page: Page, kind: str, whole: Array) -> None:
    """Draws the formula and wavelengths of the sinusoids, the model's own or the ones compared with."""
    count, width = whole.shape
    with st.container(border=True, key="card-formula"):
        title = _("The formula of these sinusoids") if kind == "sinusoidal" else _("The formula of the sinusoids beside")
        _heading(title, _("Vaswani et al. 2017, “Attention Is All You Need”, section 3.5. In the formula, pos and i count from 0."))
        st.latex(r"PE_{(pos,\,2i)} = \sin\left(pos \,/\, 10000^{\,2i/d_{model}}\right)")
        st.latex(r"PE_{(pos,\,2i+1)} = \cos\left(pos \,/\, 10000^{\,2i/d_{model}}\right)")
        st.latex(r"\lambda_{2i} = \lambda_{2i+1} = 2\pi \cdot 10000^{\,2i/d_{model}}")
        waves = positions.wavelengths(width)
        gaps = {"width": width, "shortest": waves[0], "longest": waves[-1]}
        st.caption(
            _("A wave of dimension 1 spans {shortest:.1f} positions; one of dimension {width} spans {longest:,.0f}.", **gaps)
        )
        _chart(positions.wavelength_curve(width, page.dark, count), "wavelengths", _("wavelength of each dimension"))


def _heading(title: str, explanation: str) -> None:
    st.markdown(f"**{title}**")
    st.caption(explanation)
