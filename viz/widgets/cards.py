"""The parts that pages are built of: cards, panels, charts, banners, and the widgets' arguments that recur."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Literal

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.trace.types import Trace
from viz.feature import draw_parts
from viz.figures.layout import CONFIG, projected
from viz.i18n.translate import _
from viz.labels import edits, tokens
from viz.panels import Picture, Plot
from viz.session.state import Page, bind, get_view_state, update
from viz.url import view_state
from viz.widgets import panel_help, recorded_run


def expander_state(key: str, opened: str = "", parts: Sequence[str] = ()) -> dict[str, Any]:
    """Keyword arguments for an expander whose content is drawn only while it is open.

    Streamlit knows an expander by its title, too: without its state set here, it would close when the language changes.

    Args:
        opened: the open parts that the link names, joined by spaces.
        parts: those that are in this expander, beside `key`.
    """
    st.session_state[key] = bool(st.session_state.get(key, not {key, *parts}.isdisjoint(opened.split())))
    return {"key": key, "on_change": "rerun"}


def choosing_head(table: pd.DataFrame, key: str, **also: object) -> dict[str, Any]:
    """Keyword arguments for a table indexed by site and head: a click on a row selects its head.

    Args:
        also: fields to reset then, with their values.
    """

    def choose() -> None:
        for row in st.session_state[key].selection.rows:
            site, head = table.index[row]
            update(site=site, head=int(head), **also)

    return {"key": key, "on_select": choose}


def heading(title: str, subtitle: str = "", help_of: str = "") -> str:
    """Heading of a card as HTML, for `st.html`: two plain texts, the second one smaller, and the help of the panel `help_of`. Its
    role, not its name, says that it is a heading: Streamlit has its own sizes for those that are named so.

    A heading with help saves a message for each sentence: the card is then made with `helped=False`.
    """
    small = f'<p class="small">{escape(subtitle)}</p>' if subtitle else ""
    return f'<p class="heading" role="heading" aria-level="2">{escape(title)}</p>{small}{panel_help.html(help_of)}'


def by_pointer(mouse: str, touch: str) -> str:
    """A sentence as HTML that says for a mouse and for a finger what to do: two plain texts, of which page.css shows one."""
    return f'<p class="small"><span class="by-mouse">{escape(mouse)}</span><span class="by-touch">{escape(touch)}</span></p>'


def card(name: str, height: Literal["stretch", "content"] = "stretch", *, helped: bool = True) -> DeltaGenerator:
    """Bordered container, by default as high as its row, with its help in the corner: `with column, card("name"):`."""
    box = st.container(border=True, height=height, key=f"card-{name}")
    return _with_help(box, name) if helped else box


def panel(name: str) -> DeltaGenerator:
    """Container without a border for a drawing that has its own, with its help above the upper right corner."""
    return _with_help(st.container(key=f"panel-{name}"), name)


def one_screen() -> DeltaGenerator:
    """Container for the one picture that fills the screen in big mode: the page then does not scroll."""
    return st.container(key="one-screen", gap="small")


def choose_picture(names: dict[str, str]) -> str:
    """Draws the choice among a page's pictures in big mode; the first one, if the link names a picture of another page.

    Args:
        names: the words for each picture.
    """
    tied = bind("picture")
    picture = st.session_state[tied["key"]]
    picture = st.session_state[tied["key"]] = picture if picture in names else next(iter(names))
    st.segmented_control(
        _("Picture"), list(names), format_func=names.__getitem__, required=True, label_visibility="collapsed", **tied
    )
    return str(picture)


def _with_help(box: DeltaGenerator, name: str) -> DeltaGenerator:
    if help_ := panel_help.html(name):
        box.html(help_)
    return box


def chart(figure: go.Figure, printed: tuple[Trace, str] | None = None, *, fills: bool = False, **options: Any) -> None:
    """Draws a figure, larger in big mode.

    Args:
        figure: what is drawn.
        printed: the run that it shows and its title, if it can be saved for print.
        fills: whether it is the one picture of its page in big mode, and as high as its place there.
        options: those of `st.plotly_chart`; without a `config`, no tool bar.
    """
    big = get_view_state()[0].big
    height: Literal["stretch", "content"] = "stretch" if big and fills else "content"
    options.setdefault("config", CONFIG)
    st.plotly_chart(projected(figure, fills) if big else figure, width="stretch", height=height, theme=None, **options)
    if printed is not None:
        (trace, title), name = printed, str(options["key"])
        plot = Plot(lambda dark: figure, str(options.get("alt", "")), name, title)
        draw_parts("picture", Picture(name, trace, lambda: [plot]))


def with_tools(modes: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The `config` of a chart with a tool bar, whose buttons are named in the language of the page.

    Args:
        modes: Plotly's names of the buttons, group by group.
    """
    names = {"Box Select": _("Box select"), "Lasso Select": _("Lasso select"), "Zoom": _("Zoom"), "Pan": _("Pan")}
    names |= {"Reset axes": _("Reset axes")}
    return CONFIG | {
        "displayModeBar": True,
        "modeBarButtons": modes,
        "locale": "page",
        "locales": {"page": {"dictionary": names}},
    }


def say(problem: str) -> None:
    """Shows a sentence about a request that could not be met. It may quote typed text."""
    st.warning(tokens.markdown(problem), icon=":material/info:")


def banner(page: Page) -> None:
    """Says above a page that its run was altered or continued from a chosen token, with a button that undoes it.

    Of an opened trace it says what ran, and nothing can be undone.
    """
    if page.info.recorded:
        _recorded(page)
        return
    _undoable("experiment", ":material/science:", edits.sentence(page.trace.request), edits.UNALTERED)
    _undoable("continued", ":material/alt_route:", edits.continued(page.trace), view_state.new_sentence())
    if page.trace.recorded is not None:
        with st.container(key="recorded", gap=None):
            recorded_run.draw_sites(page.trace, page.attention.site, [])


def _recorded(page: Page) -> None:
    """Draws the sentences about an opened trace."""
    sentences = (recorded_run.about(page.trace), edits.sentence(page.trace.request), edits.continued(page.trace))
    with st.container(key="recorded", gap=None):
        st.markdown(f":material/history: {tokens.markdown(' · '.join(filter(None, sentences)))}")
        absent = _("A recording contains no model, so nothing can be typed, changed or recomputed.")
        recorded_run.draw_sites(page.trace, page.attention.site, [absent])


def _undoable(key: str, icon: str, sentence: str, undone: Mapping[str, Any]) -> None:
    """Draws a sentence, if there is one, with a button that sets fields of the state."""
    if not sentence:
        return
    with st.container(horizontal=True, vertical_alignment="center", key=key):
        st.markdown(f"{icon} {tokens.markdown(sentence)}")
        button = "undo" if key == "experiment" else f"undo-{key}"
        st.button(_("Undo"), key=button, icon=":material/undo:", on_click=update, kwargs=dict(undone))
