"""The conversation above a page whose model chats: its turns, the reply while it is written, and a box for what is said next.

The newest sentence of the user is `text` of the state, the turns before it are `chat`. What is said next puts the sentence and the
reply of its run into `chat`. A sentence that got no reply is replaced by the next one.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import streamlit as st

from model.engine.api import ModelInfo
from model.requests.inputs import MOST_TURNS, Turn
from model.trace.types import ChatFacts, Trace, chat_of
from viz.i18n.translate import _
from viz.session.state import get_view_state, update
from viz.url.parsers import turns, written_turns
from viz.url.view_state import ViewState, new_sentence

HERE = Path(__file__).parent
_REPLY = "reply"
_KEY = "chat"

_BOX = st.components.v2.component(
    "headlight.conversation",
    html=(HERE / "conversation.html").read_text(encoding="utf-8"),
    css=(HERE / "conversation.css").read_text(encoding="utf-8"),
    js=(HERE / "conversation.js").read_text(encoding="utf-8"),
)


def place_conversation(info: ModelInfo, view: ViewState) -> Callable[[Trace | None, bool], None]:
    """Reserves the conversation's place above the page. Returns what draws it there; nothing if the view is no conversation.

    The arguments of what is returned are the run, None if there is none, and whether no reply is to come.
    """
    if not view.chats:
        return lambda trace, over: None
    box = st.container(key="conversation")

    def draw(trace: Trace | None, over: bool) -> None:
        with box:
            _draw(view, trace, over)

    return draw


def facts_of(view: ViewState, trace: Trace | None) -> ChatFacts | None:
    """The conversation of a run; None if the run is another one than that of the view."""
    if trace is None or not (view.text or "").strip():
        return None
    asked = [asdict(turn) for turn in (*turns(view.chat), Turn("user", view.text or ""))]
    source = trace.request.get("source")
    same = isinstance(source, Mapping) and list(source.get("turns", ())) == asked
    return chat_of(trace) if same else None


def _draw(view: ViewState, trace: Trace | None, over: bool) -> None:
    facts = facts_of(view, trace)
    reply = "" if facts is None else facts.reply
    st.session_state[_REPLY] = view.chat, view.text, reply
    earlier = turns(view.chat)
    system = next((turn.text for turn in earlier if turn.role == "system"), "")
    sentences = [asdict(turn) for turn in (*earlier, Turn("user", view.text or "")) if turn.role != "system"]
    data = {
        "turns": sentences,
        "system": system,
        "reply": None if facts is None and not over else reply,
        "raw": facts.text + reply if facts is not None and view.raw else None,
        "isRaw": bool(view.raw),
        "texts": _texts(),
    }
    _BOX(key=_KEY, data=data, on_said_change=_take, width="stretch", height="content")


def _texts() -> dict[str, str]:
    """All words of the component, by the names that its script knows."""
    return {
        "label": _("Conversation"),
        "user": _("You"),
        "assistant": _("Model"),
        "system": _("System: instructions that come before the conversation"),
        "apply": _("Apply"),
        "say": _("Say something to the model"),
        "send": _("Send"),
        "anew": _("New conversation"),
        "anewHelp": _("Starts over with the sentence in the box"),
        "raw": _("Raw text"),
        "rawHelp": _("Show the text that the chat template made of the turns"),
        "change": _("Say this differently"),
        "instead": _("Replaces turn {number}; the turns after it are dropped.", number="{number}"),
        "keep": _("Keep the turn"),
        "empty": _("(nothing was generated)"),
        "waits": _("The model is writing …"),
        "system default": _("(empty: the template may have its own)"),
    }


def _take() -> None:
    """Takes what a person did in the component; a browser may send anything."""
    report = st.session_state[_KEY].get("said")
    if isinstance(report, Mapping) and (fields := changed(get_view_state()[0], report, _reply(get_view_state()[0]))):
        update(**fields)


def _reply(view: ViewState) -> str:
    """The reply to the newest sentence, as last drawn; empty if there is none."""
    chat, text, reply = st.session_state.get(_REPLY, ("", None, ""))
    return str(reply) if (chat, text) == (view.chat, view.text) else ""


def changed(view: ViewState, act: Mapping[str, Any], reply: str) -> dict[str, Any]:
    """The fields of the state that an act in the component changes; none if it has no sense.

    Args:
        act: {"raw": …}, {"system": text}, or {"say": text}, perhaps with "anew" or "at", the turn that the text replaces.
        reply: what the model answered to the newest sentence.
    """
    earlier = turns(view.chat)
    system = tuple(turn for turn in earlier if turn.role == "system")
    rest = tuple(turn for turn in earlier if turn.role != "system")
    match act:
        case {"raw": bool(raw)}:
            return {"raw": int(raw)}
        case {"system": str(text)}:
            new = (Turn("system", text),) if text.strip() else ()
            return {"chat": written_turns((*new, *rest)), **new_sentence()}
        case {"say": str(text), "anew": True} if text.strip():
            return {"chat": written_turns(system), "text": text, **new_sentence()}
        case {"say": str(text), "at": int(at)} if text.strip() and 0 <= at <= len(rest):
            return {"chat": written_turns((*system, *rest[:at])), "text": text, **new_sentence()}
        case {"say": str(text)} if "at" not in act and text.strip() and len(earlier) + 3 < MOST_TURNS:
            answered = (Turn("user", view.text or ""), Turn("assistant", reply)) if reply.strip() else ()
            return {"chat": written_turns((*earlier, *answered)), "text": text, **new_sentence()}
    return {}
