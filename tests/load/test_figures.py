"""The limits for a class, measured as `python -m benchmarks --only load` does. Minutes long, and meant for a quiet machine."""

import asyncio

import pytest

from benchmarks import load
from benchmarks.load import badly_behaved, classroom, runs, soak
from benchmarks.load.classroom import Class
from benchmarks.servers import serving
from tests.hosts import ROOT

pytestmark = pytest.mark.load


def test_300_people_join_and_click() -> None:
    with serving(ROOT / "app.py") as app:
        found = asyncio.run(classroom.attend(app, Class()))
    assert found.errors == []
    assert len(found.joins) == 300
    assert load.p95(found.joins) <= load.JOIN_SECONDS
    assert load.p95(found.clicks[load.PACE]) <= load.CLICK_SECONDS


def test_30_people_run_different_sentences_on_two_models_at_once() -> None:
    found = runs.measure()
    assert found.errors == []
    assert len(found.together) == runs.PEOPLE
    assert load.p95(found.together) <= load.RUNS_RATIO * found.alone


def test_cached_runs_stay_quick_beside_a_minute_of_the_badly_behaved() -> None:
    found = badly_behaved.measure()
    print(found.replies, max(found.idle), load.p95(found.idle), max(found.beside), load.p95(found.beside))
    assert found.errors == []
    assert sum(sum(each.values()) for each in found.replies.values()) == 60
    assert max(found.beside) <= load.CACHED_SECONDS
    assert load.p95(found.beside) <= load.CACHED_RATIO * load.p95(found.idle)


def test_memory_stays_flat_over_20_minutes() -> None:
    with serving(ROOT / "app.py") as app:
        found = asyncio.run(soak.endure(app))
    assert found.errors == []
    assert found.bytes_after <= load.SOAK_RATIO * found.bytes_before
