"""The host goes, comes back, is full, has other weights, or speaks another version: said in words, and nothing wrong is shown."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from model.engine import open_engine
from model.engine.api import Describe, Models, Receive, Run, Texts
from model.engine.guards.access import BODY, AccessLimits
from model.engine.local import LocalEngine
from model.engine.scheduling.scheduler import Scheduler
from model.errors import BadSetting, EngineAway, EngineMismatch, HeadlightError, NotAnEngine, Refused, TookTooLong, UnknownModel
from model.features.serving.http import client, progress_stream
from model.features.serving.http.client import RemoteEngine
from model.features.serving.http.protocol import WIRE_VERSION, WIRE_VERSION_HEADER
from model.features.serving.http.server import application
from model.features.serving.serve_command import checked_access
from model.requests.endpoints import ARRAYS, JSON
from model.requests.request import Decoding, RunRequest
from model.trace import serialization
from model.trace.progress import LISTENER
from tests.hosts import Loopback, behind
from tests.networks import save_checkpoint
from tests.runs import CPU, assert_same

REQUEST = RunRequest("tiny", "w4 w5", decoding=Decoding(max_length=3))


class Scripted(httpx.BaseTransport):
    """Answers by a list of functions, one after the other."""

    def __init__(self, *answers: Callable[[httpx.Request], httpx.Response]) -> None:
        self.answers = list(answers)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self.answers.pop(0)(request)


def breaks(kind: type[httpx.TransportError]) -> Callable[[httpx.Request], httpx.Response]:
    def answer(request: httpx.Request) -> httpx.Response:
        raise kind("broken")

    return answer


def says(status: int, content: bytes, speaks: str = WIRE_VERSION) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: httpx.Response(status, content=content, headers={WIRE_VERSION_HEADER: speaks})


def test_a_broken_connection_is_tried_again_and_a_time_out_is_not(local: LocalEngine) -> None:
    answer = says(200, serialization.to_bytes(local.ask(Run(REQUEST))))
    assert_same(
        RemoteEngine("http://x", transport=Scripted(breaks(httpx.ReadError), answer)).ask(Run(REQUEST)), local.ask(Run(REQUEST))
    )
    slow = Scripted(breaks(httpx.ReadTimeout), answer)
    with pytest.raises(EngineAway):
        RemoteEngine("http://x", transport=slow).ask(Run(REQUEST))
    assert len(slow.answers) == 1


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_proxy_that_lost_its_host_is_asked_again_and_then_the_host_is_away(
    local: LocalEngine, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, content=b"Internal Server Error")

    answer = says(200, serialization.to_bytes(local.ask(Run(REQUEST))))
    assert_same(RemoteEngine("http://x", transport=Scripted(lost, lost, answer)).ask(Run(REQUEST)), local.ask(Run(REQUEST)))
    monkeypatch.setattr("model.features.serving.http.client.RETRY_SECONDS", 0.0)
    with pytest.raises(EngineAway):
        RemoteEngine("http://x", transport=Scripted(lost, answer)).ask(Run(REQUEST))


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (says(200, b"", "2.7"), EngineMismatch, r"http://x speaks version 2\.7 of the protocol, but this page expects \d+\.\d+\. "),
        (lambda request: httpx.Response(200), NotAnEngine, "What answers at http://x is not an engine of Headlight: "),
        (says(502, b"<html>"), HeadlightError, "replied with the status 502 and no message"),
        (says(422, b'{"error": "OfTheFuture", "fields": {}}'), HeadlightError, "An error of another version"),
        (says(422, b'{"error": "BadSetting", "fields": {"of": "before"}}'), HeadlightError, "An error of another version"),
        (says(422, b'{"error": "BadSetting"}'), HeadlightError, "the status 422"),
        (says(200, b"no trace"), HeadlightError, "not a trace that this version"),
    ],
)
def test_another_version_is_said_in_words(answer: Any, kind: type[HeadlightError], words: str) -> None:
    with pytest.raises(kind, match=words):
        RemoteEngine("http://x", transport=Scripted(answer)).ask(Run(REQUEST))


def test_other_weights_than_before_are_said_once_and_then_counted_right(folder: Path, local: LocalEngine) -> None:
    engine = behind(local)
    engine.ask(Run(REQUEST))
    save_checkpoint(folder / "tiny", seed=1)
    other = RunRequest("tiny", "w7")
    with pytest.raises(EngineMismatch, match="weights of tiny"):
        engine.ask(Run(other))
    assert_same(engine.ask(Run(REQUEST)), local.ask(Run(REQUEST)))


@pytest.mark.parametrize("token", ["", "wrong", "sécret"])
def test_without_the_token_nothing_is_told(local: LocalEngine, token: str) -> None:
    with pytest.raises(Refused, match="HEADLIGHT_TOKEN is missing or wrong"):
        behind(local, AccessLimits("secret")).ask(Models())
    headers = {"authorization": f"Bearer {token}".encode()}
    with httpx.Client(transport=Loopback(application(local, AccessLimits("secret"))), base_url="http://x") as client:
        reply = client.post("/v1/models", headers=headers)  # type: ignore[arg-type]
    assert reply.status_code == 401
    assert b"tiny" not in reply.content


def test_limits_are_kept_and_said(local: LocalEngine) -> None:
    public = AccessLimits.from_environment({"HEADLIGHT_PUBLIC": "1"})
    with pytest.raises(Refused, match="accepts no files"):
        behind(local, public).ask(Receive(b"x", "x.pt"))
    with pytest.raises(Refused, match=r"^The source has 600 tokens, and this server accepts at most 512\. Shorten it\.$"):
        behind(local, public).ask(Run(RunRequest("tiny", (4,) * 600)))
    with pytest.raises(Refused, match=r"^The file or request is 4\.1 MB, and this server accepts at most 4 MB\.$"):
        behind(local).ask(Texts("tiny", strip="source", ids=(4,) * (BODY // 3)))
    quick = behind(local, AccessLimits(pace=0.001, burst=2))
    for text in ("w4", "w5"):
        quick.ask(Run(RunRequest("tiny", text)))
    with pytest.raises(Refused, match="Too many requests"):
        quick.ask(Run(RunRequest("tiny", "w6")))
    with pytest.raises(BadSetting, match="reads no file of the host"):
        behind(local).ask(Describe("tiny", (("source_vocab", "/etc/passwd"),)))


def test_an_upload_of_two_gigabytes_is_refused_before_it_is_sent(local: LocalEngine) -> None:
    sent: list[bytes] = []

    def file() -> Iterator[bytes]:
        for _ in range(3):
            sent.append(b"x")
            yield b"x" * 2**20

    with httpx.Client(transport=Loopback(application(local, AccessLimits(uploads=2**20))), base_url="http://x") as client:
        reply = client.post("/v1/receive?name=big", headers={"content-length": str(2 * 2**30)}, content=b"x")
        assert reply.status_code == 413
        assert client.post("/v1/receive?name=big", content=file()).status_code == 413


def test_a_deadline_is_said(folder: Path) -> None:
    slow = LocalEngine(folder, CPU, scheduler=Scheduler(deadline=0.0))
    with pytest.raises(TookTooLong):
        behind(slow).ask(Run(REQUEST))


def test_an_unknown_upload_stays_unknown(local: LocalEngine) -> None:
    with pytest.raises(UnknownModel):
        behind(local).ask(Describe("upload-0000000000000000"))


def test_what_goes_wrong_unforeseen_has_a_number_and_no_details(
    local: LocalEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(local, "ask", lambda *args: 1 // 0)
    with pytest.raises(HeadlightError, match=r"incident [0-9a-f]{6}"):
        behind(local).ask(Run(REQUEST))
    assert "ZeroDivisionError" in caplog.text


def test_the_log_holds_nothing_that_was_typed_unless_that_was_asked_for(
    local: LocalEngine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    behind(local).ask(Run(RunRequest("tiny", "geheim")))
    assert "'path': '/v1/run', 'status': 200" in caplog.text
    assert "geheim" not in caplog.text
    monkeypatch.setenv("HEADLIGHT_LOG", "texts")
    behind(local).ask(Run(RunRequest("tiny", "geheim")))
    assert "geheim" in caplog.text


def test_its_figures_can_be_watched(local: LocalEngine) -> None:
    with httpx.Client(transport=Loopback(application(local, AccessLimits("secret"))), base_url="http://x") as client:
        headers = {"authorization": "Bearer secret"}
        client.post("/v1/run", json=REQUEST.to_json(), headers=headers)
        figures = client.get("/metrics").text
        assert client.get("/healthz").json() == {"status": "ok"}
    for line in (
        "headlight_waiting 0.0",
        "headlight_running 0.0",
        "headlight_device_bytes 0.0",
        'headlight_batches_total{runs="1"}',
    ):
        assert line in figures
    assert 'headlight_request_seconds_count{path="/v1/run",status="200"} 1.0' in figures


@pytest.mark.parametrize(("address", "token", "ok"), [("127.0.0.1", "", True), ("0.0.0.0", "", False), ("0.0.0.0", "x", True)])
def test_strangers_can_reach_it_with_a_token_only(monkeypatch: pytest.MonkeyPatch, address: str, token: str, ok: bool) -> None:
    monkeypatch.setenv("HEADLIGHT_TOKEN", token)
    if ok:
        checked_access(address)
    else:
        with pytest.raises(BadSetting, match="HEADLIGHT_TOKEN"):
            checked_access(address)


def test_the_app_asks_the_engine_that_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_ENGINE", "http://127.0.0.1:1")
    assert isinstance(open_engine(), RemoteEngine)
    monkeypatch.setenv("HEADLIGHT_ENGINE", "gpu")
    with pytest.raises(BadSetting, match="the address of an engine"):
        open_engine()


@pytest.mark.parametrize("media", [JSON, ARRAYS, progress_stream.MEDIA])
@pytest.mark.parametrize("listens", [False, True])
def test_an_endless_reply_ends_in_a_sentence(media: str, listens: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LONGEST_REPLY", 5000)
    monkeypatch.setattr(client, "LONGEST_JSON", 5000)
    sent = list[int]()

    def endless() -> Iterator[bytes]:
        while len(sent) < 1000:
            sent.append(1000)
            yield b" " * 1000

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=endless(), headers={WIRE_VERSION_HEADER: WIRE_VERSION, "content-type": media})

    before = LISTENER.set((lambda progress: None) if listens else None)
    try:
        with pytest.raises(HeadlightError, match="more than 5,000 bytes"):
            RemoteEngine("http://x", transport=Scripted(answer)).ask(Run(REQUEST))
    finally:
        LISTENER.reset(before)
    assert sum(sent) <= 10_000, "the rest is never read"
