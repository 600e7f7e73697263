"""What opening and inspecting a folder cost, counted: which bytes are read, and what of it is in memory at the same time."""

import hashlib
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from model.checkpoints import loader
from model.huggingface import folder as folders_of
from model.huggingface.families import FAMILIES
from model.safe_loading import reader
from tests import folders

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "tiny-llama"
    folders.save(path, "llama")
    return path


class Reading:
    """Counts the storages that are read from a file, and those that are in memory at the same time."""

    def __init__(self) -> None:
        self.read, self.most = 0, 0
        self._alive = weakref.WeakSet[Any]()
        self._real = reader._storage

    def __call__(self, *given: Any) -> Tensor:
        raw = self._real(*given)
        self.read += 1
        self._alive.add(raw)
        self.most = max(self.most, len(self._alive))
        return raw


def test_an_inspection_reads_each_tensor_once_and_keeps_none(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading()
    monkeypatch.setattr(reader, "_storage", reading)
    found = loader.inspect(llama, {})
    assert reading.read == len(found.tensors) > 10
    assert reading.most <= 2, "the one that is being read, and the one before it"
    assert all(tensor.mean is not None for tensor in found.tensors)


def test_an_inspection_builds_its_network_of_shapes_alone(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from model.huggingface import library  # here, because it imports the library

    real, given = library.filled, dict[str, Tensor]()

    def filled(kind: Any, config: Any, weights: dict[str, Tensor], *rest: Any) -> Any:
        given.update(weights)
        return real(kind, config, weights, *rest)

    monkeypatch.setattr(library, "filled", filled)
    found = loader.inspect(llama, {})
    assert {name: tuple(tensor.shape) for name, tensor in given.items()} == {each.name: each.shape for each in found.tensors}
    assert sum(tensor.untyped_storage().nbytes() for tensor in given.values()) == 4 * len(given)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_inspection_tells_the_network_that_would_be_loaded(tmp_path: Path, family: str) -> None:
    folders.save(tmp_path / family, family)
    found, loaded = loader.inspect(tmp_path / family, {}), loader.load(tmp_path / family, {}, CPU)
    assert found.parameters == sum(parameter.numel() for parameter in loaded.network.parameters())
    assert found.parameters == sum(part.parameters for part in found.parts)
    assert set(loaded.notes) <= set(found.notes)


def test_a_folder_with_numbers_that_are_not_finite_says_so_opened_and_inspected(llama: Path, tmp_path: Path) -> None:
    for file in llama.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights, name = load_file(tmp_path / "model.safetensors"), "model.layers.1.mlp.up_proj.weight"
    weights[name][2, 3] = torch.nan
    save_file(weights, tmp_path / "model.safetensors")
    said = f"1 tensor contains NaN or infinite numbers: {name}."
    assert said in map(str, loader.inspect(tmp_path, {}).notes)
    assert said in map(str, loader.load(tmp_path, {}, CPU).notes)


def test_the_fingerprint_is_of_all_bytes_and_is_computed_in_pieces(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [llama / name for name in ("config.json", "generation_config.json", "model.safetensors")]
    whole = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()

    def read_bytes(path: Path) -> bytes:
        raise AssertionError(f"{path.name} was read as a whole")

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    assert folders_of.open_folder(llama).fingerprint() == whole


def test_one_pass_tells_whether_numbers_are_finite(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked, real = list[int](), reader._not_finite

    def not_finite(candidate: str, name: str, tensor: Tensor) -> Any:
        looked.append(tensor.numel())
        return real(candidate, name, tensor)

    def isfinite(tensor: Tensor) -> Tensor:
        assert tensor.numel() == 1, "the numbers of a tensor were looked through again"
        return torch.isfinite(tensor)

    monkeypatch.setattr(reader, "_not_finite", not_finite)
    monkeypatch.setattr(Tensor, "isfinite", isfinite)
    stored = load_file(llama / "model.safetensors")
    loader.load(llama, {}, CPU)
    assert sorted(looked) == sorted(tensor.numel() for tensor in stored.values())
