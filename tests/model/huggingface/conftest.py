"""The engine of a file's own folders."""

from pathlib import Path

import pytest

from model.engine.local import LocalEngine
from tests.runs import CPU


@pytest.fixture(scope="module")
def engine(shelf: Path) -> LocalEngine:
    return LocalEngine(shelf, CPU)
