"""An engine with access limits, for public servers whose app runs networks in its own process."""

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
class LimitedEngine(SessionEngine):
    """A SessionEngine that rate-limits every call and checks each run before it starts.

    Attributes:
        access: the limits, shared by all sessions.
        visitor: the visitor's address, or the session id if the address is unknown.
    """

    access: AccessLimits
    visitor: str

    def models(self) -> tuple[ModelInfo, ...]:
        """As for Engine. Not counted: every script run calls it."""
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
            Refused: the run is too large, or the visitor asks too fast.
        """
        with self._asking("run", request):
            self.access.check_request(request)
            return super().run(request)

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int) -> Explanation:
        """As for Engine, refused like a run."""
        with self._asking("explain", request, site, head, query, key):
            self.access.check_request(request)
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
        """Counts a call against the rate limit and sets CLIENT while it is answered."""
        if question:
            self.access.limit.admit(self.visitor, question)
        before = CLIENT.set(self.visitor)
        try:
            yield
        finally:
            CLIENT.reset(before)
