"""How much heads matter over many texts: the means and errors of edited runs, one by one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from model.engine.api import Run
from model.engine.local import LocalEngine
from model.errors import CannotSurvey
from model.features.survey import tables
from model.features.survey.mattering import Matters, measured_on, not_measured
from model.features.survey.questions import MeasureTexts, Text
from model.features.survey.survey import begun, gone_on
from model.features.survey.texts import Texts, again, bundled, repeated_for
from model.requests.edits import Silence, read_edits
from tests.known import bundled_engine
from tests.networks import save_checkpoint

TEXTS = (Text("w4 w5 w6", "w7 w8"), Text("w4 " * 40, "w4"), Text("w9 w4", "w5 w6 w7 w4"), Text("w6 w5 w4 w4", "w8"))
HEADS = [("encoder.0.1.self", 1), ("decoder.0.0.cross", 0), ("decoder.0.1.self", 1)]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> LocalEngine:
    folder = tmp_path_factory.mktemp("mattering")
    save_checkpoint(folder / "tiny")
    return LocalEngine(folder, torch.device("cpu"))


def measured(engine: LocalEngine, question: MeasureTexts, texts: tuple[Text, ...] = TEXTS) -> Matters:
    *_, found = measured_on(engine.ask, question, True, texts, not_measured(HEADS, len(texts)))
    return found


@pytest.mark.parametrize("edits", ["", "sharpen kind=cross factor=0.5"])
def test_what_a_head_matters_is_the_mean_over_texts_of_what_silencing_it_costs(engine: LocalEngine, edits: str) -> None:
    question = MeasureTexts("tiny", texts=(), edits=read_edits(edits))
    found = measured(engine, question)

    def likely(text: Text, *silenced: Silence) -> float:
        trace = engine.ask(Run(text.request(question, (*question.edits, *silenced), True)))
        return float(np.mean([step.chosen.log_probability for step in trace.steps]))

    for row, (site, head) in enumerate(HEADS):
        losses = [likely(text) - likely(text, Silence(site, (head,))) for text in TEXTS if text is not TEXTS[1]]
        assert found.mean[row] == pytest.approx(np.mean(losses), abs=1e-5)
        assert found.error[row] == pytest.approx(np.std(losses, ddof=1) / np.sqrt(3), abs=1e-5)
        assert abs(found.mean[row]) > 1e-4
    assert (found.done, found.count, found.finished, found.steps) == (4, 3, True, (4, 4))


def test_it_goes_on_where_it_was_stopped(engine: LocalEngine) -> None:
    question = MeasureTexts("tiny", texts=())
    part = next(measured_on(engine.ask, question, True, TEXTS, not_measured(HEADS, 4)))
    *_, rest = measured_on(engine.ask, question, True, TEXTS, part)
    assert rest.mean == pytest.approx(measured(engine, question).mean, abs=1e-6)


def test_of_a_language_model_the_text_itself_is_the_target() -> None:
    engine, question = bundled_engine(), MeasureTexts("induction", texts=())
    text, head = Text("fox moon tea fox moon tea", "rain"), ("decoder.0.1.self", 1)
    *_, found = measured_on(engine.ask, question, False, [text], not_measured([head], 1))

    def likely(*silenced: Silence) -> float:
        trace = engine.ask(Run(text.request(question, silenced, False)))
        logits = np.asarray(trace.logits, np.float64)[:-1]
        chances = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return float(chances[np.arange(len(logits)), trace.tokens["source"].ids[1:]].mean())

    assert found.mean[0] == pytest.approx(likely() - likely(Silence(head[0], (head[1],))), abs=1e-4)
    assert found.mean[0] > 0.05
    assert np.isnan(found.error).all()


def test_no_text_that_can_be_run_is_an_error(engine: LocalEngine) -> None:
    with pytest.raises(CannotSurvey, match=r"^The text could not be run: "):
        measured(engine, MeasureTexts("tiny", texts=()), TEXTS[1:2])


def test_a_survey_keeps_what_heads_matter(engine: LocalEngine, tmp_path: Path) -> None:
    question, texts = MeasureTexts("tiny", texts=()), Texts("mine.txt", (TEXTS[0],))
    *_, survey = gone_on(engine.ask, question, texts, begun(question, texts))
    heads = survey.statistics.heads
    *_, found = measured_on(engine.ask, question, True, TEXTS, not_measured(heads, len(TEXTS)))
    tables.write(replace(survey, matters=found), tmp_path / "s.parquet")
    again_ = tables.read(tmp_path / "s.parquet")
    assert again_.matters is not None
    np.testing.assert_array_equal(again_.matters.mean, found.mean)
    np.testing.assert_array_equal(again_.matters.error, found.error)
    assert (again_.matters.heads, again_.matters.count) == (tuple(heads), 3)
    np.testing.assert_array_equal(again_.of_heads("entropy"), survey.of_heads("entropy"))
    assert survey.compared is not None
    np.testing.assert_array_equal(again_.of_heads("variation"), survey.compared.variation)
    assert np.isnan(survey.of_heads("previous")[heads.index(("decoder.0.0.cross", 0))])
    np.testing.assert_array_equal(again_.of_heads("copying"), survey.copying)


def test_texts_that_need_no_file_are_found_again(engine: LocalEngine) -> None:
    spec = {"encoder": {"vocab": 30, "max_positions": 40}, "pad_id": 0}
    for texts in (bundled("induction").first(40), repeated_for(12, spec)):
        found = again("induction", len(texts.items), texts.content, spec)
        assert found is not None
        assert found.items == texts.items
    assert again("induction", 12, Texts("mine.txt", TEXTS).content, spec) is None
    assert again("induction", 12, "", {"encoder": {}}) is None
