"""What torch and safetensors write comes back as they read it: every kind of numbers, every shape, shared bytes, things beside."""

import argparse
import collections
import datetime
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from model.safe_loading.plan import ITEM_SIZES, OtherEntry
from model.safe_loading.reader import OpenedFile, read_tensors, read_upload
from tests.model.safe_loading.forge import Call, Forged, Storage, archive, saved, stream, without_checksums

GOLDEN = Path(__file__).parents[2] / "golden"
FORMATS = {"torch zip": False, "torch legacy": True}

each_format = pytest.mark.parametrize("name", FORMATS)


def opened(value: Any, name: str = "torch zip") -> OpenedFile:
    """`value` through a file in the format `name` and back."""
    found = read_upload(saved(value, legacy=FORMATS[name]), "weights.pt")
    assert found.format == name
    return found


def the_same(found: Tensor, expected: Tensor) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert raw(found) == raw(expected)


def raw(tensor: Tensor) -> bytes:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def numbers(dtype: str, count: int = 24) -> Tensor:
    """Every byte is different, but for truth values."""
    wanted = getattr(torch, dtype)
    if wanted == torch.bool:
        return torch.arange(count) % 3 == 0
    return torch.arange(count * wanted.itemsize, dtype=torch.uint8).view(wanted).clone()


@each_format
def test_every_kind_of_numbers_comes_back_from_torch(name: str) -> None:
    table = {dtype: numbers(dtype).reshape(4, 6) for dtype in ITEM_SIZES}
    found = opened(table, name).candidates[""]
    assert found.keys() == table.keys()
    for dtype, tensor in table.items():
        assert getattr(torch, dtype).itemsize == ITEM_SIZES[dtype]
        the_same(found[dtype], tensor)


def test_every_kind_of_numbers_comes_back_from_safetensors() -> None:
    table = {dtype: numbers(dtype).reshape(4, 6) for dtype in ITEM_SIZES if dtype != "complex128"}
    table["bias"] = numbers("float32", 3)
    data = safetensors.torch.save(table)
    found = read_upload(data, "a.safetensors")
    assert found.format == "safetensors"
    assert found.size == len(data)
    assert found.candidates[""].keys() == table.keys()
    for key, tensor in table.items():
        the_same(found.candidates[""][key], tensor)


def views() -> dict[str, Tensor]:
    base = torch.arange(24.0).reshape(4, 6)
    return {
        "matrix": base,
        "transposed": base.t(),
        "every second": base[1::2, ::3],
        "one column": base[:, 2],
        "number": torch.tensor(7.0),
        "number of a matrix": base[3, 5],
        "empty": torch.empty(0),
        "empty with axes": torch.empty(3, 0, 2),
        "expanded": torch.arange(3.0).expand(5, 3),
        "odd stride of one": torch.arange(5.0).as_strided((1, 5), (100, 1)),
        "permuted": torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
        "channels last": torch.arange(48.0).reshape(1, 3, 4, 4).to(memory_format=torch.channels_last),
    }


@each_format
def test_every_shape_and_stride_comes_back(name: str) -> None:
    found = opened(views(), name).candidates[""]
    assert list(found) == list(views())
    for key, tensor in torch.load(io.BytesIO(saved(views(), legacy=FORMATS[name])), weights_only=True).items():
        the_same(found[key], tensor)
        assert found[key].stride() == tensor.stride() or 0 in tensor.shape


@each_format
def test_tied_weights_stay_tied(name: str) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(5, 3)
            self.output = nn.Linear(3, 5)
            self.output.weight = self.embedding.weight

    found = opened(Tied().state_dict(), name).candidates[""]
    assert found["embedding.weight"].data_ptr() == found["output.weight"].data_ptr() != found["output.bias"].data_ptr()
    found["embedding.weight"][0, 0] = 42
    assert found["output.weight"][0, 0] == 42


@each_format
def test_parameters_and_buffers_are_tensors_like_others(name: str) -> None:
    table = {
        "parameter": nn.Parameter(torch.randn(2, 3)),
        "buffer": nn.Buffer(torch.randn(3, 2)),
        "frozen": torch.randn(2).requires_grad_(),
    }
    found = opened(table, name).candidates[""]
    for key, tensor in table.items():
        the_same(found[key], tensor)
        assert not found[key].requires_grad


@each_format
def test_a_state_dict_with_metadata_is_its_tensors(name: str) -> None:
    state = nn.TransformerEncoderLayer(8, 2, 16).state_dict()
    assert hasattr(state, "_metadata")
    found = opened(state, name)
    assert (found.others, found.problems) == ((), ())
    assert list(found.candidates[""]) == list(state)
    for key, tensor in state.items():
        the_same(found.candidates[""][key], tensor)


def test_the_golden_file_is_the_same_in_both_formats_and_to_torch() -> None:
    new, old = (read_tensors(GOLDEN / f"000_tiny_a.{ending}") for ending in ("pt", "legacy.pt"))
    assert (new.format, old.format) == ("torch zip", "torch legacy")
    expected = torch.load(GOLDEN / "000_tiny_a.pt", weights_only=True)
    assert list(new.candidates[""]) == list(old.candidates[""]) == list(expected)
    for key, tensor in expected.items():
        the_same(new.candidates[""][key], tensor)
        the_same(old.candidates[""][key], tensor)


def training() -> dict[str, Any]:
    """What a training script keeps, with everything that torch's own safe loader stumbles over."""
    network = nn.Linear(4, 3)
    optimizer = torch.optim.Adam(network.parameters())
    network(torch.ones(4)).sum().backward()
    optimizer.step()
    return {
        "model_state_dict": network.state_dict(),
        "ema": {key: tensor * 2 for key, tensor in network.state_dict().items()},
        "optimizer": optimizer.state_dict(),
        "epoch": 3,
        "best_loss": np.float64(0.25),
        "losses": np.arange(3.0),
        "loss": torch.tensor(0.5),
        "rng": torch.get_rng_state(),
        "args": argparse.Namespace(heads=8, name="tiny", folder=Path("a")),
        "when": datetime.datetime(2024, 1, 2),
        "seen": {1, 2},
        "counts": collections.Counter("abca"),
        "vocabulary": collections.defaultdict(list, {"a": [1]}),
        "finished": True,
        "nothing": None,
        "device": torch.device("cpu"),
        "dtype": torch.float32,
        "shape": torch.Size([2, 3]),
    }


@each_format
def test_a_training_file_gives_its_weights_and_names_what_stands_beside(name: str) -> None:
    found = opened(training(), name)
    assert list(found.candidates) == ["model_state_dict", "ema"]
    for candidate, table in found.candidates.items():
        assert list(table) == ["weight", "bias"], candidate
    the_same(found.candidates["ema"]["weight"], found.candidates["model_state_dict"]["weight"] * 2)
    beside = {entry.name: entry for entry in found.others}
    assert beside["epoch"] == OtherEntry("epoch", "int", 3)
    assert beside["finished"] == OtherEntry("finished", "bool", True)
    assert beside["nothing"] == OtherEntry("nothing", "NoneType", None)
    assert beside["args"] == OtherEntry("args", "argparse.Namespace")
    assert beside["args.heads"] == OtherEntry("args.heads", "int", 8)
    assert beside["args.name"] == OtherEntry("args.name", "str", "tiny")
    assert beside["counts.a"] == OtherEntry("counts.a", "int", 2)
    assert beside["loss"] == OtherEntry("loss", "torch.Tensor", size=4)
    assert beside["rng"] == OtherEntry("rng", "torch.Tensor", size=torch.get_rng_state().numel())
    assert beside["optimizer"] == OtherEntry("optimizer", "torch.optim", size=2 * (12 + 3 + 1) * 4 - 2 * 4 + 2 * 4)
    assert beside["best_loss"].kind == "numpy._core.multiarray.scalar"
    assert beside["dtype"].kind == "torch.float32"
    assert beside["device"].kind == "torch.device"
    assert beside["when"].kind == "datetime.datetime"


def test_a_lightning_file_gives_its_weights() -> None:
    class AttributeDict(dict[str, Any]):
        """As Lightning keeps its hyperparameters: a class of the program that wrote the file."""

    AttributeDict.__qualname__ = AttributeDict.__name__
    globals()["AttributeDict"] = AttributeDict
    network = nn.Linear(2, 2)
    found = opened(
        {
            "epoch": 1,
            "pytorch-lightning_version": "2.4.0",
            "state_dict": {f"model.{key}": tensor for key, tensor in network.state_dict().items()},
            "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"current": {"ready": 2}}}},
            "callbacks": {"ModelCheckpoint{'monitor': None}": {"best_model_score": torch.tensor(0.5), "best_k_models": {}}},
            "optimizer_states": [torch.optim.Adam(network.parameters()).state_dict()],
            "lr_schedulers": [],
            "hyper_parameters": AttributeDict(heads=4, size=512),
        }
    )
    assert {name: list(table) for name, table in found.candidates.items()} == {"state_dict": ["model.weight", "model.bias"]}
    beside = {entry.name: entry for entry in found.others}
    assert beside["hyper_parameters"].kind.endswith(".AttributeDict")
    assert beside["hyper_parameters.heads"].value == 4
    assert beside["optimizer_states.0"].kind == "torch.optim"
    assert beside["loops.fit_loop.epoch_progress.current.ready"].value == 2


def test_a_list_of_state_dicts_gives_one_table_each() -> None:
    found = opened([nn.Linear(2, 3).state_dict(), nn.Linear(3, 2).state_dict()])
    assert {name: table["weight"].shape for name, table in found.candidates.items()} == {"0": (3, 2), "1": (2, 3)}


def test_vectors_alone_are_weights_where_there_is_nothing_else() -> None:
    assert opened({"norm": {"weight": torch.ones(3), "bias": torch.zeros(3)}}).candidates.keys() == {"norm"}


@pytest.mark.parametrize(
    "tensor",
    [
        torch.eye(2).to_sparse(),
        torch.zeros(2, device="meta"),
        torch.ones(2, dtype=torch.complex64).conj(),
        nn.Parameter(torch.eye(2).to_sparse()),
    ],
    ids=["sparse", "meta", "conjugated", "sparse parameter"],
)
def test_a_tensor_whose_bytes_are_not_its_numbers_stands_beside(tensor: Tensor) -> None:
    found = opened({"weight": torch.eye(2), "other": tensor})
    assert list(found.candidates[""]) == ["weight"]
    assert next(entry for entry in found.others if entry.name == "other").kind.startswith("torch._utils._rebuild_")


@pytest.mark.parametrize("protocol", range(2, 6))
@pytest.mark.parametrize("write", [archive, stream], ids=["zip", "legacy"])
def test_every_protocol_of_pickle_is_followed(write: Callable[..., bytes], protocol: int) -> None:
    found = read_upload(write({"w": Forged(Storage(), 0, (2, 2), (2, 1)), "x": 1 << 70, "y": b"ab"}, protocol=protocol), "a.pt")
    assert found.candidates[""]["w"].tolist() == [[0, 0], [0, 0]]


def test_a_file_of_torch_0_4_has_its_tensors_rebuilt_by_an_older_name() -> None:
    call = Call(torch._utils._rebuild_tensor, Storage(), 0, (2, 2), (2, 1))
    assert read_upload(archive({"w": call}), "a.pt").candidates[""]["w"].shape == (2, 2)


def test_a_file_saved_without_checksums_is_read_like_any_other() -> None:
    data = without_checksums(saved({"weight": torch.arange(6.0).reshape(2, 3)}))
    assert read_upload(data, "a.pt").candidates[""]["weight"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_truth_values_are_0_or_1_whatever_their_bytes_are() -> None:
    table = {"mask": Forged(Storage(torch.BoolStorage, "0", 4), 0, (2, 2), (2, 1))}
    mask = read_upload(archive(table, {"0": b"\x00\x01\x02\xff"}), "a.pt").candidates[""]["mask"]
    assert raw(mask) == b"\x00\x01\x01\x01"


def test_the_metadata_of_safetensors_stands_beside() -> None:
    found = read_upload(safetensors.torch.save({"weight": torch.eye(2)}, {"format": "pt"}), "a.safetensors")
    assert found.others[-1] == OtherEntry("__metadata__.format", "str", "pt")
    assert list(found.candidates) == [""]


def test_the_name_of_a_file_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(saved({"weight": torch.eye(2)}))
    assert read_tensors(path).format == "torch zip"
