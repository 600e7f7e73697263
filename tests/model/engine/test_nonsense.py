"""Nonsense asked of a host, made up from its own description: answered in words, never by a failure, and nothing is kept of it."""

import json
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.generation import GenerationMode

from model.engine.http import openapi
from model.engine.http.access import AccessLimits
from model.engine.http.server import application
from model.engine.local import LocalEngine
from tests.hosts import Loopback
from tests.networks import save_checkpoint
from tests.runs import CPU

FOLDER = Path(tempfile.mkdtemp(prefix="headlight-nonsense-"))
save_checkpoint(FOLDER / "tiny")
ENGINE = LocalEngine(FOLDER, CPU)
CLIENT = httpx.Client(transport=Loopback(application(ENGINE, AccessLimits(pace=1e9, burst=1e9))), base_url="http://x")
SCHEMA = schemathesis.openapi.from_dict(openapi.describe())
SCHEMA.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])


def assert_in_words(reply: httpx.Response) -> None:
    assert reply.status_code < 500, reply.text
    if reply.status_code >= 400 and reply.status_code not in (400, 405):
        words = reply.json()
        assert words["error"]
        assert "Traceback" not in reply.text


def ask(case: Any) -> httpx.Response:
    """What the host replies to one piece of nonsense; often it is about a model that is there."""
    if isinstance(case.body, dict) and "model" in case.body and len(json.dumps(case.body, default=str)) % 3:
        case.body["model"] = "tiny"
    content = case.body if isinstance(case.body, bytes) else json.dumps(case.body, default=str).encode("utf-8", "surrogatepass")
    query = {name: str(value).encode("utf-8", "replace") for name, value in (case.query or {}).items()}
    return CLIENT.post(case.path, params=query, content=content)


@pytest.mark.slow
@SCHEMA.parametrize()
@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
def test_whatever_is_asked_is_answered_in_words(case: Any) -> None:
    assert_in_words(ask(case))


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
def test_known_nonsense_is_refused(body: bytes) -> None:
    reply = CLIENT.post("/v1/run", content=body)
    assert_in_words(reply)
    assert reply.status_code >= 400
    assert str(FOLDER) not in reply.text


def test_nothing_is_left_of_it() -> None:
    assert ENGINE.gauges() == {"waiting": 0, "running": 0, "device_bytes": 0}
    assert ENGINE.scheduler._workers == ENGINE.scheduler._idle, "a worker thread hangs in a run"
