"""Callers that go away before they are answered: what they asked for leaves the line, or ends between two steps."""

import gc
import json
import socket
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import httpx
import pytest

from model.engine.api import Gauges, Run
from model.engine.guards.access import AccessLimits
from model.engine.local import LocalEngine
from model.engine.scheduling.queue import CANCEL_TOKEN, CallerGone, CancelToken, Ticket
from model.engine.scheduling.scheduler import Scheduler
from model.errors import Superseded
from model.features.circuit.circuits import Circuit
from model.features.serving.http.client import RemoteEngine
from model.features.serving.http.protocol import SESSION_HEADER
from model.features.serving.http.server import application
from model.features.what_if.questions import Heads, Prune, Words
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace.progress import LISTENER
from model.transformer.stacks import EncoderDecoder
from tests.hosts import listening
from tests.networks import save_checkpoint
from tests.patience import HANG_S, settled
from tests.runs import CPU, for_session

LONG = Decoding(max_length=12)


@dataclass
class Held:
    """A host that does one run at a time, each step of which waits for `gate`; `steps` counts them."""

    engine: LocalEngine
    port: int = 0
    gate: threading.Event = field(default_factory=threading.Event)
    steps: list[int] = field(default_factory=list)
    callers: list[socket.socket] = field(default_factory=list)

    def ask(self, source: str, session: str = "") -> socket.socket:
        """A question of which the answer is not waited for."""
        body = json.dumps(RunRequest("tiny", source, decoding=LONG).to_json()).encode()
        head = f"POST /v1/run HTTP/1.1\r\nHost: x\r\n{SESSION_HEADER}: {session}\r\nContent-Length: {len(body)}\r\n\r\n"
        caller = socket.create_connection(("127.0.0.1", self.port), 30)
        caller.sendall(head.encode() + body)
        self.callers.append(caller)
        return caller

    def has(self, waiting: int, running: int) -> None:
        """Waits until so many wait and so many run."""
        settled(lambda: self.engine.ask(Gauges()) == {"waiting": waiting, "running": running, "device_bytes": 0})


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    save_checkpoint(tmp_path / "tiny")
    host = Held(LocalEngine(tmp_path, CPU, scheduler=Scheduler(most_running=1)))
    network = host.engine.checkpoint("tiny").network
    assert isinstance(network, EncoderDecoder)
    decode = network.decode

    def slow(*args: Any) -> Any:
        host.steps.append(1)
        assert host.gate.wait(HANG_S)
        return decode(*args)

    network.decode = slow  # type: ignore[method-assign, assignment]
    with listening(application(host.engine, AccessLimits())) as host.port:
        yield host
        host.gate.set()
        for caller in host.callers:
            caller.close()
    host.engine.scheduler.close()


def test_who_waits_and_goes_away_leaves_the_line(held: Held) -> None:
    held.ask("w4")
    held.has(waiting=0, running=1)
    callers = [held.ask(f"w{number}", f"of {number}") for number in (5, 6, 7)]
    held.has(waiting=3, running=1)
    callers[0].close()
    held.has(waiting=2, running=1)
    callers[1].shutdown(socket.SHUT_WR)  # half closed: nobody who does that reads on
    held.has(waiting=1, running=1)
    held.gate.set()
    assert callers[2].recv(99).startswith(b"HTTP/1.1 200")
    held.has(waiting=0, running=0)


def test_the_run_of_a_caller_that_goes_away_ends_between_two_steps(held: Held) -> None:
    caller = held.ask("w4 w5")
    settled(lambda: len(held.steps) == 1)
    caller.close()
    settled(lambda: not held.engine.scheduler._queue._in_flight)
    held.gate.set()
    held.has(waiting=0, running=0)
    assert len(held.steps) == 1
    whole = httpx.post(f"http://127.0.0.1:{held.port}/v1/run", json=RunRequest("tiny", "w4 w5", decoding=LONG).to_json())
    assert whole.status_code == 200
    assert len(held.steps) > 2


def test_what_others_wait_for_too_goes_on(held: Held) -> None:
    first, second = held.ask("w4", "mine"), held.ask("w4", "yours")
    held.has(waiting=0, running=1)
    settled(lambda: [len(ticket.waiters) for ticket in held.engine.scheduler._queue._in_flight.values()] == [2])
    first.close()
    settled(lambda: [len(ticket.waiters) for ticket in held.engine.scheduler._queue._in_flight.values()] == [1])
    again = held.ask("w4", "mine")
    held.gate.set()
    for caller in (second, again):
        assert caller.recv(99).startswith(b"HTTP/1.1 200")


def test_the_newest_request_of_a_session_wins_over_http_and_other_sessions_wait(held: Held) -> None:
    running = held.ask("w4", "mine")
    settled(lambda: len(held.steps) == 1)  # else it would end before this step, and make room for the next
    older, other = held.ask("w5", "mine"), held.ask("w6", "yours")
    assert reply(running).startswith("503")
    held.has(waiting=2, running=1)
    newest = held.ask("w7", "mine")
    assert "Superseded" in reply(older)
    held.has(waiting=2, running=1)
    held.gate.set()
    for caller in (other, newest):
        assert reply(caller).startswith("200")
    held.has(waiting=0, running=0)


def test_an_app_tells_a_host_whose_each_request_is(held: Held) -> None:
    with closing(RemoteEngine(f"http://127.0.0.1:{held.port}")) as engine, ThreadPoolExecutor(2) as threads:
        running = threads.submit(for_session("mine", engine.ask), Run(RunRequest("tiny", "w4", decoding=LONG)))
        held.has(waiting=0, running=1)
        newest = threads.submit(for_session("mine", engine.ask), Run(RunRequest("tiny", "w5", decoding=LONG)))
        with pytest.raises(Superseded):
            running.result(HANG_S)
        held.gate.set()
        assert newest.result(HANG_S).tokens["source"].texts[1] == "w5"


def reply(caller: socket.socket) -> str:
    """What a caller is told: the status and the whole body, which may come in several pieces."""
    caller.settimeout(HANG_S)
    response = HTTPResponse(caller)
    response.begin()
    return f"{response.status} {response.read().decode('utf-8', 'replace')}"


def test_the_log_tells_them_from_errors(held: Held, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "headlight.serve")
    held.ask("w4").close()
    settled(lambda: "'status': 499" in caplog.text)
    assert "incident" not in caplog.text


@pytest.mark.parametrize("question", [Run, Heads, Prune, Words, Circuit])
def test_nothing_is_kept_of_what_was_stopped(question: Any, local: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each caller leaves as soon as it hears of progress, or before its first call."""
    given_back, tickets = list[int](), list[weakref.ref[Ticket]]()

    def noted(request: Any, work: Any) -> Ticket:
        ticket = Ticket(request, work)
        tickets.append(weakref.ref(ticket))
        return ticket

    monkeypatch.setattr("model.engine.scheduling.queue.Ticket", noted)
    monkeypatch.setattr("model.engine.scheduling.scheduler.IDLE_SECONDS", 0.01)
    monkeypatch.setattr("model.sharing.system_memory.give_back", lambda: given_back.append(1))
    forced = Decoding(max_length=0)
    results = len(local.runtime._results)

    def ask_and_leave(number: int) -> None:
        request = RunRequest("tiny", f"w{4 + number % 6} w{4 + number // 6}", "w5 w6 w4", forced, keep=KEEP)
        local.ask(Run(request))
        if question is Run:
            request = replace(request, target=None, decoding=LONG)
        token = CancelToken()
        with listening_until(token), pytest.raises((CallerGone, Superseded)):
            local.ask(question(request))

    for number in range(12):
        ask_and_leave(number)
    scheduler = local.scheduler
    settled(lambda: (scheduler.running, scheduler._workers, len(scheduler._calls)) == (0, 0, 0))
    assert len(local.runtime._results) == results
    assert (scheduler._queue._in_flight, scheduler._queue._newest, scheduler._calls._expected) == ({}, {}, {})
    settled(lambda: gc.collect() >= 0 and not any(ticket() for ticket in tickets))  # errors hold the frames that raised them
    assert given_back, "what was freed stays in this process"


@contextmanager
def listening_until(token: CancelToken) -> Iterator[None]:
    """This thread's caller leaves when it hears of the first progress."""
    listener, before = LISTENER.set(lambda progress: token.cancel()), CANCEL_TOKEN.set(token)
    try:
        yield
    finally:
        LISTENER.reset(listener)
        CANCEL_TOKEN.reset(before)


def test_who_has_left_before_it_gets_a_place_is_let_go() -> None:
    scheduler, cancel_token = Scheduler().start(), CancelToken()
    cancel_token.cancel()
    before = CANCEL_TOKEN.set(cancel_token)
    with pytest.raises(CallerGone):
        scheduler.do("x", lambda ask, report: None)
    CANCEL_TOKEN.reset(before)
    settled(lambda: scheduler.running == 0)
    scheduler.close()
