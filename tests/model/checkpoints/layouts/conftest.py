"""Files of these tests are read by torch itself: how a file is opened safely has tests of its own, and takes a process each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from model.checkpoints.layouts import loading
from model.safe_loading.reader import OpenedFile


def _tables(data: Mapping[str, Any], name: str = "") -> dict[str, dict[str, Tensor]]:
    own = {key: value for key, value in data.items() if isinstance(value, Tensor)}
    found = {name: own} if own else {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            found |= _tables(value, f"{name}.{key}".removeprefix("."))
    return found


@pytest.fixture
def read_by_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> OpenedFile:
        return OpenedFile("torch zip", path.stat().st_size, _tables(torch.load(path, weights_only=True)))

    monkeypatch.setattr(loading, "read_tensors", read)
