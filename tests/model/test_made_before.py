"""What the version before the move into rooms wrote opens and means the same: traces, a checkpoint, an export, HTTP bodies.

Nothing in tests/made_before is to be made anew. The values come from there or are read by safetensors and json alone.
"""

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from safetensors.numpy import load

from model.engine.api import Describe, Explain, Inspect, Models, Receive, Run, Tensors, Texts
from model.engine.http.access import AccessLimits
from model.engine.http.client import RemoteEngine
from model.engine.http.server import application
from model.engine.local import LocalEngine
from model.errors import UnknownModel
from model.spec.request import KEEP, Decoding, RunRequest
from model.trace.serialization import from_bytes, to_bytes
from model.trace.types import Trace
from tests.hosts import Loopback
from tests.runs import CPU, arrays, assert_same

BEFORE = Path(__file__).parents[1] / "made_before"
EXPECTED: dict[str, Any] = json.loads((BEFORE / "expected.json").read_text(encoding="utf-8"))
CALLS: dict[str, dict[str, Any]] = {call["name"]: call for call in json.loads((BEFORE / "http" / "calls.json").read_bytes())}
GREEDY = RunRequest("tiny", "w4 w5 w6", decoding=Decoding(max_length=4), keep=KEEP)
TRACES = ("greedy", "beam", "long")
CHANGING = ("device", "milliseconds", "notes", "phrases")
"""Facts of the machine, and notes in words."""


def bytes_of(name: str) -> bytes:
    """The bytes of a trace file."""
    path = BEFORE / f"{name}.trace.safetensors"
    return path.read_bytes() if path.exists() else gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes())


def header(data: bytes) -> dict[str, Any]:
    """What a safetensors file of ours holds besides arrays, read without our code."""
    found: dict[str, Any] = json.loads(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["headlight"])
    return found


@pytest.fixture(scope="module")
def engine() -> LocalEngine:
    return LocalEngine(BEFORE / "checkpoints", CPU)


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_has_every_value_that_was_written(name: str) -> None:
    data = bytes_of(name)
    trace, written = from_bytes(data), header(data)
    found = arrays(trace) | {f"ids/{strip}": np.asarray(tokens.ids) for strip, tokens in trace.tokens.items()}
    for path, array in load(data).items():
        np.testing.assert_array_equal(np.asarray(found[path.removeprefix("attention/")]), array, err_msg=path)
    assert {strip: list(tokens.texts) for strip, tokens in trace.tokens.items()} == {
        strip: tokens["texts"] for strip, tokens in written["tokens"].items()
    }
    assert [step.chosen.text for step in trace.steps] == EXPECTED.get(name, [])
    assert [[node.text, node.fate] for node in trace.tree] == (EXPECTED["tree"] if name == "beam" else [])
    assert to_bytes(from_bytes(to_bytes(trace))) == to_bytes(trace)
    assert header(to_bytes(trace)) == written, "what is written now is read by the version before"


def test_weights_that_a_trace_does_not_hold_are_computed_as_they_were() -> None:
    (attention,) = from_bytes(bytes_of("long")).attention.values()
    np.testing.assert_allclose(attention.weights[0, 7, 40:44], EXPECTED["long weights"], rtol=1e-6)


def assert_same_run(found: Trace, before: Trace) -> None:
    """Fails where two runs differ by more than rounding, or in what is missing; the sentences that say why may be worded anew."""
    assert found.missing.keys() == before.missing.keys()
    assert_same(found, replace(before, missing=found.missing))


@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_the_request_in_a_trace_runs_again_to_the_same_trace(engine: LocalEngine, name: str) -> None:
    before = from_bytes(bytes_of(name))
    assert_same_run(engine.ask(Run(RunRequest.from_json(before.request))), before)


def test_a_checkpoint_folder_with_snapshots_and_losses_opens(engine: LocalEngine) -> None:
    (info,) = engine.ask(Models()).models
    assert (info.name, info.title, info.problem, info.snapshots) == ("tiny", "Tiny", {}, (0, 4))
    assert [loss.step for loss in info.losses] == [2, 4, 6]
    asked = RunRequest("tiny@000000", "w4 w5 w6", decoding=Decoding(max_length=4), keep=KEEP)
    assert [step.chosen.text for step in engine.ask(Run(asked)).steps] == EXPECTED["snapshot"]


def test_an_exported_model_opens_to_the_same_run(tmp_path: Path) -> None:
    with zipfile.ZipFile(BEFORE / "http" / "export.reply") as archive:
        archive.extractall(tmp_path)
    (folder,) = tmp_path.iterdir()
    found = LocalEngine(tmp_path, CPU).ask(Run(RunRequest(folder.name, "w4 w5 w6", decoding=Decoding(max_length=4), keep=KEEP)))
    assert_same_run(found, from_bytes(bytes_of("greedy")))


def meaning(name: str, data: bytes) -> Any:
    """What a reply says, without facts of the machine; numbers are rounded as far as machines differ."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            worded = {"what": "", "missing": sorted(value.get("missing", ()))}  # sentences, which may be worded anew
            return {key: worded.get(key, plain(each)) for key, each in value.items() if key not in CHANGING}
        if isinstance(value, list):
            return [plain(each) for each in value]
        return pytest.approx(value, rel=1e-4, abs=1e-5) if isinstance(value, float) else value

    match name:
        case "export":
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                found = {each: archive.read(each) for each in archive.namelist() if not each.endswith(".md")}
            return found | {
                "tiny/spec.json": json.loads(found["tiny/spec.json"]) | {"example_labels": []}
            }  # whoever opens it reads it
        case "run" | "explain" | "tensors":
            numbers = {path: pytest.approx(array, rel=1e-4, abs=1e-5, nan_ok=True) for path, array in load(data).items()}
            said = plain(header(data)) if name != "tensors" else {}
            edited = {"request": RunRequest.today(said["request"])} if name == "run" else {}  # a viewer takes it as it is
            return numbers | ({"header": said | edited} if name != "tensors" else {})
    return plain(json.loads(data))


@pytest.mark.parametrize("name", CALLS)
def test_a_client_of_before_gets_the_reply_that_it_got_before(engine: LocalEngine, name: str) -> None:
    """Field by field: that client refuses a reply with a field that it does not know."""
    call = CALLS[name]
    body, expected = (BEFORE / "http" / f"{name}.{part}" for part in ("request", "reply"))
    client = httpx.Client(transport=Loopback(application(engine, AccessLimits())), base_url="http://here")
    found = client.post(call["target"], content=body.read_bytes(), headers=call["headers"])
    assert found.status_code == call["status"]
    assert {key: found.headers[key] for key in call["reply_headers"]} == call["reply_headers"]
    ours, theirs = json_or_bytes(name, found.content), meaning(name, expected.read_bytes())
    assert ours == theirs, "a field that is new belongs at the end of ADDED_FIELDS in model/engine/http/protocol.py"


def json_or_bytes(name: str, data: bytes) -> Any:
    """A reply as `meaning` has it, with its numbers as they are."""
    return unrounded(meaning(name, data))


def unrounded(value: Any) -> Any:
    """The numbers themselves where `meaning` compares approximately."""
    if isinstance(value, dict):
        return {key: unrounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [unrounded(each) for each in value]
    return getattr(value, "expected", value)


@pytest.fixture
def remote() -> RemoteEngine:
    """The client of now, and a server that gives the replies of before."""

    def reply(request: httpx.Request) -> httpx.Response:
        name = request.url.path.rpartition("/")[2]
        name = f"{name}-refused" if b"absent" in request.content else name
        return httpx.Response(
            CALLS[name]["status"], headers=CALLS[name]["reply_headers"], content=(BEFORE / "http" / f"{name}.reply").read_bytes()
        )

    return RemoteEngine("http://before", transport=httpx.MockTransport(reply))


def same(found: Any, expected: Any) -> None:
    """Fails where two answers differ by more than rounding."""
    if isinstance(found, Trace):
        assert_same_run(expected, found)
    elif isinstance(found, dict):
        assert found.keys() == expected.keys()
        for name, array in found.items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-4, atol=1e-5)
    elif hasattr(found, "__dataclass_fields__"):
        for name in found.__dataclass_fields__:
            np.testing.assert_equal(np.shape(getattr(found, name)), np.shape(getattr(expected, name)), err_msg=name)
    else:
        assert found == expected


@pytest.mark.parametrize(
    "ask",
    [
        lambda engine: [info.name for info in engine.ask(Models()).models],
        lambda engine: engine.ask(Describe("tiny")).title,
        lambda engine: [(each.name, each.shape) for each in engine.ask(Inspect("tiny")).tensors],
        lambda engine: engine.ask(Run(RunRequest.from_json(json.loads((BEFORE / "http" / "run.request").read_bytes())))),
        lambda engine: engine.ask(Explain(GREEDY, "decoder.0.1.cross", 1, 0, 2)),
        lambda engine: engine.ask(Tensors("tiny", names=("positions/encoder", "heads/decoder.0.1.cross/query", "near/source/5"))),
        lambda engine: engine.ask(Texts("tiny", strip="source", ids=(4, 5, 2))),
        lambda engine: engine.ask(Receive(b"w4\nw5\nw6\n", "words.txt")),
    ],
    ids=["models", "describe", "inspect", "run", "explain", "tensors", "texts", "receive"],
)
def test_a_server_of_before_is_understood(remote: RemoteEngine, engine: LocalEngine, ask: Callable[[Any], Any]) -> None:
    same(ask(remote), ask(engine))


def test_an_error_of_a_server_of_before_is_the_same_error(remote: RemoteEngine) -> None:
    with pytest.raises(UnknownModel) as raised:
        remote.ask(Run(RunRequest("absent", "w4")))
    assert raised.value.fields == {"asked": "absent", "there": "tiny"}


def test_a_client_is_given_the_fields_that_it_knows() -> None:
    folder = Path(__file__).parents[2] / "checkpoints"
    host = httpx.Client(transport=Loopback(application(LocalEngine(folder, CPU), AccessLimits())), base_url="http://here")
    asked = {"model": "reverse-digits"}
    for known, there in (("", False), ("1", False), ("2", True), ("99", True), ("many", False)):
        found = host.post("/v1/describe", json=asked, headers={"headlight-fields": known} if known else {}).json()
        assert ("example_labels" in found) == there, known
