"""The page Training in the whole app: every snapshot runs, a link leads to one, and what is damaged or missing is said."""

import json
from pathlib import Path

import pytest

from model.checkpoints import native
from model.engine.api import Run
from model.engine.environment import best_device
from model.engine.local import LocalEngine
from model.requests.request import Decoding, RunRequest
from model.requests.snapshots import at_step
from tests.app.conftest import SPEC
from tests.app.test_app_pages import save_language_model
from tests.app.visiting import Visitor
from tests.networks import VARIANTS, network, save_film
from viz.features.training import runs

STEPS = (0, 1, 2, 4, 8)
TEXT = "w4 w5 w6"


@pytest.fixture
def filmed(stocked: Path) -> Path:
    """A shelf with `film`, which has snapshots, and `tiny`, which has none."""
    save_film(stocked / "film", STEPS, SPEC)
    return stocked


def test_each_snapshot_is_fed_what_the_finished_model_wrote(filmed: Path) -> None:
    visitor = Visitor("training", model="film", text=TEXT)
    assert visitor.problems == []
    engine = LocalEngine(filmed, best_device("cpu"))
    whole = engine.ask(Run(RunRequest("film", TEXT))).tokens["target"]
    scene = visitor.scene("film")
    assert [token["text"] for token in scene["fed"]] == list(whole.texts)
    for step, frame in zip(STEPS, scene["frames"], strict=True):
        written = engine.ask(Run(RunRequest(at_step("film", step), TEXT, decoding=Decoding(max_length=len(whole) + 8))))
        assert [token["text"] for token in frame["own"]] == list(written.tokens["target"].texts[1:])
    assert scene["steps"] == list(STEPS)
    assert scene["frame"] == 0
    assert visitor.drawn == 3


def test_a_film_can_be_saved_for_print(filmed: Path) -> None:
    visitor = Visitor("training", model="film", text=TEXT, snapshot="2")
    visitor.press("figure-film")
    (box,) = [box for box in visitor.app.selectbox if box.key == "figure:picture"]
    assert [option.rpartition("(")[2].rstrip(")") for option in box.options][:4] == ["film", "head", "lines", "atlas"]
    assert not visitor.problems


def test_a_typed_target_is_fed_to_all(filmed: Path) -> None:
    visitor = Visitor("training", model="film", text=TEXT, target="w7 w8")
    scene = visitor.scene("film")
    assert [token["text"] for token in scene["fed"]] == ["<sos>", "w7", "w8", "<eos>"]
    assert "your target" in scene["titles"]["fed"]


def test_a_link_leads_to_a_snapshot(filmed: Path) -> None:
    visitor = Visitor("training", model="film", text=TEXT, snapshot="2", measure="similarity")
    assert visitor.scene("film")["frame"] == 2
    assert (visitor.url["snapshot"], visitor.url["measure"]) == ("2", "similarity")
    charts = [json.loads(chart.proto.spec) for chart in visitor.app.get("plotly_chart")]
    assert [shape["x0"] for chart in charts for shape in chart["layout"]["shapes"]] == [2, 2]
    assert charts[0]["layout"]["yaxis"]["title"]["text"] == "Similarity to the final head"


def test_a_snapshot_that_is_not_there_is_said(filmed: Path) -> None:
    visitor = Visitor("training", model="film", text=TEXT, snapshot="3")
    assert visitor.problems == ["There is no snapshot at step 3. Available: 0, 1, 2, 4, 8. Showing the last one."]
    assert visitor.scene("film")["frame"] == 4


def test_a_damaged_snapshot_is_left_out_in_one_sentence(filmed: Path) -> None:
    (filmed / "film" / "snapshots" / "000002.safetensors").write_bytes(b"nothing")
    visitor = Visitor("training", model="film", text=TEXT)
    (problem,) = visitor.problems
    assert problem.startswith("The snapshot at step 2 was skipped.")
    assert visitor.scene("film")["steps"] == [0, 1, 4, 8]


def test_without_its_curve_the_film_still_runs(filmed: Path) -> None:
    (filmed / "film" / "curve.csv").unlink()
    visitor = Visitor("training", model="film", text=TEXT)
    assert visitor.drawn == 3
    assert any("curve.csv" in caption.value for caption in visitor.app.caption)


def test_a_model_without_snapshots_shows_the_film_of_one_with_some_and_says_so(filmed: Path) -> None:
    visitor = Visitor("training", model="tiny", text=TEXT)
    said = visitor.app.info[0].value.replace("\\", "")
    assert "has no snapshots: this is the training film of “" in said
    assert visitor.scene("film")["steps"] == list(STEPS)
    assert visitor.url["model"] == "tiny", "it is shown, not switched to"
    assert "--snapshots log" in visitor.app.code[0].value
    visitor.press("film-of-film")
    assert visitor.url["model"] == "film"
    assert visitor.scene("film")["steps"] == list(STEPS)


def test_a_snapshot_opens_on_every_page_and_leads_back_to_its_film(filmed: Path) -> None:
    visitor = Visitor("explore", model="film@000004", text=TEXT)
    assert visitor.problems == []
    written = LocalEngine(filmed, best_device("cpu")).ask(Run(RunRequest("film@000004", TEXT))).tokens["target"]
    assert visitor.tokens("target") == list(written.texts)
    visitor.go("training")
    assert visitor.problems == []
    assert visitor.scene("film")["steps"] == list(STEPS)
    assert visitor.scene("film")["frame"] == STEPS.index(4)


def test_the_table_holds_every_head_by_the_chosen_measure(filmed: Path) -> None:
    visitor = Visitor("training", model="film", text=TEXT, measure="antidiagonal")
    table = visitor.app.dataframe[0].value
    assert len(table) == 2 * 2, "only cross-attention has it"
    assert list(table["change"].abs()) == sorted(table["change"].abs(), reverse=True)


def test_a_sentence_too_long_for_a_film_is_said_and_nothing_is_run(filmed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = sum(
        one.weights.size for one in LocalEngine(filmed, best_device("cpu")).ask(Run(RunRequest("film", TEXT))).attention.values()
    )
    monkeypatch.setattr(runs, "MOST_CELLS", len(STEPS) * weights)
    assert Visitor("training", model="film", text=TEXT).drawn == 3
    monkeypatch.setattr(runs, "MOST_CELLS", len(STEPS) * weights - 1)
    visitor = Visitor("training", model="film", text=TEXT)
    assert len(visitor.problems) == 1
    assert visitor.problems[0].startswith("The training film of this sentence would need ")
    assert visitor.problems[0].endswith("Shorten the sentence.")
    assert visitor.drawn == 0


def test_a_language_model_is_filmed_on_its_prompt_and_what_it_went_on_with(shelf: Path) -> None:
    save_language_model(shelf / "lm", VARIANTS["language model"])
    (shelf / "lm" / "snapshots").mkdir()
    for step in STEPS:
        weights = network(VARIANTS["language model"], seed=step).state_dict()
        native.save_weights(shelf / "lm" / "snapshots" / f"{step:06}.safetensors", weights)
    visitor = Visitor("training", model="lm", text=TEXT, max="4")
    assert visitor.problems == []
    assert visitor.drawn == 3
    whole = LocalEngine(shelf, best_device("cpu")).ask(Run(RunRequest("lm", TEXT, decoding=Decoding(max_length=4))))
    scene = visitor.scene("film")
    assert [token["text"] for token in scene["fed"]] == list(whole.tokens["source"].texts)
    assert scene["steps"] == list(STEPS)
    assert all(frame["loss"] > 0 and frame["own"] for frame in scene["frames"])
