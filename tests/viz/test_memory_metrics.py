"""The byte budget among the metrics of the app's server."""

import pytest

from model.sharing.caches import Budget, LruCache
from viz.session import memory_metrics


def test_the_app_tells_what_is_held_by_kind_and_what_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Budget(1000)
    monkeypatch.setattr(memory_metrics, "BUDGET", shared)
    kept: LruCache[str, bytes] = LruCache(1000, len, budget=shared, kind="traces")
    kept.keep("a", bytes(70))
    found = memory_metrics.MemoryStats().get_stats()
    lines = [stat.to_metric_str() for family in memory_metrics.MemoryStats.stats_families for stat in found[family]]
    assert lines == ['headlight_memory_bytes{kind="traces"} 70', "headlight_memory_budget_bytes 1000"]
