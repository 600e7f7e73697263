"""EngineWithTraces: an engine that also answers for opened traces. The run of a trace is already made: the answer is the trace."""

from collections.abc import Mapping
from pathlib import Path

from model.attribution.questions import Answer, Question
from model.engine.api import ModelInfo, SharedEngine
from model.engine.local import LocalEngine
from model.engine.shared_uploads import NO_PEERS, PeerUploads
from model.engine.stores import OpenedTrace, TraceStore
from model.errors import RecordedRun, UnknownTensor, Words
from model.inspection.report import Inspection
from model.spec.request import RunRequest, Settings
from model.trace.cell_arithmetic import Explanation
from model.trace.trace_files import holds_trace, is_trace_file
from model.trace.types import Array, Trace


class EngineWithTraces:
    """An engine whose models are its own networks and the traces of a store.

    Args:
        engine: runs the networks.
        traces: the opened traces.
    """

    def __init__(self, engine: SharedEngine, traces: TraceStore) -> None:
        self.engine, self._traces = engine, traces

    @property
    def device(self) -> Words:
        """The device as shown on screen."""
        return self.engine.device

    def models(self) -> tuple[ModelInfo, ...]:
        """The engine's models, and after them the traces of its folder."""
        return (*self.engine.models(), *map(self.describe, self._traces.names()))

    def receive(self, data: bytes, name: str) -> str:
        """Keeps an uploaded file, a trace or one that the engine opens.

        Raises:
            BadTrace, CheckpointError: it is neither, or unsafe or damaged.
        """
        return self._traces.receive(data, name) if holds_trace(data) else self.engine.receive(data, name)

    def open_path(self, path: Path) -> str:
        """Opens a file or folder of this machine and returns its name.

        Raises:
            NotACheckpoint: the path does not exist or cannot be read.
            BadTrace: it is a trace that cannot be drawn.
        """
        return self._traces.open(path) if is_trace_file(path) else self.engine.open_path(path)

    def describe(self, model: str, settings: Settings = ()) -> ModelInfo:
        """Facts about a model or a trace.

        Raises:
            UnknownModel: there is none of that name.
        """
        found = self._traces.info(model)
        return self.engine.describe(model, settings) if found is None else found

    def inspect(self, model: str, settings: Settings = ()) -> Inspection:
        """The inspection report of a model's file or folder.

        Raises:
            RecordedRun: it is a trace.
            HeadlightError: it cannot be read.
        """
        self._needs_network(model)
        return self.engine.inspect(model, settings)

    def run(self, request: RunRequest) -> Trace:
        """The trace of one run; of an opened trace this trace, whatever should be kept.

        Raises:
            RecordedRun: an opened trace is asked for another run.
            HeadlightError: it cannot be run, or not now.
        """
        if (found := self._traces.get(request.model)) is None:
            return self.engine.run(request)
        if request != RunRequest(request.model, "", keep=request.keep):
            raise RecordedRun(name=found.title)
        return found.trace

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int) -> Explanation:
        """The arithmetic of one attention cell.

        Raises:
            RecordedRun: it is a cell of an opened trace.
        """
        self._needs_network(request.model)
        return self.engine.explain(request, site, head, query, key)

    def attribute(self, question: Question[Answer]) -> Answer:
        """The result of a question about a run.

        Raises:
            RecordedRun: it is about an opened trace.
        """
        self._needs_network(question.model)
        return self.engine.attribute(question)

    def tensors(self, model: str, names: tuple[str, ...], settings: Settings = ()) -> dict[str, Array]:
        """Tensors of a model by name; of an opened trace only the positions that it recorded.

        Raises:
            UnknownTensor: there is none of that name.
        """
        if (found := self._traces.get(model)) is None:
            return self.engine.tensors(model, names, settings)
        return {name: _positions(found, name) for name in names}

    def export(self, model: str, settings: Settings = ()) -> bytes:
        """The model as a zip archive.

        Raises:
            RecordedRun: it is a trace.
        """
        self._needs_network(model)
        return self.engine.export(model, settings)

    def texts(self, model: str, strip: str, ids: tuple[int, ...], settings: Settings = ()) -> tuple[str, ...]:
        """The texts of token ids of a strip.

        Raises:
            RecordedRun: it is a trace, whose vocabulary is not known.
        """
        self._needs_network(model)
        return self.engine.texts(model, strip, ids, settings)

    def gauges(self) -> Mapping[str, float]:
        """As for SharedEngine."""
        return self.engine.gauges()

    def batches(self) -> Mapping[int, int]:
        """As for SharedEngine."""
        return self.engine.batches()

    def is_healthy(self) -> bool:
        """As for SharedEngine."""
        return self.engine.is_healthy()

    def _needs_network(self, model: str) -> None:
        """Refuses what an opened trace cannot answer.

        Raises:
            RecordedRun: `model` is one.
        """
        if (found := self._traces.get(model)) is not None:
            raise RecordedRun(name=found.title)


def _positions(opened: OpenedTrace, name: str) -> Array:
    group, _slash, stack = name.partition("/")
    if group == "positions" and stack in opened.trace.positions:
        return opened.trace.positions[stack]
    there = ", ".join(f"positions/{stack}" for stack in opened.trace.positions) or "none in this trace"
    raise UnknownTensor(asked=name, there=there)


def with_traces(engine: SharedEngine, folder: Path, peers: PeerUploads = NO_PEERS) -> EngineWithTraces:
    """An engine of this process that also answers for the traces in its folder of checkpoints.

    Args:
        engine: runs the networks.
        folder: the folder of checkpoints; it may be missing.
        peers: uploads of other processes that serve the same visitors.
    """
    return EngineWithTraces(engine, TraceStore(folder, peers))


def from_environment() -> EngineWithTraces:
    """The engine of the app: the networks of this process and the traces of their folder; see `LocalEngine.from_environment`.

    Raises:
        BadSetting: a variable has a value that is not allowed.
    """
    local = LocalEngine.from_environment()
    return with_traces(local, local.folder)
