"""Bad input of a survey: numbers that are not finite in one text, a disk that is full, texts that nobody can read."""

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file

from model import __main__ as program
from model.engine.api import Run
from model.engine.local import LocalEngine
from model.errors import BadSetting, NoTextRan
from model.features.survey import film as films
from model.features.survey import tables
from model.features.survey.film import SurveyFilm
from model.features.survey.questions import MeasureTexts, Text
from model.features.survey.reading import ReadHead, read_on
from model.features.survey.survey import Survey, begun, gone_on
from model.features.survey.texts import Texts
from model.measures.catalogue import MEASURES
from model.measures.of_run import measured
from model.requests.request import RunRequest
from tests.networks import save_checkpoint
from tests.runs import SPECS

GOOD = ("w4 w5", "w6 w5 w4", "w5")
QUESTION = MeasureTexts("tiny", texts=())


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> LocalEngine:
    """A network whose numbers grow beyond float32 where w7 is in a source."""
    folder = tmp_path_factory.mktemp("broken")
    save_checkpoint(folder / "tiny")
    path = folder / "tiny" / "model.safetensors"
    weights = {name: each.float() for name, each in load_file(path).items()}
    weights["encoder.embedding.token.weight"][7] = 3e38
    save_file(weights, path)
    return LocalEngine(folder, torch.device("cpu"))


def survey(engine: LocalEngine, *sources: str) -> Survey:
    texts = Texts("mine", tuple(Text(source) for source in sources))
    return list(gone_on(engine.ask, QUESTION, texts, begun(QUESTION, texts)))[-1]


def test_a_text_in_which_the_network_returns_nan_is_counted_and_left_out(broken: LocalEngine) -> None:
    found = survey(broken, GOOD[0], "w4 w7 w5", *GOOD[1:])
    assert found.skipped == 1
    assert found.problems[1]["error"] == "CannotSurvey"
    assert "not finite" in str(found.problems[1])
    without = survey(broken, *GOOD)
    assert found.statistics.texts == without.statistics.texts == 3
    assert found.statistics.mean == pytest.approx(without.statistics.mean, abs=1e-6)
    assert np.isfinite(found.statistics.mean).all()
    assert all(np.isfinite(own).all() for own in found.statistics.contexts.values())


def test_a_head_is_read_in_the_other_texts(broken: LocalEngine) -> None:
    question = ReadHead("tiny", texts=(), site="encoder.0.1.self", head=0)
    *_, found = read_on(broken.ask, question, [Text(GOOD[0]), Text("w7"), Text(GOOD[1])])
    assert found.places == (0, 2)
    assert found.problems[1]["error"] == "CannotSurvey"


def test_a_text_of_unknown_tokens_alone_is_counted_and_left_out(broken: LocalEngine) -> None:
    found = survey(broken, "weder noch", GOOD[0], f"noch {GOOD[2]}")
    assert found.skipped == 1
    assert found.statistics.texts == 2
    assert "knows none of its tokens" in str(found.problems[0])


def test_a_network_whose_runs_cannot_be_batched_is_measured_run_by_run(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "tiny", SPECS["memory"])
    engine = LocalEngine(tmp_path, torch.device("cpu"))
    found = survey(engine, *GOOD)
    runs = [measured(engine.ask(Run(RunRequest("tiny", text)))) for text in GOOD]
    columns = [column for column, name in enumerate(MEASURES) if name not in ("norm", "alignment_error")]
    there = found.statistics.count[:, columns] > 0
    expected = np.nanmean(np.array(runs)[:, :, columns][:, there], axis=0)
    assert found.statistics.mean[:, columns][there] == pytest.approx(expected, abs=1e-5)
    assert there.any(axis=1).all()


def test_where_no_text_can_be_run_there_is_no_survey(broken: LocalEngine) -> None:
    with pytest.raises(NoTextRan, match=r"^None of the 2 texts could be run\. The first one: .* knows none of its tokens"):
        survey(broken, "weder noch", "w7 w4")
    with pytest.raises(NoTextRan, match=r"^The text could not be run: .* not finite"):
        survey(broken, "w7")


def full(*_arguments: object, **_options: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_and_the_file_of_before_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = LocalEngine(tmp_path, torch.device("cpu"))
    save_checkpoint(tmp_path / "tiny")
    found, place = survey(engine, *GOOD), tmp_path / "s.parquet"
    own = found.statistics
    arrays = (np.stack([each]) for each in (own.count, own.mean, own.deviation))
    film, filmed = SurveyFilm(found.about, (0,), tuple(own.heads), *arrays), tmp_path / "s.parquet-film"
    tables.write(found, place)
    films.write(film, filmed)
    before = [path.read_bytes() for path in (place, filmed)]

    def partly(table: Any, path: Path, **options: object) -> None:
        path.write_bytes(b"PAR1 a part")
        full()

    monkeypatch.setattr(parquet, "write_table", partly)
    with pytest.raises(OSError, match="No space left"):
        tables.write(found, place)
    with pytest.raises(OSError, match="No space left"):
        films.write(film, filmed)
    assert [path.read_bytes() for path in (place, filmed)] == before
    assert {path.name for path in tmp_path.glob("s.parquet*")} == {place.name, filmed.name}


@pytest.mark.slow
def test_the_command_says_in_one_sentence_that_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "write_table", full)
    found = CliRunner().invoke(program.cli, ["survey", "induction", "--most", "4", "--out", str(tmp_path / "s.parquet")])
    assert isinstance(found.exception, BadSetting)
    assert "No space left on device" in str(found.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "allowed"),
    [("", "the path of a file"), ("/dev/null", "the path of a file"), ("no/s.parquet", "in a folder that exists")],
)
def test_a_place_that_no_file_can_have_is_refused_before_anything_runs(tmp_path: Path, place: str, allowed: str) -> None:
    found = CliRunner().invoke(program.cli, ["survey", "there-is-no-such-model", "--out", str(tmp_path / place)])
    assert isinstance(found.exception, BadSetting)
    assert allowed in str(found.exception)


@pytest.mark.slow
def test_a_survey_of_other_weights_is_not_added_to(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "tiny")
    (tmp_path / "mine.txt").write_text("\n".join(GOOD), encoding="utf-8")
    options = ["survey", str(tmp_path / "tiny"), "--texts", str(tmp_path / "mine.txt"), "--out", str(tmp_path / "s.parquet")]
    assert CliRunner().invoke(program.cli, [*options]).exit_code == 0
    before = (tmp_path / "s.parquet").read_bytes()
    save_checkpoint(tmp_path / "tiny", seed=1)
    found = CliRunner().invoke(program.cli, options)
    assert isinstance(found.exception, BadSetting)
    assert "a file of this survey, or a new one" in str(found.exception)
    assert (tmp_path / "s.parquet").read_bytes() == before
