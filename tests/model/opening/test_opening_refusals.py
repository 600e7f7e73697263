"""Every refusal with its sentence. Nothing of a refused file is called, none of its weights are read, nothing is left behind."""

import io
import os
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

from model import errors
from model.errors import CheckpointError
from model.opening import limits, reading
from model.opening.reading import read_tensors, read_upload
from tests.model.opening.forge import (
    Call,
    Forged,
    Storage,
    archive,
    entries_of,
    headed,
    pickled,
    saved,
    stream,
    with_flags,
    zipped,
)

GOLDEN = Path(__file__).parents[2] / "golden"
WEIGHTS = {"weight": torch.arange(6.0).reshape(2, 3)}
HONEST, OLD, HEADED = saved(WEIGHTS), saved(WEIGHTS, legacy=True), safetensors.torch.save(WEIGHTS)
LINE = 'torch.save(model.state_dict(), "weights.pt")'

OTHER = "x.pt is {found}; what can be opened is a safetensors file or a file that torch.save wrote: choose one of these."
DAMAGED = "x.pt cannot be read ({detail}): restore it from a copy or train it anew."
UNSAFE = (
    "x.pt asks for {called} to be called while it is opened; nothing was called, and the file stays closed. "
    f"Whoever made it can save the weights alone: {LINE}"
)
WHOLE = (
    "x.pt holds a whole Python object ({found}), which only its own program could bring back; nothing was run. "
    f"Load it there and save the weights alone: {LINE}"
)
UNSOUND = (
    "x.pt stays closed because {detail}; files that torch.save or safetensors wrote are not like that. "
    f"Save the weights anew: {LINE}"
)
UNREADABLE = (
    "x.pt stores {what} as {found}, but what is read here is {allowed}. Save it as float32: "
    'torch.save({{name: t.float() for name, t in model.state_dict().items()}}, "weights.pt")'
)
NONE = f"x.pt holds no table of named tensors, only {{found}}. Save the weights as one: {LINE}"
TOO_MUCH = (
    "x.pt is too much for this machine's limits: {what} is {found}, and at most {allowed} is allowed. "
    f"Save the weights alone, {LINE}, or raise the limit in model/opening/limits.py."
)
DTYPES = (
    "float64, float32, float16, bfloat16, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, "
    "int64, int32, int16, int8, uint64, uint32, uint16, uint8, bool, complex64, complex128"
)


@pytest.fixture(autouse=True)
def nothing_is_read_or_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Fails where a weight's bytes are read, a file stays behind or a payload has run."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(reading, "_storage", lambda *_: pytest.fail("bytes of a refused file were read"))
    MARKER.unlink(missing_ok=True)
    yield
    assert list(tmp_path.iterdir()) == []
    assert not MARKER.exists()


MARKER = Path(tempfile.gettempdir()) / "headlight-payload-has-run"
PAYLOAD = f"touch {MARKER}"


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
    return zipped([("a/data.pkl", pickled({})), ("a/constants.pkl", pickled(()))])


KINDS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(100), "a PNG image"),
    "jpeg": (b"\xff\xd8\xff\xe0" + bytes(100), "a JPEG image"),
    "gzip": (b"\x1f\x8b\x08" + bytes(100), "a gzip archive (unpack it first)"),
    "tar": (tar(), "a tar archive"),
    "npz": (npz(), "a zip archive without the data.pkl that torch.save writes"),
    "empty zip": (zipped([]), "an empty zip archive"),
    "torchscript": (script(), "a TorchScript program, not weights"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(100), "an HDF5 file, as Keras writes it"),
    "git lfs": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "a Git LFS pointer (the weights themselves were not downloaded: run git lfs pull)",
    ),
    "web page": (b"<!DOCTYPE html><title>404</title>", "a web page"),
    "text": ("Attention is all you need, das genügt.\n".encode(), "a text"),
    "bare pickle": (pickled({"weight": 1}), "a Python pickle that torch.save did not write"),
    "bare payload": (pickled(Call(os.system, PAYLOAD)), "a Python pickle that torch.save did not write"),
    "noise": (b"\x00\x01\x02\x03\x04", "of an unknown kind (it begins with the bytes 00 01 02 03)"),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_file_of_another_kind_is_named(name: str) -> None:
    data, found = KINDS[name]
    assert str(refusal(data, errors.NotACheckpoint)) == OTHER.format(found=found)


def refusal(data: bytes, kind: type[CheckpointError]) -> CheckpointError:
    with pytest.raises(kind) as refused:
        read_upload(data, "x.pt")
    assert type(refused.value) is kind
    return refused.value


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


def repacked(**changed: bytes) -> bytes:
    """The honest archive with some entries changed."""
    return zipped([(name, changed.get(name.rpartition("/")[2].replace(".", "_"), data)) for name, data in entries_of(HONEST)])


def tensor(*described: Any, storage: Storage = Storage(), **more: Any) -> bytes:
    return archive({"weight": Forged(storage, *described)}, **more)


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def overlapping() -> bytes:
    """The second entry of the directory points at the first one's bytes."""
    data = bytearray(zipped([("a/data.pkl", b"."), ("a/data/0", b"")]))
    second = data.rindex(b"PK\x01\x02")
    data[second + 42 : second + 46] = bytes(4)
    return bytes(data)


def claiming() -> bytes:
    """Two entries share the bytes of the file, which they use up twice."""
    data = bytearray(zipped([("a/data.pkl", bytes(500)), ("a/data/0", b"")]))
    second = data.rindex(b"PK\x01\x02")
    for at in (second + 20, second + 24):
        data[at : at + 4] = (500).to_bytes(4, "little")
    return bytes(data)


def bomb() -> bytes:
    entries = [(name, bytes(1 << 20) if name.endswith("data/0") else data) for name, data in entries_of(HONEST)]
    return zipped(entries, zipfile.ZIP_DEFLATED)


def overflowing_directory() -> bytes:
    data = bytearray(zipped([("a/data.pkl", b".")]))
    data[-10:-6] = (1 << 30).to_bytes(4, "little")
    return bytes(data)


PACKED = zipfile.ZipFile(io.BytesIO(bomb())).getinfo("archive/data/0").compress_size
TRUNCATED = "the end of its zip archive is missing: it is cut off, or something was added to it"
DAMAGES: dict[str, tuple[bytes, str]] = {
    "zip cut in half": (HONEST[: len(HONEST) // 2], TRUNCATED),
    "zip cut by a byte": (HONEST[:-1], TRUNCATED),
    "zip with more behind": (HONEST + b"\0", TRUNCATED),
    "zip with 64-bit sizes that lie": (
        HONEST.replace(b"PK\x06\x06", b"PK\x06\x05"),
        "the end of its zip archive makes no sense",
    ),
    "entry moved": (
        b"PK\x03\x05".join(zipped([("a/data/0", b""), ("a/data.pkl", b".")]).rsplit(b"PK\x03\x04", 1)),
        "its entry a/data.pkl is not where its directory says",
    ),
    "pickle changed": (
        HONEST.replace(b"weight", b"weighs", 1),
        "the checksum of its data.pkl is wrong",
    ),
    "pickle cut": (
        repacked(data_pkl=b"\x80\x02}"),
        "its pickle makes no sense near its byte 3",
    ),
    "storage missing": (tensor(0, (2, 2), (2, 1), storages={"1": bytes(16)}), "the bytes of the tensor weight are missing"),
    "storage too short": (
        tensor(0, (2, 2), (2, 1), storages={"0": bytes(12)}),
        "the tensor weight does not fit the 12 bytes of its storage",
    ),
    "storage too long": (
        tensor(0, (2, 2), (2, 1), storages={"0": bytes(20)}),
        "the tensor weight does not fit the 20 bytes of its storage",
    ),
    "storage of a negative count": (
        tensor(0, (2, 2), (2, 1), storage=Storage(count=-4)),
        "the tensor weight does not fit the 16 bytes of its storage",
    ),
    "legacy cut in its pickles": (OLD[:60], "its pickle makes no sense near its byte 60"),
    "legacy cut in its numbers": (
        stream({"w": Forged(Storage(), 0, (2, 2), (2, 1))})[:-4],
        "the bytes of its storage 0 are cut off or of another count",
    ),
    "legacy with another count": (
        stream({"w": Forged(Storage(), 0, (2, 2), (2, 1))}, {"0": (5, bytes(20))}),
        "the bytes of its storage 0 are cut off or of another count",
    ),
    "legacy with a storage that nothing names": (
        stream({"w": Forged(Storage(), 0, (2, 2), (2, 1))}, {"0": (4, bytes(16)), "1": (0, b"")}),
        "its list of storages names 1, which no tensor uses",
    ),
    "legacy of another protocol": (
        stream({}, {}).replace(pickled(1001), pickled(1002)),
        "its five pickles are not those of torch.save",
    ),
    "safetensors without a table": (headed(b"{} []"), "its header makes no sense: Extra data: line 1 column 4 (char 3)"),
    "safetensors with a name twice": (
        headed(
            b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)
        ),
        "its header makes no sense: a name is there twice",
    ),
    "safetensors with NaN": (headed(b'{"a": NaN}'), "its header makes no sense: NaN is no number of JSON"),
    "safetensors nested without end": (
        headed(b'{"a":' + b"[" * 20_000),
        "its header is nested without end",
    ),
    "safetensors with a shape in words": (
        headed(b'{"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}}', bytes(4)),
        "its header does not say what a is",
    ),
    "safetensors with a negative size": (
        headed(b'{"a":{"dtype":"F32","shape":[-1,-1],"data_offsets":[0,4]}}', bytes(4)),
        "its header does not say what a is",
    ),
    "safetensors with truth for a size": (
        headed(b'{"a":{"dtype":"F32","shape":[true],"data_offsets":[0,4]}}', bytes(4)),
        "its header does not say what a is",
    ),
    "safetensors with metadata in numbers": (headed(b'{"__metadata__":{"a":1}}'), "its header is no table of tensors"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_says_where(name: str) -> None:
    data, detail = DAMAGES[name]
    assert str(refusal(data, errors.DamagedFile)) == DAMAGED.format(detail=detail)


V3 = torch._utils._rebuild_tensor_v3
TYPES = {"first": torch.uint16, "second": torch.uint32}
ENTRY = b'"a":{"dtype":"F32","shape":[%s],"data_offsets":[%s]}'
UNSOUNDS: dict[str, tuple[bytes, str]] = {
    "zip bomb": (bomb(), "its entry archive/data/0 is compressed ({packed:,} bytes would become 1,048,576)"),
    "encrypted": (with_flags(HONEST, 1), "its entry archive/data.pkl is encrypted"),
    "path that climbs": (zipped([("../a/data.pkl", b".")]), "its entry ../a/data.pkl leads out of the archive"),
    "path from the root": (zipped([("/a/data.pkl", b".")]), "its entry /a/data.pkl leads out of the archive"),
    "path of windows": (zipped([("a\\data.pkl", b".")]), "its entry a\\data.pkl leads out of the archive"),
    "entry twice": (zipped([("a/data.pkl", b"."), ("a/data.pkl", b".")]), "its entry a/data.pkl is there twice"),
    "two pickles": (zipped([("a/data.pkl", b"."), ("b/data.pkl", b".")]), "it holds more than one data.pkl"),
    "overlapping entries": (overlapping(), "its entry a/data/0 shares bytes with another"),
    "entries larger than the file": (claiming(), f"its entries claim 1,000 bytes, and the file has {len(claiming()):,}"),
    "expanded view": (
        tensor(0, (10**6, 10**6), (0, 0), storage=Storage(count=1), storages={"0": bytes(4)}),
        "the tensor weight would take 4,000,000,000,000 bytes, and the file has {size:,}",
    ),
    "expanded view of torch": (
        saved({"weight": torch.zeros(1).expand(10**6, 10**6)}),
        "the tensor weight would take 4,000,000,000,000 bytes, and the file has {size:,}",
    ),
    "expanded view of nothing": (
        tensor(0, (0, 10**18, 10**18), (1, 1, 1)),
        "the tensor weight would take 4,000,000,000,000,000,000,000,000,000,000,000,000 bytes, and the file has {size:,}",
    ),
    "many views": (
        archive({str(i): Forged(Storage(), 0, (250_000,), (0,)) for i in range(3)}),
        "its tensors would take over 32 times the {size:,} bytes of the file",
    ),
    "view beyond its storage": (tensor(0, (2, 3), (3, 1)), "the tensor weight reaches beyond the 4 numbers of its storage"),
    "offset beyond its storage": (tensor(3, (2,), (1,)), "the tensor weight reaches beyond the 4 numbers of its storage"),
    "stride beyond its storage": (tensor(0, (2,), (4,)), "the tensor weight reaches beyond the 4 numbers of its storage"),
    "negative offset": (tensor(-1, (2,), (1,)), "the shape, strides or offset of the tensor weight are absurd"),
    "negative stride": (tensor(3, (2,), (-1,)), "the shape, strides or offset of the tensor weight are absurd"),
    "shape of truth values": (tensor(0, (True, 2), (1, 1)), "the shape, strides or offset of the tensor weight are absurd"),
    "shape in words": (tensor(0, ("2", 2), (1, 1)), "the shape, strides or offset of the tensor weight are absurd"),
    "fewer strides": (tensor(0, (2, 2), (1,)), "the shape, strides or offset of the tensor weight are absurd"),
    "17 axes": (tensor(0, (1,) * 17, (1,) * 17), "the shape, strides or offset of the tensor weight are absurd"),
    "stride of 2**62": (tensor(0, (1,), (2**62,)), "the shape, strides or offset of the tensor weight are absurd"),
    "storage described twice": (
        archive({"a": Forged(Storage(), 0, (2, 2), (2, 1)), "b": Forged(Storage(count=5), 0, (2, 2), (2, 1))}),
        "its storage 0 is described in two ways",
    ),
    "storage read as two kinds": (
        archive({kind: Forged(Storage(torch.UntypedStorage, count=16), 0, (2,), (1,), V3, TYPES[kind]) for kind in TYPES}),
        "the bytes of the tensor second are also read as uint16",
    ),
    "name that cannot be printed": (
        archive({"a\x1b[2J": Forged(Storage(), 0, (2, 2), (2, 1))}),
        "the name of the tensor a�[2J is too long or cannot be printed",
    ),
    "name without end": (
        archive({"a" * 501: Forged(Storage(), 0, (2, 2), (2, 1))}),
        f"the name of the tensor {'a' * 80}… is too long or cannot be printed",
    ),
    "two tables of one name": (
        archive({"a": {"b": {"w": Forged(Storage(), 0, (2, 2), (2, 1))}}, "a.b": {"w": Forged(Storage(), 0, (2, 2), (2, 1))}}),
        "two of its tables are called 'a.b'",
    ),
    "safetensors header beyond the file": (
        headed(b"{}", length=2**62),
        "its header claims 4,611,686,018,427,387,904 bytes, and the file has 10",
    ),
    "safetensors cut": (HEADED[:-1], f"its header accounts for {len(HEADED):,} bytes, and the file has {len(HEADED) - 1:,}"),
    "safetensors with more behind": (
        HEADED + b"\0",
        f"its header accounts for {len(HEADED):,} bytes, and the file has {len(HEADED) + 1:,}",
    ),
    "safetensors shape larger than its bytes": (
        headed(b"{%s}" % (ENTRY % (b"1000000,1000000", b"0,4")), bytes(4)),
        "the tensor a does not fit its 4 bytes",
    ),
    "safetensors that share bytes": (
        headed(b"{%s,%s}" % (ENTRY % (b"1", b"0,4"), (ENTRY % (b"1", b"0,4")).replace(b'"a"', b'"b"')), bytes(4)),
        "the bytes of the tensor b overlap others or leave a hole",
    ),
    "safetensors with a hole": (
        headed(b"{%s}" % (ENTRY % (b"1", b"4,8")), bytes(8)),
        "the bytes of the tensor a overlap others or leave a hole",
    ),
}


@pytest.mark.parametrize("name", UNSOUNDS)
def test_a_file_that_claims_too_much_stays_closed(name: str) -> None:
    data, detail = UNSOUNDS[name]
    assert str(refusal(data, errors.UnsoundFile)) == UNSOUND.format(detail=detail.format(size=len(data), packed=PACKED))


UNREADABLES: dict[str, tuple[bytes, dict[str, str]]] = {
    "big-endian": (
        tensor(0, (2, 2), (2, 1), order=b"big"),
        {"what": "its numbers", "found": "big-endian bytes", "allowed": "little-endian bytes"},
    ),
    "four-bit numbers": (
        headed(b'{"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}', bytes(1)),
        {"what": "the tensor a", "found": "F4", "allowed": DTYPES},
    ),
    "quantized storage": (
        tensor(0, (2, 2), (2, 1), storage=Storage(torch.QInt8Storage)),
        {"what": "the tensor weight", "found": "QInt8", "allowed": DTYPES},
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
        saved(torch.optim.SGD(nn.Linear(2, 2).parameters()).state_dict()),
        "a table of other things: state (dict), param_groups (list)",
    ),
    "safetensors": (headed(b"{}"), "a value of the type dict"),
}


@pytest.mark.parametrize("name", EMPTIES)
def test_a_file_without_weights_says_what_it_holds(name: str) -> None:
    data, found = EMPTIES[name]
    assert str(refusal(data, errors.NoWeights)) == NONE.format(found=found)


LARGES: dict[str, tuple[bytes, dict[str, str]]] = {
    "directory of a zip": (
        overflowing_directory(),
        {"what": "the size of its directory", "found": "1,073,741,824 bytes", "allowed": "33,554,432"},
    ),
    "pickle": (
        repacked(data_pkl=bytes((32 << 20) + 1)),
        {"what": "the size of its pickle", "found": "33,554,433 bytes", "allowed": "33,554,432"},
    ),
    "header": (
        headed(b"{" + b" " * (32 << 20)),
        {"what": "the length of its header", "found": "33,554,433 bytes", "allowed": "33,554,432"},
    ),
    "tensors": (
        archive(
            b"\x80\x02}("
            + pickled(Forged(Storage(), 0, (0,), (1,)))[2:-1]
            + b"q\xff0"
            + b"".join(b"X\x05\x00\x00\x00%05dh\xff" % i for i in range(50_001))
            + b"u."
        ),
        {"what": "the number of its tensors", "found": "over 50,000", "allowed": "50,000"},
    ),
}


@pytest.mark.parametrize("name", LARGES)
def test_a_file_beyond_a_limit_names_it(name: str) -> None:
    data, fields = LARGES[name]
    assert str(refusal(data, errors.OverLimit)) == TOO_MUCH.format(**fields)


def test_a_file_larger_than_the_limit_is_not_read_at_all() -> None:
    """A hole of 8 GiB takes no room on the disk."""
    with tempfile.TemporaryFile() as file:
        file.seek(limits.MAX_FILE)
        file.write(b".")
        file.flush()
        with pytest.raises(errors.OverLimit, match="its size is 8,589,934,593 bytes, and at most 8,589,934,592 is allowed"):
            reading._read(file, "x.pt")


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    for path, found in (
        (tmp_path, "a folder"),
        (tmp_path / "x.pt", "not there"),
        (Path(os.devnull), "no file but a device or a pipe"),
    ):
        with pytest.raises(errors.NotACheckpoint) as refused:
            read_tensors(path)
        assert str(refused.value) == OTHER.replace("x.pt", str(path)).format(found=found)


def test_an_error_keeps_its_fields_on_its_way_from_the_other_process() -> None:
    assert refusal(b"", errors.NotACheckpoint).fields == {"path": "x.pt", "found": "empty"}
