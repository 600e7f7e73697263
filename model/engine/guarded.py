"""The engine of a stranger's session in the app: what a host's door does, where there is no host before the engine."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from model.engine.api import ModelInfo
from model.engine.client_address import CLIENT
from model.engine.http.access import AccessLimits
from model.engine.session import SessionEngine
from model.inspection.report import Inspection
from model.spec.request import RunRequest, Settings
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Array, Trace


@dataclass(frozen=True)
class Guarded(SessionEngine):
    """A stranger's session: every question is counted, and runs are looked at before they are made.

    Attributes:
        door: its rules, one for all sessions.
        visitor: who asks: an address, or the session where none is known.
    """

    door: AccessLimits
    visitor: str

    def models(self) -> tuple[ModelInfo, ...]:
        """As for Engine. Each script run asks for it, so it is not counted."""
        with self._asking():
            return super().models()

    def receive(self, data: bytes, name: str) -> str:
        """As for Engine."""
        with self._asking("receive", name, len(data)):
            return super().receive(data, name)

    def describe(self, model: str, settings: Settings = ()) -> ModelInfo:
        """As for Engine."""
        with self._asking("describe", model, settings):
            return super().describe(model, settings)

    def inspect(self, model: str, settings: Settings = ()) -> Inspection:
        """As for Engine."""
        with self._asking("inspect", model, settings):
            return super().inspect(model, settings)

    def run(self, request: RunRequest) -> Trace:
        """As for Engine.

        Raises:
            Refused: it is too much for this server, or asked too fast.
        """
        with self._asking("run", request):
            self.door.look_at(request)
            return super().run(request)

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int) -> Explanation:
        """As for Engine, refused like a run."""
        with self._asking("explain", request, site, head, query, key):
            self.door.look_at(request)
            return super().explain(request, site, head, query, key)

    def tensors(self, model: str, names: tuple[str, ...], settings: Settings = ()) -> dict[str, Array]:
        """As for Engine."""
        with self._asking("tensors", model, names, settings):
            return super().tensors(model, names, settings)

    def export(self, model: str, settings: Settings = ()) -> bytes:
        """As for Engine."""
        with self._asking("export", model, settings):
            return super().export(model, settings)

    def texts(self, model: str, strip: str, ids: tuple[int, ...], settings: Settings = ()) -> tuple[str, ...]:
        """As for Engine."""
        with self._asking("texts", model, strip, ids, settings):
            return super().texts(model, strip, ids, settings)

    @contextmanager
    def _asking(self, *question: Hashable) -> Iterator[None]:
        """Counts a question, and says for whom it is asked while it is answered."""
        if question:
            self.door.limit.admit(self.visitor, question)
        before = CLIENT.set(self.visitor)
        try:
            yield
        finally:
            CLIENT.reset(before)
