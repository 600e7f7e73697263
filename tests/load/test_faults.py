"""The host is killed and started again while people wait for it: only what was on its way is lost, and no picture is wrong."""

import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from model.checkpoints import native
from model.engine.api import Describe, Healthy, Models, Receive, Run
from model.engine.local import LocalEngine
from model.errors import EngineAway, HeadlightError
from model.features.serving.http import client
from model.features.serving.http.client import RemoteEngine
from model.features.serving.http.protocol import WIRE_VERSION, WIRE_VERSION_HEADER
from model.requests.request import Decoding, RunRequest
from model.trace import serialization
from model.trace.types import Trace
from tests.browser.servers import free_port
from tests.hosts import start
from tests.networks import END, VARIANTS, save_checkpoint
from tests.patience import settled
from tests.runs import CPU, assert_same, for_session

PEOPLE = 6
STEPS = 900
"""Nobody ever comes to their end: the host is killed long before."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that goes on writing as long as it may."""
    found = tmp_path_factory.mktemp("faults")
    stack = replace(VARIANTS["paper"].stacks["decoder"], max_positions=1000)
    weights = save_checkpoint(found / "tiny", replace(VARIANTS["paper"], encoder=stack, decoder=stack), split="words").state_dict()
    weights["output.bias"][END] = -1e4
    native.save_weights(found / "tiny" / "model.safetensors", weights)
    return found


def request(person: int, steps: int) -> RunRequest:
    return RunRequest("tiny", f"w4 w5 w{4 + person}", decoding=Decoding(max_length=steps))


def outcome(engine: RemoteEngine, person: int, steps: int) -> Trace | HeadlightError:
    try:
        return for_session(f"person {person}", engine.ask)(Run(request(person, steps)))
    except HeadlightError as error:
        return error


def figure(url: str, name: str) -> float:
    """The sum of a figure of the host over its labels."""
    return sum(map(float, re.findall(rf"^{name}(?:{{.*}})? (\S+)$", httpx.get(f"{url}/metrics").text, flags=re.MULTILINE)))


def test_a_host_killed_in_the_middle_of_decodes_loses_these_and_is_asked_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, local = free_port(), LocalEngine(folder, CPU)
    url, everybody = f"http://127.0.0.1:{port}", range(PEOPLE)
    process = start(folder, port)
    with closing(RemoteEngine(url)) as engine, ThreadPoolExecutor(PEOPLE) as threads:
        try:
            seen = list(threads.map(lambda person: outcome(engine, person, 4), everybody))
            for person, trace in enumerate(seen):
                assert_same(trace, local.ask(Run(request(person, 4))))
            models = engine.ask(Models()).models
            name = engine.ask(Receive((folder / "tiny" / "model.safetensors").read_bytes(), "mine.safetensors"))
            before = figure(url, "headlight_batches_total")
            lost = [threads.submit(outcome, engine, person, STEPS) for person in everybody]
            settled(lambda: figure(url, "headlight_running") == PEOPLE and figure(url, "headlight_batches_total") > before + 5)
            assert not any(each.done() for each in lost)
            kill(process)
            assert {type(each.result()) for each in lost} == {EngineAway}
            assert not engine.ask(Healthy())
            assert re.search(r"has not answered for \d+ s", str(outcome(engine, 0, 12)))
            assert [outcome(engine, person, 4) for person in everybody] == seen, "what was seen stays"
            monkeypatch.setattr(client, "FRESH_SECONDS", 0.0)
            assert engine.ask(Models()).models == models
            monkeypatch.undo()
        finally:
            kill(process)
        process = start(folder, port)
        try:
            settled(lambda: engine.ask(Healthy()))
            again = list(threads.map(lambda person: outcome(engine, person, 12), everybody))
            for person, trace in enumerate(again):
                assert_same(trace, local.ask(Run(request(person, 12))))
            assert engine.ask(Describe(name)).problem, "the file is sent again, and its questions are open as before"
        finally:
            kill(process)
    local.scheduler.close()


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@contextmanager
def breaking_off(reply: bytes, after: int) -> Iterator[str]:
    """A host that dies while it answers: every reply ends after so many bytes of its body."""
    head = f"HTTP/1.1 200 OK\r\n{WIRE_VERSION_HEADER}: {WIRE_VERSION}\r\nContent-Length: {len(reply)}\r\n\r\n".encode()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    caller, _ = server.accept()
                except OSError:
                    return
                with caller:
                    caller.recv(2**16)
                    caller.sendall(head + reply[:after])

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)


@pytest.mark.parametrize("part", [0.0, 0.001, 0.5, 0.999])
def test_an_answer_that_breaks_off_is_no_answer(folder: Path, part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.features.serving.http.client.RETRY_SECONDS", 0.1)
    local = LocalEngine(folder, CPU)
    whole = serialization.to_bytes(local.ask(Run(request(0, 4))))
    with breaking_off(whole, int(part * len(whole))) as url, closing(RemoteEngine(url)) as engine:
        assert isinstance(outcome(engine, 0, 4), EngineAway)
    local.scheduler.close()
