"""Two surveys side by side: differences with their standard errors, against plain computations; and films over snapshots."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.engine.local import CHECKPOINTS
from model.errors import BadSurvey, CannotSurvey, EmptyText, NoTextRan
from model.features.survey import film as films
from model.features.survey.differences import differences
from model.features.survey.film import filmed
from model.features.survey.questions import MeasuredTexts, MeasureTexts, Text
from model.features.survey.statistics import added, empty
from model.features.survey.survey import Survey, begun
from model.features.survey.texts import Texts, bundled
from model.features.what_if.surveyed_means import FILM
from model.measures.catalogue import MEASURES
from model.trace.types import Array
from tests.known import bundled_engine

SITES = {"encoder.0.0.self": 2, "decoder.0.0.cross": 1}
TEXTS = Texts("made up", tuple(Text(f"w{number}") for number in range(120)))


def values(seed: int, texts: int = 120) -> Array:
    found = np.random.default_rng(seed).random((texts, 3, len(MEASURES))).astype(np.float32)
    found[:, 2, 0] = np.nan
    return found


def survey(found: Array, content: str = "same", sites: dict[str, int] = SITES) -> Survey:
    measured = MeasuredTexts("f", sites, found, np.full(len(found), 5), {})
    own = begun(MeasureTexts("tiny", texts=()), TEXTS)
    return replace(own, about=replace(own.about, content=content), statistics=added(empty(sites), measured, 0))


def test_of_different_texts_the_errors_are_those_of_two_independent_means() -> None:
    one, other = values(1), values(2, 80) + 0.1
    found = differences(survey(one), survey(other, "other"))
    assert len(found) == 3 * len(MEASURES) - 1, "a measure that has no meaning has no difference"
    for each in found:
        heads = [("encoder.0.0.self", 0), ("encoder.0.0.self", 1), ("decoder.0.0.cross", 0)]
        row, column = heads.index((each.site, each.head)), list(MEASURES).index(each.measure)
        a, b = one[:, row, column].astype(float), other[:, row, column].astype(float)
        assert not each.paired
        assert each.difference == pytest.approx(b.mean() - a.mean())
        assert each.error == pytest.approx(np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)))
    assert [abs(each.errors) for each in found] == sorted((abs(each.errors) for each in found), reverse=True)


def test_of_the_same_texts_the_errors_are_of_the_differences_text_by_text() -> None:
    one = values(1)
    other = one + 0.1 + values(2) * 0.01
    for each in differences(survey(one), survey(other)):
        assert each.paired
        assert each.error < 0.001, "the texts differ much, the two surveys of a text hardly"
        assert each.difference == pytest.approx(0.105, abs=0.003)
    [first, *_] = differences(survey(one), survey(one))
    assert (first.difference, first.errors) == (0, 0)


def test_only_heads_that_both_have_are_compared() -> None:
    other = survey(values(3)[:, :1], sites={"encoder.0.0.self": 1})
    assert {(each.site, each.head) for each in differences(survey(values(1)), other)} == {("encoder.0.0.self", 0)}
    with pytest.raises(CannotSurvey, match="no head in common"):
        differences(survey(values(1)), survey(values(3)[:, :1], sites={"encoder.0.9.self": 1}))


def asked(question: MeasureTexts) -> MeasuredTexts:
    step = int(question.model.rpartition("@")[2])
    found = values(step)[question.first : question.first + len(question.texts)]
    return MeasuredTexts(f"f{step}", SITES, found, np.full(len(found), 5), {})


def test_a_film_has_the_statistics_of_every_snapshot_and_is_read_as_it_was_written(tmp_path: Path) -> None:
    seen: list[int] = []
    found = filmed(asked, MeasureTexts("tiny", texts=()), TEXTS, (0, 7, 40), seen.append)
    assert seen[-1] == 360
    assert found.about.fingerprint == "f40"
    for place, step in enumerate((0, 7, 40)):
        plain = values(step).astype(np.float64)
        assert found.mean[place] == pytest.approx(np.nan_to_num(plain.mean(axis=0)), rel=1e-9)
        assert found.std[place, :, 1] == pytest.approx(plain[:, :, 1].std(axis=0, ddof=1), rel=1e-9)
    assert found.count[0, 2, 0] == 0
    films.write(found, tmp_path / "film.parquet")
    again = films.from_bytes((tmp_path / "film.parquet").read_bytes(), "film.parquet")
    assert (again.about, again.steps, again.heads) == (found.about, found.steps, found.heads)
    for name in films.COLUMNS:
        assert np.array_equal(getattr(again, name), getattr(found, name), equal_nan=True)
    with pytest.raises(BadSurvey, match="not a survey of snapshots"):
        films.from_bytes(b"PAR1", "film.parquet")


def test_texts_that_cannot_be_run_make_no_film() -> None:
    def refused(question: MeasureTexts) -> MeasuredTexts:
        count = len(question.texts)
        none = np.full((count, 0, len(MEASURES)), np.nan)
        problems = {number: EmptyText().to_json() for number in range(count)}
        return MeasuredTexts("f", {}, none, np.zeros(count), problems)

    with pytest.raises(NoTextRan, match=r"None of the 120 texts could be run\. The first one: The text is empty"):
        filmed(refused, MeasureTexts("tiny", texts=()), TEXTS, (0,))


def test_induction_is_born_between_two_snapshots_of_the_stored_film() -> None:
    found = films.from_bytes((CHECKPOINTS / "induction" / FILM).read_bytes(), "film")
    row, column = found.heads.index(("decoder.0.1.self", 1)), list(MEASURES).index("induction")
    by_step = dict(zip(found.steps, found.mean[:, row, column], strict=True))
    assert by_step[0] < 0.12
    assert by_step[150] < 0.2
    assert by_step[212] > 0.6
    assert by_step[4800] > 0.8


@pytest.mark.slow
def test_a_stored_film_is_of_the_snapshots_beside_it() -> None:
    engine, texts = bundled_engine(), bundled("induction")
    stored = films.from_bytes((CHECKPOINTS / "induction" / FILM).read_bytes(), "film")
    few = Texts(texts.name, texts.items[: stored.about.asked])
    again = filmed(engine.ask, MeasureTexts("induction", texts=()), few, stored.steps[-1:])
    assert again.about == stored.about
    assert again.mean[0] == pytest.approx(stored.mean[-1], abs=1e-4, nan_ok=True)
