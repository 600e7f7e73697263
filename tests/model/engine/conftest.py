"""An engine with one small network, for the tests of engines."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from model.engine.local import LocalEngine
from model.engine.scheduling.scheduler import Scheduler
from tests.networks import save_checkpoint
from tests.runs import CPU


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of checkpoints with the network `tiny`."""
    save_checkpoint(tmp_path / "tiny")
    return tmp_path


@pytest.fixture
def local(folder: Path) -> Iterator[LocalEngine]:
    """The engine of `folder`."""
    found = LocalEngine(folder, CPU)
    yield found
    found.scheduler.close()


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    """A scheduler whose threads run."""
    found = Scheduler().start()
    yield found
    found.close()
