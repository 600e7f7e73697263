"""A sitting: an engine that serves many sessions, as one of them sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from model.engine.api import Engine, ModelInfo
from model.inspection.report import Inspection
from model.spec.request import RunRequest, Settings
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Array, Trace


class SharedEngine(Engine, Protocol):
    """An engine that tells sessions apart."""

    def of(self, session: str) -> Engine:
        """This engine as one session sees it: of its runs the newest counts."""

    def open_path(self, path: Path) -> str:
        """Offers a file or folder of this machine to whoever knows the name that it gets; to be asked by its owner alone."""

    def run(self, request: RunRequest, session: str = "") -> Trace:
        """The trace of one run; an older one of the same session that is still on its way is given up."""

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int, session: str = "") -> Explanation:
        """The arithmetic of one attention cell of a run."""

    def figures(self) -> Mapping[str, float]:
        """How it fares: `waiting` and `running` requests, `device_bytes`; nothing where it cannot know."""

    def batches(self) -> Mapping[int, int]:
        """How many batches it has computed, by the number of runs in them."""

    def answers(self) -> bool:
        """Whether it can be asked now."""


@dataclass(frozen=True)
class SessionEngine:
    """Says to `engine` whose each run is. Everything else is the same for everybody.

    Attributes:
        engine: the one for all.
        session: any text that no other session has.
    """

    engine: SharedEngine
    session: str

    @property
    def device(self) -> str:
        """As for Engine."""
        return self.engine.device

    def models(self) -> tuple[ModelInfo, ...]:
        """As for Engine."""
        return self.engine.models()

    def receive(self, data: bytes, name: str) -> str:
        """As for Engine."""
        return self.engine.receive(data, name)

    def describe(self, model: str, settings: Settings = ()) -> ModelInfo:
        """As for Engine."""
        return self.engine.describe(model, settings)

    def inspect(self, model: str, settings: Settings = ()) -> Inspection:
        """As for Engine."""
        return self.engine.inspect(model, settings)

    def run(self, request: RunRequest) -> Trace:
        """As for Engine; the newest run of the session counts."""
        return self.engine.run(request, self.session)

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int) -> Explanation:
        """As for Engine."""
        return self.engine.explain(request, site, head, query, key, self.session)

    def tensors(self, model: str, names: tuple[str, ...], settings: Settings = ()) -> dict[str, Array]:
        """As for Engine."""
        return self.engine.tensors(model, names, settings)

    def export(self, model: str, settings: Settings = ()) -> bytes:
        """As for Engine."""
        return self.engine.export(model, settings)

    def texts(self, model: str, strip: str, ids: tuple[int, ...], settings: Settings = ()) -> tuple[str, ...]:
        """As for Engine."""
        return self.engine.texts(model, strip, ids, settings)
