"""The state of a session: its engine, its view, which the URL holds, and what a page is drawn from."""

import logging
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

import streamlit as st
from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx

from model.engine import log, open_engine
from model.engine.api import Engine, ModelInfo, Models, SharedEngine
from model.engine.guards.access import is_loopback
from model.errors import EngineAway, HeadlightError
from model.trace.types import Attention, Site, Trace
from viz.feature import features
from viz.i18n import translate
from viz.i18n.translate import _
from viz.session import access
from viz.session.middleware import log_no_messages_of_scripts
from viz.session.patient_engine import NonBlockingEngine
from viz.url import links, view_state
from viz.url.view_state import ViewState

_VIEW, _URL, _REPLACED, _LANGUAGE, _OPENED, _PAGES = "view", "url", "replaced", "language", "opened", "pages"

MOST_REPLACED = 20
"""Most URLs that a session remembers to have replaced: a browser sends no more before it hears of a new one."""

MOST_OPENED = 20
"""Most models that a session remembers to have opened."""

_log = logging.getLogger(log.NAME)


@st.cache_resource(show_spinner=False)
def the_engine() -> SharedEngine:
    """The engine of this process, shared by all sessions."""
    return open_engine()


def my_engine() -> Engine:
    """The engine for this session: a new run replaces its pending one, and slow runs do not block the script."""
    context = get_script_run_ctx()
    session = access.session(context.session_id if context else "")
    return NonBlockingEngine(the_engine(), session, access.access_limits() if access.is_public() else None)


def background_engine(work: str) -> Engine:
    """The engine for a work in the background of this session: its questions and the visitor's runs never replace each other.

    Args:
        work: names the work: two of one name replace each other's questions.
    """
    mine = my_engine()
    return (
        replace(mine, session=replace(mine.session, id=f"{mine.session.id}/{work}"))
        if isinstance(mine, NonBlockingEngine)
        else mine
    )


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
        access.keep_the_hub_to_its_owner()
        the_engine().ask(Models())
    except EngineAway as error:  # pages say so and continue when it is back
        _log.warning("%s", error)
    except HeadlightError as error:
        sys.stderr.write(f"{error}\n")
        os._exit(2)  # any exception, even SystemExit, would print the server's traceback


def get_view_state() -> tuple[ViewState, list[str]]:
    """The state, from the URL if someone opened a link, else from the session; and a sentence for each bad parameter."""
    query = _query()
    if _VIEW in st.session_state and (not query or query == st.session_state.get(_URL) or _is_late(query)):
        return st.session_state[_VIEW], []
    return links.read(query)


def _is_late(query: dict[str, str]) -> bool:
    """Whether a browser sent the URL that it had before it heard of the newest one. It is no link then: what a second click, on a
    busy server or a slow line, came with would take back what the first one changed. The browser's back key says what it is."""
    context = get_script_run_ctx()
    return query in st.session_state.get(_REPLACED, []) and not (context and context.is_history_navigation)


def known_view() -> bool:
    """Whether the session has a state already."""
    return _VIEW in st.session_state


def instead_of_explore() -> Literal["", "first", "tour"]:
    """What this session sees in place of the page Explore: the first picture of a new visitor, the tour, or nothing else."""
    if all(feature.instead is None for feature in features()):
        return ""
    if TOUR in st.session_state:
        return "tour"
    return "first" if st.session_state.get(FIRST_PICTURE) else ""


def session_language() -> str:
    """The language of this session: the link's, else that of its browser at the first visit."""
    if _LANGUAGE not in st.session_state:
        st.session_state[_LANGUAGE] = translate.matching(st.context.locale) or translate.of_server()
    return get_view_state()[0].language or str(st.session_state[_LANGUAGE])


def _query() -> dict[str, str]:
    """The URL's parameters; a link may name one edit in each of several parameters `edit`."""
    query = st.query_params.to_dict()
    return query | {"edit": "; ".join(st.query_params.get_all("edit"))} if "edit" in query else query


def store_view(view: ViewState) -> None:
    """Stores `view` as the state of the session and marks the URL's parameters as read."""
    st.session_state[_VIEW] = view
    st.session_state[_URL] = _query()


def sync_url() -> None:
    """Writes the state into the URL, so that it can be copied, unless the URL has parameters that were not read yet.

    Comes last in a script run: it costs a browser as much time as a drawing.
    """
    query = _query()
    if _VIEW not in st.session_state or query != st.session_state[_URL]:
        return
    parameters = links.write(st.session_state[_VIEW])
    if parameters != query:
        st.session_state[_REPLACED] = [*st.session_state.get(_REPLACED, []), query][-MOST_REPLACED:]
        st.session_state[_URL] = parameters
        st.query_params.from_dict(parameters)


def update(**fields: object) -> None:
    """Replaces fields of the state; for callbacks, which run before the script."""
    store_view(get_view_state()[0].changed(**fields))


def remember(info: ModelInfo) -> None:
    """Remembers a model that this session opened, so that pages can offer it: not every model is in the list of models."""
    older = [before for before in opened() if before.name != info.name]
    st.session_state[_OPENED] = [info, *older][:MOST_OPENED]


def opened() -> list[ModelInfo]:
    """The models that this session opened, the newest first."""
    return list(st.session_state.get(_OPENED, []))


def bind(field: str, **also: object) -> dict[str, Any]:
    """Keyword arguments that bind a widget to one field of the state, both ways.

    Args:
        also: fields to reset when this one changes, with their values.
    """
    key = f"widget:{field}"
    parameter = next(known for known in view_state.all_parameters() if known.field == field)
    st.session_state[key] = get_view_state()[0].value(parameter)

    def change() -> None:
        if parameter.accepts(value := st.session_state[key], ViewState().value(parameter)):  # a browser may send anything
            update(**{field: value}, **also)

    return {"key": key, "on_change": change}


def decimals(usual: int) -> str:
    """The format specification of a number in a sentence: `usual` decimals, or two in big mode."""
    return f".{2 if get_view_state()[0].big else usual}f"


def address() -> str:
    """The address that shows the current state again, for captions; empty if it means another machine to every reader."""
    place = (st.context.url or "").partition("?")[0]
    if is_loopback(urlsplit(place).hostname or ""):
        return ""
    return f"{place}?{urlencode(links.write(get_view_state()[0]))}" if place else ""


def show_failure(exception: Exception) -> bool:
    """Shows an unexpected error to the visitor as a sentence and a number. The traceback goes to the log.

    Returns:
        True: Streamlit shows nothing else.
    """
    asked = links.write(st.session_state[_VIEW]) if _VIEW in st.session_state else {}
    parameters = {name: value for name, value in asked.items() if log.logs_texts() or name not in view_state.typed()}
    incident = log.incident(exception, view=parameters)
    text = _(
        "Something went wrong inside Headlight (incident {incident}; details are in the server log). Nothing is "
        "lost: change the sentence or the settings, or reload the page.",
        incident=incident,
    )
    st.error(text, icon=":material/error:")
    return True


def keep_pages(pages: Iterable[StreamlitPage]) -> None:
    """Remembers the pages of the navigation; its first one has the path of Explore, which Streamlit serves at the root."""
    st.session_state[_PAGES] = {page.url_path or "explore": page for page in pages}


def page_at(path: str) -> StreamlitPage:
    """The page of a path, for links and buttons that lead from one page to another.

    Raises:
        KeyError: there is no such page.
    """
    page: StreamlitPage = st.session_state[_PAGES][path]
    return page


FIRST_PICTURE, TOUR = "first-picture", "tour"
"""Keys of the session: whether it still shows the first picture; the step of the tour, while that is on."""


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
    view: ViewState
    trace: Trace
    attention: Attention
    head: int
    dark: bool

    def digits(self, usual: int) -> int:
        """The decimals of a number in a sentence: `usual`, or two in big mode."""
        return 2 if self.view.big else usual


def selected(page: Page, view: ViewState) -> Page:
    """The page with what this run has of the site, head and row that `view` asks for."""
    asked = Site.parse(view.site) if view.site else page.attention.site
    attention = page.trace.attention.get(asked, page.attention)
    head = view.head if view.head < attention.heads else 0
    _heads, rows, keys = attention.weights.shape
    query = view.query if view.query < rows else -1
    view = replace(view, site=str(attention.site), head=head, query=query, key=view.key if view.key < keys else -1)
    return replace(page, view=view, attention=attention, head=head)


def with_trace(page: Page, trace: Trace) -> Page:
    """The page on another run of the same view."""
    return selected(replace(page, trace=trace, attention=trace.last_cross()), page.view)
