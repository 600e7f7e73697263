"""Progress of runs on its way to those who listen: nobody waits for a slow listener, and who stops a run ends it on its host."""

import asyncio
import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.requests import Request
from starlette.responses import Response

from model.engine.api import Run, SharedEngine
from model.engine.guards.access import AccessLimits
from model.engine.local import LocalEngine
from model.engine.scheduling.queue import CANCEL_TOKEN, CallerGone, CancelToken
from model.engine.scheduling.scheduler import Scheduler
from model.errors import EmptyText, EngineAway, HeadlightError, Refused, WireError
from model.features.serving.http.client import RemoteEngine
from model.features.serving.http.progress_stream import MEDIA, progress_line, status_line, trace_block, with_progress
from model.features.serving.http.protocol import WIRE_VERSION, WIRE_VERSION_HEADER
from model.features.serving.http.server import application
from model.inference import batching
from model.requests.request import Decoding, RunRequest
from model.trace import serialization
from model.trace.progress import LISTENER, PARTIAL, Listener, Progress, ProgressFeed
from model.trace.types import Trace
from tests import traces
from tests.hosts import listening, served
from tests.patience import HANG_S, settled
from tests.runs import CPU, for_session

LONG = Decoding(max_length=12)


def some(count: int) -> Progress:
    return Progress(tuple(range(count)), tuple(f"w{i}" for i in range(count)), 9, 0.5)


@dataclass
class Asking:
    """A thread that asks an engine for a run, listens and can stop it."""

    engine: SharedEngine
    source: str
    session: str
    listener: Listener
    token: CancelToken = field(default_factory=CancelToken)
    outcome: Any = None
    partial: bool = False

    def __post_init__(self) -> None:
        """Begins."""
        self.thread = threading.Thread(target=self._ask)
        self.thread.start()

    def _ask(self) -> None:
        LISTENER.set(self.listener)
        CANCEL_TOKEN.set(self.token)
        PARTIAL.set(self.partial)
        try:
            self.outcome = for_session(self.session, self.engine.ask)(Run(RunRequest("tiny", self.source, decoding=LONG)))
        except (CallerGone, HeadlightError) as error:
            self.outcome = error

    def ended(self) -> Any:
        self.thread.join(HANG_S)
        assert not self.thread.is_alive()
        return self.outcome


class Stepped:
    """An engine that computes one batch for each `step`. `begun` and `computed` count them."""

    def __init__(self, folder: Path) -> None:
        self.allowed, self.begun, self.computed = threading.Semaphore(0), 0, 0
        self.engine = LocalEngine(folder, CPU, scheduler=Scheduler(together=self._together, gather=0))

    def _together(self, group: Any) -> Any:
        self.begun += 1
        assert self.allowed.acquire(timeout=HANG_S)
        self.computed += 1
        return batching.together(group)

    def step(self, count: int = 1) -> None:
        self.allowed.release(count)


@pytest.fixture(params=["local", "http"])
def stepped(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[Stepped, SharedEngine]]:
    """An engine that goes step by step, and how it is asked: in this process, or over HTTP."""
    host = Stepped(folder)
    if request.param == "local":
        yield host, host.engine
    else:
        with served(host.engine) as remote:
            yield host, remote
    host.step(1000)
    host.engine.scheduler.close()


class Heard:
    """A listener that is waited for."""

    def __init__(self) -> None:
        self.newest: Progress | None = None
        self._more = threading.Condition()

    def __call__(self, progress: Progress) -> None:
        with self._more:
            self.newest = progress
            self._more.notify_all()

    def has(self, tokens: int) -> None:
        with self._more:
            assert self._more.wait_for(lambda: self.newest is not None and len(self.newest.ids) == tokens, HANG_S)


def test_each_token_is_heard_while_the_run_goes_on(stepped: tuple[Stepped, SharedEngine]) -> None:
    (host, engine), heard = stepped, Heard()
    run = Asking(engine, "w4 w5", "one", heard)
    host.step()  # the encoder
    for tokens in (1, 2, 3):
        host.step()
        heard.has(tokens)
        assert run.thread.is_alive()
    host.step(1000)
    assert heard.newest is not None
    trace = run.ended()
    assert heard.newest.texts == tuple(step.chosen.text for step in trace.steps)


def test_what_is_stopped_is_not_computed_any_more_on_its_host_either(stepped: tuple[Stepped, SharedEngine]) -> None:
    (host, engine), heard = stepped, Heard()
    run = Asking(engine, "w4 w5", "one", heard)
    host.step(3)
    heard.has(2)
    settled(lambda: host.begun == 4)  # the next step has begun: it cannot be ended, the one after it can
    run.token.cancel()
    assert isinstance(run.ended(), CallerGone), "who stops does not wait for the step that is being computed"
    queue = host.engine.scheduler._queue
    settled(lambda: not queue._in_flight)
    host.step(1000)
    settled(lambda: host.engine.scheduler.running == 0)
    assert host.computed == 4


def test_the_run_of_another_session_goes_on_when_one_is_stopped(stepped: tuple[Stepped, SharedEngine]) -> None:
    (host, engine), mine, yours = stepped, Heard(), Heard()
    first, second = Asking(engine, "w4 w5", "mine", mine), Asking(engine, "w7 w8", "yours", yours)
    settled(lambda: host.engine.scheduler.running == 2)
    host.step(4)
    settled(lambda: host.computed == 4)
    first.token.cancel()
    assert isinstance(first.ended(), CallerGone)
    host.step(1000)
    trace = second.ended()
    assert yours.newest is not None
    assert yours.newest.texts == tuple(step.chosen.text for step in trace.steps)


def test_two_who_wait_for_one_run_are_both_told_and_one_who_stops_leaves_it_to_the_other(
    stepped: tuple[Stepped, SharedEngine],
) -> None:
    (host, engine), mine, yours = stepped, Heard(), Heard()
    first, second = Asking(engine, "w4 w5", "mine", mine), Asking(engine, "w4 w5", "yours", yours)
    settled(lambda: [len(ticket.waiters) for ticket in host.engine.scheduler._queue._in_flight.values()] == [2])
    host.step(2)
    mine.has(1)
    yours.has(1)
    first.token.cancel()
    assert isinstance(first.ended(), CallerGone)
    host.step(1000)
    assert not isinstance(second.ended(), Exception)
    assert mine.newest is not None
    assert yours.newest is not None
    assert len(mine.newest.ids) < len(yours.newest.ids) == len(second.outcome.steps)


def test_a_listener_that_takes_long_keeps_no_other_run_waiting(folder: Path) -> None:
    engine, began, go_on = LocalEngine(folder, CPU), threading.Event(), threading.Event()

    def slow(progress: Progress) -> None:
        began.set()
        assert go_on.wait(HANG_S)

    held = Asking(engine, "w4 w5", "slow", slow)
    assert began.wait(HANG_S)
    assert not isinstance(Asking(engine, "w7 w8", "other", lambda progress: None).ended(), Exception)
    assert held.thread.is_alive()
    go_on.set()
    assert not isinstance(held.ended(), Exception)
    engine.scheduler.close()


def test_a_reader_that_is_slow_gets_the_newest_progress_and_not_all_of_them() -> None:
    feed = ProgressFeed()
    assert not feed.after(0).done()
    early = feed.after(0)
    for count in (1, 2, 3):
        feed.put(some(count))
    assert early.done()
    assert feed.newest == some(3)
    assert feed.count == 3
    assert feed.after(2).done()
    waiting = feed.after(3)
    assert not waiting.done()
    feed.end()
    assert waiting.done()
    assert feed.newest == some(3)


def streamed(put: Callable[[], None], accept: str = MEDIA) -> tuple[httpx.Headers, list[dict[str, Any]], bytes]:
    """The headers, the lines and the reply of a run that calls `put` in its thread."""

    async def answer(request: Request) -> Response:
        if admitted := getattr(request.state, "admitted", None):
            admitted.set()
        await asyncio.to_thread(put)
        return Response(b"the\nreply", 207)

    async def asked() -> tuple[httpx.Headers, list[dict[str, Any]], bytes]:
        scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"accept", accept.encode())], "state": {}}
        response, sent = await with_progress(answer)(Request(scope)), list[dict[str, Any]]()

        async def receive() -> dict[str, Any]:
            await asyncio.Event().wait()
            return {}

        async def send(message: Any) -> None:
            sent.append(message)

        await response(scope, receive, send)
        body = b"".join(message.get("body", b"") for message in sent)
        lines = []
        while b"\n" in body and body.startswith(b"{"):
            line, _, body = body.partition(b"\n")
            lines.append(json.loads(line))
        return httpx.Headers(response.raw_headers), lines, body

    return asyncio.run(asked())


def test_a_stream_is_progress_a_status_and_the_reply() -> None:
    def put() -> None:
        listener = LISTENER.get()
        assert listener is not None
        for count in (1, 2):
            listener(some(count))

    headers, lines, reply = streamed(put)
    assert headers["content-type"] == MEDIA
    assert headers[WIRE_VERSION_HEADER] == WIRE_VERSION
    assert lines[-1] == {"status": 207}
    last = {"ids": [0, 1], "texts": ["w0", "w1"], "most": 9, "seconds": 0.5, "measured": None}
    assert lines[-2] == last, "the last progress is never left out"
    assert reply == b"the\nreply"


def test_who_does_not_ask_for_a_stream_gets_none() -> None:
    headers, lines, reply = streamed(lambda: None, accept="*/*")
    assert "content-type" not in headers
    assert (lines, reply) == ([], b"the\nreply")


def test_what_is_refused_is_refused_without_a_stream(folder: Path) -> None:
    with listening(application(LocalEngine(folder, CPU), AccessLimits("secret"))) as port:
        refused = httpx.post(f"http://127.0.0.1:{port}/v1/run", json={}, headers={"accept": MEDIA})
        assert refused.status_code == 401
        assert refused.headers["content-type"] == "application/json"
        assert refused.headers["connection"] == "close"
        with closing(RemoteEngine(f"http://127.0.0.1:{port}", "wrong")) as engine:
            assert isinstance(Asking(engine, "w4", "one", Heard()).ended(), Refused)


def test_an_error_of_a_run_arrives_through_the_stream_as_it_is(folder: Path) -> None:
    with served(LocalEngine(folder, CPU)) as engine:
        assert isinstance(Asking(engine, " ", "one", Heard()).ended(), EmptyText)


class Chunks(httpx.SyncByteStream):
    """A reply that comes in pieces; after them its connection breaks, if `error` is given."""

    def __init__(self, pieces: list[bytes], error: Exception | None = None) -> None:
        self._pieces, self._error = pieces, error

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces
        if self._error is not None:
            raise self._error


def remote(pieces: list[bytes], error: Exception | None = None, encoding: str = "identity", **extensions: Any) -> RemoteEngine:
    """A client of a host that replies with `pieces`."""
    headers = {"content-type": MEDIA, WIRE_VERSION_HEADER: WIRE_VERSION, "content-encoding": encoding}

    def reply(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept"] == MEDIA
        return httpx.Response(200, headers=headers, stream=Chunks(pieces, error), extensions=extensions)

    return RemoteEngine("http://here", transport=httpx.MockTransport(reply))


def test_a_stream_is_read_however_it_is_cut_into_pieces() -> None:
    whole = progress_line(some(1)) + progress_line(some(2)) + status_line(200) + serialization.to_bytes(traces.translation())
    for size in (1, 7, len(whole)):
        heard = list[Progress]()
        run = Asking(remote([whole[i : i + size] for i in range(0, len(whole), size)]), "w4", "", heard.append)
        assert not isinstance(run.ended(), Exception)
        assert heard == [some(1), some(2)]


def test_a_stream_that_a_proxy_compressed_was_not_read() -> None:
    whole = progress_line(some(1)) + status_line(200) + serialization.to_bytes(traces.translation())
    heard = list[Progress]()
    assert isinstance(Asking(remote([gzip.compress(whole)], encoding="gzip"), "w4", "", heard.append).ended(), Trace)
    assert heard == [some(1)]


def test_a_stream_that_a_proxy_damaged_is_an_error_in_words() -> None:
    ended = Asking(remote([b"not gzip"], encoding="gzip"), "w4", "", Heard()).ended()
    assert isinstance(ended, HeadlightError)


def test_a_stream_that_a_transport_delivers_whole_was_not_read() -> None:
    whole = progress_line(some(1)) + status_line(200) + serialization.to_bytes(traces.translation())
    headers = {"content-type": MEDIA, WIRE_VERSION_HEADER: WIRE_VERSION}
    whole_reply = httpx.MockTransport(lambda request: httpx.Response(200, headers=headers, content=whole))
    heard = list[Progress]()
    assert isinstance(Asking(RemoteEngine("http://here", transport=whole_reply), "w4", "", heard.append).ended(), Trace)
    assert heard == [some(1)]


def test_who_asks_for_it_gets_the_trace_so_far_also_from_another_host(stepped: tuple[Stepped, SharedEngine]) -> None:
    host, engine = stepped
    heard = Heard()
    asking = Asking(engine, "w4 w5 w6", "", heard, partial=True)
    host.step(4)  # the encoder, and three tokens
    heard.has(tokens=3)
    assert heard.newest is not None
    assert heard.newest.so_far is not None
    part = heard.newest.so_far()
    assert [step.chosen.id for step in part.steps] == list(heard.newest.ids)
    host.step(1000)
    whole = asking.ended()
    for site, own in part.attention.items():
        rows, keys = own.mask.shape
        np.testing.assert_allclose(own.weights, whole.attention[site].weights[:, :rows, :keys], atol=1e-7)
    silent = Heard()
    Asking(engine, "w4 w5 w7", "", silent).ended()
    if not isinstance(engine, LocalEngine):
        assert silent.newest is not None
        assert silent.newest.so_far is None, "traces travel only where they are wanted"


def test_a_trace_so_far_is_read_however_it_is_cut_into_pieces() -> None:
    trace = traces.translation()
    whole = (
        trace_block(lambda: trace)
        + progress_line(some(1))
        + progress_line(some(2))
        + status_line(200)
        + serialization.to_bytes(trace)
    )
    for size in (100, 4096, len(whole)):
        heard = list[Progress]()
        run = Asking(remote([whole[i : i + size] for i in range(0, len(whole), size)]), "w4", "", heard.append)
        assert not isinstance(run.ended(), Exception)
        assert [each.so_far is not None for each in heard] == [True, False]
        assert heard[0].so_far is not None
        assert heard[0].so_far().tokens == trace.tokens


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        progress_line(some(1)),
        b"[]\n",
        b"no json\n",
        b'{"ids": "x"}\n',
        b'{"trace": 5}\n123',
        b'{"trace": "x"}\n',
        b'{"trace": -1}\n',
    ],
)
def test_a_stream_of_another_form_is_an_error_in_words(stream: bytes) -> None:
    assert isinstance(Asking(remote([stream]), "w4", "", Heard()).ended(), HeadlightError)


def test_a_host_that_breaks_off_in_the_middle_is_away() -> None:
    engine = remote([progress_line(some(1))], httpx.ReadError("broken"))
    engine._away_since = 0.0  # it is not tried again
    assert isinstance(Asking(engine, "w4", "", Heard()).ended(), EngineAway)


def test_who_stops_ends_the_connection_and_no_connection_that_others_use_since() -> None:
    shut = list[int]()
    stream = SimpleNamespace(get_extra_info=lambda name: SimpleNamespace(shutdown=shut.append))
    token = CancelToken()
    whole = status_line(200) + serialization.to_bytes(traces.translation())
    run = Asking(remote([whole], network_stream=stream), "w4", "", Heard(), token)
    assert not isinstance(run.ended(), Exception)
    token.cancel()
    assert shut == []
    stopping = CancelToken()
    run = Asking(
        remote([progress_line(some(1)), b"x"], httpx.ReadError("shut"), network_stream=stream),
        "w4",
        "",
        lambda progress: stopping.cancel(),
        stopping,
    )
    assert isinstance(run.ended(), CallerGone)
    assert shut == [socket.SHUT_RDWR]


def test_wire_errors_name_what_is_wrong() -> None:
    outcome = Asking(remote([progress_line(some(1))]), "w4", "", Heard()).ended()
    assert isinstance(outcome, WireError)
    assert "before its reply" in str(outcome)
