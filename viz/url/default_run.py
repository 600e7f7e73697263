"""The run that a page shows where its link does not say one: that of the model's first example."""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TypeAlias

from model.engine.api import ModelInfo
from model.spec.request import Decoding
from model.trace.types import Attention, Trace
from viz.url.view_state import ViewState

DRAWN = Decoding("sample", max_length=24, temperature=0.8, top_k=20)
"""How a language model continues its example: by sampling, since greedy decoding soon repeats itself."""


SiteSelector: TypeAlias = Callable[[Trace], Attention]
"""The attention site that a page opens on."""


def opening(info: ModelInfo, view: ViewState) -> ViewState:
    """The view of a model's first example."""
    manner = DRAWN if info.continues else Decoding()
    kept = view.decoding() not in (Decoding(), DRAWN)
    return replace(view, text=next(iter(info.examples), ""), **({} if kept else asdict(manner)))
