"""The input of a page: the engine, the model, the state from the URL, and the run."""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from model.engine import log, open_engine
from model.engine.api import Engine, ModelInfo, SharedEngine
from model.engine.http.access import is_loopback
from model.errors import EngineAway, HeadlightError
from model.trace.types import Attention, Trace
from viz import experiment, figure_dialog, labels, language, links, panel_help, public, recording
from viz.every_answer import log_no_messages_of_scripts
from viz.figures.frame import projected
from viz.links import View
from viz.publication.catalogue import of_chart
from viz.texts import _
from viz.waiting import PatientEngine

_VIEW, _URL, _LANGUAGE = "view", "url", "language"

_log = logging.getLogger(log.NAME)


@st.cache_resource(show_spinner=False)
def the_engine() -> SharedEngine:
    """The engine of this process, shared by all sessions."""
    return open_engine()


def my_engine() -> Engine:
    """The engine for this session: a new run replaces its pending one, and slow runs do not block the script."""
    context = get_script_run_ctx()
    session = public.session(context.session_id if context else "")
    return PatientEngine(the_engine(), session, public.access_limits() if public.is_public() else None)


def start(*settings: Callable[[], object]) -> None:
    """Opens the engine and loads its list of models. Exits with a sentence if the environment's settings cannot be met.

    Args:
        settings: read further settings; each raises an error if its setting is not valid.
    """
    try:
        log.configure()
        log_no_messages_of_scripts()
        for setting in settings:
            setting()
        the_engine().models()
    except EngineAway as error:  # pages say so and continue when it is back
        _log.warning("%s", error)
    except HeadlightError as error:
        sys.stderr.write(f"{error}\n")
        os._exit(2)  # any exception, even SystemExit, would print the server's traceback


def current_view() -> tuple[View, list[str]]:
    """The state, from the URL if someone opened a link, else from the session; and a sentence for each bad parameter."""
    view = _settled()
    return links.read(_query()) if view is None else (view, [])


def _settled() -> View | None:
    """The session's state; None while the URL has parameters that were not read yet."""
    query = _query()
    known = _VIEW in st.session_state and (not query or query == st.session_state.get(_URL))
    return st.session_state[_VIEW] if known else None


def session_language() -> str:
    """The language of this session: the link's, else that of its browser at the first visit; empty outside of a session."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return ""
    if _LANGUAGE not in st.session_state:
        st.session_state[_LANGUAGE] = language.matching(st.context.locale) or language.of_server()
    view = _settled()
    asked = language.matching(st.query_params.get("lang")) if view is None else view.language
    return asked or str(st.session_state[_LANGUAGE])


language.ask_session(session_language)


def _query() -> dict[str, str]:
    """The URL's parameters; a link may name one edit in each of several parameters `edit`."""
    return st.query_params.to_dict() | ({"edit": "; ".join(edits)} if (edits := st.query_params.get_all("edit")) else {})


def settle(view: View) -> None:
    """Stores `view` as the state of the session and marks the URL's parameters as read."""
    st.session_state[_VIEW] = view
    st.session_state[_URL] = _query()


def tell_url() -> None:
    """Writes the state into the URL, so that it can be copied, unless the URL has parameters that were not read yet.

    Comes last in a script run: it costs a browser as much time as a drawing.
    """
    query = _query()
    if _VIEW not in st.session_state or query != st.session_state[_URL]:
        return
    parameters = links.write(st.session_state[_VIEW])
    if parameters != query:
        st.session_state[_URL] = parameters
        st.query_params.from_dict(parameters)


def update(**fields: object) -> None:
    """Replaces fields of the state; for callbacks, which run before the script."""
    settle(replace(current_view()[0], **fields))  # type: ignore[arg-type]  # fields of View


def bind(field: str, **also: object) -> dict[str, Any]:
    """Keyword arguments that bind a widget to one field of the state, both ways.

    Args:
        also: fields to reset when this one changes, with their values.
    """
    key = f"widget:{field}"
    st.session_state[key] = getattr(current_view()[0], field)

    parameter = next(each for each in links.PARAMETERS if each.field == field)

    def change() -> None:
        if parameter.accepts(value := st.session_state[key], getattr(View(), field)):  # a browser may send anything
            update(**{field: value}, **also)

    return {"key": key, "on_change": change}


def kept_open(key: str) -> dict[str, Any]:
    """Keyword arguments for an expander whose content is drawn only while it is open.

    Streamlit knows an expander by its title, too: without its state set here, it would close when the language changes.
    """
    st.session_state[key] = bool(st.session_state.get(key))
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


def heading(title: str, subtitle: str, help_of: str = "") -> str:
    """Heading of a card as HTML, for `st.html`: two plain texts, the second one smaller, and the help of the panel `help_of`.

    A heading with help saves a message for each sentence: the card is then made with `helped=False`.
    """
    return f'<p class="heading">{escape(title)}</p><p class="small">{escape(subtitle)}</p>{panel_help.html(help_of)}'


def card(name: str, height: Literal["stretch", "content"] = "stretch", *, helped: bool = True) -> DeltaGenerator:
    """Bordered container, by default as high as its row, with its help in the corner: `with column, card("name"):`."""
    box = st.container(border=True, height=height, key=f"card-{name}")
    return _with_help(box, name) if helped else box


def panel(name: str) -> DeltaGenerator:
    """Container without a border for a drawing that has its own, with its help above the upper right corner."""
    return _with_help(st.container(key=f"panel-{name}"), name)


def _with_help(box: DeltaGenerator, name: str) -> DeltaGenerator:
    if help_ := panel_help.html(name):
        box.html(help_)
    return box


def chart(figure: go.Figure, printed: tuple[Trace, str] | None = None, **options: Any) -> None:
    """Draws a figure, larger in big mode.

    Args:
        figure: what is drawn.
        printed: the run that it shows and its title, if it can be saved for print.
        options: those of `st.plotly_chart`.
    """
    shown = projected(figure) if current_view()[0].big else figure
    st.plotly_chart(shown, width="stretch", theme=None, **options)
    if printed is not None:
        (trace, title), name = printed, str(options["key"])
        one = of_chart(name, title, figure, str(options.get("alt", "")))
        figure_dialog.button(lambda: [one], trace, address(), name)


def decimals(usual: int) -> str:
    """The format specification of a number in a sentence: `usual` decimals, or two in big mode."""
    return f".{2 if current_view()[0].big else usual}f"


def address() -> str:
    """The address that shows the current state again, for captions; empty if it means another machine to every reader."""
    place = (st.context.url or "").partition("?")[0]
    if is_loopback(urlsplit(place).hostname or ""):
        return ""
    return f"{place}?{urlencode(links.write(current_view()[0]))}" if place else ""


def say(problem: str) -> None:
    """Shows a sentence about a request that could not be met. It may quote typed text."""
    st.warning(labels.markdown(problem), icon=":material/info:")


def show_failure(exception: Exception) -> bool:
    """Shows an unexpected error to the visitor as a sentence and a number. The traceback goes to the log.

    Returns:
        True: Streamlit shows nothing else.
    """
    asked = links.write(st.session_state[_VIEW]) if _VIEW in st.session_state else {}
    parameters = {name: value for name, value in asked.items() if log.logs_texts() or name not in links.TYPED}
    incident = log.incident(exception, view=parameters)
    text = _(
        "Something went wrong inside Headlight (incident {incident}; details are in the server log). Nothing is "
        "lost: change the sentence or the settings, or reload the page.",
        incident=incident,
    )
    st.error(text, icon=":material/error:")
    return True


@dataclass(frozen=True)
class Page:
    """Everything that a page needs in one script run.

    Attributes:
        engine: runs the networks.
        info: the model in use.
        view: the state; frozen. Callbacks change it with `update`, `bind` binds widgets to it.
        trace: the run of `view`.
        attention: the selected site of the trace.
        head: the selected head of that site.
        dark: whether the page is dark.
    """

    engine: Engine
    info: ModelInfo
    view: View
    trace: Trace
    attention: Attention
    head: int
    dark: bool


def banner(page: Page) -> None:
    """Says above a page that its run was altered or continued from a chosen token, with a button that undoes it.

    Of an opened trace it says what ran, and nothing can be undone.
    """
    if page.info.recorded:
        _recorded(page)
        return
    _undoable("experiment", ":material/science:", experiment.sentence(page.trace.request), experiment.UNALTERED)
    _undoable("continued", ":material/alt_route:", experiment.continued(page.trace), links.NEW_SENTENCE)
    if page.trace.recorded is not None:
        with st.container(key="recorded", gap=None):
            recording.draw_sites(page.trace, page.attention.site, [])


def _recorded(page: Page) -> None:
    """Draws the sentences about an opened trace."""
    said = (recording.about(page.trace), experiment.sentence(page.trace.request), experiment.continued(page.trace))
    with st.container(key="recorded", gap=None):
        st.markdown(f":material/history: {labels.markdown(' · '.join(filter(None, said)))}")
        absent = _("A recording contains no model, so nothing can be typed, changed or recomputed.")
        recording.draw_sites(page.trace, page.attention.site, [absent])


def _undoable(key: str, icon: str, said: str, undone: Mapping[str, Any]) -> None:
    """Draws a sentence, if there is one, with a button that sets fields of the state."""
    if not said:
        return
    with st.container(horizontal=True, vertical_alignment="center", key=key):
        st.markdown(f"{icon} {labels.markdown(said)}")
        button = "undo" if key == "experiment" else f"undo-{key}"
        st.button(_("Undo"), key=button, icon=":material/undo:", on_click=update, kwargs=dict(undone))
