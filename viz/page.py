"""What a view is given: the engine, the model, the state that the URL holds, and the run that it looks at."""

import logging
import os
import secrets
import sys
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from model.engine import log, open_engine
from model.engine.api import Engine, ModelInfo
from model.engine.session import SharedEngine
from model.errors import EngineAway, HeadlightError
from model.trace.types import Attention, Trace
from viz import labels, links, public
from viz.links import View
from viz.texts import _
from viz.waiting import PatientEngine

_VIEW, _URL = "view", "url"

_log = logging.getLogger(log.NAME)


@st.cache_resource(show_spinner=False)
def the_engine() -> SharedEngine:
    """The engine of this process: one for all sessions."""
    return open_engine()


def my_engine() -> Engine:
    """The engine as this session sees it: of its runs the newest counts, and slow ones do not hold the script up."""
    context = get_script_run_ctx()
    return PatientEngine(public.engine_of(the_engine(), context.session_id if context else ""))


def start() -> None:
    """Opens the engine and what it offers. Where the environment asks for what cannot be had, ends the program with a sentence."""
    try:
        log.configure()
        the_engine().models()
    except EngineAway as error:  # pages say so, and go on when it is back
        _log.warning("%s", error)
    except HeadlightError as error:
        sys.stderr.write(f"{error}\n")
        os._exit(2)  # an exception, SystemExit too, would leave the server's start as a traceback


def current_view() -> tuple[View, list[str]]:
    """The state: the URL's where someone opened a link, else the session's; and a sentence for what a link asked for in vain."""
    query = st.query_params.to_dict()
    if _VIEW in st.session_state and (not query or query == st.session_state.get(_URL)):
        return st.session_state[_VIEW], []
    return links.read(query)


def settle(view: View) -> None:
    """Makes `view`, into which the URL was taken, the state of the session."""
    st.session_state[_VIEW] = view
    st.session_state[_URL] = st.query_params.to_dict()


def tell_url() -> None:
    """Makes the URL say what the state is, so that it can be copied; not where it says something that nobody has read yet.

    The last thing of a script run: a browser takes as long for it as for a drawing.
    """
    query = st.query_params.to_dict()
    if _VIEW not in st.session_state or query != st.session_state[_URL]:
        return
    told = links.write(st.session_state[_VIEW])
    if told != query:
        st.session_state[_URL] = told
        st.query_params.from_dict(told)


def update(**fields: object) -> None:
    """Replaces fields of the state; for callbacks, which run before the script draws."""
    settle(replace(current_view()[0], **fields))  # type: ignore[arg-type]  # fields of View


def bind(field: str, **also: object) -> dict[str, Any]:
    """Keyword arguments that tie a widget to one field of the state: it shows the field, and changing it changes the field.

    Args:
        also: fields that start anew when this one changes, with their values.
    """
    key = f"widget:{field}"
    st.session_state[key] = getattr(current_view()[0], field)
    return {"key": key, "on_change": lambda: update(**{field: st.session_state[key]}, **also)}


def choosing_head(table: pd.DataFrame, key: str, **also: object) -> dict[str, Any]:
    """Keyword arguments that let a row of a table, indexed by site and head, be clicked: that head is selected.

    Args:
        also: fields that start anew then, with their values.
    """

    def choose() -> None:
        for row in st.session_state[key].selection.rows:
            site, head = table.index[row]
            update(site=site, head=int(head), **also)

    return {"key": key, "on_select": choose}


def heading(title: str, subtitle: str) -> str:
    """The head of a card as HTML, for `st.html`: plain texts, the second one smaller."""
    return f'<p class="heading">{escape(title)}</p><p class="small">{escape(subtitle)}</p>'


def card(name: str) -> DeltaGenerator:
    """A bordered container as high as its row: `with column, card("name"):`."""
    return st.container(border=True, height="stretch", key=f"card-{name}")


def say(problem: str) -> None:
    """Shows one sentence about what could not be done as asked. It may quote what people typed."""
    st.warning(labels.markdown(problem), icon=":material/info:")


def show_failure(exception: Exception) -> bool:
    """What a visitor sees of an error that nobody foresaw: a sentence and a number. The traceback goes to the log.

    Returns:
        True: nothing else is to be shown.
    """
    incident = secrets.token_hex(3)
    asked = links.write(st.session_state[_VIEW]) if _VIEW in st.session_state else {}
    told = {name: value for name, value in asked.items() if log.logs_texts() or name not in links.TYPED}
    _log.error({"event": "incident", "incident": incident, "view": told}, exc_info=exception)
    text = _(
        "Something went wrong here that should not have (incident {incident}, see the server's log). "
        "Nothing is lost: change the sentence or the settings, or reload the page.",
        incident=incident,
    )
    st.error(text, icon=":material/error:")
    return True


@dataclass(frozen=True)
class Page:
    """One script run, seen from a view.

    Attributes:
        engine: where networks run.
        info: the model in use.
        view: the state; frozen. Callbacks change it with `update`, widgets are tied to it with `bind`.
        trace: the run of `view`.
        attention: the selected site of the trace.
        head: the selected head, which that site has.
        dark: whether the page is dark.
    """

    engine: Engine
    info: ModelInfo
    view: View
    trace: Trace
    attention: Attention
    head: int
    dark: bool
