"""One contract for every engine: in this process, behind HTTP in a thread of it, and behind HTTP in a process of its own."""

import dataclasses
import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.engine.api import Describe, Explain, Export, Healthy, Inspect, Models, Receive, Run, SharedEngine, Tensors, Texts
from model.engine.guards.access import AccessLimits
from model.engine.local import LocalEngine
from model.engine.scheduling.queue import CANCEL_TOKEN, CallerGone, CancelToken
from model.errors import BadSetting, EmptyText, HeadlightError, Phrase, UnknownHead, UnknownModel, UnknownSite, UnknownTensor
from model.features.circuit.circuits import Circuit, Paths
from model.features.circuit.sums import CellWrites, Why, Writes
from model.features.modern_attention.costs import Measures, WithoutCache
from model.features.serving.http.client import RemoteEngine
from model.features.serving.http.progress_stream import progress_line
from model.features.serving.http.server import application
from model.features.what_if.questions import Attribution, Edges, Heads, Prune, Words
from model.requests.edits import Silence
from model.requests.questions import Question
from model.requests.request import KEEP, Decoding, Method, RunRequest
from model.requests.validation import read
from model.trace.progress import LISTENER, Listener, Progress
from tests.hosts import host, listening
from tests.networks import save_checkpoint
from tests.runs import CPU, assert_same, for_session

REQUEST = RunRequest("tiny", "w4 w5 w6", decoding=Decoding(max_length=4))
CELL = ("decoder.0.1.cross", 1, 0, 2)
ENGINES = ["local", "loopback", "http"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("contract")
    save_checkpoint(found / "tiny", split="words")
    (found / "damaged").mkdir()
    return found


@pytest.fixture(scope="module")
def local(folder: Path) -> LocalEngine:
    return LocalEngine(folder, CPU)


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, folder: Path, local: LocalEngine) -> Iterator[SharedEngine]:
    match request.param:
        case "local":
            yield LocalEngine(folder, CPU)
        case "loopback":
            with (
                listening(application(LocalEngine(folder, CPU), AccessLimits("secret"))) as port,
                closing(RemoteEngine(f"http://127.0.0.1:{port}", "secret")) as remote,
            ):
                yield remote
        case "http":
            with host(folder, HEADLIGHT_TOKEN="secret") as url, closing(RemoteEngine(url, "secret")) as remote:
                yield remote


def plain(value: Any) -> Any:
    """A value as JSON has it: lists for tuples, objects for phrases."""

    def written(part: Any) -> Any:
        return part.to_json() if isinstance(part, Phrase) else dict(part)

    return json.loads(json.dumps(dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value, default=written))  # type: ignore[arg-type]


def test_it_lists_the_same_models(engine: SharedEngine, local: LocalEngine) -> None:
    assert [info.name for info in engine.ask(Models()).models] == ["damaged", "tiny"]
    assert [plain(info) for info in engine.ask(Models()).models] == [plain(info) for info in local.ask(Models()).models]
    assert plain(engine.ask(Describe("tiny"))) == plain(local.ask(Describe("tiny")))
    assert str(engine.ask(Models()).device).startswith("CPU")
    assert engine.ask(Healthy())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"keep": KEEP},
        {"target": "w4 w5"},
        {"source": (2, 5, 3), "target": (2, 7)},
        {"decoding": Decoding("sample", max_length=4, seed=5)},
        {"decoding": Decoding("beam", max_length=4, beam_size=3)},
        {"edits": (Silence("encoder.0.0.self", (1,)),), "source_pad_to": 8},
    ],
    ids=str,
)
def test_it_runs_what_is_asked(engine: SharedEngine, local: LocalEngine, changes: dict[str, Any]) -> None:
    request = dataclasses.replace(REQUEST, **changes)
    found, expected = engine.ask(Run(request)), local.ask(Run(request))
    assert_same(found, expected)
    assert found.request == expected.request
    own = {name: plain(value) for name, value in found.model.items() if name not in ("milliseconds", "device")}
    assert own == {name: plain(expected.model[name]) for name in own}
    assert for_session("anybody", engine.ask)(Run(request)) is found


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
def test_it_reports_the_tokens_written_so_far(engine: SharedEngine, method: Method) -> None:
    heard = list[Progress]()
    request = dataclasses.replace(REQUEST, source="w7 w8", decoding=Decoding(method, max_length=6, seed=3, beam_size=2))
    with listening_with(heard.append):
        trace = engine.ask(Run(request))
    assert heard[-1].texts == tuple(step.chosen.text for step in trace.steps)
    assert heard[-1].ids == tuple(step.chosen.id for step in trace.steps)
    assert {progress.most for progress in heard} == {6}
    assert [len(progress.ids) for progress in heard] == sorted(len(progress.ids) for progress in heard)
    before = len(heard)
    assert engine.ask(Run(request)) is trace
    assert len(heard) == before, "nobody listens any more, and a cached run reports nothing"


def test_a_caller_that_leaves_gets_no_answer_and_others_do(engine: SharedEngine, local: LocalEngine) -> None:
    request = dataclasses.replace(REQUEST, source="w8 w7 w6", decoding=Decoding(max_length=12))
    cancel_token = CancelToken()
    token = CANCEL_TOKEN.set(cancel_token)
    try:
        with listening_with(lambda progress: cancel_token.cancel()), pytest.raises(CallerGone):
            engine.ask(Run(request))
    finally:
        CANCEL_TOKEN.reset(token)
    assert_same(engine.ask(Run(request)), local.ask(Run(request)))


@contextmanager
def listening_with(listener: Listener) -> Iterator[None]:
    token = LISTENER.set(listener)
    try:
        yield
    finally:
        LISTENER.reset(token)


def test_it_runs_in_the_precision_that_is_asked_for(engine: SharedEngine, local: LocalEngine) -> None:
    request = dataclasses.replace(REQUEST, precision="bfloat16")
    found, expected = engine.ask(Run(request)), local.ask(Run(request))
    assert found.model["dtype"] == "bfloat16"
    assert found.model["from_float32"] == pytest.approx(expected.model["from_float32"], rel=0.2)
    assert engine.ask(Run(REQUEST)).model["dtype"] == "float32"
    assert engine.ask(Explain(request, *CELL)).tolerance == local.ask(Explain(request, *CELL)).tolerance >= 2e-2


def test_it_explains_a_cell_to_the_last_bit(engine: SharedEngine, local: LocalEngine) -> None:
    found, expected = engine.ask(Explain(REQUEST, *CELL)), local.ask(Explain(REQUEST, *CELL))
    assert found.agrees
    for name, value in vars(expected).items():
        np.testing.assert_array_equal(getattr(found, name), value, name)


QUESTIONS: list[Attribution[Any]] = [Heads(REQUEST), Prune(REQUEST), Words(REQUEST), Edges(REQUEST, 1), Paths(REQUEST, "w4 w7 w6")]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: type(each).__name__)
def test_it_says_what_mattered(engine: SharedEngine, local: LocalEngine, question: Attribution[Any]) -> None:
    found, expected = engine.ask(question), local.ask(question)
    assert plain(found.to_json()) == plain(expected.to_json())
    for name, array in expected.arrays().items():
        np.testing.assert_array_equal(getattr(found, name), array, name)
    assert found.ids == tuple(step.chosen.id for step in local.ask(Run(REQUEST)).steps)
    assert local.ask(question) is expected


@pytest.mark.parametrize(
    "question", [Why(REQUEST, *CELL), Why(REQUEST, *CELL, "mean"), Writes(REQUEST, 1, "runner-up"), Circuit(REQUEST)]
)
def test_it_takes_scores_and_logits_apart(engine: SharedEngine, local: LocalEngine, question: Question[Any]) -> None:
    found, expected = engine.ask(question), local.ask(question)
    assert found.agrees
    assert found.to_json() == expected.to_json()
    for name, array in expected.arrays().items():
        np.testing.assert_array_equal(getattr(found, name), array, name)


def test_it_says_what_a_cell_writes(engine: SharedEngine, local: LocalEngine) -> None:
    found, expected = engine.ask(CellWrites(REQUEST, *CELL)), local.ask(CellWrites(REQUEST, *CELL))
    assert (found.ids, found.texts) == (expected.ids, expected.texts)
    np.testing.assert_array_equal(found.values, expected.values)


def test_it_measures_what_a_cache_saves(engine: SharedEngine, local: LocalEngine) -> None:
    assert engine.ask(Measures(REQUEST.model)) == local.ask(Measures(REQUEST.model))
    found = engine.ask(WithoutCache(REQUEST))
    assert found.weights < 1e-6
    assert found.lengths.tolist() == local.ask(WithoutCache(REQUEST)).lengths.tolist()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: type(each).__name__)
def test_it_says_what_a_measurement_costs_before_the_first_of_it_is_done(folder: Path, question: Attribution[Any]) -> None:
    """The first number came with the first batch, which may take minutes."""
    heard = list[Progress]()
    with listening_with(heard.append):
        LocalEngine(folder, CPU).ask(question)
    measuring = [(progress.measured, progress.most) for progress in heard if progress.measured is not None]
    assert measuring[0][0] == 0
    assert 0 < measuring[0][1] <= measuring[-1][1], "integrated gradients find out on the way how many they need"
    assert measuring[0][1] == measuring[-1][1] or isinstance(question, Words)
    assert measuring[-1][0] == measuring[-1][1]
    again = [read(Progress, json.loads(progress_line(progress)), "the progress") for progress in heard]
    assert [(one.measured, one.most, one.done) for one in again] == [(one.measured, one.most, one.done) for one in heard]


def test_it_gives_tensors_and_texts_and_a_diagnosis(engine: SharedEngine, local: LocalEngine) -> None:
    names = ("positions/encoder", "output.bias")
    found, expected = engine.ask(Tensors("tiny", names=names)), local.ask(Tensors("tiny", names=names))
    assert {name: (a.dtype, a.tolist()) for name, a in found.items()} == {n: (a.dtype, a.tolist()) for n, a in expected.items()}
    assert engine.ask(Texts("tiny", strip="target", ids=(4, 5))) == ("w4", "w5")
    assert plain(engine.ask(Inspect("tiny"))) == plain(local.ask(Inspect("tiny")))


def test_it_gives_a_model_as_a_folder(engine: SharedEngine, local: LocalEngine) -> None:
    found, expected = (zipfile.ZipFile(io.BytesIO(each.ask(Export("tiny")))) for each in (engine, local))
    assert {name: found.read(name) for name in found.namelist()} == {name: expected.read(name) for name in expected.namelist()}


def test_it_takes_a_file(engine: SharedEngine, local: LocalEngine, folder: Path) -> None:
    data = (folder / "tiny" / "model.safetensors").read_bytes()
    name = engine.ask(Receive(data, "mine.safetensors"))
    assert name == local.ask(Receive(data, "mine.safetensors"))
    problem, expected = engine.ask(Describe(name)).problem, local.ask(Describe(name)).problem
    assert problem == expected


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (UnknownModel, {"model": "none"}),
        (EmptyText, {"source": " "}),
        (UnknownSite, {"edits": (Silence("encoder.9.0.self", (0,)),)}),
        (UnknownHead, {"edits": (Silence("encoder.0.0.self", (9,)),)}),
        (BadSetting, {"source_pad_to": 1}),
    ],
)
def test_errors_arrive_as_they_are(
    engine: SharedEngine, local: LocalEngine, kind: type[HeadlightError], changes: dict[str, Any]
) -> None:
    wrong = dataclasses.replace(REQUEST, **changes)
    with pytest.raises(kind) as there:
        engine.ask(Run(wrong))
    with pytest.raises(kind) as here:
        local.ask(Run(wrong))
    assert str(there.value) == str(here.value)
    assert there.value.to_json() == here.value.to_json()


def test_what_is_not_there_is_said_of_everything(engine: SharedEngine) -> None:
    with pytest.raises(UnknownTensor):
        engine.ask(Tensors("tiny", names=("nothing",)))
    with pytest.raises(BadSetting):
        engine.ask(Texts("tiny", strip="middle", ids=(1,)))
    with pytest.raises(BadSetting):
        engine.ask(Explain(REQUEST, "decoder.0.1.cross", 1, 99, 2))
    with pytest.raises(UnknownModel):
        engine.ask(Inspect("none"))
