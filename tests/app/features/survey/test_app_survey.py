"""The page Survey in the whole app: a stored survey is shown and compared with the weights; one is made; a head is selected."""

import re
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.engine.api import Describe, Run
from model.engine.environment import best_device
from model.engine.local import LocalEngine
from model.features.survey import tables
from model.features.survey.mattering import measured_on, not_measured
from model.features.survey.plane import Plane, plane
from model.features.survey.questions import MeasureTexts, Text
from model.features.survey.reading import HeadInText, ReadHead
from model.features.survey.survey import Survey, begun, gone_on
from model.features.survey.texts import Texts, read, repeated_for
from model.measures.catalogue import MEASURES
from model.measures.of_run import measured
from model.requests.edits import read_edits
from model.requests.request import RunRequest
from model.trace.types import Tokens
from tests.app.visiting import Visitor
from tests.patience import HANG_S
from viz import canvas
from viz.features.survey import one_head, plane_panels, query_key

TEXTS = Texts("mine.txt", tuple(Text(f"w4 w{number} w6", "w5 w4") for number in range(4, 10)))
"""With targets: a run that writes its own takes forty steps."""


@pytest.fixture(scope="module")
def survey(tiny: Path) -> bytes:
    """The file of a survey of `tiny`, made once for all tests."""
    engine, question = LocalEngine(tiny.parent, best_device("cpu")), MeasureTexts("tiny", texts=())
    *_, found = gone_on(engine.ask, question, TEXTS, begun(question, TEXTS))
    return tables.to_bytes(found)


@pytest.fixture
def surveyed(stocked: Path, survey: bytes) -> Path:
    """A shelf whose model has a survey."""
    (stocked / "tiny" / "survey.parquet").write_bytes(survey)
    return stocked


PAINTED = canvas.painted


@pytest.fixture(autouse=True)
def painted(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no browser that paints the dots and reports it."""
    monkeypatch.setattr(canvas, "painted", lambda _key: True)


def test_the_dots_come_first_and_the_rest_once_they_are_painted(surveyed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canvas, "painted", PAINTED)
    visitor = Visitor("survey", model="tiny", text="w4 w5", x="entropy", y="largest")
    assert len(visitor.scene("dots")["dots"]) > 1
    assert not visitor.app.get("plotly_chart")
    visitor.keep("dots", painted=True)
    assert visitor.app.get("plotly_chart")


def captions(visitor: Visitor) -> str:
    return "\n".join(each.value for each in visitor.app.caption).replace("\\", "")


def test_a_stored_survey_is_shown_with_its_numbers(surveyed: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5", site="decoder.0.1.cross", head="1", x="first", y="largest")
    assert visitor.problems == []
    assert "Texts: 6 (mine.txt)" in captions(visitor)
    engine = LocalEngine(surveyed, best_device("cpu"))
    found = tables.read(surveyed / "tiny" / "survey.parquet").statistics
    runs = [measured(engine.ask(Run(RunRequest("tiny", text.source, text.target)))) for text in TEXTS.items]
    row, column = found.heads.index(("decoder.0.1.cross", 1)), list(MEASURES).index("largest")
    mean = sum(run[row, column] for run in runs) / len(runs)
    assert f"mean {mean:.3f}" in captions(visitor)


def test_the_page_opens_on_a_head_that_has_both_numbers(surveyed: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5", x="entropy", y="next")
    found = tables.read(surveyed / "tiny" / "survey.parquet")
    best = int(np.nanargmax(found.of_heads("next")))
    assert visitor.app.selectbox(key="survey-head-choice").value == best
    assert "not defined for this head" not in captions(visitor)
    assert f"mean {found.of_heads('next')[best]:.3f}" in captions(visitor)


def test_a_head_without_the_measure_upwards_shows_another_one(surveyed: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5", site="decoder.0.0.cross", head="1", x="largest", y="previous")
    found = tables.read(surveyed / "tiny" / "survey.parquet")
    row = found.statistics.heads.index(("decoder.0.0.cross", 1))
    assert "“Weight on the previous token” is not defined for this head." in captions(visitor)
    assert f"“Largest weight”: mean {found.of_heads('largest')[row]:.3f}" in captions(visitor)


def test_all_texts_that_are_kept_of_a_head_are_listed(stocked: Path) -> None:
    engine, question = LocalEngine(stocked, best_device("cpu")), MeasureTexts("tiny", texts=())
    texts = Texts("mine.txt", tuple(Text(f"w{4 + n % 9} w{4 + n // 9} w6", "w5 w4") for n in range(64)))
    *_, found = gone_on(engine.ask, question, texts, begun(question, texts))
    tables.write(found, stocked / "tiny" / "survey.parquet")
    visitor = Visitor("survey", model="tiny", text="w4 w5", site="encoder.0.1.self", head="1", y="largest")
    row, column = found.statistics.heads.index(("encoder.0.1.self", 1)), list(MEASURES).index("largest")
    values = np.sort(found.statistics.sampled[:, row, column])[::-1]  # of all 64 texts: so few are sampled whole
    listed = next(each.value for each in visitor.app.dataframe if "place" in each.value)
    assert len(listed) == 10 + 10 * 3 + 10
    assert list(listed["value"][:10]) == pytest.approx(values[:10], abs=6e-4)
    assert list(listed["value"][-10:]) == pytest.approx(values[-10:], abs=6e-4)
    assert (np.diff(listed["value"][10:40]) <= 1e-6).all()
    assert listed["place"].value_counts()["tenth 4"] == 3


def test_the_spread_over_the_texts_stands_in_the_table_and_beside_the_pointer(surveyed: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5", x="entropy", y="largest")
    found = tables.read(surveyed / "tiny" / "survey.parquet").statistics
    table = next(each.value for each in visitor.app.dataframe if "spread" in each.value)
    np.testing.assert_array_equal(np.stack(list(table["spread"])), found.bins[:, list(MEASURES).index("largest")])
    dots = visitor.scene("dots")["dots"]
    assert len(dots) == len(found.heads)
    assert all(re.fullmatch("0 [▁-█]{20} 1", dot["told"][-1]) for dot in dots)


def test_a_click_on_a_dot_selects_its_head_and_a_box_marks_heads_in_the_table(surveyed: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5", x="entropy", y="largest")
    other = (visitor.scene("dots")["selected"] + 1) % 4
    visitor.report("dots", **next(dot["chooses"] for dot in visitor.scene("dots")["dots"] if dot["head"] == other))
    assert visitor.app.selectbox(key="survey-head-choice").value == other
    assert visitor.scene("dots")["selected"] == other
    visitor.keep("dots", marked=[0, 2, 10**6, "x"])
    assert visitor.scene("dots")["marked"] == [0, 2]
    assert "Only the heads that are marked in the picture: 2." in captions(visitor)


def test_numbers_of_the_weights_alone_are_axes_and_colors(surveyed: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5", x="variation", y="copying", color="entropy")
    assert visitor.problems == []
    found = tables.read(surveyed / "tiny" / "survey.parquet")
    missing = int((~np.isfinite(found.of_heads("copying"))).sum())
    assert f"not defined for them: {missing}." in captions(visitor)
    table = next(each.value for each in visitor.app.dataframe if "copying" in each.value)
    assert list(table["variation"]) == pytest.approx(list(found.of_heads("variation")), abs=6e-4)


def test_how_much_heads_matter_is_measured_if_asked_for_and_goes_into_the_file(surveyed: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    assert "survey-matters-start" not in [each.key for each in visitor.app.button]
    visitor.choose("dots", "matters")
    assert visitor.app.query_params["size"] == "matters"
    visitor.press("survey-matters-start")
    making = visitor.app.session_state["survey-matters"]
    making.thread.join(timeout=HANG_S)
    assert making.error is None
    visitor.again()
    assert visitor.problems == []
    engine, question = LocalEngine(surveyed, best_device("cpu")), MeasureTexts("tiny", texts=())
    survey = tables.read(surveyed / "tiny" / "survey.parquet")
    heads, texts = survey.statistics.heads, one_head.in_order(survey)
    *_, found = measured_on(engine.ask, question, True, texts, not_measured(heads, len(texts)))
    table = next(each.value for each in visitor.app.dataframe if "matters" in each.value)
    assert list(table["matters"]) == pytest.approx(list(found.mean), abs=6e-4)
    assert "mean over texts: 6" in captions(visitor)


def test_texts_that_were_skipped_where_heads_are_silenced_are_counted(surveyed: Path) -> None:
    found = tables.read(surveyed / "tiny" / "survey.parquet")
    measured_ = replace(not_measured(found.statistics.heads, 6), done=6, count=4, mean=np.arange(1.0, 13.0))
    tables.write(replace(found, matters=measured_), surveyed / "tiny" / "survey.parquet")
    visitor = Visitor("survey", model="tiny", text="w4 w5", size="matters")
    assert "mean over texts: 4" in captions(visitor)
    assert "Texts that could not be run, and do not count: 2." in captions(visitor)


def test_a_head_that_is_chosen_by_its_name_is_the_selected_one(surveyed: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    visitor.app.selectbox(key="survey-head-choice").set_value(3)
    visitor.again()
    heads = tables.read(surveyed / "tiny" / "survey.parquet").statistics.heads
    assert (visitor.view.site, visitor.view.head) == heads[3]


def unfinished(engine: LocalEngine, texts: Texts) -> Survey:
    """The first batch of a survey."""
    question = MeasureTexts("tiny", texts=())
    return next(gone_on(engine.ask, question, texts, begun(question, texts)))


@pytest.fixture
def batches_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A survey that is stopped after a batch has read two texts."""
    monkeypatch.setattr("model.features.survey.survey.BATCH", 2)


@pytest.mark.usefixtures("batches_of_two")
def test_an_unfinished_survey_that_is_opened_goes_on_with_the_file_of_its_texts(stocked: Path) -> None:
    engine = LocalEngine(stocked, best_device("cpu"))
    lines = "\n".join(f"w4 w{number} w6\tw5 w7" for number in range(4, 7))
    texts = read(lines, "mine.tsv")
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    chosen_file(visitor, "part.parquet", tables.to_bytes(unfinished(engine, texts)))
    visitor.press("survey-open-file")
    assert "Texts that this survey has read: 2 of 3 (mine.tsv)" in "\n".join(each.value for each in visitor.app.info).replace(
        "\\", ""
    )
    again = visitor.app.file_uploader(key="survey-file-again")
    again.set_value(("other.tsv", lines.replace("w6", "w7").encode(), "text/plain"))
    visitor.again()
    visitor.press("survey-go-on-file")
    assert "its texts are not those that this survey began with" in "\n".join(visitor.problems)
    visitor.app.file_uploader(key="survey-file-again").set_value(("mine.tsv", lines.encode(), "text/plain"))
    visitor.again()
    visitor.press("survey-go-on-file")
    making = visitor.app.session_state["survey-made"]
    making.thread.join(timeout=HANG_S)
    assert making.error is None
    question = MeasureTexts("tiny", texts=())
    *_, plain = gone_on(engine.ask, question, texts, begun(question, texts))
    np.testing.assert_allclose(making.newest.statistics.mean, plain.statistics.mean, atol=1e-6)
    assert making.newest.finished


@pytest.mark.usefixtures("batches_of_two")
def test_an_unfinished_survey_of_random_texts_goes_on_without_a_file(stocked: Path) -> None:
    engine = LocalEngine(stocked, best_device("cpu"))
    texts = repeated_for(3, engine.ask(Describe("tiny")).spec)
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    chosen_file(visitor, "part.parquet", tables.to_bytes(unfinished(engine, texts)))
    visitor.press("survey-open-file")
    visitor.press("survey-go-on")
    making = visitor.app.session_state["survey-made"]
    making.thread.join(timeout=HANG_S)
    assert making.error is None
    assert (making.newest.finished, making.newest.done) == (True, 3)


def test_a_head_that_is_chosen_is_the_selected_one(surveyed: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    visitor.choose("up", "entropy")
    assert visitor.app.query_params["y"] == "entropy"
    assert visitor.problems == []


def test_a_survey_of_other_weights_says_so(surveyed: Path) -> None:
    found = tables.read(surveyed / "tiny" / "survey.parquet")
    object.__setattr__(found.about, "fingerprint", "another")
    tables.write(found, surveyed / "tiny" / "survey.parquet")
    assert "different weights" in "\n".join(Visitor("survey", model="tiny", text="w4 w5").problems)


def test_a_damaged_survey_is_named_and_another_can_be_made(stocked: Path) -> None:
    (stocked / "tiny" / "survey.parquet").write_bytes(b"PAR1 nothing")
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    assert "survey.parquet cannot be opened" in "\n".join(visitor.problems)
    assert any(button.key == "survey-start" for button in visitor.app.button)


def test_a_survey_of_pasted_texts_is_made_while_the_page_watches(stocked: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    assert "no survey" in visitor.app.info[0].value
    visitor.app.session_state["survey-kind"] = "pasted"
    visitor.again()
    visitor.app.text_area(key="survey-pasted").set_value("w4 w5 w6\n\nw7 w8\n" + "w4 " * 300)
    visitor.press("survey-start")
    making = visitor.app.session_state["survey-made"]
    making.thread.join(timeout=HANG_S)
    assert making.error is None
    assert making.newest.finished
    visitor.again()
    assert "Texts: 2 (My own texts)" in captions(visitor)
    assert "could not be run: 1" in captions(visitor)


def test_a_survey_that_nobody_watches_ends(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz.features.survey.making.UNWATCHED_S", 0.0)
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    visitor.app.session_state["survey-kind"] = "pasted"
    visitor.again()
    visitor.app.text_area(key="survey-pasted").set_value("w4 w5\n" * 200)
    visitor.press("survey-start")
    making = visitor.app.session_state["survey-made"]
    making.seen = time.monotonic() - 60
    making.thread.join(timeout=HANG_S)
    assert making.newest.done < 200


def chosen_file(visitor: Visitor, name: str, data: bytes) -> None:
    """Chooses a file on the page."""
    visitor.app.session_state["survey-kind"] = "file"
    visitor.again()
    visitor.app.file_uploader(key="survey-file").set_value((name, data, "application/octet-stream"))
    visitor.again()


def test_a_survey_of_a_file_is_made_stopped_and_goes_on(stocked: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    lines = "\n".join(["w4 w5 w6\tw7", "", *["w7 w8\tw4 w5"] * 70, "unheard\tw4"])
    chosen_file(visitor, "mine.tsv", lines.encode())
    visitor.press("survey-start")
    making = visitor.app.session_state["survey-made"]
    making.stopped.set()
    making.thread.join(timeout=HANG_S)
    part = making.newest
    assert not part.finished
    assert 0 < part.done <= 72
    visitor.again()
    assert "Stopped" in visitor.app.info[0].value
    visitor.press("survey-go-on")
    making = visitor.app.session_state["survey-made"]
    making.thread.join(timeout=HANG_S)
    whole = making.newest
    assert (whole.finished, whole.done, whole.skipped, whole.about.empty) == (True, 72, 1, 1)
    visitor.again()
    assert "Texts: 71 (mine.tsv)" in captions(visitor)
    said = "\n".join(each.value for each in visitor.app.markdown).replace("\\", "")
    assert "Text 72: This cannot be surveyed: the model knows none of its tokens." in said
    question, texts = MeasureTexts("tiny", texts=()), read(lines, "mine.tsv")
    *_, plain = gone_on(LocalEngine(stocked, best_device("cpu")).ask, question, texts, begun(question, texts))
    np.testing.assert_allclose(whole.statistics.mean, plain.statistics.mean, atol=1e-6)
    assert whole.to_json()["heads"][0]["roles"] == plain.to_json()["heads"][0]["roles"]


def test_a_survey_in_a_file_opens_and_is_closed_again(surveyed: Path) -> None:
    data = (surveyed / "tiny" / "survey.parquet").read_bytes()
    (surveyed / "tiny" / "survey.parquet").unlink()
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    chosen_file(visitor, "of a colleague.parquet", data)
    visitor.press("survey-open-file")
    assert "Texts: 6 (mine.txt)" in captions(visitor)
    assert visitor.problems == []
    visitor.press("survey-close")
    assert "no survey" in visitor.app.info[0].value


def test_a_survey_of_other_heads_and_a_broken_file_are_refused(surveyed: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    other = Path(__file__).parents[4] / "checkpoints" / "induction" / "survey.parquet"
    chosen_file(visitor, "other.parquet", other.read_bytes())
    visitor.press("survey-open-file")
    assert "other.parquet cannot be opened: it was made with “induction”" in "\n".join(visitor.problems)
    chosen_file(visitor, "broken.conllu", b"1\tDogs\n\n")
    visitor.press("survey-start")
    assert "line 1 has 2 columns, not 10" in "\n".join(visitor.problems)
    chosen_file(visitor, "broken.parquet", b"PAR1")
    visitor.press("survey-open-file")
    assert "broken.parquet cannot be opened" in "\n".join(visitor.problems)


def test_a_public_server_takes_no_file(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_PUBLIC", "1")
    monkeypatch.setattr("viz.session.access._visitor", lambda: "somebody")  # AppTest has no address
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    assert not [each for each in visitor.app.get("button_group") if "A file" in str(each)]
    monkeypatch.delenv("HEADLIGHT_PUBLIC")
    visitor.again()
    assert [each for each in visitor.app.get("button_group") if "A file" in str(each)]


def test_nothing_pasted_is_refused(stocked: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5")
    visitor.app.session_state["survey-kind"] = "pasted"
    visitor.again()
    visitor.press("survey-start")
    assert "holds no text" in "\n".join(visitor.problems)


def test_a_survey_in_a_file_stands_beside_the_stored_one(surveyed: Path) -> None:
    engine, other = LocalEngine(surveyed, best_device("cpu")), Texts("other.txt", TEXTS.items[:4])
    question = MeasureTexts("tiny", texts=())
    *_, found = gone_on(engine.ask, question, other, begun(question, other))
    visitor = Visitor("survey", model="tiny", text="w4 w5", y="entropy")
    beside = visitor.app.file_uploader(key="survey-beside-file")
    beside.set_value(("mine.parquet", tables.to_bytes(found), "application/octet-stream"))
    visitor.again()
    assert visitor.problems == []
    assert "First: tiny over other.txt (4). Second: tiny over mine.txt (6)." in captions(visitor)
    table = next(each.value for each in visitor.app.dataframe if "errors" in each.value)
    own = tables.read(surveyed / "tiny" / "survey.parquet")
    row = table[(table["head"] == "Cross-attention, layer 1, head 1") & (table["measure"] == "Entropy (nats)")].iloc[0]
    place = own.statistics.heads.index(("decoder.0.0.cross", 0))
    assert row["difference"] == pytest.approx(own.of_heads("entropy")[place] - found.of_heads("entropy")[place], abs=1.1e-3)
    visitor.app.file_uploader(key="survey-beside-file").set_value(("broken.parquet", b"PAR1", "application/octet-stream"))
    visitor.again()
    assert "broken.parquet cannot be opened" in "\n".join(visitor.problems)


def test_two_surveys_are_shown_side_by_side_with_their_differences(surveyed: Path) -> None:
    shutil.copytree(surveyed / "tiny", surveyed / "edited")
    engine = LocalEngine(surveyed, best_device("cpu"))
    question = MeasureTexts("edited", texts=(), edits=read_edits("sharpen kind=cross factor=0"))
    *_, found = gone_on(engine.ask, question, TEXTS, begun(question, TEXTS))
    tables.write(found, surveyed / "edited" / "survey.parquet")
    visitor = Visitor("survey", model="tiny", text="w4 w5", y="entropy", survey="edited")
    assert visitor.problems == []
    assert "First: edited over mine.txt (6). Second: tiny over mine.txt (6)." in captions(visitor)
    assert "First, in every run: sharpen" in captions(visitor)
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
    assert "head 2: largest change between steps" in captions(visitor)


def test_umap_is_offered_only_where_its_library_is(surveyed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    def told(texts: list[HeadInText], way: str) -> Plane:
        asked.append(way)
        return replace(plane(texts), variance=())

    monkeypatch.setattr("viz.features.survey.one_head.has_umap", lambda: False)
    visitor = Visitor("survey", model="tiny", text="w4 w5", site="encoder.0.1.self", head="1")
    assert "package umap-learn" in captions(visitor)
    assert "survey-read-way" not in [each.key for each in visitor.app.selectbox]
    monkeypatch.setattr("viz.features.survey.one_head.has_umap", lambda: True)
    monkeypatch.setattr("viz.features.survey.one_head.plane", told)
    visitor.again()
    visitor.app.selectbox(key="survey-read-way").set_value("umap")
    visitor.again()
    read_head(visitor)
    assert asked == ["umap"]
    assert "UMAP keeps neighbors together" in captions(visitor)
    assert "umap-learn" not in captions(visitor)


def read_head(visitor: Visitor) -> None:
    """Reads the selected head in the texts of the survey, and waits for it."""
    visitor.press("survey-read-start")
    making = visitor.app.session_state["survey-head-read"]
    making.thread.join(timeout=HANG_S)
    assert making.error is None
    visitor.again()
    assert not visitor.app.exception


def test_a_head_is_read_again_drawn_in_a_plane_and_searched(surveyed: Path) -> None:
    visitor = Visitor("survey", model="tiny", text="w4 w5", site="encoder.0.1.self", head="1")
    assert "First read this head in many texts" in captions(visitor)
    read_head(visitor)
    assert visitor.problems == []
    assert "Texts read: 6; texts that could not be run: 0." in captions(visitor)
    engine = LocalEngine(surveyed, best_device("cpu"))
    read = engine.ask(ReadHead("tiny", texts=TEXTS.items, site="encoder.0.1.self", head=1)).texts
    flat = plane([each for each in read if each is not None])
    assert f"within rows {flat.in_rows:.2f} (compared: {flat.rows};" in captions(visitor)
    for way in ("position", "cluster", "token"):
        visitor.app.selectbox(key="survey-plane-colour").set_value(way)
        visitor.again()
        assert not visitor.app.exception
    visitor.app.text_input(key="survey-plane-word").set_value("w6")
    visitor.app.text_input(key="survey-examples-query").set_value("W6")
    visitor.app.text_input(key="survey-examples-key").set_value("w4")
    visitor.app.number_input(key="survey-examples-least").set_value(0.0)
    visitor.again()
    table = next(each.value for each in visitor.app.dataframe if {"row", "key"} <= set(each.value))
    cells = [
        (float(each.weights[row, key]), row, key)
        for each in read
        if each is not None
        for row, word in enumerate(each.queries.texts)
        for key, other in enumerate(each.keys.texts)
        if (word, other) == ("w6", "w4")
    ]
    assert list(table["weight"]) == pytest.approx([cell[0] for cell in sorted(cells, reverse=True)], abs=6e-4)
    visitor.press("survey-examples-open")
    assert (visitor.view.query, visitor.view.head, visitor.view.site) == (max(cells)[1], 1, "encoder.0.1.self")


def test_parts_of_speech_of_a_parsed_survey_are_looked_for(stocked: Path) -> None:
    engine, question = LocalEngine(stocked, best_device("cpu")), MeasureTexts("tiny", texts=())
    parsed = Texts("mine.conllu", tuple(Text(f"w4 w{n} w7", tree="NOUN:2:nsubj VERB:0:root PUNCT:2:punct") for n in (5, 6)))
    *_, found = gone_on(engine.ask, question, parsed, begun(question, parsed))
    tables.write(found, stocked / "tiny" / "survey.parquet")
    assert tables.read(stocked / "tiny" / "survey.parquet").quoted[0] == parsed.items[0]
    visitor = Visitor("survey", model="tiny", text="w4 w5", site="encoder.0.0.self")
    read_head(visitor)
    visitor.app.selectbox(key="survey-plane-colour").set_value("part")
    visitor.app.selectbox(key="survey-examples-query-part").set_value("NOUN")
    visitor.app.selectbox(key="survey-examples-key-part").set_value("VERB")
    visitor.again()
    assert not visitor.app.exception
    relations = next(each.value for each in visitor.app.dataframe if "baseline" in each.value)
    assert set(relations["relation"]) == {"nsubj", "punct"}
    assert set(relations["words"]) == {2}
    assert "Cells with these words: 2." in "\n".join(each.value for each in visitor.app.markdown).replace("\\", "")


def test_sentences_of_a_selection_are_those_of_its_dots() -> None:
    def own(*words: str) -> HeadInText:
        strip = Tokens("source", tuple(range(len(words))), words, (False,) * len(words), (False,) * len(words))
        size = len(words)
        return HeadInText(strip, strip, np.eye(size), np.ones((size, size), bool), np.eye(size, 3), np.eye(size, 3))

    texts = [own("a", "b"), own("c", "d", "c")]
    flat = plane(texts)  # queries a b c d c, then keys a b c d c
    assert query_key.sentences([0, 2, 7, 9, 8], texts, flat) == [(1, 4, ["c", "d"]), (0, 1, ["a"])]
    assert query_key.sentences([], texts, flat) == []
    assert plane_panels.labels_of(texts) == list("abcdcabcdc")
    assert plane_panels.frequent(["x", "", "y", "x"])[0].tolist() == [0, -1, 1, 0]
