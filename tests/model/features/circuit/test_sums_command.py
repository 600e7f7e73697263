"""`python -m model why` and `writes`: the numbers of the engine, and sums for people."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from model.__main__ import main
from model.engine.local import LocalEngine
from model.features.circuit.sums import Why, Writes
from model.requests.request import Decoding, RunRequest
from tests.networks import save_checkpoint
from tests.runs import CPU

REQUEST = RunRequest("tiny", "w4 w5 w6", decoding=Decoding(max_length=4))
CELL = ("--site", "decoder.0.1.cross", "--head", "1", "--query", "1", "--key", "2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("sums") / "tiny"
    save_checkpoint(found, split="words")
    return found


def said(folder: Path, capsys: pytest.CaptureFixture[str], command: str, *options: str, status: int = 0) -> str:
    arguments = [command, str(folder), "--source", "w4 w5 w6", "--max-length", "4", "--device", "cpu", *options]
    assert main(arguments) == status
    found = capsys.readouterr()
    return found.err if status else found.out


@pytest.mark.parametrize("minus", [None, "0", "mean"])
def test_why_prints_the_numbers_of_the_engine(folder: Path, capsys: pytest.CaptureFixture[str], minus: str | None) -> None:
    options = (*CELL, *(() if minus is None else ("--minus", minus)))
    found: Any = json.loads(said(folder, capsys, "why", *options, "--json"))
    other: Any = int(minus) if minus == "0" else minus
    expected = LocalEngine(folder.parent, CPU).ask(Why(REQUEST, "decoder.0.1.cross", 1, 1, 2, other)).to_json()
    assert found == json.loads(json.dumps(expected))
    assert {"score", "recorded", "parts_query", "parts_key", "matrix"} <= found.keys()
    assert sum(map(sum, found["matrix"])) == pytest.approx(found["score"])
    assert [part["sum"] for part in found["parts_query"]] == pytest.approx([sum(row) for row in found["matrix"]])
    text = said(folder, capsys, "why", *options)
    assert re.search(rf"score +{found['score']:.7f}", text)
    pairs = text.partition("part of the query × part of the key:\n")[2].partition("parts of the query:")[0].splitlines()[1:]
    assert sum(float(line.split()[0]) for line in pairs) == pytest.approx(found["score"], abs=1e-3)


@pytest.mark.parametrize("minus", [None, "runner-up", "5"])
def test_writes_prints_the_numbers_of_the_engine(folder: Path, capsys: pytest.CaptureFixture[str], minus: str | None) -> None:
    options = ("--token", "1", *(() if minus is None else ("--minus", minus)))
    found = json.loads(said(folder, capsys, "writes", *options, "--json"))
    other: Any = int(minus) if minus == "5" else minus
    expected = LocalEngine(folder.parent, CPU).ask(Writes(REQUEST, 1, other)).to_json()
    assert found == json.loads(json.dumps(expected))
    assert {"logit", "recorded", "parts"} <= found.keys()
    assert sum(part["value"] for part in found["parts"]) == pytest.approx(found["logit"])
    heads = [part for part in found["parts"] if part["kind"] == "head"]
    assert heads
    assert [sum(head["keys"]) for head in heads] == pytest.approx([head["value"] for head in heads], abs=1e-5)
    assert re.search(rf"logit +{found['logit']:.7f}", said(folder, capsys, "writes", *options))


def test_a_candidate_is_named_by_its_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = LocalEngine(folder.parent, CPU).ask(Writes(REQUEST, 1, "runner-up"))
    by_text = json.loads(said(folder, capsys, "writes", "--token", "1", "--minus", step.minus_text, "--json"))
    assert (by_text["minus"], by_text["logit"]) == (step.minus, step.logit)
    assert "an id, runner-up, or one of" in said(folder, capsys, "writes", "--token", "1", "--minus", "nothing", status=1)


@pytest.mark.parametrize(
    ("command", "options", "sentence"),
    [
        ("why", (*CELL, "--minus", "first"), "a key, counted from 0, or mean"),
        ("why", (*CELL, "--minus", "9"), "from 0 to 4"),
        ("why", ("--site", "decoder.0.1.cross", "--head", "1", "--query", "1", "--key", "77"), "from 0 to 4"),
        ("writes", ("--token", "99"), "from 0 to 3"),
    ],
)
def test_what_is_not_there_is_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, options: tuple[str, ...], sentence: str
) -> None:
    assert sentence in said(folder, capsys, command, *options, status=1)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--source-pad-to", "8", *CELL[:-1], "6"), r"closed +padding"),
        (("--site", "decoder.0.1.self", "--head", "0", "--query", "1", "--key", "3"), r"closed +future"),
        (("--edit", "forbid site=decoder.0.1.cross key=2", *CELL), r"closed +edit"),
        (("--edit", "skip-layer stack=encoder layer=0", *CELL), r"encoder\.0\.0 edit"),
        (("--precision", "bfloat16", *CELL), r"agrees +yes"),
    ],
)
def test_what_is_odd_about_a_run_is_answered(
    folder: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], line: str
) -> None:
    assert re.search(line, said(folder, capsys, "why", *options))
    found: Any = json.loads(said(folder, capsys, "why", *options, "--json"))
    assert found["agrees"]
    assert found["tolerance"] > 1e-3 if "bfloat16" in options else found["tolerance"] < 1e-3
