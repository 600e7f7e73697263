"""Small checkpoints with random weights for the whole app."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.networks import VARIANTS, save_checkpoint
from viz.session.state import the_engine

_STACK = replace(VARIANTS["paper"].stacks["decoder"], max_positions=40)
SPEC = replace(VARIANTS["paper"], encoder=_STACK, decoder=_STACK)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint folder whose words are w4 to w9, with 40 positions."""
    folder = tmp_path_factory.mktemp("made") / "tiny"
    save_checkpoint(folder, SPEC)
    return folder


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The app's folder of checkpoints, empty."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("HEADLIGHT_CHECKPOINTS", str(folder))
    the_engine.clear()
    yield folder
    the_engine.clear()


@pytest.fixture
def stocked(shelf: Path, tiny: Path) -> Path:
    """The app's folder of checkpoints with one that works, `tiny`."""
    shutil.copytree(tiny, shelf / "tiny")
    return shelf
