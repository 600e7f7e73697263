"""The budget: what was used longest ago goes, in whichever cache it is, and freed memory is given back to the system."""

import gc
import math
from pathlib import Path

import pytest

from model.sharing import caches, system_memory
from model.sharing.caches import Budget, LruCache, default_bytes


def cache(shared: Budget, kind: str = "") -> LruCache[str, bytes]:
    return LruCache(math.inf, len, budget=shared, kind=kind)


def test_what_was_used_longest_ago_goes_in_whichever_cache_it_is() -> None:
    shared = Budget(400)
    traces, parts = cache(shared), cache(shared)
    traces.keep("a", bytes(100))
    parts.keep("b", bytes(100))
    traces.keep("c", bytes(100))
    parts.keep("d", bytes(100))
    assert traces.get("a")
    traces.keep("e", bytes(100))
    assert (traces.kept(), parts.kept()) == (["c", "a", "e"], ["d"])
    parts.keep("f", bytes(150))
    assert (traces.kept(), parts.kept()) == (["a", "e"], ["f"])


def test_the_newest_of_each_cache_stays_however_large() -> None:
    shared = Budget(100)
    networks, traces = cache(shared, "networks"), cache(shared, "traces")
    networks.keep("large", bytes(1000))
    for name in "abc":
        traces.keep(name, bytes(60))
        assert networks.get("large"), "a network and its runs push each other out: each run would load it again"
        assert traces.kept() == [name]
    assert shared.held() == {"networks": 1000, "traces": 60}


def test_three_hundred_values_of_many_kinds_stay_within_the_budget() -> None:
    shared = Budget(10_000)
    caches = [cache(shared, kind) for kind in ("traces", "parts", "answers")]
    for turn in range(300):
        caches[turn % 3].keep(str(turn), bytes(100 + 7 * turn % 800))
        assert sum(shared.held().values()) == sum(each.nbytes for each in caches) <= 10_000
    assert {kind: nbytes > 0 for kind, nbytes in shared.held().items()} == {"traces": True, "parts": True, "answers": True}


def test_what_is_kept_under_no_budget_pushes_nothing_out_and_is_not_pushed_out() -> None:
    shared = Budget(100)
    traces, uploads = cache(shared), LruCache[str, bytes](1000, len)
    uploads.keep("u", bytes(500))
    uploads.keep("v", bytes(400))
    for name in "ab":
        traces.keep(name, bytes(50))
    assert (traces.kept(), uploads.kept()) == (["a", "b"], ["u", "v"])


def test_a_cache_that_is_gone_takes_no_room() -> None:
    shared = Budget(100)
    gone, stays = cache(shared), cache(shared)
    gone.keep("a", bytes(90))
    del gone
    gc.collect()
    for name in "bc":
        stays.keep(name, bytes(50))
    assert stays.kept() == ["b", "c"]


def test_a_value_is_freed_outside_of_the_lock() -> None:
    shared = Budget(10)
    free: list[bool] = []

    class Slow(bytes):
        def __del__(self) -> None:
            free.append(not shared.lock._is_owned())  # type: ignore[attr-defined]  # a private question, which tests alone ask

    held = cache(shared)
    held.keep("a", Slow(9))
    held.keep("b", bytes(9))
    held.keep("c", Slow(9))
    held.forget()
    assert free == [True, True]


def test_freed_memory_is_given_back_after_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []
    monkeypatch.setattr(caches, "give_back", lambda: given.append("back"))
    monkeypatch.setattr(caches, "GIVEN_BACK", 100)
    shared = Budget(400)
    held = cache(shared)
    for turn in range(8):
        held.keep(str(turn), bytes(50))
    assert not given
    held.keep("8", bytes(50))
    assert not given
    held.keep("9", bytes(50))
    assert given == ["back"]
    held.forget()
    assert given == ["back", "back"]


def test_the_default_is_a_fourth_of_the_memory_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for there, expected in ((2**29, caches.LEAST), (2**32, 2**30), (2**37, caches.MOST), (math.inf, caches.UNKNOWN)):
        monkeypatch.setattr(caches, "machine_bytes", lambda there=there: there)
        assert default_bytes() == expected


def test_a_container_has_the_memory_that_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(system_memory, "CONTAINER", limit)
    alone = system_memory.machine_bytes()
    assert alone > 2**28
    limit.write_text("max\n")
    assert system_memory.machine_bytes() == alone
    limit.write_text(f"{2**28}\n")
    assert system_memory.machine_bytes() == 2**28
    system_memory.give_back()
