"""Every refusal with its sentence. Nothing of a refused file is called, none of its weights are read, nothing is left behind."""

import io
import os
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from model import errors
from model.safe_loading import limits, reader, state_dicts
from model.safe_loading.reader import read_tensors
from model.safe_loading.sandbox_process import look_into
from tests.model.safe_loading.forge import Call, Forged, Storage, archive, headed, pickled, saved, stream, zipped
from tests.model.safe_loading.refused import LINE, MARKER, OLD, PAYLOAD, refusal, repacked, tensor

pytestmark = pytest.mark.usefixtures("nothing_is_read_or_left_behind")

GOLDEN = Path(__file__).parents[2] / "golden"
OTHER = (
    "x.pt holds no weights that can be read here. It is: {found}. Headlight opens safetensors files, GGUF files and files "
    "written by torch.save."
)
UNSAFE = (
    "Opening x.pt would call a function: {called}. Nothing was called, and the file was not opened. "
    f"Its author can save the weights alone: {LINE}"
)
WHOLE = (
    "x.pt contains a whole Python object ({found}), which only the program that saved it can load. Nothing was executed. "
    f"Load it there and save the weights alone: {LINE}"
)
UNREADABLE = (
    "x.pt stores numbers that cannot be read here: {reason}. Save it as float32: "
    'torch.save({{name: t.float() for name, t in model.state_dict().items()}}, "weights.pt")'
)
NONE = f"x.pt contains no table of named tensors. Found: {{found}}. Save the weights as one: {LINE}"
TOO_MUCH = (
    "x.pt exceeds a limit of this machine: {reason}. "
    f"Save the weights alone with {LINE}, or raise the limit in model/safe_loading/limits.py."
)
DTYPES = (
    "float64, float32, float16, bfloat16, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, "
    "int64, int32, int16, int8, uint64, uint32, uint16, uint8, bool, complex64, complex128"
)


def tar() -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as opened:
        opened.addfile(tarfile.TarInfo("storages"))
    return written.getvalue()


def npz() -> bytes:
    written = io.BytesIO()
    np.savez(written, weight=np.ones(3))
    return written.getvalue()


def script() -> bytes:
    """What torch.jit.save writes: its code is compressed, and stands before the pickle."""
    code = ("a/code/__torch__.py", b"class Program(Module):\n" * 9)
    return zipped([code, ("a/data.pkl", pickled({})), ("a/constants.pkl", pickled(()))], zipfile.ZIP_DEFLATED)


def deflated(*names: str) -> bytes:
    return zipped([(name, bytes(1000)) for name in names], zipfile.ZIP_DEFLATED)


KINDS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "an empty file"),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(100), "a PNG image"),
    "jpeg": (b"\xff\xd8\xff\xe0" + bytes(100), "a JPEG image"),
    "gzip": (b"\x1f\x8b\x08" + bytes(100), "a gzip archive (unpack it first)"),
    "tar": (tar(), "a tar archive"),
    "npz": (npz(), "arrays of NumPy (.npz)"),
    "npz, compressed": (deflated("weight.npy", "bias.npy"), "arrays of NumPy (.npz)"),
    "torch.export": (
        deflated("a/archive_format", "a/data/weights/w.pt"),
        "a program of torch.export, not weights",
    ),
    "keras": (deflated("config.json", "model.weights.h5"), "a model of Keras"),
    "zipped folder": (deflated("a/config.json", "a/model.safetensors"), "a zip archive with weights inside (unpack it first)"),
    "zipped texts": (deflated("a/notes.txt"), "a zip archive without the data.pkl that torch.save writes"),
    "empty zip": (zipped([]), "an empty zip archive"),
    "torchscript": (script(), "a TorchScript program, not weights"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(100), "an HDF5 file, as Keras writes it"),
    "git lfs": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "a Git LFS pointer (the weights themselves were not downloaded: run git lfs pull)",
    ),
    "web page": (b"<!DOCTYPE html><title>404</title>", "a web page"),
    "text": ("Attention is all you need, das genügt.\n".encode(), "a text file"),
    "bare pickle": (pickled({"weight": 1}), "a Python pickle that torch.save did not write"),
    "bare payload": (pickled(Call(os.system, PAYLOAD)), "a Python pickle that torch.save did not write"),
    "noise": (b"\x00\x01\x02\x03\x04", "a file of an unknown kind, which begins with the bytes 00 01 02 03"),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_file_of_another_kind_is_named(name: str) -> None:
    data, found = KINDS[name]
    assert str(refusal(data, errors.NotACheckpoint)) == OTHER.format(found=found)


def evil(*arguments: Any) -> dict[str, Any]:
    return {"weight": torch.ones(2, 2), "other": Call(*arguments)}


SYSTEM = f"{os.name if os.name == 'nt' else 'posix'}.system"
PAYLOADS: dict[str, tuple[bytes, str]] = {
    "os.system": (saved(evil(os.system, PAYLOAD)), SYSTEM),
    "os.system, legacy": (saved(evil(os.system, PAYLOAD), legacy=True), SYSTEM),
    "exec": (saved(evil(exec, f"open({str(MARKER)!r}, 'w')")), "builtins.exec"),
    "open": (saved(evil(open, str(MARKER), "w")), "io.open"),
    "at the top": (saved(Call(os.system, PAYLOAD)), SYSTEM),
    "a tensor's storage": (archive({"weight": Forged(Call(os.system, PAYLOAD), 0, (2, 2), (2, 1))}), SYSTEM),
    "the magic number": (OLD[:14] + b"0" + pickled(Call(os.system, PAYLOAD))[2:] + OLD[15:], SYSTEM),
    "the list of storages": (stream([], {}).removesuffix(pickled([])) + pickled(Call(os.system, PAYLOAD)), SYSTEM),
    "subprocess": (saved(evil(subprocess.check_output, ["touch", str(MARKER)])), "subprocess.check_output"),
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_payload_is_named_and_not_called(name: str) -> None:
    data, called = PAYLOADS[name]
    assert str(refusal(data, errors.UnsafeFile)) == UNSAFE.format(called=called)


def test_the_payloads_do_run_where_python_unpickles_them(tmp_path: Path) -> None:
    """The proof that the marker proves something."""
    path = tmp_path / "evil.pt"
    path.write_bytes(PAYLOADS["os.system"][0])
    torch.load(path, weights_only=False)
    path.unlink()
    assert MARKER.exists()
    MARKER.unlink()


class Network(nn.Linear):
    """A class of the program that pickled it."""


def whole_objects() -> dict[str, tuple[bytes, str]]:
    name = f"{Network.__module__}.Network"
    return {
        "golden": ((GOLDEN / "004_tiny_a.module-unsafe.pt").read_bytes(), "__main__.EncoderDecoder"),
        "zip": (saved(Network(2, 2)), name),
        "legacy": (saved(Network(2, 2), legacy=True), name),
        "of torch itself": (saved(nn.Linear(2, 2)), "torch.nn.modules.linear.Linear"),
        "in a table": (saved({"epoch": 3, "net": Network(2, 2)}), name),
        "within another": (saved(nn.DataParallel(Network(2, 2))), "torch.nn.parallel.data_parallel.DataParallel"),
    }


@pytest.mark.parametrize("name", whole_objects())
def test_a_whole_object_is_named(name: str) -> None:
    data, found = whole_objects()[name]
    assert str(refusal(data, errors.WholeObject)) == WHOLE.format(found=found)


def overflowing_directory() -> bytes:
    data = bytearray(zipped([("a/data.pkl", b".")]))
    data[-10:-6] = (1 << 30).to_bytes(4, "little")
    return bytes(data)


UNREADABLES: dict[str, tuple[bytes, dict[str, str]]] = {
    "big-endian": (
        tensor(0, (2, 2), (2, 1), order=b"big"),
        {"reason": "their byte order is “big”; only little-endian is read"},
    ),
    "four-bit numbers": (
        headed(b'{"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}', bytes(1)),
        {"reason": f"the tensor a is of type F4; only these types are read: {DTYPES}"},
    ),
    "quantized storage": (
        tensor(0, (2, 2), (2, 1), storage=Storage(torch.QInt8Storage)),
        {"reason": f"the tensor weight is of type QInt8; only these types are read: {DTYPES}"},
    ),
}


@pytest.mark.parametrize("name", UNREADABLES)
def test_numbers_that_are_not_read_are_named(name: str) -> None:
    data, fields = UNREADABLES[name]
    assert str(refusal(data, errors.UnreadableNumbers)) == UNREADABLE.format(**fields)


EMPTIES: dict[str, tuple[bytes, str]] = {
    "a tensor": (saved(torch.ones(2)), "one tensor without a name"),
    "an empty table": (saved({}), "a value of the type dict"),
    "numbers": (saved({"epoch": 3, "loss": 0.5}), "a table of other things: epoch (int), loss (float)"),
    "a list": (saved([1, 2]), "a value of the type list"),
    "an optimizer": (
        saved({"state": {}, "param_groups": [{"lr": 0.001, "momentum": 0, "params": [0, 1]}]}),
        "a table of other things: state (dict), param_groups (list)",
    ),
    "safetensors": (headed(b"{}"), "a value of the type dict"),
}


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("place", ["", "model"])
def test_a_table_of_arrays_says_so(place: str, legacy: bool) -> None:
    """It said "weight (Inert)", a name that nobody outside of this program knows."""
    arrays = {f"layer.{i}.weight": np.ones((2, 2), np.float32) for i in range(4)}
    said = str(refusal(saved({place: arrays} if place else arrays, legacy=legacy), errors.NumpyArrays))
    first = [f"{place}.layer.{i}.weight".removeprefix(".") for i in range(3)]
    assert said.startswith(f"x.pt contains NumPy arrays instead of tensors: {', '.join(first)}, …. Nothing was executed.")


@pytest.mark.parametrize("name", EMPTIES)
def test_a_file_without_weights_says_what_it_holds(name: str) -> None:
    data, found = EMPTIES[name]
    assert str(refusal(data, errors.NoWeights)) == NONE.format(found=found)


LARGES: dict[str, tuple[bytes, dict[str, str]]] = {
    "directory of a zip": (
        overflowing_directory(),
        {"reason": "its directory has 1,073,741,824 bytes; at most 33,554,432 are read"},
    ),
    "pickle": (
        repacked(data_pkl=bytes((32 << 20) + 1)),
        {"reason": "its pickle has 33,554,433 bytes; at most 33,554,432 are read"},
    ),
    "header": (
        headed(b"{" + b" " * (32 << 20)),
        {"reason": "its header has 33,554,433 bytes; at most 33,554,432 are read"},
    ),
    "tensors": (
        archive(
            b"\x80\x02}("
            + pickled(Forged(Storage(), 0, (0,), (1,)))[2:-1]
            + b"q\xff0"
            + b"".join(b"X\x05\x00\x00\x00%05dh\xff" % i for i in range(50_001))
            + b"u."
        ),
        {"reason": "it has more than 50,000 tensors"},
    ),
}


@pytest.mark.parametrize("name", LARGES)
def test_a_file_beyond_a_limit_names_it(name: str) -> None:
    data, fields = LARGES[name]
    assert str(refusal(data, errors.OverLimit)) == TOO_MUCH.format(**fields)


def shared(levels: int, width: int, bottom: Any) -> Any:
    """Tables in a table; every entry of one names the same table below it."""
    below = bottom if levels == 1 else shared(levels - 1, width, bottom)
    return dict.fromkeys(map(str, range(width)), below)


class Counted(dict[str, Any]):
    """A table that counts how many of its entries are listed."""

    listed = 0

    def items(self) -> Any:
        Counted.listed += len(self)
        return super().items()


def test_tables_that_name_one_another_again_and_again_are_looked_through_once() -> None:
    """Listed before it was known, each of the 20 × 20 names of the last table cost its whole length."""
    Counted.listed = 0
    root = Counted.fromkeys("abc", Counted.fromkeys(map(str, range(20)), Counted.fromkeys(map(str, range(20)), 1)))
    with pytest.raises(errors.NoWeights):
        state_dicts.find(root, "x.pt")
    assert Counted.listed <= 2 * (3 + 20 + 20) + 3, "twice: for matrices, then for any tensors; and once for the sentence"


def test_an_optimizer_that_is_named_twice_is_counted_once() -> None:
    momentum = {"state": {0: {"exp_avg": torch.ones(4, 4)}}, "param_groups": []}
    with tempfile.TemporaryFile() as file:
        file.write(saved({"model": {"weight": torch.ones(2, 2)}, "a": momentum, "b": momentum}))
        found = look_into(file, "x.pt", "plan")["plan"]["others"]
    assert [(entry["name"], entry["size"]) for entry in found] == [("a", 64), ("b", 0)]


def test_a_small_file_of_tables_in_tables_is_refused_with_its_contents() -> None:
    """Listed again for each name, they took the whole minute that a file gets."""
    data = saved(shared(6, 14_000, 1))
    assert len(data) < 1_400_000
    assert str(refusal(data, errors.NoWeights)).startswith(
        "x.pt contains no table of named tensors. Found: a table of other things: 0 (dict)"
    )


def test_a_vocabulary_that_is_named_too_often_is_refused() -> None:
    """64 × 64 × 64 names of one list of texts."""
    with tempfile.TemporaryFile() as file:
        file.write(pickled(shared(3, 64, ["a"] * 10_000)))
        with pytest.raises(errors.OverLimit, match="it has more than 5,000,000 entries"):
            look_into(file, "x.pt", "vocabulary")


def test_a_file_larger_than_the_limit_is_not_read_at_all() -> None:
    """A hole of 8 GiB takes no room on the disk."""
    with tempfile.TemporaryFile() as file:
        file.seek(limits.MAX_FILE)
        file.write(b".")
        file.flush()
        with pytest.raises(errors.OverLimit, match="it has 8,589,934,593 bytes; at most 8,589,934,592 are read"):
            reader._read(file, "x.pt")


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    for path, found in (
        (tmp_path, "a folder"),
        (Path(os.devnull), "a device or a pipe, not a file"),
    ):
        with pytest.raises(errors.NotACheckpoint) as refused:
            read_tensors(path)
        assert str(refused.value) == OTHER.replace("x.pt", str(path)).format(found=found)
    with pytest.raises(errors.PathNotFound, match="was not found"):
        read_tensors(tmp_path / "x.pt")


def test_an_error_keeps_its_fields_on_its_way_from_the_other_process() -> None:
    assert refusal(b"", errors.NotACheckpoint).fields == {"path": "x.pt", "found": errors.phrase("an empty file")}
