"""EngineWithTraces: an engine that also answers for opened traces. The run of a trace is already made: the answer is the trace.

Traces of the folder and those opened by path are read again when they were dropped; uploaded ones are kept while there is room.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, cast

from model.engine.api import Describe, ModelInfo, Models, Receive, Run, SharedEngine, Tensors
from model.engine.local import LocalEngine
from model.engine.sent_files import opened_name
from model.engine.shared_uploads import NO_PEERS, OpeningSlots, PeerUploads
from model.errors import BadTrace, RecordedRun, UnknownTensor, WireError
from model.feature import modules_of_traces
from model.requests.questions import Answer, ModelQuestion, Question, RunQuestion
from model.requests.request import RunRequest
from model.sharing.caches import BUDGET, ComputedOnce, LruCache
from model.trace.trace_files import ENDING, holds_trace, is_trace_file, read_bytes, read_path
from model.trace.types import Trace

OF_LECTURES = Path(__file__).parents[2] / "lectures" / "traces"
"""Recorded runs that steps of the bundled lectures show. They are found by name and stand in no list of models."""

TRACE_PREFIX = "trace-"
"""Prefix of the names of uploaded traces."""

MOST_BYTES = 512 * 2**20
"""Most bytes of uploaded traces, and of those read from files; each kind has so many."""

MOST_TRACES = 32
MOST_INFOS = 4096

OPENED_AT_ONCE = 1
"""Uploaded traces that are read at the same time: an archive may unpack to a gigabyte."""


@dataclass(frozen=True, eq=False)
class OpenedTrace:
    """A trace under the name that it is asked for by.

    Attributes:
        name: its name, as that of a model.
        title: its file name, without the ending.
        trace: the trace.
    """

    name: str
    title: str
    trace: Trace

    @property
    def info(self) -> ModelInfo:
        """Its entry in a list of models."""
        spec = {"encoder": None, "decoder": None, **(self.trace.model.get("spec") or {})}
        return ModelInfo(
            name=self.name,
            title=self.title,
            summary="",
            languages=self.trace.model.get("languages", {}),
            examples=(),
            parameters=0,
            spec=spec,
            max_source=len(self.trace.tokens["source"]),
            max_target=len(self.trace.tokens.get("target", ())),
            reads="image" if self.trace.image is not None else "sound" if self.trace.sound is not None else "words",
            recorded=True,
        )


class TraceStore:
    """Traces by name, bounded in number and bytes: the least recently used are read again, uploads are dropped. Thread-safe.

    Args:
        folder: the folder of checkpoints; it may be missing. A trace in it hides one of the bundled lectures (OF_LECTURES).
        peers: uploads of other processes that serve the same visitors.
    """

    def __init__(self, folder: Path, peers: PeerUploads = NO_PEERS) -> None:
        self._folder, self._peers = folder, peers
        # Three sources: files opened by path, files sent by visitors, and those of the folder, which are looked up
        # each time. What was sent cannot be read again, so it is kept outside the budget, where nothing else pushes
        # it out.
        self._paths: dict[str, Path] = {}
        self._sent: LruCache[str, OpenedTrace] = LruCache(MOST_BYTES, _nbytes, MOST_TRACES)
        self._read: ComputedOnce[tuple[str, str], OpenedTrace] = ComputedOnce(
            LruCache(MOST_BYTES, _nbytes, MOST_TRACES, BUDGET, "opened traces")
        )
        # An entry of the list is small, so it stays when its trace is dropped.
        self._infos: ComputedOnce[tuple[str, str], ModelInfo] = ComputedOnce(LruCache(MOST_INFOS, lambda info: 1))
        self._slots = OpeningSlots(OPENED_AT_ONCE)

    def names(self) -> list[str]:
        """Names of the traces in the folder now, sorted, and of those opened by path that are still there."""
        files = self._folder.iterdir() if self._folder.is_dir() else ()
        return [*sorted(path.name for path in files if _is_trace(path)), *(n for n, path in self._paths.items() if path.is_file())]

    def receive(self, data: bytes, name: str) -> str:
        """Keeps an uploaded trace, or the trace of an uploaded archive, and returns its name: a hash of the content.

        Raises:
            BadTrace: it is none, or its parts contradict each other.
        """
        key = f"{TRACE_PREFIX}{hashlib.sha256(data).hexdigest()[:16]}"
        # The name is a hash of the content: a file that is here already is neither read nor sent to the others
        # again.
        if self._sent.get(key) is None:
            self._keep(key, data, PurePath(name).name[:200] or key)
            self._peers.put(key, data, name)
        return key

    def open(self, path: Path) -> str:
        """Adds a trace file of this machine and returns its name.

        Raises:
            NotACheckpoint: the path does not exist or cannot be read.
            BadTrace: it is no trace that can be drawn.
        """
        # The path is remembered before the file is read, since `get` looks it up. A damaged file raises here, and
        # again whenever it is asked for.
        name = opened_name(path)
        self._paths[name] = path.resolve()
        self.get(name)
        return name

    def get(self, name: str) -> OpenedTrace | None:
        """The trace of that name; None: this store has none.

        Raises:
            BadTrace: its file is damaged.
            NotACheckpoint: its file cannot be read any more.
        """
        path = self._path(name)
        return self._uploaded(name) if path is None else self._opened(name, path)

    def info(self, name: str) -> ModelInfo | None:
        """The entry of a trace in a list of models, with a `problem` if its file is damaged; None: this store has none.

        It stays known when the trace itself was dropped, so that a list of models reads no file again.
        """
        path = self._path(name)
        if path is None:
            uploaded = self._uploaded(name)
            return None if uploaded is None else uploaded.info
        return self._infos.get((name, opened_name(path)), lambda: self._described(name, path))

    def _described(self, name: str, path: Path) -> ModelInfo:
        try:
            return self._opened(name, path).info
        except BadTrace as error:
            return ModelInfo(name, title_of(path.name), "", {}, (), 0, {}, 0, 0, problem=error.to_json(), recorded=True)

    def _opened(self, name: str, path: Path) -> OpenedTrace:
        # The second part is a hash of path, time and size: a trace that was written anew under its old name is read
        # again.
        key = name, opened_name(path)
        return self._read.get(key, lambda: OpenedTrace(name, title_of(path.name), _checked(read_path(path), path.name)))

    def _path(self, name: str) -> Path | None:
        if name in self._paths:
            return self._paths[name]
        # A name with a folder in it could leave the folder of checkpoints, so it is none of ours.
        if PurePath(name).name != name:
            return None
        return next((folder / name for folder in (self._folder, OF_LECTURES) if _is_trace(folder / name)), None)

    def _uploaded(self, name: str) -> OpenedTrace | None:
        if not name.startswith(TRACE_PREFIX):
            return None
        # Visitors of one app may be served by several processes. The first that is asked for a file that another
        # received fetches it, and keeps it like its own.
        if (trace := self._sent.get(name)) is None and (sent := self._peers.get(name)) is not None:
            trace = self._keep(name, *sent)
        return trace

    def _keep(self, key: str, data: bytes, name: str) -> OpenedTrace:
        # One at a time: a small archive can unpack to a gigabyte, and many at once would take all memory.
        with self._slots:
            opened = OpenedTrace(key, title_of(name), _checked(read_bytes(data, name), name))
        self._sent.keep(key, opened)
        return opened


def _checked(trace: Trace, name: str) -> Trace:
    """The trace, if features can read the answers that it was saved with.

    Raises:
        BadTrace: they cannot.
    """
    try:
        # A feature may have saved answers in the trace. It looks at them once, here, so that no page fails on them
        # later.
        for module in modules_of_traces():
            module.check(trace)
    except WireError as error:
        raise BadTrace(path=name, detail=error.fields["detail"]) from error
    return trace


def _is_trace(path: Path) -> bool:
    return path.name.endswith(ENDING) and path.is_file()


def title_of(name: str) -> str:
    """The title of a trace: its file name without the ending."""
    return name.removesuffix(ENDING) if name.endswith(ENDING) else PurePath(name).stem


def _nbytes(opened: OpenedTrace) -> int:
    return opened.trace.nbytes


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
                listed = self.engine.ask(question)
                return replace(listed, models=(*listed.models, *(self.ask(Describe(name)) for name in self._traces.names())))
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
    """What an opened trace answers: its own run, whatever should be kept, its positions, and the answers that it was saved with."""
    match question:
        # The run without any wish: no source, no edits, no settings. Whatever else is asked for would need the
        # network.
        case Run(request) if request == RunRequest(request.model, "", keep=request.keep):
            return opened.trace
        case Tensors():
            tensors = {f"positions/{stack}": array for stack, array in opened.trace.positions.items()}
            for name in question.names:
                # A trace has no weights; of the tensors that can be asked for it holds the positions alone.
                if name not in tensors:
                    raise UnknownTensor(asked=name, there=", ".join(tensors) or "none in this trace")
            return {name: tensors[name] for name in question.names}
        # Other questions about the same run, whose answers were saved beside it by the feature that asks them.
        case RunQuestion(request) if request == RunRequest(request.model, ""):
            for module in modules_of_traces():
                read = module.ANSWERS.get(type(question))
                if read and (answer := read(opened.trace, question)) is not None:
                    return answer
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
