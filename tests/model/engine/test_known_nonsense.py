"""Nonsense that a host was once asked, or may be: refused in words, and nothing is kept of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from model.engine.api import Gauges
from model.engine.guards.access import AccessLimits
from model.engine.local import LocalEngine
from model.features.serving.http.server import application
from tests.hosts import Loopback
from tests.networks import save_checkpoint
from tests.runs import CPU


@dataclass(frozen=True)
class Host:
    """An engine with one model, `tiny`, and a client of it."""

    folder: Path
    engine: LocalEngine
    client: httpx.Client


def made_host(folder: Path) -> Host:
    """A host in this process, as fast as it can."""
    save_checkpoint(folder / "tiny")
    engine = LocalEngine(folder, CPU)
    transport = Loopback(application(engine, AccessLimits(pace=1e9, burst=1e9)))
    return Host(folder, engine, httpx.Client(transport=transport, base_url="http://x"))


def assert_in_words(reply: httpx.Response) -> None:
    assert reply.status_code < 500, reply.text
    if reply.status_code >= 400 and reply.status_code not in (400, 405):
        words = reply.json()
        assert words["error"]
        assert "Traceback" not in reply.text


def assert_nothing_is_left(engine: LocalEngine) -> None:
    assert engine.ask(Gauges()) == {"waiting": 0, "running": 0, "device_bytes": 0}
    assert engine.scheduler._workers == engine.scheduler._idle, "a worker thread hangs in a run"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Is asked all of it, and has nothing left of it."""
    made = made_host(tmp_path_factory.mktemp("nonsense"))
    yield made
    assert_nothing_is_left(made.engine)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"model": "tiny", "source": "\\ud800"}',
        b'{"model": "tiny", "source": [1e999]}',
        b'{"model": "tiny", "source": [NaN]}',
        b'{"model": "../tiny", "source": "w4"}',
        b'{"model": "tiny\\u0000", "source": "w4"}',
        b'{"model": "tiny", "source": [99999999999999999999999]}',
        b"\xff\xfe",
    ],
    ids=range(10),
)
def test_known_nonsense_is_refused(host: Host, body: bytes) -> None:
    reply = host.client.post("/v1/run", content=body)
    assert_in_words(reply)
    assert reply.status_code >= 400
    assert str(host.folder) not in reply.text
