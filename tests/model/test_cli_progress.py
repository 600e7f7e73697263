"""What a slow command says on standard error: what it costs, how far it is, and that it was stopped."""

import re
import threading
from collections.abc import Callable
from pathlib import Path

import click
import pytest
import torch

from model.checkpoints import loader
from model.checkpoints.loader import Runner
from model.cli import explain, progress
from model.inference.run import run_in
from model.inspection import tensor_stats
from model.requests.request import Decoding, RunRequest
from model.trace.progress import Progress, Report
from model.trace.types import Trace
from tests import folders
from tests.networks import save_checkpoint
from tests.patience import HANG_S
from tests.reference import GOLDEN


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(progress, "time", found)
    return found


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines on standard error since the last time."""
    return capsys.readouterr().err.splitlines()


def at(clock: Clock, seconds: float, count: Callable[[int, int], None], done: int, of: int) -> None:
    clock.now = seconds
    count(done, of)


def test_the_cost_comes_first_then_an_estimate_then_lines(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress_of("copies") as count:
        at(clock, 10, count, 0, 2700)
        assert said(capsys) == ["To measure: 2,700 copies."]
        at(clock, 14, count, 27, 2700)
        assert said(capsys) == ["Estimate after 27 of 2,700 copies: about 7 minutes in all."]
        at(clock, 15, count, 34, 2700)
        assert said(capsys) == [], "the last line is a second old"
        at(clock, 30, count, 135, 2700)
        assert said(capsys) == ["135 of 2,700, 6.8 a second, about 6 minutes left."]
        at(clock, 400, count, 2700, 2700)
        assert said(capsys) == []


def test_what_takes_a_moment_says_no_more_than_its_cost(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress_of("copies") as count:
        for step in range(4):
            at(clock, step / 10, count, step, 3)
    assert said(capsys) == ["To measure: 3 copies."]


def test_a_run_speaks_only_if_it_takes_long(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    """What the first token waits for was counted for all of them: "about 4 minutes" of what took seconds."""
    clock.now = 0
    with progress.progress_of("tokens that it may write") as count:
        at(clock, 4, count, 1, 60)
        at(clock, 4.01, count, 2, 60)
        assert said(capsys) == []
    clock.now = 0
    with progress.progress_of("tokens that it may write") as count:
        at(clock, 4, count, 1, 60)
        at(clock, 4.5, count, 2, 60)
        assert said(capsys) == ["Estimate after 2 of 60 tokens that it may write: about 30 seconds in all."]
        at(clock, 10, count, 13, 60)
        assert said(capsys) == ["13 of 60, 2.0 a second, about 24 seconds left."]


def test_what_only_goes_on_says_so_and_how_many_tensors_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, said_ = list[str](), threading.Event()

    def echo(line: str, err: bool) -> None:
        assert err
        lines.append(line)
        said_.set()

    monkeypatch.setattr(click, "echo", echo)
    monkeypatch.setattr(progress, "QUIET", 0.01)
    with progress.still_working("Inspecting a.pt"):
        assert said_.wait(HANG_S)
    assert re.fullmatch(r"Inspecting a\.pt: \d+ s\.", lines[0])
    monkeypatch.setattr(progress, "QUIET", 0.1)
    said_.clear()
    with progress.still_working("Inspecting a.pt"):
        told = tensor_stats.TENSORS_READ.get()
        assert told is not None
        told(12, 2720)
        assert said_.wait(HANG_S)
    assert re.fullmatch(r"Inspecting a\.pt: \d+ s, 12 of 2,720 tensors read\.", lines[-1])
    assert tensor_stats.TENSORS_READ.get() is None


def test_a_quick_command_says_nothing_of_going_on(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.still_working("Inspecting a.pt"):
        pass
    assert said(capsys) == []


@pytest.mark.parametrize("target", [None, "w4 w5"])
def test_a_run_says_that_it_goes_on_until_its_first_token(
    target: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long prompt and a given target are read at once: no token tells how far that is."""
    save_checkpoint(tmp_path / "tiny", split="words")
    request = RunRequest(str(tmp_path / "tiny"), "w4 w6", target=target, decoding=Decoding(max_length=3))
    running, reports = threading.Event(), list[int]()

    def echo(line: str, err: bool) -> None:
        if re.fullmatch(rf"Running {re.escape(request.model)}: \d+ s\.", line):
            running.set()

    def slow(found: Runner, lower: Runner, asked: RunRequest, device: torch.device, name: str, report: Report) -> Trace:
        assert running.wait(HANG_S)

        def noted(make: Callable[[], Progress]) -> None:
            report(make)
            if make().done:
                reports.append(sum(thread.name == "still working" for thread in threading.enumerate()))

        return run_in(found, lower, asked, device, name, report=noted)

    monkeypatch.setattr(click, "echo", echo)
    monkeypatch.setattr(progress, "QUIET", 0.01)
    monkeypatch.setattr(explain, "run_in", slow)
    _runner, trace = explain.opened(request, "cpu")(request)
    assert len(trace.steps) == len(reports) or target
    assert not any(reports), "the tokens tell how far it is"
    assert not any(thread.name == "still working" for thread in threading.enumerate())


@pytest.mark.parametrize("kind", ["native", "raw", "folder"])
def test_every_kind_of_file_tells_how_many_of_its_tensors_are_read(kind: str, tmp_path: Path) -> None:
    match kind:
        case "native":
            path = tmp_path / "tiny"
            save_checkpoint(path)
        case "raw":
            path = GOLDEN / "000_tiny_a.pt"
        case _:
            path = tmp_path / "bert"
            folders.save(path, "bert")
    told = list[tuple[int, int]]()
    token = tensor_stats.TENSORS_READ.set(lambda done, of: told.append((done, of)))
    found = loader.inspect(path, {})
    tensor_stats.TENSORS_READ.reset(token)
    assert told == [(done, len(found.tensors)) for done in range(1, len(found.tensors) + 1)]


def test_stopping_says_what_was_done(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    def stopped() -> None:
        with progress.progress_of("copies") as count:
            count(0, 8)
            count(3, 8)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert said(capsys)[-1] == "Stopped after 3 of 8 copies: there is no result."
