"""A batch of texts answered by an engine: what is measured is what a run of each text shows; problems are told."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from model.engine.api import Describe, Run
from model.engine.local import LocalEngine
from model.errors import CannotSurvey
from model.features.circuit.circuits import Circuit
from model.features.survey import tables
from model.features.survey.agreement import compared
from model.features.survey.questions import MeasuredTexts, MeasureTexts, Text, plain
from model.features.survey.survey import begun, gone_on
from model.features.survey.texts import Texts, bundled, repeated_for
from model.measures.catalogue import MEASURES
from model.measures.of_run import measured
from model.requests.edits import read_edits
from model.requests.request import Decoding, RunRequest
from tests.networks import save_checkpoint

CPU = torch.device("cpu")
BUNDLED = Path(__file__).parents[4] / "checkpoints"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> LocalEngine:
    folder = tmp_path_factory.mktemp("survey")
    save_checkpoint(folder / "tiny")
    return LocalEngine(folder, CPU)


TEXTS = (Text("w4 w5 w6 w4"), Text("w7 w5", "w4 w9 w4"), Text("w8"))


def test_each_text_is_measured_as_its_run_shows_it(engine: LocalEngine) -> None:
    found = engine.ask(MeasureTexts("tiny", texts=TEXTS))
    for text, values, tokens in zip(TEXTS, found.values, found.tokens, strict=True):
        trace = engine.ask(Run(RunRequest("tiny", text.source, text.target)))
        columns = [column for column, name in enumerate(MEASURES) if name != "norm"]
        assert values[:, columns] == pytest.approx(measured(trace)[:, columns], abs=1e-5, nan_ok=True)
        assert tokens == sum(map(len, trace.tokens.values()))
        assert dict(found.sites) == {str(site): own.heads for site, own in trace.attention.items()}


def test_copying_scores_are_those_of_the_circuit_and_come_once(engine: LocalEngine) -> None:
    asked = MeasureTexts("tiny", texts=TEXTS, variant="compared", edits=read_edits("silence site=decoder.0.0.self head=1"))
    found = engine.ask(asked)
    graph = engine.ask(Circuit(RunRequest("tiny", TEXTS[0].source)))
    expected = {(each.site, each.head): score for each, score in zip(graph.heads, graph.copying, strict=True)}
    heads = [(site, head) for site, count in found.sites.items() for head in range(count)]
    assert found.copying == pytest.approx([expected[head] for head in heads], nan_ok=True)
    assert [np.isfinite(expected[head]) for head in heads] == [site.endswith("self") and "decoder" in site for site, _ in heads]
    again = MeasuredTexts.from_bytes(found.to_bytes()).copying
    assert again is not None
    np.testing.assert_array_equal(again, found.copying)
    assert engine.ask(replace(asked, first=3)).copying is None
    texts = Texts("mine", TEXTS)
    *_, whole = gone_on(engine.ask, MeasureTexts("tiny", texts=()), texts, begun(MeasureTexts("tiny", texts=()), texts))
    assert tables.from_bytes(tables.to_bytes(whole), "s.parquet").copying == pytest.approx(found.copying, nan_ok=True)
    assert [each["copying"] for each in whole.to_json()["heads"]] == [plain(expected[head]) for head in heads]


@pytest.mark.slow
def test_a_language_model_reads_the_text_and_writes_nothing() -> None:
    engine, text = LocalEngine(BUNDLED, CPU), "fox moon tea fox moon tea fox"
    found = engine.ask(MeasureTexts("induction", texts=(Text(text),)))
    trace = engine.ask(Run(RunRequest("induction", text, decoding=Decoding(max_length=0))))
    columns = [column for column, name in enumerate(MEASURES) if name != "norm"]
    assert found.values[0][:, columns] == pytest.approx(measured(trace)[:, columns], abs=1e-5, nan_ok=True)


def test_a_text_that_cannot_be_run_is_counted_with_its_error(engine: LocalEngine) -> None:
    found = engine.ask(MeasureTexts("tiny", texts=(TEXTS[0], Text("w4 " * 40), Text(" "), TEXTS[2])))
    assert {number: error["error"] for number, error in found.problems.items()} == {1: "TooManyTokens", 2: "EmptyText"}
    assert np.isnan(found.values[1:3]).all()
    assert np.isfinite(found.values[[0, 3]]).any(axis=(1, 2)).all()


def test_edits_hold_in_every_text(engine: LocalEngine) -> None:
    plain = engine.ask(MeasureTexts("tiny", texts=TEXTS))
    edited = engine.ask(MeasureTexts("tiny", texts=TEXTS, edits=read_edits("sharpen site=encoder.0.0.self head=0 factor=0")))
    column = list(MEASURES).index("entropy")
    keys = [4, 2, 1]  # words; each text has its start and end besides
    assert edited.values[:, 0, column] == pytest.approx([np.log(count + 2) for count in keys], abs=1e-5)
    assert not np.allclose(plain.values[:, 0, column], edited.values[:, 0, column])


def test_the_baselines_are_others_and_the_same_again(engine: LocalEngine) -> None:
    plain, *again = (
        [engine.ask(MeasureTexts("tiny", texts=TEXTS, variant=variant)).values for _ in range(2)]
        for variant in ("as it is", "shuffled", "untrained")
    )
    for first, second in (plain, *again):
        assert first == pytest.approx(second, abs=1e-5, nan_ok=True)
    column = list(MEASURES).index("entropy")
    assert again[0][0][..., column] == pytest.approx(plain[0][..., column], abs=1e-5, nan_ok=True)
    for other in again:
        assert not np.allclose(plain[0], other[0], atol=1e-3, equal_nan=True)


def test_random_repetitions_are_read_instead_of_the_texts(engine: LocalEngine) -> None:
    """The numbers of texts are their seeds, so that batches and shares of a survey read others."""
    texts = repeated_for(5, engine.ask(Describe("tiny")).spec).items
    plain = engine.ask(MeasureTexts("tiny", texts=texts)).values
    for first in range(3):
        found = engine.ask(MeasureTexts("tiny", texts=TEXTS[:2], first=first, variant="repeated")).values
        assert found == pytest.approx(plain[first : first + 2], abs=1e-5, nan_ok=True)


def test_another_version_of_the_measures_is_refused(engine: LocalEngine) -> None:
    with pytest.raises(CannotSurvey, match="version"):
        engine.ask(MeasureTexts("tiny", texts=TEXTS, version=99))


def test_an_answer_travels_bit_by_bit(engine: LocalEngine) -> None:
    found = engine.ask(MeasureTexts("tiny", texts=(*TEXTS, Text(" "))))
    again = MeasuredTexts.from_bytes(found.to_bytes())
    assert again.values.tobytes() == found.values.tobytes()
    assert (again.sites, again.problems, again.fingerprint) == (found.sites, found.problems, found.fingerprint)
    assert all(np.array_equal(again.contexts[site], own) for site, own in found.contexts.items())
    pairs = engine.ask(MeasureTexts("tiny", texts=TEXTS, variant="compared"))
    sent = MeasuredTexts.from_bytes(pairs.to_bytes()).compared
    assert sent is not None
    assert pairs.compared is not None
    assert np.array_equal(sent.divergence, pairs.compared.divergence)


def test_mean_context_vectors_are_those_of_the_runs(engine: LocalEngine) -> None:
    found = engine.ask(MeasureTexts("tiny", texts=(*TEXTS, Text(" "))))
    runs = [engine.ask(Run(RunRequest("tiny", text.source, text.target, keep=("context",)))) for text in TEXTS]
    for site in found.sites:
        plain = sum(run.at(site).context.astype(np.float64).mean(axis=1) for run in runs)  # type: ignore[union-attr]
        assert found.contexts[site] == pytest.approx(plain, abs=1e-5)


def test_heads_are_compared_over_the_runs_of_all_texts(engine: LocalEngine) -> None:
    found = engine.ask(MeasureTexts("tiny", texts=TEXTS, variant="compared")).compared
    assert found is not None
    plain = [compared(engine.ask(Run(RunRequest("tiny", text.source, text.target)))) for text in TEXTS]
    assert found.divergence == pytest.approx(sum(one.divergence for one in plain), abs=1e-5)
    assert found.pairs.tolist() == sum(one.pairs for one in plain).tolist()  # type: ignore[union-attr]


def test_an_alignment_that_is_typed_is_compared_with_each_head(engine: LocalEngine) -> None:
    texts = (Text("w4 w5 w6", "w7 w8", "0-0 2-1"), Text("w4 w5 w6", "w7 w8"))
    found = engine.ask(MeasureTexts("tiny", texts=texts))
    column = list(MEASURES).index("alignment_error")
    cross = [site.endswith("cross") for site, heads in found.sites.items() for _ in range(heads)]
    assert np.isfinite(found.values[0, :, column]).tolist() == cross
    assert np.isnan(found.values[1, :, column]).all()


@pytest.mark.slow
def test_the_induction_heads_are_found_and_none_in_the_untrained_network() -> None:
    engine, question, texts = LocalEngine(BUNDLED, CPU), MeasureTexts("induction", texts=()), bundled("induction")
    few = type(texts)(texts.name, texts.items[:16])
    *_, found = gone_on(engine.ask, question, few, begun(question, few))
    names = [[role.criterion.role for role in roles] for roles in found.roles]
    assert names == [[], ["previous token"], ["induction"], ["induction"]]
    untrained = found.baselines["untrained"].mean
    assert (untrained[:, list(MEASURES).index("induction")] < 0.2).all()


@pytest.mark.slow
def test_the_first_snapshot_has_no_induction_head() -> None:
    engine, question, texts = LocalEngine(BUNDLED, CPU), MeasureTexts("induction@000000", texts=()), bundled("induction@000000")
    few = type(texts)(texts.name, texts.items[:8])
    *_, found = gone_on(engine.ask, question, few, begun(question, few))
    assert "induction" not in [role.criterion.role for roles in found.roles for role in roles]
