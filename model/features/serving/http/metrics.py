"""Prometheus metrics of the engine server."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from model.engine.api import Batches, Gauges, SharedEngine
from model.sharing.caches import BUDGET

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)
"""Upper ends of the bins in which durations are counted."""


class EngineMetrics:
    """Collector of the metrics at `/metrics`.

    Args:
        engine: the engine measured.
    """

    def __init__(self, engine: SharedEngine) -> None:
        self._engine = engine
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "headlight_request_seconds", "How long a question took.", ("path", "status"), buckets=SECONDS, registry=self.registry
        )
        self.registry.register(self)

    def observe_request(self, path: str, status: int, seconds: float) -> None:
        """Records one request."""
        self._seconds.labels(path, str(status)).observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """The engine's current values."""
        for name, value in self._engine.ask(Gauges()).items():
            yield GaugeMetricFamily(f"headlight_{name}", _WORDS[name], value=value)
        held = GaugeMetricFamily("headlight_memory_bytes", "What the caches of this process hold.", labels=["kind"])
        for kind, nbytes in sorted(BUDGET.held().items()):
            held.add_metric([kind], nbytes)
        yield held
        yield GaugeMetricFamily("headlight_memory_budget_bytes", "What they may hold together.", value=BUDGET.most_bytes)
        batches = CounterMetricFamily("headlight_batches", "Batches computed, by how many runs were in them.", labels=["runs"])
        for size, count in sorted(self._engine.ask(Batches()).items()):
            batches.add_metric([str(size)], count)
        yield batches


_WORDS = {
    "waiting": "Requests in the line.",
    "running": "Runs on their way.",
    "device_bytes": "Memory of the device that tensors hold.",
}
