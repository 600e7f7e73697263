"""The benchmarks tell medians and ratios; what they measure is measured by running them."""

from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest

from benchmarks import decoding, drawing, timing, training
from benchmarks.__main__ import PARTS, main
from benchmarks.drawing import Shown
from benchmarks.enter import NoBrowser, chromium
from benchmarks.made_up import weights
from benchmarks.peers import TooMuch
from model.spec import ModelSpec
from tests.networks import VARIANTS, tiny_recipe, translator

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


def test_training_counts_the_tokens_that_are_predicted() -> None:
    tiny = tiny_recipe()
    longer = {**tiny.decoder, "max_positions": 32}
    recipe = replace(tiny, encoder=longer, decoder=longer)
    tokens, seconds = training.steps(recipe, "cpu", repeats=2)
    batch = training.made_up(recipe.optimisation.sentences_per_batch)
    assert tokens == sum(len([i for i in row if i != 1]) - 1 for row in batch.target.tolist())
    assert 0 < seconds < 60


def test_the_options_and_parts_are_documented() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert isinstance(main, click.Command)
    assert all(f"`{option} " in page for parameter in main.params for option in parameter.opts)
    assert all(f"**{part}.**" in page for part in PARTS)


def test_what_takes_long_is_measured_once_and_what_cannot_be_done_is_told() -> None:
    calls: list[str] = []

    def taking(name: str, seconds: float) -> drawing.Turn:
        def once(_: object) -> Shown:
            calls.append(name)
            if seconds > 60:
                raise TooMuch("> 60 s")
            return Shown(1.0, seconds - 1, 0.5)

        return once

    turns = {"ours": taking("a", 2.0), "slow": taking("b", 20.0), "never": taking("c", 99.0)}
    shown = drawing._in_turns(turns, None, 3)  # type: ignore[arg-type]  # no browser is needed here
    assert "".join(calls) == "abcaa"
    rows = {row.case: row for row in drawing._rows("x", shown)}
    assert rows["x: slow"].ratio == 10.0
    assert rows["x: never"].note == "> 60 s"
    assert timing.table(list(rows.values())).splitlines()[-1] == "| x: never |  |  | > 60 s |"


def test_made_up_attention_is_attention() -> None:
    made = weights(2, 3, 16, valid=11)
    assert made.shape == (6, 16, 16)
    np.testing.assert_allclose(made.sum(-1), 1, atol=1e-5)
    assert not made[:, :, 11:].any()


def test_decoding_with_and_without_a_cache_writes_the_same() -> None:
    stack = replace(VARIANTS["paper"].writer, vocab=40, max_positions=40)
    network = translator(ModelSpec(encoder=stack, decoder=stack))
    with_cache, without = (decoding.decode(network, cached) for cached in (True, False))
    assert with_cache == without
    assert len(with_cache) == decoding.TOKENS
