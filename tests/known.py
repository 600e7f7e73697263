"""Real models for tests: the bundled ones, and the known ones, which nobody here made, downloaded once into the user's cache."""

import os
from functools import cache
from pathlib import Path

import platformdirs
import pytest
import torch

from model import known_models
from model.engine.local import CHECKPOINTS, LocalEngine
from model.engine.trace_engine import EngineWithTraces, with_traces
from model.errors import FetchFailed


@cache
def bundled_engine() -> EngineWithTraces:
    """The engine of the bundled checkpoints and of the traces of lectures: each network is loaded once a process."""
    return with_traces(LocalEngine(CHECKPOINTS, torch.device("cpu")), CHECKPOINTS)


def folder_of(name: str) -> Path:
    """The folder of a known model. Where the package index cannot be reached the test is skipped; in CI it fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(known_models.FOLDER, str(platformdirs.user_cache_path("headlight") / "test-models"))
        try:
            return known_models.fetch(name)
        except FetchFailed as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(error))


def smollm2() -> Path:
    """The GGUF file of SmolLM2 135M Instruct."""
    return next(folder_of("smollm2").glob("*.gguf"))
