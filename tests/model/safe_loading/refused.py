"""What the tests of refusals share: an honest file to spoil, and the way to a refusal."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from model.errors import CheckpointError
from model.safe_loading.reader import read_upload
from tests.model.safe_loading.forge import Forged, Storage, archive, entries_of, saved, zipped

WEIGHTS = {"weight": torch.arange(6.0).reshape(2, 3)}
HONEST, OLD, HEADED = saved(WEIGHTS), saved(WEIGHTS, legacy=True), safetensors.torch.save(WEIGHTS)

LINE = 'torch.save(model.state_dict(), "weights.pt")'

MARKER = Path(tempfile.gettempdir()) / "headlight-payload-has-run"
PAYLOAD = f"touch {MARKER}"
"""Writes a file where it is run, to show that it was."""


def refusal(data: bytes, kind: type[CheckpointError]) -> CheckpointError:
    with pytest.raises(kind) as refused:
        read_upload(data, "x.pt")
    assert type(refused.value) is kind
    return refused.value


def repacked(**changed: bytes) -> bytes:
    """The honest archive with some entries changed."""
    return zipped([(name, changed.get(name.rpartition("/")[2].replace(".", "_"), data)) for name, data in entries_of(HONEST)])


def tensor(*described: Any, storage: Storage = Storage(), **more: Any) -> bytes:
    return archive({"weight": Forged(storage, *described)}, **more)
