"""The trace cache: what was used longest ago goes first, and its bytes are counted right."""

from typing import Any

import numpy as np
import pytest

from model.engine.trace_cache import TraceCache
from model.spec.request import RunRequest
from model.trace.types import Trace

A, B, C, D = (RunRequest("tiny", text) for text in "abcd")


def kept(most_bytes: int) -> Any:
    return TraceCache(most_bytes)


def trace(nbytes: int = 100) -> Trace:
    return Trace({}, {}, {}, {}, logits=np.zeros((1, nbytes), np.uint8))


def there(cache: Any, *requests: RunRequest) -> list[bool]:
    """Which requests have a trace; in this order, each one asked for becomes the one used last."""
    return [cache.get(request) is not None for request in requests]


def test_the_trace_that_was_used_longest_ago_goes_and_not_the_one_that_was_made_first() -> None:
    cache = kept(200)
    first = trace()
    cache.keep(A, first)
    cache.keep(B, trace())
    assert cache.get(A) is first
    cache.keep(C, trace())
    assert there(cache, A, B, C) == [True, False, True]


def test_a_trace_that_is_made_anew_was_used_last() -> None:
    cache = kept(200)
    for request in (A, B, A, C):
        cache.keep(request, trace())
    assert there(cache, A, B, C) == [True, False, True]


def test_a_trace_that_is_made_anew_is_counted_once_and_is_the_new_one() -> None:
    cache = kept(200)
    cache.keep(B, trace())
    for _ in range(5):
        cache.keep(A, newest := trace())
    assert cache.get(A) is newest
    assert there(cache, B) == [True]


def test_traces_may_take_all_the_bytes_and_not_one_more() -> None:
    cache = kept(200)
    cache.keep(A, trace(100))
    cache.keep(B, trace(100))
    assert there(cache, A, B) == [True, True]
    cache.keep(A, trace(101))
    assert there(cache, A, B) == [True, False]


def test_as_many_go_as_make_room_and_no_more() -> None:
    cache = kept(300)
    for request in (A, B, C):
        cache.keep(request, trace(100))
    cache.keep(D, trace(150))
    assert there(cache, A, B, C, D) == [False, False, True, True]


def test_the_newest_trace_stays_however_large_and_goes_when_the_next_one_comes() -> None:
    cache = kept(200)
    cache.keep(A, trace())
    cache.keep(B, trace(1000))
    assert there(cache, A, B) == [False, True]
    cache.keep(C, trace())
    assert there(cache, B, C) == [False, True]
    cache.keep(D, trace())
    assert there(cache, C, D) == [True, True]


def test_a_cache_of_no_bytes_keeps_nothing() -> None:
    cache = kept(0)
    cache.keep(A, trace())
    assert there(cache, A) == [False]


@pytest.mark.parametrize("gone", [A, B])
def test_what_is_forgotten_makes_room(gone: RunRequest) -> None:
    cache = kept(200)
    cache.keep(A, trace())
    cache.keep(B, trace())
    cache.forget(lambda request: request == gone)
    cache.keep(C, trace())
    assert there(cache, A, B, C) == [gone != A, gone != B, True]
