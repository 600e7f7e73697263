"""Damaged files, and files that claim more than they have. Nothing of them is read or left behind."""

import io
import zipfile

import pytest
import torch

from model import errors
from tests.model.safe_loading.forge import Forged, Storage, archive, entries_of, headed, pickled, saved, stream, with_flags, zipped
from tests.model.safe_loading.refused import HEADED, HONEST, LINE, OLD, refusal, repacked, tensor

pytestmark = pytest.mark.usefixtures("nothing_is_read_or_left_behind")

DAMAGED = "x.pt cannot be read: {detail}. Restore it from a backup or save the model again."
UNSOUND = (
    f"x.pt was not opened: {{detail}}. Files written by torch.save or safetensors are not like that. Save the weights again: {LINE}"
)


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


PACKED = zipfile.ZipFile(io.BytesIO(bomb())).getinfo("archive/data/0").compress_size
TRUNCATED = "the end of its zip archive is missing: it is cut off, or something was added to it"
DAMAGES: dict[str, tuple[bytes, str]] = {
    "zip cut in half": (HONEST[: len(HONEST) // 2], TRUNCATED),
    "zip cut by a byte": (HONEST[:-1], TRUNCATED),
    "zip with more behind": (HONEST + b"\0", TRUNCATED),
    "zip with 64-bit sizes that lie": (
        HONEST.replace(b"PK\x06\x06", b"PK\x06\x05"),
        "the end of its zip archive is invalid",
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
        "its pickle is invalid near byte 3",
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
    "legacy cut in its pickles": (OLD[:60], "its pickle is invalid near byte 60"),
    "legacy cut in its numbers": (
        stream({"w": Forged(Storage(), 0, (2, 2), (2, 1))})[:-4],
        "the bytes of its storage 0 are truncated or have the wrong length",
    ),
    "legacy with another count": (
        stream({"w": Forged(Storage(), 0, (2, 2), (2, 1))}, {"0": (5, bytes(20))}),
        "the bytes of its storage 0 are truncated or have the wrong length",
    ),
    "legacy with a storage that nothing names": (
        stream({"w": Forged(Storage(), 0, (2, 2), (2, 1))}, {"0": (4, bytes(16)), "1": (0, b"")}),
        "its list of storages names 1, which no tensor uses",
    ),
    "legacy of another protocol": (
        stream({}, {}).replace(pickled(1001), pickled(1002)),
        "its five pickles are not those of torch.save",
    ),
    "safetensors without a table": (headed(b"{} []"), "its header is invalid: Extra data: line 1 column 4 (char 3)"),
    "safetensors with a name twice": (
        headed(
            b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)
        ),
        "its header is invalid: a name occurs twice",
    ),
    "safetensors with NaN": (headed(b'{"a": NaN}'), "its header is invalid: NaN is no number of JSON"),
    "safetensors nested without end": (
        headed(b'{"a":' + b"[" * 20_000),
        "its header is nested too deeply",
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
    "safetensors with metadata in numbers": (headed(b'{"__metadata__":{"a":1}}'), "its header is not a table of tensors"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_says_where(name: str) -> None:
    data, detail = DAMAGES[name]
    assert str(refusal(data, errors.DamagedFile)) == DAMAGED.format(detail=detail)


V3 = torch._utils._rebuild_tensor_v3
TYPES = {"first": torch.uint16, "second": torch.uint32}
ENTRY = b'"a":{"dtype":"F32","shape":[%s],"data_offsets":[%s]}'
UNSOUNDS: dict[str, tuple[bytes, str]] = {
    "zip bomb": (bomb(), "its entry archive/data/0 is compressed: {packed:,} bytes would become 1,048,576"),
    "encrypted": (with_flags(HONEST, 1), "its entry archive/data.pkl is encrypted"),
    "path that climbs": (zipped([("../a/data.pkl", b".")]), "its entry ../a/data.pkl leads out of the archive"),
    "path from the root": (zipped([("/a/data.pkl", b".")]), "its entry /a/data.pkl leads out of the archive"),
    "path of windows": (zipped([("a\\data.pkl", b".")]), "its entry a\\data.pkl leads out of the archive"),
    "entry twice": (zipped([("a/data.pkl", b"."), ("a/data.pkl", b".")]), "its entry a/data.pkl occurs twice"),
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
    "negative offset": (tensor(-1, (2,), (1,)), "the shape, strides or offset of the tensor weight is invalid"),
    "negative stride": (tensor(3, (2,), (-1,)), "the shape, strides or offset of the tensor weight is invalid"),
    "shape of truth values": (tensor(0, (True, 2), (1, 1)), "the shape, strides or offset of the tensor weight is invalid"),
    "shape in words": (tensor(0, ("2", 2), (1, 1)), "the shape, strides or offset of the tensor weight is invalid"),
    "fewer strides": (tensor(0, (2, 2), (1,)), "the shape, strides or offset of the tensor weight is invalid"),
    "17 axes": (tensor(0, (1,) * 17, (1,) * 17), "the shape, strides or offset of the tensor weight is invalid"),
    "stride of 2**62": (tensor(0, (1,), (2**62,)), "the shape, strides or offset of the tensor weight is invalid"),
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
