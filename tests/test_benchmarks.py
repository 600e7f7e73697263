"""The benchmarks tell medians and ratios; what they measure is measured by running them."""

from pathlib import Path

import click
import pytest

from benchmarks import timing
from benchmarks.__main__ import PARTS, main
from benchmarks.enter import NoBrowser, chromium

ROOT = Path(__file__).parents[1]


def test_a_ratio_is_the_median_of_the_turns_and_not_the_ratio_of_medians() -> None:
    assert timing.ratio([2.0, 30.0, 4.0], [1.0, 10.0, 2.0]) == 2.0


def test_cases_run_in_turns_and_the_first_turn_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, order = [0.0], []

    def taking(name: str, seconds: list[float]) -> None:
        order.append(name)
        clock[0] += seconds.pop(0)

    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    a, b = [99.0, 0.5, 1.0, 0.25], [99.0, 1.0, 3.0, 0.5]
    rows = timing.in_turns({"a": lambda: taking("a", a), "b": lambda: taking("b", b)}, repeats=3)
    assert "".join(order) == "abababab"
    assert rows == [timing.Row("a", 500.0), timing.Row("b", 1000.0, ratio=2.0)]


def test_the_table_is_markdown() -> None:
    table = timing.table([timing.Row("slow", 12.34), timing.Row("slower", 20.0, 1.62, "of slow")])
    assert table.splitlines()[2:] == ["| slow | 12.3 |  |  |", "| slower | 20.0 | 1.62 × | of slow |"]


def test_without_a_browser_a_sentence_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoBrowser, match="install one, for instance `apt install chromium`"):
        chromium()


def test_the_options_and_parts_are_documented() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert isinstance(main, click.Command)
    assert all(f"`{option} " in page for parameter in main.params for option in parameter.opts)
    assert all(f"**{part}.**" in page for part in PARTS)
