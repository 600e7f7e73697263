"""A view in the parameters of a URL: read, written, and what a page shows where the parameters leave it open.

A parameter that equals its default is left out. A value that cannot be read is reported in a sentence and replaced by its default,
never dropped in silence. A link that names no text opens the model's first example (`opening`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from typing import TypeAlias

from model.engine.api import ModelInfo
from model.requests.request import Decoding
from model.trace.types import Attention, Trace
from viz.i18n.translate import _
from viz.url.parsers import LONGEST_TEXT, written_turns
from viz.url.view_state import ViewState, all_parameters


def read(query: Mapping[str, str]) -> tuple[ViewState, list[str]]:
    """The view in a URL's parameters, and a sentence for each parameter that could not be taken as it is."""
    known = {parameter.name: parameter for parameter in all_parameters()}
    view, problems = ViewState(), []
    for name, text in query.items():
        if name not in known:
            problems.append(_("This link contains an unknown parameter “{name}”, which was ignored.", name=name[:40]))
            continue
        try:
            view = view.changed(**{known[name].field: known[name].read(text)})
        except ValueError as error:
            fields = {"name": name, "text": text[:40], "allowed": error}
            problems.append(_("The link sets {name} to “{text}”. Allowed: {allowed}. The default is used.", **fields))
    # Each parameter is right by itself, but together they say nothing: the chosen tokens go, with a sentence.
    if view.begin and not view.chosen_ids():
        problems.append(_("The tokens chosen in this link were ignored: they need a long enough decoding and no forced target."))
        view = replace(view, begin="")
    return view, problems


def write(view: ViewState) -> dict[str, str]:
    """The URL parameters of a view, defaults left out. Of a text that is too long as much stays as makes `read` say so."""
    default = ViewState()
    changed = [parameter for parameter in all_parameters() if view.value(parameter) != default.value(parameter)]
    return {parameter.name: str(view.value(parameter))[: LONGEST_TEXT + 1] for parameter in changed}


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
