"""Shares of a survey that several processes read: added up they are the survey of one process."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from model import __main__ as program
from model.engine.local import LocalEngine
from model.errors import CannotSurvey
from model.features.survey import tables
from model.features.survey.questions import MeasureTexts, Text
from model.features.survey.statistics import added, empty, together
from model.features.survey.survey import Survey, begun, gone_on, merged
from model.features.survey.texts import Texts
from tests.model.features.survey.test_survey_statistics import measured, values
from tests.networks import save_checkpoint

BATCH, COMPARED = 8, 20
"""Texts of a batch, and those that are compared: fewer than a survey has, and no whole number of batches."""

TREE = "NOUN:2:nsubj VERB:0:root NOUN:2:obj"


def target(number: int) -> str:
    """Some words: a text that has a target is not decoded, which takes most of the time."""
    return " ".join(f"w{4 + (7 * number + place * place) % 5}" for place in range(5 + number % 3))


TEXTS = Texts(
    "made up",
    tuple(
        Text(
            " " if number % 41 == 7 else f"w{4 + number % 6} w{4 + number % 5} w{5 + number % 4}",
            target(number) if number % 9 else None,
            tree="" if number % 3 else TREE,
        )
        for number in range(5 * BATCH + 9)
    ),
    empty=2,
)
QUESTION = MeasureTexts("tiny", texts=())


@pytest.fixture(scope="module", autouse=True)
def small_batches() -> Iterator[None]:
    """Several batches a share, of a few texts each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.features.survey.survey.BATCH", BATCH)
        patch.setattr("model.features.survey.survey.COMPARED_TEXTS", COMPARED)
        yield


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> LocalEngine:
    folder = tmp_path_factory.mktemp("shares")
    save_checkpoint(folder / "tiny")
    return LocalEngine(folder, torch.device("cpu"))


@pytest.fixture(scope="module")
def whole(engine: LocalEngine) -> Survey:
    return list(gone_on(engine.ask, QUESTION, TEXTS, begun(QUESTION, TEXTS)))[-1]


Share = Callable[[int, int], Survey]
"""Reads share number … of …."""


@pytest.fixture(scope="module")
def share(engine: LocalEngine) -> Share:
    return cache(lambda number, count: list(gone_on(engine.ask, QUESTION, TEXTS, begun(QUESTION, TEXTS, (number, count))))[-1])


def alike(one: Any, other: Any) -> None:
    """Two JSON values are equal, numbers but for the rounding of their last digits."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            alike(one[name], other[name])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for each, its in zip(one, other, strict=True):
            alike(each, its)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-5, abs=1e-6)
    else:
        assert one == other


@pytest.mark.parametrize("count", [2, 4])  # even and uneven shares
def test_the_sum_of_the_shares_is_the_survey_of_one_process(share: Share, whole: Survey, count: int, tmp_path: Path) -> None:
    shares = [share(number + 1, count) for number in range(count)]
    assert sum(each.done for each in shares) == len(TEXTS.items)
    assert max(each.done for each in shares) - min(each.done for each in shares) <= 2 * BATCH
    for number, each in enumerate(shares):
        tables.write(each, tmp_path / f"{number}.parquet")
    again = [tables.read(tmp_path / f"{number}.parquet") for number in reversed(range(count))]
    found = merged(again)
    assert found.finished
    alike(found.to_json(), whole.to_json())
    assert (found.done, found.skipped, dict(found.problems), found.steps) == (
        whole.done,
        whole.skipped,
        dict(whole.problems),
        whole.steps,
    )
    one, other = found.statistics, whole.statistics
    for name in ("count", "bins", "sample"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert found.relations is not None
    assert whole.relations is not None
    assert all(np.array_equal(array, whole.relations.arrays()[name]) for name, array in found.relations.arrays().items())
    assert found.roles == whole.roles or [len(each) for each in found.roles] == [len(each) for each in whole.roles]
    assert set(found.quoted) == set(one.chosen)
    for site, own in other.contexts.items():
        assert one.contexts[site] == pytest.approx(own, rel=1e-5, abs=1e-6)


def test_sums_of_the_same_numbers_are_equal_to_the_last_digits() -> None:
    all_values = values(400).round(2)  # with ties among the extremes
    one = added(empty(measured(all_values).sites), measured(all_values), 0)
    halves = [added(empty(one.sites), measured(all_values[first : first + 100]), first) for first in range(0, 400, 100)]
    found = together(together(halves[2], halves[0]), together(halves[3], halves[1]))
    for name in "count bins sample sampled lowest highest strongest weakest strongest_values weakest_values".split():
        assert np.array_equal(getattr(found, name), getattr(one, name), equal_nan=True), name
    for name in ("mean", "squares"):
        assert getattr(found, name) == pytest.approx(getattr(one, name), rel=1e-12, abs=1e-12)
    assert (found.texts, found.tokens) == (one.texts, one.tokens)


def test_shares_that_do_not_belong_together_are_refused(engine: LocalEngine, share: Share) -> None:
    one, two = share(1, 2), share(2, 2)
    assert one.roles == [()] * len(one.statistics.heads)
    with pytest.raises(CannotSurvey, match="each share is needed once, and these are 1/2"):
        merged([one])
    with pytest.raises(CannotSurvey, match="1/2, 1/2"):
        merged([one, one])
    with pytest.raises(CannotSurvey, match="different surveys"):
        merged([one, replace(two, about=replace(two.about, fingerprint="another"))])
    started = next(gone_on(engine.ask, QUESTION, TEXTS, begun(QUESTION, TEXTS, (2, 2))))
    with pytest.raises(CannotSurvey, match="share 2 of 2 is not finished"):
        merged([one, started])


@pytest.mark.slow
def test_the_command_reads_shares_and_adds_them_up(tmp_path: Path) -> None:
    def told(*arguments: object) -> Any:
        return CliRunner().invoke(program.cli, ["survey", "induction", "--most", "40", *map(str, arguments)])

    files = [tmp_path / f"{number}.parquet" for number in (1, 2)]
    for number, file in enumerate(files, start=1):
        assert told("--cluster", f"{number}/2", "--out", file).exit_code == 0
    found = told(*(option for file in files for option in ("--merge", file)), "--out", tmp_path / "all.parquet", "--json")
    assert found.exit_code == 0, found.exception
    alike(json.loads(found.stdout), json.loads(told("--json").stdout))
    assert tables.read(tmp_path / "all.parquet").finished
    assert "it holds one of induction" in str(told("--cluster", "2/2", "--out", files[0]).exception)
    for wrong in ("0/2", "3/2", "1/4", "1", "a/b"):
        assert "K/N" in str(told("--cluster", wrong, "--out", tmp_path / "w.parquet").exception)
    assert "used with --out" in str(told("--cluster", "1/2").exception)
    assert "each share is needed once" in str(told("--merge", files[0]).exception)
