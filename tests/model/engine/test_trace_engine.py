"""An engine with opened traces: the answer for a trace is the trace itself, and never another run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.engine import trace_engine
from model.engine.api import Describe, Explain, Export, Inspect, Models, Receive, Run, Tensors, Texts
from model.engine.local import LocalEngine
from model.engine.trace_engine import EngineWithTraces, with_traces
from model.errors import BadTrace, NotACheckpoint, RecordedRun, UnknownModel, UnknownTensor
from model.features.circuit.sums import Why, Writes
from model.features.what_if.questions import Heads
from model.requests.edits import Edit
from model.requests.request import Decoding, RunRequest
from model.trace.serialization import from_bytes, to_bytes
from model.trace.types import Trace
from tests import opened
from tests.hosts import behind

DATA = opened.GREEDY.read_bytes()
RUN = from_bytes(DATA)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("shelf")
    (found / "greedy.trace.safetensors").write_bytes(DATA)
    (found / "bad.trace.safetensors").write_bytes(DATA[:-4])
    return found


@pytest.fixture(scope="module")
def engine(folder: Path) -> EngineWithTraces:
    import torch

    return with_traces(LocalEngine(folder, torch.device("cpu")), folder)


def test_the_folder_lists_its_traces_and_says_which_are_bad(engine: EngineWithTraces) -> None:
    found = {info.name: info for info in engine.ask(Models()).models}
    assert found.keys() == {"greedy.trace.safetensors", "bad.trace.safetensors"}
    assert found["bad.trace.safetensors"].problem["error"] == "BadTrace"
    good = found["greedy.trace.safetensors"]
    assert (good.title, good.recorded, good.problem, good.writes, good.translates) == ("greedy", True, {}, False, False)


def test_its_run_is_the_trace_whatever_is_to_be_kept(engine: EngineWithTraces) -> None:
    first = engine.ask(Run(RunRequest("greedy.trace.safetensors", "")))
    assert first is engine.ask(Run(RunRequest("greedy.trace.safetensors", "", keep=("qkv", "hidden"))))
    assert to_bytes(first) == to_bytes(RUN)


@pytest.mark.parametrize(
    "other",
    [
        {"source": "another text"},
        {"target": "w4"},
        {"decoding": Decoding("beam")},
        {"edits": (Edit.from_text("silence kind=cross"),)},
        {"source_pad_to": 9},
        {"precision": "bfloat16"},
        {"settings": (("n_heads", "2"),)},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_another_text_or_setting_never_gets_the_trace(engine: EngineWithTraces, other: dict[str, object]) -> None:
    request = replace(RunRequest("greedy.trace.safetensors", ""), **other)  # type: ignore[arg-type]
    with pytest.raises(RecordedRun, match="greedy is a recording"):
        engine.ask(Run(request))


def test_what_needs_the_network_is_refused(engine: EngineWithTraces) -> None:
    name = "greedy.trace.safetensors"
    request = RunRequest(name, "")
    for ask in (
        lambda: engine.ask(Explain(request, "decoder.0.1.cross", 0, 0, 0)),
        lambda: engine.ask(Why(request, "decoder.0.1.cross", 0, 0, 0)),
        lambda: engine.ask(Writes(request, 0)),
        lambda: engine.ask(Inspect(name)),
        lambda: engine.ask(Export(name)),
        lambda: engine.ask(Texts(name, strip="source", ids=(3,))),
        lambda: engine.ask(Heads(request)),
    ):
        with pytest.raises(RecordedRun):
            ask()
    assert np.array_equal(engine.ask(Tensors(name, names=("positions/encoder",)))["positions/encoder"], RUN.positions["encoder"])
    with pytest.raises(UnknownTensor, match="Available: positions/"):
        engine.ask(Tensors(name, names=("layers.0.weight",)))


def test_an_upload_is_named_by_its_content_and_a_bad_one_is_refused(engine: EngineWithTraces) -> None:
    name = engine.ask(Receive(DATA, "somewhere/hund.trace.safetensors"))
    assert name == engine.ask(Receive(DATA, "other.trace.safetensors"))
    assert name.startswith("trace-")
    assert engine.ask(Describe(name)).title == "hund"
    assert name not in [info.name for info in engine.ask(Models()).models], "only its sender knows its name"
    with pytest.raises(BadTrace, match="hund"):
        engine.ask(Receive(DATA[:-4], "hund.trace.safetensors"))
    with pytest.raises(UnknownModel):
        engine.ask(Describe("trace-0000000000000000"))


def test_a_file_is_opened_by_its_path_and_read_again_when_it_changes(engine: EngineWithTraces, tmp_path: Path) -> None:
    path = tmp_path / "a.trace.safetensors"
    path.write_bytes(DATA)
    name = engine.open_path(path)
    assert engine.ask(Run(RunRequest(name, ""))).steps == RUN.steps
    other = opened.program()
    path.write_bytes(opened.file(other))
    assert engine.ask(Run(RunRequest(name, ""))).recorded == other.recorded
    path.unlink()
    with pytest.raises(NotACheckpoint):
        engine.ask(Run(RunRequest(name, "")))
    with pytest.raises(NotACheckpoint):
        engine.open_path(tmp_path / "nowhere")


def test_a_trace_behind_an_engine_server_is_the_same(engine: EngineWithTraces) -> None:
    remote = behind(engine)
    name = remote.ask(Receive(opened.file(opened.program()), "vit.trace.safetensors"))
    assert remote.ask(Describe(name)).recorded
    assert remote.ask(Run(RunRequest(name, ""))).recorded == opened.program().recorded


def test_uploaded_traces_are_read_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive may unpack to a gigabyte."""
    store, others = trace_engine.TraceStore(tmp_path), list[bool]()

    def read(data: bytes, name: str) -> Trace:
        others.append(store._slots._free.acquire(blocking=False))
        return RUN

    monkeypatch.setattr(trace_engine, "read_bytes", read)
    store.receive(DATA, "a.trace.safetensors")
    assert others == [False], "no other was let in meanwhile"
