"""EngineWithTraces: an engine that also answers for opened traces. The run of a trace is already made: the answer is the trace."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from model.engine.api import Describe, Models, Receive, Run, SharedEngine, Tensors
from model.engine.local import LocalEngine
from model.engine.shared_uploads import NO_PEERS, PeerUploads
from model.engine.stores import OpenedTrace, TraceStore
from model.errors import RecordedRun, UnknownTensor
from model.spec.questions import Answer, ModelQuestion, Question, RunQuestion
from model.spec.request import RunRequest
from model.trace.trace_files import holds_trace, is_trace_file


class EngineWithTraces:
    """An engine whose models are its own networks and the traces of a store.

    Args:
        engine: runs the networks.
        traces: the opened traces.
    """

    def __init__(self, engine: SharedEngine, traces: TraceStore) -> None:
        self.engine, self._traces = engine, traces

    def ask(self, question: Question[Answer]) -> Answer:
        """The answer of the traces where the question is about one of them, else that of the engine.

        Raises:
            RecordedRun: an opened trace is asked for what only its network could compute.
            UnknownTensor: it is asked for tensors that it did not record.
            HeadlightError: as the engine says.
        """
        return cast(Answer, self._answer(question))

    def _answer(self, question: Question[Any]) -> Any:
        match question:
            case Models():
                found = self.engine.ask(question)
                return replace(found, models=(*found.models, *(self.ask(Describe(name)) for name in self._traces.names())))
            case Receive(data, name) if holds_trace(data):
                return self._traces.receive(data, name)
            case Describe(model):
                info = self._traces.info(model)  # known even where the trace itself was dropped
                return self.engine.ask(question) if info is None else info
            case ModelQuestion(model) | RunQuestion(RunRequest(model)) if (opened := self._traces.get(model)) is not None:
                return _of_trace(opened, question)
        return self.engine.ask(question)

    def open_path(self, path: Path) -> str:
        """Opens a file or folder of this machine and returns its name.

        Raises:
            NotACheckpoint: the path does not exist or cannot be read.
            BadTrace: it is a trace that cannot be drawn.
        """
        return self._traces.open(path) if is_trace_file(path) else self.engine.open_path(path)


def _of_trace(opened: OpenedTrace, question: Question[Any]) -> Any:
    """What an opened trace answers: its own run, whatever should be kept, and the positions that it recorded."""
    match question:
        case Run(request) if request == RunRequest(request.model, "", keep=request.keep):
            return opened.trace
        case Tensors():
            there = {f"positions/{stack}": array for stack, array in opened.trace.positions.items()}
            for name in question.names:
                if name not in there:
                    raise UnknownTensor(asked=name, there=", ".join(there) or "none in this trace")
            return {name: there[name] for name in question.names}
    raise RecordedRun(name=opened.title)


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
