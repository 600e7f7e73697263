"""A thousand pieces of nonsense, as tests/model/engine/test_nonsense.py makes them up: no failure, and nothing is left of them."""

import gc
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, settings

from tests.model.engine.test_known_nonsense import assert_in_words, assert_nothing_is_left
from tests.model.engine.test_nonsense import HOST, SCHEMA, ask

pytestmark = pytest.mark.load
pytest_plugins = ["schemathesis.pytest.plugin"]

REQUESTS = 1000
OF_EACH = 120
"""Of each of nine questions."""

replies: list[int] = []
sizes: list[int] = []


@SCHEMA.parametrize()
@settings(max_examples=OF_EACH, suppress_health_check=list(HealthCheck), deadline=None)
def test_whatever_is_asked_is_answered_in_words(case: Any) -> None:
    reply = ask(case)
    replies.append(reply.status_code)
    sizes.append(psutil.Process().memory_info().rss)
    assert_in_words(reply)


def test_a_thousand_were_asked_and_nothing_is_left_of_them() -> None:
    gc.collect()
    assert len(replies) >= REQUESTS
    assert any(status == 200 for status in replies)
    assert any(status >= 400 for status in replies)
    assert_nothing_is_left(HOST.engine)
    assert sizes[-1] <= 1.05 * sizes[len(sizes) // 3]
