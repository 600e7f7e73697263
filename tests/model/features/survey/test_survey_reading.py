"""One head in many texts: what is read is what runs show; its plane and its examples are compared with plain computations."""

import csv
import json
import re
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from scipy import stats

from model import __main__ as program
from model.engine.api import Run
from model.engine.local import LocalEngine
from model.errors import CannotSurvey, UnknownHead, UnknownSite, WireError
from model.features.survey import reading
from model.features.survey.examples import Wanted, searched
from model.features.survey.plane import aligned, clusters, correlation, plane, ranks
from model.features.survey.questions import Text
from model.features.survey.reading import HeadInText, HeadRead, ReadHead, read_on
from model.requests.request import RunRequest
from model.trace.types import Array, Tokens
from tests.networks import save_checkpoint

TEXTS = (Text("w4 w5 w6 w4"), Text("w7 w5", "w4 w9 w4"), Text("w8"))
SITE = "decoder.0.1.cross"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> LocalEngine:
    folder = tmp_path_factory.mktemp("reading")
    save_checkpoint(folder / "tiny")
    return LocalEngine(folder, torch.device("cpu"))


def strip(*texts: str, name: str = "source") -> Tokens:
    return Tokens(name, tuple(range(len(texts))), texts, (False,) * len(texts), (False,) * len(texts))


def causal(q: Array, k: Array, *texts: str) -> HeadInText:
    """A head whose rows may attend to themselves and to what comes before."""
    scores = np.where(np.tri(len(q), dtype=bool), q @ k.T, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    tokens = strip(*(texts or map(str, range(len(q)))))
    return HeadInText(tokens, tokens, weights / weights.sum(axis=1, keepdims=True), np.isfinite(scores), q, k)


def test_a_head_is_read_as_the_run_of_each_text_shows_it(engine: LocalEngine) -> None:
    found = engine.ask(ReadHead("tiny", texts=TEXTS, site=SITE, head=1))
    for text, own in zip(TEXTS, found.texts, strict=True):
        trace = engine.ask(Run(RunRequest("tiny", text.source, text.target, keep=("qkv",))))
        there = trace.at(SITE)
        assert own is not None
        assert own.weights == pytest.approx(there.weights[1], abs=1e-5)
        assert own.q == pytest.approx(there.q[1], abs=1e-4)  # type: ignore[index]
        assert own.k == pytest.approx(there.k[1], abs=1e-4)  # type: ignore[index]
        assert own.queries.texts == trace.tokens["target"].texts[: len(own.weights)]
        assert own.keys.texts == trace.tokens["source"].texts
        scores = np.asarray(own.q, np.float64) @ np.asarray(own.k, np.float64).T / np.sqrt(own.q.shape[1])
        plain = np.exp(np.where(own.allowed, scores, -np.inf))
        assert own.weights == pytest.approx(plain / plain.sum(axis=1, keepdims=True), abs=1e-5)


def test_texts_that_cannot_be_run_are_left_out_and_a_head_that_is_not_there_is_named(engine: LocalEngine) -> None:
    found = engine.ask(ReadHead("tiny", texts=(Text("w4 " * 40), TEXTS[0]), site=SITE, head=0))
    assert found.texts[0] is None
    assert found.problems[0]["error"] == "TooManyTokens"
    with pytest.raises(UnknownHead):
        engine.ask(ReadHead("tiny", texts=TEXTS, site=SITE, head=9))
    with pytest.raises(UnknownSite):
        engine.ask(ReadHead("tiny", texts=TEXTS, site="decoder.0.9.self", head=0))


def test_an_answer_travels_bit_by_bit(engine: LocalEngine) -> None:
    found = engine.ask(ReadHead("tiny", texts=(Text("w4 " * 40), *TEXTS), site=SITE, head=1))
    again = HeadRead.from_bytes(found.to_bytes())
    assert (again.fingerprint, again.problems, again.texts[0]) == (found.fingerprint, found.problems, None)
    for one, other in zip(found.texts[1:], again.texts[1:], strict=True):
        assert one is not None
        assert other is not None
        assert (one.queries, one.keys) == (other.queries, other.keys)
        assert all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in reading.ARRAYS)
    untold = replace(found, texts=(replace(found.texts[1], q=None, k=None),))  # type: ignore[type-var]
    assert HeadRead.from_bytes(untold.to_bytes()).texts[0].q is None  # type: ignore[union-attr]
    for damaged in (b"", found.to_bytes()[:-1], found.to_bytes().replace(b"count", b"other")):
        with pytest.raises(WireError):
            HeadRead.from_bytes(damaged)


def test_reading_goes_on_to_the_end_or_until_enough_is_gathered(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    question, many = ReadHead("tiny", texts=(), site=SITE, head=0), (*TEXTS, Text(" "), *TEXTS)
    *_, found = read_on(engine.ask, question, many)
    assert found.places == (0, 1, 2, 4, 5, 6)
    assert list(found.problems) == [3]
    assert found.steps == (7, 7)
    assert not found.full
    points = [len(own.queries) + len(own.keys) for own in found.texts]
    monkeypatch.setattr(reading, "MOST_POINTS", sum(points[:2]))
    monkeypatch.setattr(reading, "AT_ONCE", 2)
    *_, less = read_on(engine.ask, question, many)
    assert (less.places, less.full) == ((0, 1), True)
    monkeypatch.setattr(reading, "MOST_POINTS", sum(points[:2]) + 1)
    *_, less = read_on(engine.ask, question, many)
    assert (less.places, less.full) == ((0, 1), True)
    with pytest.raises(CannotSurvey, match=r"^None of the 2 texts could be run\. The first one: "):
        list(read_on(engine.ask, question, (Text(" "), Text(" "))))


def test_one_question_has_as_many_texts_as_fit_into_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def answer(question: ReadHead) -> HeadRead:
        asked.append(len(question.texts))
        return HeadRead("f", (causal(np.eye(2), np.eye(2)),) * len(question.texts), {})

    monkeypatch.setattr(reading, "CHARACTERS", 10)
    list(read_on(answer, ReadHead("m", texts=(), site=SITE, head=0), [Text(text) for text in ("a" * 4, "b" * 6, "c" * 99, "d")]))
    assert asked == [2, 1, 1]


def test_shift_and_scale_leave_every_weight_as_it_is() -> None:
    chance = np.random.default_rng(1)
    q, k = chance.normal(size=(5, 7)) + 1, 3 * chance.normal(size=(6, 7)) - 2
    queries, keys = aligned(q, k, 1.7)
    assert queries.mean(axis=0) == pytest.approx(keys.mean(axis=0))
    before, after = (np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True) for scores in (q @ k.T, queries @ keys.T))
    assert after == pytest.approx(before, rel=1e-9)


def test_the_plane_is_that_of_the_principal_components() -> None:
    chance = np.random.default_rng(2)
    texts = [causal(chance.normal(size=(n, 5)), 2 * chance.normal(size=(n, 5))) for n in (6, 9)]
    found = plane(texts)
    q, k = (np.concatenate([getattr(own, name) for own in texts]) for name in ("q", "k"))
    both = np.concatenate(aligned(q, k, found.scale))
    left, values, _ = np.linalg.svd(both - both.mean(axis=0), full_matrices=False)
    plain = left[:, :2] * values[:2]
    assert np.abs(found.points) == pytest.approx(np.abs(plain), abs=1e-9)
    assert found.variance == pytest.approx(tuple(values[:2] ** 2 / (values**2).sum()))
    assert found.keys.tolist() == [False] * 15 + [True] * 15
    assert found.texts.tolist() == ([0] * 6 + [1] * 9) * 2
    assert found.positions.tolist() == [*range(6), *range(9)] * 2
    rows = []
    for own, first in zip(texts, (0, 6), strict=True):
        for row in range(2, len(own.q)):  # type: ignore[arg-type]
            distances = [np.hypot(*(found.points[first + row] - found.points[15 + first + key])) for key in range(row + 1)]
            rows.append(stats.spearmanr(-np.array(distances), own.weights[row, : row + 1]).statistic)
    assert found.in_rows == pytest.approx(np.mean(rows))
    assert found.rows == len(rows)


def test_where_nearness_is_the_score_the_correlation_is_one() -> None:
    chance = np.random.default_rng(3)
    angles = chance.uniform(0, 2 * np.pi, 40)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    around = np.concatenate([around, -around])  # on a circle around 0: |q − k|² = 2 − 2 q·k
    found = plane([causal(8 * around, around / 4)])
    assert found.in_rows == pytest.approx(1.0)
    assert found.in_pairs == pytest.approx(1.0, abs=1e-4)  # products that are equal differ in the last digit
    assert sum(found.variance) == pytest.approx(1.0)
    assert found.scale == pytest.approx(np.sqrt(1 / 32))


def test_keys_that_say_nothing_of_the_weights_have_no_correlation() -> None:
    chance = np.random.default_rng(4)
    texts = [causal(chance.normal(size=(60, 3)), chance.normal(size=(60, 3))) for _ in range(20)]
    weights = [chance.dirichlet(np.ones(60), size=60) for _ in texts]
    found = plane([replace(own, weights=other) for own, other in zip(texts, weights, strict=True)])
    assert abs(found.in_rows) < 0.05


def test_umap_keeps_groups_apart_and_is_told_by_the_same_correlations() -> None:
    pytest.importorskip("umap")
    chance = np.random.default_rng(0)
    far = np.repeat([[0.0, 0, 0], [40, 0, 0]], 30, axis=0)
    q, k = (far + chance.normal(size=(60, 3)) for _ in range(2))
    found = plane([causal(q, k)], "umap")
    one, other = (found.points[found.positions // 30 == group] for group in (0, 1))
    middle = one.mean(axis=0) + other.mean(axis=0)
    side = (found.points - middle / 2) @ (other.mean(axis=0) - one.mean(axis=0)) > 0
    assert (side == (found.positions >= 30)).mean() > 0.95
    assert found.variance == ()
    near = -np.linalg.norm(found.points[:60][59] - found.points[60:], axis=1)
    single = plane([replace(causal(q, k), allowed=np.arange(60)[:, None] * np.ones((1, 60)) == 59)], "umap")
    assert single.points == pytest.approx(found.points)
    assert single.in_rows == pytest.approx(correlation(near, causal(q, k).weights[59]), abs=1e-6)


def test_without_its_library_umap_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.features.survey.plane.find_spec", lambda _name: None)
    with pytest.raises(CannotSurvey, match="needs the package umap-learn"):
        plane([causal(np.eye(2), np.eye(2))], "umap")


def test_a_network_that_does_not_tell_queries_has_no_plane() -> None:
    with pytest.raises(CannotSurvey, match="does not expose"):
        plane([replace(causal(np.eye(2), np.eye(2)), q=None)])


@pytest.mark.parametrize("size", [1, 2])
def test_a_narrow_head_has_a_plane(size: int) -> None:
    found = plane([causal(np.arange(4.0 * size).reshape(4, size), np.arange(4.0 * size).reshape(4, size))])
    assert np.isfinite(found.points).all()
    assert found.variance[0] == pytest.approx(1.0)


def test_ranks_and_their_correlation_are_those_of_scipy() -> None:
    values = np.array([3.0, 1.0, 3.0, 2.0, 3.0, 1.0])
    assert ranks(values) == pytest.approx(stats.rankdata(values))
    other = np.array([1.0, 2.0, 2.0, 0.0, 7.0, 5.0])
    assert correlation(values, other) == pytest.approx(stats.spearmanr(values, other).statistic)
    assert np.isnan(correlation(values, np.ones(6)))


def test_clusters_are_the_groups_that_lie_apart_the_largest_first() -> None:
    chance = np.random.default_rng(5)
    sizes = [10, 30, 20]
    points = np.concatenate([chance.normal(size=(n, 2)) * 0.1 + [10 * at, -5 * at] for at, n in enumerate(sizes)])
    assert clusters(points, 3).tolist() == [2] * 10 + [0] * 30 + [1] * 20
    assert set(clusters(np.zeros((4, 2)), 3)) == {0}


def test_examples_are_the_cells_with_these_tokens_and_weights() -> None:
    chance = np.random.default_rng(6)
    words = ("Die", "Frau", "lacht", "nicht", "die")
    texts = [causal(2 * chance.normal(size=(5, 3)), chance.normal(size=(5, 3)), *words) for _ in range(4)]
    found = searched(texts, Wanted(query="NICHT", key="die", least=0.2))
    plain = [(n, 3, 0, own.weights[3, 0]) for n, own in enumerate(texts)]
    hits = sorted((cell for cell in plain if cell[3] >= 0.2), key=lambda cell: -cell[3])
    assert [(each.text, each.query, each.key) for each in found.examples] == [cell[:3] for cell in hits]
    assert (found.count, found.of, found.texts) == (len(hits), 4, len(hits))
    assert 0 < found.count < 4
    assert found.mean == pytest.approx(np.mean([cell[3] for cell in plain]))
    assert found.uniform_mean == 1 / 4
    assert found.uniform == 4
    everything = searched(texts, Wanted())
    assert everything.of == 4 * (2 + 3 + 4 + 5)  # the first row has no choice
    assert everything.count == everything.of


def test_chance_is_the_mean_over_all_orders_of_a_rows_weights() -> None:
    own = causal(np.array([[0.3], [1.0], [-2.0], [1.5]]), np.array([[1.0], [0.2], [-0.4], [2.0]]), "a", "b", "b", "c")
    wanted = Wanted(key="b", least=0.3)
    counts = []
    for row in range(1, 4):
        orders = list(permutations(own.weights[row, : row + 1]))
        counts.append(np.mean([sum(weight >= 0.3 for weight in order[1:3]) for order in orders]))
    assert searched([own], wanted).dealt == pytest.approx(sum(counts))
    assert 0 < sum(counts) < 5


def test_a_word_that_was_split_is_all_of_its_tokens() -> None:
    own = causal(np.zeros((5, 1)), np.zeros((5, 1)), "▁un", "break", "able", "▁un", "▁x")
    assert {each.query for each in searched([own], Wanted(query="unbreakable")).examples} == {1, 2}  # row 0 has no choice
    assert {each.key for each in searched([own], Wanted(key="un")).examples} == {0, 3}
    assert searched([own], Wanted(key="unbreak")).of == 4 + 4
    assert searched([own], Wanted(key="nothing")).of == 0
    assert np.isnan(searched([own], Wanted(key="nothing")).mean)


def test_parts_of_speech_are_looked_for() -> None:
    own = causal(np.zeros((3, 1)), np.zeros((3, 1)), "a", "b", "c")
    parts = [(("DET", "NOUN", "VERB"), ("DET", "NOUN", "VERB"))]
    found = searched([own], Wanted(query_part="VERB", key_part="NOUN"), parts)
    assert [(each.query, each.key) for each in found.examples] == [(2, 1)]
    assert searched([own], Wanted(query_part="VERB")).of == 0
    assert searched([own], Wanted(query_part="VERB"), [((), ())]).of == 0


@pytest.mark.slow
def test_the_command_tells_examples_and_writes_the_plane(tmp_path: Path) -> None:
    def told(*arguments: object) -> str:
        found = CliRunner().invoke(program.cli, ["head", "induction", "decoder.0.0.self", "1", *map(str, arguments)])
        assert found.exit_code == 0, found.exception
        return found.stdout

    (tmp_path / "mine.txt").write_text("fox moon tea fox moon tea\n= sun = sun\n", encoding="utf-8")
    options = ("--texts", tmp_path / "mine.txt", "--query", "moon", "--key", "fox", "--plane", tmp_path / "p.csv")
    found = json.loads(told(*options, "--json"))
    assert (found["texts_read"], found["skipped"], found["full"]) == (2, 0, False)
    assert (found["search"]["count"], found["search"]["of"]) == (2, 3)  # the head of the previous token
    assert [(each["query"], each["key"]) for each in found["search"]["examples"]] in ([(1, 0), (4, 3)], [(4, 3), (1, 0)])
    with (tmp_path / "p.csv").open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert len(rows) == found["plane"]["points"] == 2 * (6 + 4)
    assert (rows[1]["of"], rows[1]["token"], rows[-1]["of"], rows[-1]["token"]) == ("query", "moon", "key", "sun")
    assert {row["token"] for row in rows if "=" in row["token"]} == {"'="}, "a spreadsheet would compute it"
    assert re.search(r"search\.count +2\nsearch\.of +3\n(.*\n)+plane\.points +20\n", told(*options))
    refused = CliRunner().invoke(
        program.cli, ["head", "induction", "decoder.0.0.self", "1", "--most", "1", "--plane", "/nowhere/p.csv"]
    )
    assert "a path that can be written" in str(refused.exception)
