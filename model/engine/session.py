"""Engines that serve several sessions, and an engine bound to one session."""

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
    """An Engine that serves several sessions."""

    def for_session(self, session: str) -> Engine:
        """This engine bound to one session id: a newer run of the session supersedes an older one."""

    def open_path(self, path: Path) -> str:
        """Opens a file or folder of this machine and returns its name. Only the machine's owner may call this."""

    def run(self, request: RunRequest, session: str = "") -> Trace:
        """The trace of one run; an unfinished older run of the same session is cancelled."""

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int, session: str = "") -> Explanation:
        """The arithmetic of one attention cell of a run."""

    def gauges(self) -> Mapping[str, float]:
        """Prometheus gauges: `waiting` and `running` requests, `device_bytes`; empty if unknown."""

    def batches(self) -> Mapping[int, int]:
        """Number of batches computed, by the number of runs in a batch."""

    def is_healthy(self) -> bool:
        """Whether the engine can answer now."""


@dataclass(frozen=True)
class SessionEngine:
    """An Engine bound to one session id. Every call is forwarded to the shared engine, runs with that id.

    Attributes:
        engine: the shared engine.
        session: a unique id.
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
        """As for Engine; supersedes an older run of the session."""
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
