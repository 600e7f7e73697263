"""`python -m model matters`: the numbers of the engine, and a table for people."""

import json
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from model.__main__ import main
from model.engine.local import LocalEngine
from model.features.what_if.questions import Edges, Heads, Prune, Words
from model.features.what_if.scoring import Scorer
from model.requests.request import Decoding, RunRequest
from tests.networks import save_checkpoint
from tests.patience import HANG_S
from tests.runs import CPU


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("matters") / "tiny"
    save_checkpoint(found)
    return found


def asked(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Any:
    assert main(["matters", str(folder), "--source", "w4 w5 w6", "--max-length", "4", "--device", "cpu", *options]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "question"),
    [
        ((), Heads),
        (("--by", "mean"), lambda request: Heads(request, by="mean")),
        (("--prune", "most"), lambda request: Prune(request, "most")),
        (("--words",), Words),
        (("--edges", "1", "--site", "decoder.0.1.cross"), lambda request: Edges(request, 1, "decoder.0.1.cross")),
    ],
    ids=("heads", "by their mean", "prune", "words", "edges"),
)
def test_it_prints_the_numbers_of_the_engine(
    folder: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], question: Any
) -> None:
    found = json.loads(asked(folder, capsys, *options, "--json"))
    request = RunRequest("tiny", "w4 w5 w6", decoding=Decoding(max_length=4))
    expected = LocalEngine(folder.parent, CPU).ask(question(request)).to_json()
    assert {name: found[name] for name in expected} == json.loads(json.dumps(expected))
    text = asked(folder, capsys, *options)
    assert re.search(rf"log_probability +{expected['log_probability']:.7f}", text)
    assert len(text.splitlines()) > 5


def test_each_head_is_listed_with_its_numbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heads = json.loads(asked(folder, capsys, "--json"))["heads"]
    assert len(heads) == 12
    assert all({"site", "head", "without", "alone", "share"} <= head.keys() for head in heads)
    some = json.loads(asked(folder, capsys, "--measures", "without", "--json"))["heads"]
    assert all("without" in head and "share" not in head for head in some)


def test_edits_hold_in_what_is_measured(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = ("--target-ids", "2,5,4", "--measures", "without", "--json")
    silent = json.loads(asked(folder, capsys, *target, "--edit", "silence site=decoder.0.1.cross"))
    plain = json.loads(asked(folder, capsys, *target))
    assert silent["log_probability"] != plain["log_probability"]
    assert all(abs(head["without"]) < 1e-5 for head in silent["heads"] if head["site"] == "decoder.0.1.cross")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--prune", "least", "--words"), "one of --prune, --words and --edges"),
        (("--site", "decoder.0.1.cross"), "left out without --edges"),
        (("--edges", "-1"), "0 or above"),
        (("--edges", "99"), "the target has no more tokens"),
        (("--measures", "with"), "among without, alone, share"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused_in_a_line(
    folder: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], says: str
) -> None:
    assert main(["matters", str(folder), "--source", "w4", "--max-length", "3", *options]) == 1
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--measures", "without"), "To measure: 13 edited copies of the run."),
        (("--prune", "least"), "To measure: 12 heads to silence one by one."),
        (("--words",), "edited copies and gradients of the run."),
        (("--edges", "0"), "edited copies of the run."),
    ],
    ids=str,
)
def test_the_cost_is_told_before_anything_is_computed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], says: str
) -> None:
    stopped = threading.Event()

    def stop(*_: object) -> None:
        main_thread = threading.main_thread().ident or 0
        for _wait in range(int(10 * HANG_S)):
            # A signal that comes just before a thread waits for a lock is seen only when the wait ends: Ctrl+C once it waits.
            if sys._current_frames()[main_thread].f_code.co_name == "wait":
                signal.pthread_kill(main_thread, signal.SIGINT)
            if stopped.wait(0.1):
                return
        raise AssertionError("the command did not stop")

    monkeypatch.setattr(Scorer, "_batch", stop)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process of tests ignores it
    try:
        assert main(["matters", str(folder), "--source", "w4 w5 w6", "--max-length", "4", "--device", "cpu", *options]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
        stopped.set()
    told = capsys.readouterr().err
    assert says in told.splitlines()[0]
    assert "Stopped after 0 of" in told
