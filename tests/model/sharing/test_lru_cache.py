"""The LRU cache: what was used longest ago goes first, and bytes and entries are counted right."""

import threading
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

from model.requests.request import RunRequest
from model.sharing.caches import ComputedOnce, LruCache
from model.trace.types import Trace

A, B, C, D = (RunRequest("tiny", text) for text in "abcd")


def kept(most_bytes: int) -> Any:
    return LruCache(most_bytes, attrgetter("nbytes"))


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


def test_entries_are_bounded_as_well_as_bytes_and_values_of_no_bytes_count_as_entries() -> None:
    cache: LruCache[str, bytes] = LruCache(10, len, 2)
    for name in "abc":
        cache.keep(name, b"")
    assert [cache.get(name) for name in "abc"] == [None, b"", b""]
    cache.keep("b", b"12345678901")
    cache.keep("d", b"1")
    assert [cache.get(name) for name in "bd"] == [None, b"1"]
    cache.forget()
    assert cache.get("b") is None


def test_many_threads_keep_get_and_forget_at_once_and_the_bounds_still_hold() -> None:
    cache: LruCache[int, bytes] = LruCache(100, len, 7)
    errors: list[BaseException] = []

    def visit(seed: int) -> None:
        try:
            for turn in range(2000):
                key = (seed * 31 + turn * 7) % 40
                cache.keep(key, bytes(key))
                cache.get(key + 1)
                if turn % 50 == 0:
                    cache.forget(lambda other: other % 3 == 0)
        except BaseException as error:  # whatever it is, the test tells it
            errors.append(error)

    threads = [threading.Thread(target=visit, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = [value for key in range(40) if (value := cache.get(key)) is not None]
    assert not errors
    assert 0 < len(left) <= 7
    assert sum(map(len, left)) <= 100


def test_forgetting_without_a_choice_forgets_everything() -> None:
    cache: LruCache[str, str] = LruCache(100, len)
    cache.keep("a", "one")
    cache.keep("b", "two")
    cache.forget()
    assert cache.get("a") is None
    assert cache.get("b") is None


def test_equal_computations_run_once_and_a_kept_value_is_not_computed_again() -> None:
    cache: LruCache[str, str] = LruCache(100, len)
    once, begun = ComputedOnce(cache, lambda key, value: value != "not kept"), list[str]()

    def compute(value: str) -> str:
        begun.append(value)
        return value

    assert once.get("a", lambda: compute("one")) == "one"
    assert once.get("a", lambda: compute("two")) == "one"
    assert once.get("b", lambda: compute("not kept")) == "not kept"
    assert once.get("b", lambda: compute("three")) == "three"
    assert begun == ["one", "not kept", "three"]
    cache.keep("c", "kept since")
    assert once._computed("c", lambda: compute("four")) == "kept since"
