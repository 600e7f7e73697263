"""What a view is given: the engine, the model, the state that the URL holds, and the run that it looks at."""

from collections.abc import Callable
from dataclasses import dataclass

from model.engine.base import Engine, ModelInfo
from model.trace import Attention, Trace
from viz.links import View


@dataclass(frozen=True)
class Page:
    """One script run, seen from a view.

    Attributes:
        engine: where networks run.
        info: the model in use.
        view: the state; frozen. `change(head=3)` replaces fields and reruns the script.
        trace: the run of `view`.
        attention: the selected site of the trace.
        head: the selected head, which that site has.
        dark: whether the page is dark.
        change: replaces fields of the state, writes the URL, and draws anew.
    """

    engine: Engine
    info: ModelInfo
    view: View
    trace: Trace
    attention: Attention
    head: int
    dark: bool
    change: Callable[..., None]
