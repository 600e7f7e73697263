"""The run that a page shows where its link does not say one: that of the model's first example."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import TypeAlias

from model.engine.api import ModelInfo
from model.spec.request import Decoding
from model.trace.types import Attention, Trace
from viz.url.parsers import written_turns
from viz.url.view_state import ViewState

DRAWN = Decoding("sample", max_length=24, temperature=0.8, top_k=20)
"""How a language model continues its example: by sampling, since greedy decoding soon repeats itself."""

LANGUAGE_MODELS = ("smollm2", "captions-lm")
"""The language model that pages offer: the first of these that is here. The bundled one writes captions alone."""

NO_TURNS = written_turns(())
"""The parameter `chat` of a conversation that begins."""

SiteSelector: TypeAlias = Callable[[Trace], Attention]
"""The attention site that a page opens on."""


def language_model(models: Iterable[ModelInfo]) -> ModelInfo | None:
    """The language model that pages offer; None: none of LANGUAGE_MODELS can be used."""
    usable = {info.name: info for info in models if not info.problem}
    return next((usable[name] for name in LANGUAGE_MODELS if name in usable), None)


def opening(info: ModelInfo, view: ViewState, before: Iterable[ModelInfo] = ()) -> ViewState:
    """The view of a model's first example. A model that chats samples as its authors set it, or takes the likeliest token. A
    language model writes no more tokens than it has positions.

    Args:
        before: models that this session had opened: how one of them began is no choice of the visitor, and is not kept.
    """
    chosen = view.decoding() not in (Decoding(), *map(_manner, before))
    return replace(view, text=next(iter(info.examples), ""), **({} if chosen else asdict(_manner(info))))


def _manner(info: ModelInfo) -> Decoding:
    """How a model's first example is decoded."""
    usual = Decoding() if info.chats or not info.continues else DRAWN
    if not info.continues:
        return usual
    return replace(info.sampling or usual, max_length=min(usual.max_length, info.max_source))


def conversing(info: ModelInfo, view: ViewState) -> ViewState:
    """The view as a conversation where the model has a chat template and the link says nothing else; of others without turns."""
    if info.chats and not view.chat:
        return replace(view, chat=NO_TURNS)
    return view if info.chats else replace(view, chat="", raw=0)
