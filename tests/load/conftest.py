"""A real app for strangers with two small models, and one thread for networks this small, as in tests/model."""

from collections.abc import Iterator

import pytest
import torch

from benchmarks.servers import Served, serving
from tests.app.conftest import SPEC
from tests.hosts import ROOT
from tests.networks import save_checkpoint

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """In a process of its own, with the models `first` and `second`."""
    folder = tmp_path_factory.mktemp("app")
    for seed, name in enumerate(("first", "second")):
        save_checkpoint(folder / name, SPEC, seed=seed, split="words")
    with serving(ROOT / "app.py", HEADLIGHT_CHECKPOINTS=str(folder), HEADLIGHT_ENGINE="", HEADLIGHT_PUBLIC="1") as served:
        yield served
