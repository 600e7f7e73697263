"""The engine of the app: which environment variables choose what, and how it calls its device."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from model.engine.local import CHECKPOINTS, LocalEngine
from model.errors import BadSetting
from tests.networks import save_checkpoint

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def same_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No variable set; afterwards as many threads as before."""
    for name in [name for name in os.environ if name.startswith("HEADLIGHT_")]:
        monkeypatch.delenv(name)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_another_folder_of_checkpoints_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(tmp_path / "mine")
    monkeypatch.setenv("HEADLIGHT_CHECKPOINTS", str(tmp_path))
    assert [info.name for info in LocalEngine.from_environment().models()] == ["mine"]


def test_left_alone_it_reads_the_bundled_checkpoints() -> None:
    names = {path.name for path in CHECKPOINTS.iterdir() if path.is_dir()}
    assert names <= {info.name for info in LocalEngine.from_environment().models()}


@pytest.mark.parametrize(("threads", "said"), [("1", "CPU · 1 thread"), ("2", "CPU · 2 threads")])
def test_threads_are_chosen_and_counted_in_words(monkeypatch: pytest.MonkeyPatch, threads: str, said: str) -> None:
    monkeypatch.setenv("HEADLIGHT_THREADS", threads)
    monkeypatch.setenv("HEADLIGHT_DEVICE", "cpu")
    assert LocalEngine.from_environment().device == said


def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_DEVICE", "abacus")
    with pytest.raises(BadSetting, match=r"HEADLIGHT_DEVICE is 'abacus', but it must be auto or .*cpu on this machine"):
        LocalEngine.from_environment()


@pytest.mark.parametrize("threads", ["many", "0", "-1", "1.5", "99999", "٣"])
def test_a_number_of_threads_that_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch, threads: str) -> None:
    monkeypatch.setenv("HEADLIGHT_THREADS", threads)
    with pytest.raises(BadSetting, match=rf"HEADLIGHT_THREADS is '{threads}', but it must be a whole number from 1 to 1024"):
        LocalEngine.from_environment()


@pytest.mark.parametrize(("variable", "value"), [("HEADLIGHT_DEVICE", "abacus"), ("HEADLIGHT_THREADS", "many")])
def test_nonsense_in_the_environment_ends_the_start_with_one_sentence(variable: str, value: str) -> None:
    code = "from viz.page import start; start()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {variable: value}, cwd=ROOT, capture_output=True, text=True, check=False
    )
    sentences = [line for line in done.stderr.splitlines() if "missing ScriptRunContext" not in line]
    assert done.returncode == 2
    assert len(sentences) == 1
    assert sentences[0].startswith(f"{variable} is '{value}', but it must be ")
