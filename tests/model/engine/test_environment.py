"""The engine of the app: which environment variables choose what, and how it calls its device."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from model.__main__ import main
from model.engine.api import Models, Run
from model.engine.local import CHECKPOINTS, LocalEngine
from model.errors import BadSetting
from model.requests.request import RunRequest
from tests.networks import save_checkpoint

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def same_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No variable set; afterwards as many threads as before."""
    for name in [name for name in os.environ if name.startswith("HEADLIGHT_") and name != "HEADLIGHT_MODELS"]:
        monkeypatch.delenv(name)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_another_folder_of_checkpoints_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(tmp_path / "mine")
    monkeypatch.setenv("HEADLIGHT_CHECKPOINTS", str(tmp_path))
    assert [info.name for info in LocalEngine.from_environment().ask(Models()).models] == ["mine"]


def test_left_alone_it_reads_the_bundled_checkpoints() -> None:
    names = {path.name for path in CHECKPOINTS.iterdir() if path.is_dir()}
    assert names <= {info.name for info in LocalEngine.from_environment().ask(Models()).models}


@pytest.mark.parametrize(("threads", "said"), [("1", "CPU · 1 thread"), ("2", "CPU · 2 threads")])
def test_threads_are_chosen_and_counted_in_words(monkeypatch: pytest.MonkeyPatch, threads: str, said: str) -> None:
    monkeypatch.setenv("HEADLIGHT_THREADS", threads)
    monkeypatch.setenv("HEADLIGHT_DEVICE", "cpu")
    assert str(LocalEngine.from_environment().ask(Models()).device) == said


def test_the_precision_of_runs_that_ask_for_none_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(tmp_path / "mine")
    monkeypatch.setenv("HEADLIGHT_CHECKPOINTS", str(tmp_path))
    monkeypatch.setenv("HEADLIGHT_DEVICE", "cpu")
    monkeypatch.setenv("HEADLIGHT_PRECISION", "bfloat16")
    engine = LocalEngine.from_environment()
    assert engine.ask(Run(RunRequest("mine", "w4"))).model["dtype"] == "bfloat16"
    assert engine.ask(Run(RunRequest("mine", "w4", precision="float32"))).model["dtype"] == "float32"


THREADS = ["many", "0", "-1", "1.5", "99999", "٣", "0000199999", "1" * 5000]


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [("HEADLIGHT_DEVICE", "abacus", "auto, .*cpu"), *(("HEADLIGHT_THREADS", n, "a whole number from 1 to 1024") for n in THREADS)],
)
def test_what_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, allowed: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(BadSetting, match=rf"{variable}: “{value[:40]}” is not accepted. Allowed: {allowed}"):
        LocalEngine.from_environment()


NONSENSE = [("HEADLIGHT_DEVICE", "abacus"), ("HEADLIGHT_THREADS", "many"), ("HEADLIGHT_PRECISION", "float12")]


@pytest.mark.parametrize(("variable", "value"), NONSENSE)
@pytest.mark.parametrize("command", ["run", "serve"])
def test_nonsense_in_the_environment_ends_a_command_with_one_sentence(
    command: str, variable: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, value)
    asked = {"run": ["multi30k-de-en", "--source", "Ein Hund.", "--out", str(tmp_path / "t")], "serve": ["--port", "1"]}
    assert main([command, *asked[command]]) != 0
    (sentence,) = capsys.readouterr().err.splitlines()
    assert variable in sentence
    assert value in sentence
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_nonsense_in_the_environment_ends_the_start_of_the_process_with_one_sentence() -> None:
    variable, value = NONSENSE[0]
    code = "from viz.session.state import start; start()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {variable: value}, cwd=ROOT, capture_output=True, text=True, check=False
    )
    sentences = [line for line in done.stderr.splitlines() if "missing ScriptRunContext" not in line]
    assert done.returncode == 2
    assert len(sentences) == 1
    assert sentences[0].startswith(f"{variable}: “{value}” is not accepted. Allowed: ")


@pytest.mark.slow
@pytest.mark.parametrize(("variable", "value"), NONSENSE)
def test_nonsense_in_the_environment_ends_the_start_with_one_sentence(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from viz.session import state

    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(os, "_exit", sys.exit)
    state.the_engine.clear()
    with pytest.raises(SystemExit) as ended:
        state.start()
    assert ended.value.code == 2
    (sentence,) = [line for line in capsys.readouterr().err.splitlines() if "missing ScriptRunContext" not in line]
    assert sentence.startswith(f"{variable}: “{value}” is not accepted. Allowed: ")
