"""Statistics added up batch by batch are those of all values at once, in any order; roles need baselines."""

import json
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import BadSurvey, CannotSurvey
from model.features.survey import tables
from model.features.survey.questions import MeasuredTexts, MeasureTexts, Text
from model.features.survey.roles import CRITERIA, roles
from model.features.survey.statistics import BINS, EXTREMES, SAMPLE, Statistics, added, empty
from model.features.survey.survey import BASELINE_TEXTS, COMPARED_TEXTS, Survey, begun, gone_on
from model.features.survey.texts import Texts
from model.features.what_if.surveyed_means import ABOUT
from model.measures.catalogue import MEASURES
from model.trace.types import Array

SITES = {"encoder.0.0.self": 2, "decoder.0.0.cross": 1}
NAMES = list(MEASURES)


def values(texts: int, seed: int = 0) -> Array:
    """Numbers with gaps."""
    chance = np.random.default_rng(seed)
    found = chance.random((texts, 3, len(NAMES))).astype(np.float32)
    return np.where(chance.random(found.shape) < 0.1, np.nan, found).astype(np.float32)


def measured(found: Array, problems: dict[int, dict[str, object]] | None = None) -> MeasuredTexts:
    return MeasuredTexts("f", SITES, found, np.full(len(found), 7), problems or {})


def together(found: Array, sizes: list[int]) -> Statistics:
    """The statistics of values that come in batches of these sizes, then the rest."""
    own, first = empty(SITES), 0
    for size in [*sizes, len(found)]:
        own, first = added(own, measured(found[first : first + size]), first), min(first + size, len(found))
    return own


@given(st.lists(st.integers(1, 40), max_size=8))
def test_batches_make_no_difference(sizes: list[int]) -> None:
    found = values(90)
    own, wide = together(found, sizes), found.astype(np.float64)
    assert own.count.tolist() == np.isfinite(wide).sum(axis=0).tolist()
    assert own.mean == pytest.approx(np.nanmean(wide, axis=0), rel=1e-12)
    assert own.deviation == pytest.approx(np.nanstd(wide, axis=0, ddof=1), rel=1e-10)
    assert own.lowest.tolist() == np.nanmin(wide, axis=0).tolist()
    assert own.highest.tolist() == np.nanmax(wide, axis=0).tolist()
    assert own.bins.sum(axis=-1).tolist() == own.count.tolist()
    assert (own.texts, own.tokens) == (90, 630)
    at_once = together(found, [])
    for name in ("bins", "strongest", "weakest", "sample"):
        assert getattr(own, name).tolist() == getattr(at_once, name).tolist(), name
    assert np.array_equal(own.sampled, at_once.sampled, equal_nan=True)


def test_the_extremes_are_those_of_a_sorted_list() -> None:
    found = values(90)
    own = together(found, [13, 13])
    for head in range(3):
        for column in range(len(NAMES)):
            order = [text for text in np.argsort(found[:, head, column], kind="stable") if np.isfinite(found[text, head, column])]
            assert own.weakest[head, column].tolist() == order[:EXTREMES]
            assert sorted(own.strongest[head, column].tolist()) == sorted(order[-EXTREMES:])
            assert own.strongest_values[head, column, 0] == found[order[-1], head, column]


def test_a_histogram_counts_what_numpy_counts() -> None:
    found = values(90)
    own = together(found, [50])
    column = NAMES.index("previous")
    for head in range(3):
        there = found[:, head, column][np.isfinite(found[:, head, column])]
        assert own.bins[head, column].tolist() == np.histogram(there, BINS, (0, 1))[0].tolist()


def test_the_sample_is_bounded_and_the_same_in_any_order() -> None:
    found = values(3 * SAMPLE)
    forward = together(found, [100, 100])
    backward = added(added(empty(SITES), measured(found[300:]), 300), measured(found[:300]), 0)
    assert len(forward.sample) == SAMPLE
    assert forward.sample.tolist() == backward.sample.tolist()
    assert np.array_equal(forward.sampled, backward.sampled, equal_nan=True)
    assert forward.share_above(0, "previous", 0.5) == pytest.approx(
        np.nanmean(found[:, 0, NAMES.index("previous")] >= 0.5), abs=0.12
    )


def test_deciles_rise() -> None:
    found = values(100)
    own = together(found, [])
    tenths = own.deciles(1, "first")
    column = NAMES.index("first")
    ends = [max(found[text, 1, column] for text in tenth) for tenth in tenths]
    assert ends == sorted(ends)
    assert all(1 <= len(tenth) <= 3 for tenth in tenths)


def test_texts_that_cannot_be_run_do_not_count() -> None:
    found = values(10)
    own = added(empty(SITES), measured(found, {3: {"error": "EmptyText", "fields": {}}}), 0)
    assert own.texts == 9
    assert 3 not in own.chosen
    assert own.mean == pytest.approx(np.nanmean(np.delete(found, 3, axis=0).astype(np.float64), axis=0))


def standing(column: str, mean: float) -> Statistics:
    """The statistics of texts in which one measure of the first head is near a number."""
    found = np.full((50, 3, len(NAMES)), 0.1, np.float32)
    found[:, 0, NAMES.index(column)] = np.linspace(mean - 0.2, mean + 0.2, 50)
    return together(found, [])


def test_a_role_needs_its_threshold_and_twice_both_baselines() -> None:
    own, low = standing("previous", 0.5), np.full((3, len(NAMES)), 0.1)
    (found,) = roles(own, low, low, None)[0]
    assert found.criterion.role == "previous token"
    assert found.mean == pytest.approx(0.5)
    assert found.share == pytest.approx(np.mean(np.linspace(0.3, 0.7, 50) >= 0.4), abs=0.03)
    assert not roles(standing("previous", 0.38), low, low, None)[0]
    assert not roles(own, 2.6 * low, low, None)[0]
    assert not roles(own, low, 2.6 * low, None)[0]
    assert roles(own, None, low, low) == roles(own, low, None, low) == [(), (), ()]


@pytest.mark.parametrize(("measure", "role"), [("induction", "induction"), ("duplicate", "duplicate token")])
def test_what_natural_text_can_fake_must_hold_on_random_repetitions_too(measure: str, role: str) -> None:
    own, low = standing(measure, 0.5), np.full((3, len(NAMES)), 0.1)
    own = replace(own, sites={"decoder.0.1.self": 3})
    assert [each.criterion.role for each in roles(own, low, low, 6 * low)[0]] == [role]
    assert roles(own, low, low, 6 * low)[0][0].repeated == pytest.approx(0.6)
    assert not roles(own, low, low, 3 * low)[0]
    assert not roles(own, low, low, None)[0]


def test_no_head_of_a_first_layer_is_an_induction_head() -> None:
    """It needs an earlier head that looks at the previous token. A first layer can find equal tokens."""
    low = np.full((3, len(NAMES)), 0.1)
    for measure, expected in (("induction", []), ("duplicate", ["duplicate token"])):
        own = replace(standing(measure, 0.5), sites={"decoder.0.0.self": 3})
        assert [each.criterion.role for each in roles(own, low, low, 6 * low)[0]] == expected


def test_every_criterion_is_about_a_measure_and_named_once() -> None:
    assert {each.measure for each in CRITERIA} <= set(MEASURES)
    assert len({each.role for each in CRITERIA}) == len(CRITERIA)


TEXTS = Texts("made up", tuple(Text(f"w{number}") for number in range(300)), empty=2)
QUESTION = MeasureTexts("tiny", texts=())


def asked(fingerprint: str = "f", refuse: str = "", seen: list[MeasureTexts] | None = None) -> object:
    def ask(question: MeasureTexts) -> MeasuredTexts:
        if seen is not None:
            seen.append(question)
        if question.variant == refuse:
            raise CannotSurvey(reason="it cannot be built again")
        found = values(400)[question.first : question.first + len(question.texts)]
        return replace(measured(found), fingerprint=fingerprint)

    return ask


def finished(**more: object) -> Survey:
    return list(gone_on(asked(**more), QUESTION, TEXTS, begun(QUESTION, TEXTS)))[-1]  # type: ignore[arg-type]


def test_a_survey_reads_all_texts_and_the_first_ones_for_each_baseline() -> None:
    seen: list[MeasureTexts] = []
    found = finished(seen=seen)
    assert found.finished
    assert found.steps == (300 + 3 * BASELINE_TEXTS + COMPARED_TEXTS,) * 2
    assert [text for question in seen if question.variant == "as it is" for text in question.texts] == list(TEXTS.items)
    for variant in ("shuffled", "untrained", "repeated"):
        own = [text for question in seen if question.variant == variant for text in question.texts]
        assert own == list(TEXTS.items[:BASELINE_TEXTS])
        assert found.baselines[variant].mean == pytest.approx(np.nanmean(values(400)[:BASELINE_TEXTS], axis=0), rel=1e-6)
    assert set(found.quoted) == set(found.statistics.chosen)


def test_a_survey_goes_on_from_wherever_it_was_stopped(tmp_path: Path) -> None:
    whole = finished()
    for stop in (1, 5, 9, 12, 20, 27):
        steps = gone_on(asked(), QUESTION, TEXTS, begun(QUESTION, TEXTS))  # type: ignore[arg-type]
        part = [next(steps) for _ in range(stop)][-1]
        tables.write(part, tmp_path / "s.parquet")
        rest = list(gone_on(asked(), QUESTION, TEXTS, tables.read(tmp_path / "s.parquet")))  # type: ignore[arg-type]
        assert rest[-1].to_json() == whole.to_json()


def test_other_weights_end_a_survey() -> None:
    part = next(gone_on(asked(), QUESTION, TEXTS, begun(QUESTION, TEXTS)))  # type: ignore[arg-type]
    with pytest.raises(CannotSurvey, match="weights of the model have changed"):
        next(gone_on(asked("g"), QUESTION, TEXTS, part))  # type: ignore[arg-type]


def test_a_network_that_cannot_be_had_untrained_gives_no_roles_and_says_why() -> None:
    found = finished(refuse="untrained")
    assert found.finished
    assert found.roles == [(), (), ()]
    assert found.without["untrained"]["fields"] == {"reason": "it cannot be built again"}


def test_a_table_is_read_as_it_was_written_and_by_pandas(tmp_path: Path) -> None:
    found = finished()
    tables.write(found, tmp_path / "s.parquet")
    again = tables.read(tmp_path / "s.parquet")
    assert again.to_json() == found.to_json()
    assert again.quoted == found.quoted
    assert again.statistics.deciles(0, "first") == found.statistics.deciles(0, "first")
    table = pd.read_parquet(tmp_path / "s.parquet")
    assert len(table) == 3 * len(NAMES)
    row = table[(table.site == "decoder.0.0.cross") & (table["head"] == 0) & (table.measure == "entropy")].iloc[0]
    assert row["mean"] == pytest.approx(found.statistics.mean[2, NAMES.index("entropy")])
    assert row["histogram"].sum() == row["count"]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a table" * 50])
def test_another_file_is_no_survey(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s.parquet").write_bytes(content)
    with pytest.raises(BadSurvey, match=r"s\.parquet cannot be opened: it is not a survey"):
        tables.read(tmp_path / "s.parquet")


def test_a_table_of_somebody_else_is_no_survey(tmp_path: Path) -> None:
    pd.DataFrame({"site": ["a"], "mean": [1.0]}).to_parquet(tmp_path / "s.parquet")
    with pytest.raises(BadSurvey, match="not a survey"):
        tables.read(tmp_path / "s.parquet")


def changed(data: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """The file of a survey with other metadata."""
    table = parquet.read_table(BytesIO(data))
    others = json.loads(table.schema.metadata[ABOUT])
    change(others)
    file = BytesIO()
    parquet.write_table(table.replace_schema_metadata({**table.schema.metadata, ABOUT: json.dumps(others)}), file)
    return file.getvalue()


@pytest.mark.parametrize(
    "change",
    [
        lambda others: others["quoted"].clear(),
        lambda others: others["quoted"].update({"0": [7, None]}),
        lambda others: others["about"].update(edits=["delete everything"]),
        lambda others: others.update(copying=[0.5]),
        lambda others: others.update(sites={"encoder.0.0.self": 4}),
    ],
)
def test_a_file_that_contradicts_itself_is_no_survey(change: Callable[[dict[str, Any]], None]) -> None:
    data = tables.to_bytes(finished())
    assert tables.from_bytes(changed(data, lambda _others: None), "s.parquet").to_json() == finished().to_json()
    with pytest.raises(BadSurvey, match="not a survey"):
        tables.from_bytes(changed(data, change), "s.parquet")


def test_a_small_file_that_claims_many_numbers_is_not_unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = tables.to_bytes(finished())
    monkeypatch.setattr(tables, "MOST_VALUES", 1000)
    with pytest.raises(BadSurvey, match="not a survey"):
        tables.from_bytes(data, "s.parquet")
