"""`python -m model survey`: a table, an object, a file that goes on, and each refusal in one line."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from model import __main__ as program
from model.engine.local import LocalEngine
from model.features.survey import survey, tables
from model.measures.catalogue import MEASURES

pytestmark = pytest.mark.slow

BATCH = 4


def told(*arguments: object) -> Result:
    return CliRunner().invoke(program.cli, ["survey", "induction", *map(str, arguments)])


def test_a_table_names_the_heads(tmp_path: Path) -> None:
    found = told("--most", 12, "--out", tmp_path / "s.parquet")
    assert found.exit_code == 0, found.exception
    assert re.search(r"\ndecoder\.0\.1\.self +1  induction +induction +0\.", found.output)
    assert re.search(r"\ntexts_read +12\n", found.output)
    again = tables.read(tmp_path / "s.parquet")
    assert again.finished
    assert again.statistics.texts == 12


def test_one_object_has_every_head_with_its_measures_and_roles(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("fox moon tea fox moon tea\n\nred sun red sun\n", encoding="utf-8")
    found = json.loads(told("--texts", tmp_path / "mine.txt", "--json").stdout)
    assert (found["texts"], found["asked"], found["empty"], found["skipped"]) == ("mine.txt", 2, 1, 0)
    assert [(head["site"], head["head"]) for head in found["heads"]] == [(f"decoder.0.{n // 2}.self", n % 2) for n in range(4)]
    for head in found["heads"]:
        assert set(head["measures"]) <= set(MEASURES)
        assert head["measures"]["entropy"]["count"] == 2
        assert {"mean", "std", "min", "max", "shuffled", "untrained"} <= set(head["measures"]["previous"])


def test_texts_that_were_skipped_are_told_with_their_numbers(tmp_path: Path) -> None:
    lines = ["fox moon fox moon", *["weder noch"] * 21, "red sun red sun", "boat " * 101]
    (tmp_path / "mine.txt").write_text("\n".join(lines), encoding="utf-8")
    found = json.loads(told("--texts", tmp_path / "mine.txt", "--json").stdout)
    assert (found["texts_read"], found["skipped"]) == (2, 22)
    assert [each["text"] for each in found["problems"]] == list(range(2, 22))
    assert found["problems"][0]["problem"].startswith("This cannot be surveyed: the model knows none of its tokens")
    said = told("--texts", tmp_path / "mine.txt").output
    assert re.search(r"\n   2  This cannot be surveyed: the model knows none of its tokens", said)
    assert re.search(r"\nskipped +22\n", said)


def test_random_tokens_that_repeat_show_induction() -> None:
    found = json.loads(told("--texts", "repeated:8", "--json").stdout)
    assert [head["roles"] for head in found["heads"]][2:] == [["induction"], ["induction"]]


def test_a_file_of_another_survey_is_not_overwritten(tmp_path: Path) -> None:
    assert told("--most", 4, "--out", tmp_path / "s.parquet").exit_code == 0
    before = (tmp_path / "s.parquet").read_bytes()
    found = told("--most", 5, "--out", tmp_path / "s.parquet")
    assert "it holds one of induction over repetition.txt.gz" in str(found.exception)
    assert (tmp_path / "s.parquet").read_bytes() == before


def test_what_was_saved_before_a_stop_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    answer = LocalEngine.ask

    def counting(engine: LocalEngine, question: Any) -> Any:
        if (first := getattr(question, "first", None)) is not None:
            if len(asked) == 2:
                asked.append(-1)
                raise KeyboardInterrupt
            asked.append(first)
        return answer(engine, question)

    monkeypatch.setattr(LocalEngine, "ask", counting)
    monkeypatch.setattr(survey, "BATCH", BATCH)
    assert told("--most", 3 * BATCH, "--out", tmp_path / "s.parquet").exit_code != 0
    assert tables.read(tmp_path / "s.parquet").done == 2 * BATCH
    assert told("--most", 3 * BATCH, "--out", tmp_path / "s.parquet").exit_code == 0
    assert asked[:4] == [0, BATCH, -1, 2 * BATCH]
    assert tables.read(tmp_path / "s.parquet").finished


@pytest.mark.parametrize("given", ["repeated:0", "repeated:x", "nothing.txt"])
def test_texts_that_are_not_there(given: str) -> None:
    assert given.partition(":")[0] in str(told("--texts", given).exception)


def test_two_surveys_are_told_side_by_side(tmp_path: Path) -> None:
    assert told("--most", 8, "--out", tmp_path / "plain.parquet").exit_code == 0
    edit = ("--edit", "silence site=decoder.0.0.self head=1", "--most", 8, "--against", tmp_path / "plain.parquet")
    found = json.loads(told(*edit, "--json").stdout)
    first = next(each for each in found if (each["site"], each["head"], each["measure"]) == ("decoder.0.1.self", 1, "induction"))
    assert first["paired"]
    assert first["first"] > 0.7 > 0.3 > first["second"]
    assert first["errors"] == pytest.approx(first["difference"] / first["error"])
    assert "in errors" in told(*edit).output
    assert "a model that has one" in str(told("--most", 2, "--against", "nothing").exception)
    assert json.loads(told("--most", 8, "--against", "induction", "--json").stdout)[0]["paired"] is False


def test_a_film_measures_every_snapshot(tmp_path: Path) -> None:
    found = json.loads(told("--film", "--most", 2, "--out", tmp_path / "film.parquet", "--json").stdout)
    assert (found["steps"][0], found["steps"][-1]) == (0, 4800)
    means = found["heads"][3]["measures"]["induction"]["mean"]
    assert len(means) == len(found["steps"])
    assert means[0] < 0.2 < 0.7 < means[-1]
    assert (tmp_path / "film.parquet").is_file()
    assert re.search(r"\nsnapshots +19\n", told("--film", "--most", 2).output)
    refused = CliRunner().invoke(program.cli, ["survey", "tatoeba-en-zh", "--film"])
    assert "a model with snapshots" in str(refused.exception)
