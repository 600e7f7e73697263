"""The byte budget of an engine: HEADLIGHT_MEMORY, what runs of many sentences hold, and what `/metrics` says."""

import re
from pathlib import Path

import pytest

from model.engine import memory
from model.engine.api import Run
from model.engine.local import LocalEngine
from model.errors import BadSetting
from model.features.serving.http.metrics import EngineMetrics
from model.requests.request import RunRequest
from model.sharing.caches import BUDGET, Budget, default_bytes
from tests.networks import save_checkpoint
from tests.runs import CPU


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget of the process after each test."""
    monkeypatch.setattr(BUDGET, "most_bytes", BUDGET.most_bytes)


def test_the_budget_is_configured_in_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_MEMORY", "300")
    memory.set_budget()
    assert BUDGET.most_bytes == 300 * 2**20
    monkeypatch.delenv("HEADLIGHT_MEMORY")
    memory.set_budget()
    assert BUDGET.most_bytes == default_bytes()


@pytest.mark.parametrize("asked", ["0", "-1", "1.5", "2G", "99999999999", "²"])
def test_another_setting_is_refused(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_MEMORY", asked)
    said = f"HEADLIGHT_MEMORY: “{asked}” is not accepted. Allowed: a whole number of MiB from 1 to 16,777,216."
    with pytest.raises(BadSetting, match=f"^{re.escape(said)}$"):
        memory.set_budget()


def test_runs_of_many_sentences_stay_within_the_budget(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "tiny")
    network = sum(each.nbytes for each in LocalEngine(tmp_path, CPU).checkpoint("tiny").network.parameters())
    one = LocalEngine(tmp_path, CPU).ask(Run(RunRequest("tiny", "w4 w5", target="w4"))).nbytes
    budget = Budget(2 * network + 5 * one)
    engine = LocalEngine(tmp_path, CPU, budget=budget)
    for turn in range(60):
        engine.ask(Run(RunRequest("tiny", f"w{4 + turn % 4} w{4 + turn // 4 % 4} w{4 + turn // 16}", target="w4")))
        held = budget.held()
        assert sum(held.values()) <= budget.most_bytes
    assert held["traces"] > 3 * one
    assert held["networks"] >= network


def test_the_metrics_say_what_is_held_by_kind_and_what_may_be(local: LocalEngine) -> None:
    trace = local.ask(Run(RunRequest("tiny", "w4 w5")))
    found = {(s.name, s.labels.get("kind")): s.value for metric in EngineMetrics(local).collect() for s in metric.samples}
    assert found["headlight_memory_bytes", "traces"] >= trace.nbytes
    assert found["headlight_memory_bytes", "networks"] > 0
    assert found["headlight_memory_budget_bytes", None] == BUDGET.most_bytes
