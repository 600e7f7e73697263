"""A head is replaced by its mean over the texts of the stored survey, and the run says over which."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from model.engine.api import Run
from model.engine.local import LocalEngine
from model.errors import CannotChange
from model.features.survey import survey, tables
from model.features.survey.questions import MeasureTexts, Text
from model.features.survey.survey import Survey, begun, gone_on
from model.features.survey.texts import Texts
from model.requests.edits import read_edits
from model.requests.request import RunRequest
from tests.networks import save_checkpoint

CPU = torch.device("cpu")
TEXTS = Texts("mine.txt", (Text("w4 w5 w6 w4"), Text("w7 w5", "w4 w9 w4"), Text("w8")))
SITE = "decoder.0.1.cross"


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "tiny")
    return tmp_path


def surveyed(shelf: Path) -> Survey:
    engine, question = LocalEngine(shelf, CPU), MeasureTexts("tiny", texts=())
    *_, found = gone_on(engine.ask, question, TEXTS, begun(question, TEXTS))
    return found


def edited(shelf: Path) -> RunRequest:
    edits = read_edits(f"silence site={SITE} head=1 by=survey")
    return RunRequest("tiny", "w5 w6", "w4 w5 w4", keep=("context",), edits=edits)


def test_the_head_gets_the_mean_of_the_texts_each_of_which_weighs_the_same(shelf: Path) -> None:
    tables.write(surveyed(shelf), shelf / "tiny" / "survey.parquet")
    engine = LocalEngine(shelf, CPU)
    runs = [engine.ask(Run(RunRequest("tiny", text.source, text.target, keep=("context",)))) for text in TEXTS.items]
    mean = np.mean([run.at(SITE).context[1].mean(axis=0) for run in runs], axis=0)  # type: ignore[index]
    trace = engine.ask(Run(edited(shelf)))
    plain = engine.ask(Run(replace(edited(shelf), edits=())))
    context, before = trace.at(SITE).context, plain.at(SITE).context
    assert context is not None
    assert before is not None
    np.testing.assert_allclose(context[1], np.broadcast_to(mean, context[1].shape), atol=1e-5)
    np.testing.assert_allclose(context[0], before[0], atol=1e-5)
    said = "The mean over a survey is that of 3 texts, each of which counts equally: mine.txt."
    assert said in list(map(str, trace.model["notes"]))


def test_without_a_survey_of_these_weights_it_is_refused(shelf: Path) -> None:
    with pytest.raises(CannotChange, match="no stored survey"):
        LocalEngine(shelf, CPU).ask(Run(edited(shelf)))
    found, path = surveyed(shelf), shelf / "tiny" / "survey.parquet"
    for about in (replace(found.about, fingerprint="other"), replace(found.about, edits=("silence",))):
        tables.write(replace(found, about=about), path)
        with pytest.raises(CannotChange, match="belongs to other weights, or to edited runs"):
            LocalEngine(shelf, CPU).ask(Run(edited(shelf)))
    path.write_bytes(b"PAR1 something else")
    with pytest.raises(CannotChange, match="contains no mean vectors"):
        LocalEngine(shelf, CPU).ask(Run(edited(shelf)))


def test_a_survey_made_in_two_parts_has_the_means_of_one(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "BATCH", 4)
    engine, question = LocalEngine(shelf, CPU), MeasureTexts("tiny", texts=())
    many = Texts("many.txt", tuple(Text(f"w4 w{number % 9 + 4}") for number in range(10)))
    steps = list(gone_on(engine.ask, question, many, begun(question, many)))
    tables.write(steps[0], tmp_path / "part.parquet")
    *_, again = gone_on(engine.ask, question, many, tables.read(tmp_path / "part.parquet"))
    for site, own in steps[-1].statistics.contexts.items():
        np.testing.assert_allclose(again.statistics.contexts[site], own, atol=1e-6)
    assert again.compared is not None
    assert steps[-1].compared is not None
    np.testing.assert_allclose(again.compared.divergence, steps[-1].compared.divergence, atol=1e-6)
