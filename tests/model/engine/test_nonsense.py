"""Nonsense asked of a host, made up from its own description: answered in words, never by a failure, and nothing is kept of it."""

import atexit
import json
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.generation import GenerationMode

from model.features.serving.http import openapi
from tests.model.engine.test_known_nonsense import assert_in_words, assert_nothing_is_left, made_host

pytestmark = pytest.mark.slow
pytest_plugins = ["schemathesis.pytest.plugin"]  # pyproject.toml keeps it from being loaded everywhere: it takes 1.5 s

FOLDER = tempfile.TemporaryDirectory(prefix="headlight-nonsense-")
atexit.register(FOLDER.cleanup)
HOST = made_host(Path(FOLDER.name))
SCHEMA = schemathesis.openapi.from_dict(openapi.describe())
SCHEMA.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
SCHEMA.config.phases.coverage.enabled = False  # 200 boundaries of each endpoint, which take twice as long and find nothing more


def ask(case: Any) -> httpx.Response:
    """What the host replies to one piece of nonsense; often it is about a model that is there."""
    if isinstance(case.body, dict) and "model" in case.body and len(json.dumps(case.body, default=str)) % 3:
        case.body["model"] = "tiny"
    content = case.body if isinstance(case.body, bytes) else json.dumps(case.body, default=str).encode("utf-8", "surrogatepass")
    query = {name: str(value).encode("utf-8", "replace") for name, value in (case.query or {}).items()}
    return HOST.client.post(case.path, params=query, content=content)


@SCHEMA.parametrize()
@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
def test_whatever_is_asked_is_answered_in_words(case: Any) -> None:
    assert_in_words(ask(case))


def test_nothing_is_left_of_it() -> None:
    assert_nothing_is_left(HOST.engine)
