"""The run that a page shows where its link does not say one: that of the model's first example."""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TypeAlias

from model.engine.api import ModelInfo
from model.spec.request import Decoding
from model.trace.types import Attention, Trace
from viz.url.parsers import written_turns
from viz.url.view_state import ViewState

DRAWN = Decoding("sample", max_length=24, temperature=0.8, top_k=20)
"""How a language model continues its example: by sampling, since greedy decoding soon repeats itself."""

NO_TURNS = written_turns(())
"""The parameter `chat` of a conversation that begins."""

SiteSelector: TypeAlias = Callable[[Trace], Attention]
"""The attention site that a page opens on."""


def opening(info: ModelInfo, view: ViewState) -> ViewState:
    """The view of a model's first example. A model that chats samples as its authors set it, or takes the likeliest token. A
    language model writes no more tokens than it has positions."""
    usual = Decoding() if info.chats or not info.continues else DRAWN
    most = min(usual.max_length, info.max_source) if info.continues else usual.max_length
    manner = replace(info.sampling if info.continues and info.sampling else usual, max_length=most)
    kept = view.decoding() not in (Decoding(), DRAWN)
    return replace(view, text=next(iter(info.examples), ""), **({} if kept else asdict(manner)))


def conversing(info: ModelInfo, view: ViewState) -> ViewState:
    """The view as a conversation where the model has a chat template and the link says nothing else; of others without turns."""
    if info.chats and not view.chat:
        return replace(view, chat=NO_TURNS)
    return view if info.chats else replace(view, chat="", raw=0)
