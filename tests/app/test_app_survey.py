"""The page Survey in the whole app: a stored survey is shown and compared with the weights; one is made; a head is selected."""

import shutil
import time
from pathlib import Path

import pytest

from model.engine.api import Run
from model.engine.environment import best_device
from model.engine.local import LocalEngine
from model.spec.edits import read_edits
from model.spec.request import RunRequest
from model.survey import tables
from model.survey.measures import MEASURES, measured
from model.survey.questions import MeasureTexts, Text
from model.survey.survey import begun, gone_on
from model.survey.texts import Texts
from tests.app.visiting import Visitor

TEXTS = Texts("mine.txt", tuple(Text(f"w4 w{number} w6") for number in range(4, 10)))


@pytest.fixture
def surveyed(stocked: Path) -> Path:
    """A shelf whose model has a survey."""
    engine, question = LocalEngine(stocked, best_device("cpu")), MeasureTexts("tiny", texts=())
    *_, found = gone_on(engine.ask, question, TEXTS, begun(question, TEXTS))
    tables.write(found, stocked / "tiny" / "survey.parquet")
    return stocked


def captions(visitor: Visitor) -> str:
    return "\n".join(each.value for each in visitor.app.caption).replace("\\", "")


def test_a_stored_survey_is_shown_with_its_numbers(surveyed: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5", site="decoder.0.1.cross", head="1", x="first", y="largest")
    assert visitor.problems == []
    assert "Texts: 6 (mine.txt)" in captions(visitor)
    engine = LocalEngine(surveyed, best_device("cpu"))
    found = tables.read(surveyed / "tiny" / "survey.parquet").statistics
    runs = [measured(engine.ask(Run(RunRequest("tiny", str(text.source))))) for text in TEXTS.items]
    row, column = found.heads.index(("decoder.0.1.cross", 1)), list(MEASURES).index("largest")
    mean = sum(run[row, column] for run in runs) / len(runs)
    assert f"mean {mean:.3f}" in captions(visitor)


def test_a_head_that_is_chosen_is_the_selected_one(surveyed: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    visitor.choose("up", "entropy")
    assert visitor.app.query_params["y"] == "entropy"
    assert visitor.problems == []


def test_a_survey_of_other_weights_says_so(surveyed: Path) -> None:
    found = tables.read(surveyed / "tiny" / "survey.parquet")
    object.__setattr__(found.about, "fingerprint", "another")
    tables.write(found, surveyed / "tiny" / "survey.parquet")
    assert "other weights" in "\n".join(Visitor("survey", model="tiny", text="w4 w5").problems)


def test_a_damaged_survey_is_named_and_another_can_be_made(stocked: Path) -> None:
    (stocked / "tiny" / "survey.parquet").write_bytes(b"PAR1 nothing")
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    assert "survey.parquet cannot be read" in "\n".join(visitor.problems)
    assert any(button.key == "survey-start" for button in visitor.app.button)


def test_a_survey_of_pasted_texts_is_made_while_the_page_watches(stocked: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    assert "no survey" in visitor.app.info[0].value
    visitor.app.session_state["survey-kind"] = "pasted"
    visitor.app.run()
    visitor.app.text_area(key="survey-pasted").set_value("w4 w5 w6\n\nw7 w8\n" + "w4 " * 300)
    visitor.press("survey-start")
    making = visitor.app.session_state["survey-made"]
    making.thread.join(timeout=120)
    assert making.error is None
    assert making.newest.finished
    visitor.app.run()
    assert "Texts: 2 (My own texts)" in captions(visitor)
    assert "could not be run: 1" in captions(visitor)


def test_a_survey_that_nobody_watches_ends(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz.views.survey.making.UNWATCHED_S", 0.0)
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    visitor.app.session_state["survey-kind"] = "pasted"
    visitor.app.run()
    visitor.app.text_area(key="survey-pasted").set_value("w4 w5\n" * 200)
    visitor.press("survey-start")
    making = visitor.app.session_state["survey-made"]
    making.seen = time.monotonic() - 60
    making.thread.join(timeout=120)
    assert making.newest.done < 200


def test_nothing_pasted_is_refused(stocked: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    visitor.app.session_state["survey-kind"] = "pasted"
    visitor.app.run()
    visitor.press("survey-start")
    assert "holds no text" in "\n".join(visitor.problems)


def test_two_surveys_are_shown_side_by_side_with_their_differences(surveyed: Path) -> None:
    shutil.copytree(surveyed / "tiny", surveyed / "edited")
    engine = LocalEngine(surveyed, best_device("cpu"))
    question = MeasureTexts("edited", texts=(), edits=read_edits("sharpen kind=cross factor=0"))
    *_, found = gone_on(engine.ask, question, TEXTS, begun(question, TEXTS))
    tables.write(found, surveyed / "edited" / "survey.parquet")
    visitor = Visitor("survey", model="tiny", text="w4 w5", y="entropy", survey="edited")
    assert visitor.problems == []
    assert "First: edited over mine.txt (6). Second: tiny over mine.txt (6)." in captions(visitor)
    assert "In every run of the first: sharpen" in captions(visitor)
    assert "text by text" in captions(visitor)
    table = next(each.value for each in visitor.app.dataframe if "errors" in each.value)
    own = tables.read(surveyed / "tiny" / "survey.parquet")
    row = table[(table["head"] == "Cross-attention, layer 1, head 1") & (table["measure"] == "Entropy (nats)")].iloc[0]
    place = own.statistics.heads.index(("decoder.0.0.cross", 0)), list(MEASURES).index("entropy")
    assert row["difference"] == pytest.approx(own.statistics.mean[place] - found.statistics.mean[place], abs=6e-4)


def test_a_model_without_a_survey_to_compare_with_is_named(surveyed: Path) -> None:
    shutil.copytree(surveyed / "tiny", surveyed / "bare")
    (surveyed / "bare" / "survey.parquet").unlink()
    assert "no stored survey of “bare”" in "\n".join(Visitor("survey", model="tiny", text="w4 w5", survey="bare").problems)


def test_the_film_of_a_survey_says_when_a_head_changes_most() -> None:
    visitor = Visitor("survey", model="induction", site="decoder.0.1.self", head="1", y="induction")
    assert "Largest change of Decoder" in captions(visitor)
