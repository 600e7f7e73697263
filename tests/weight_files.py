"""A weight file of a test: how it is saved, run, and compared with what the test computed."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from model.checkpoints.layouts.loading import load
from model.inference.run import run
from model.requests.inputs import Given
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace.types import Array, Trace

CPU = torch.device("cpu")


def saved(folder: Path, data: Any) -> Path:
    torch.save(data, folder / "weights.pt")
    return folder / "weights.pt"


def traced(path: Path, settings: dict[str, str], source: Given, target: Given | None = None) -> Trace:
    """The run of a given source and target, recorded whole."""
    return run(load(path, settings, CPU), RunRequest("x", source, target, Decoding(max_length=0), keep=KEEP), CPU, "cpu")


def assert_same(found: Array | None, wanted: Tensor, atol: float = 2e-5) -> None:
    assert found is not None
    torch.testing.assert_close(torch.from_numpy(found.copy()), wanted.detach(), rtol=0, atol=atol)
