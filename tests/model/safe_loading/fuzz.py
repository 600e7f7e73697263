"""Opens mutated files in a process of its own: each must be opened or refused with a sentence, nothing may be called or written.

Run with the number of files: `python -m tests.model.safe_loading.fuzz 5000`. Prints how many were opened, and refused for what. The
process has a limit on its memory, and every import, call, file or process that Python's audit hooks report counts against it.
"""

import codecs
import io
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from model.errors import CheckpointError
from model.safe_loading import limits, plan, reader, sandbox
from tests.model.safe_loading import forge
from tests.model.safe_loading.forge import Call, entries_of, headed, saved, zipped

MARKER = Path(tempfile.gettempdir()) / "headlight-fuzz-has-run"
SPACE = 512 << 20
"""Bytes that the process may take beyond what it has when the first file is opened."""

SECONDS = 5.0
"""Of its own time that the process may take for one file."""

FORBIDDEN = (
    "os.",
    "subprocess.",
    "exec",
    "compile",
    "open",
    "socket.",
    "pickle.find_class",
    "ctypes.",
    "shutil.",
    "tempfile.",
    "import",
)
CODECS = ("raw_unicode_escape", "unicode_escape", "latin-1", "ascii", "cp437", "utf-8")
"""Python loads these when a pickle or an archive first needs them; here that has happened before."""


def seeds() -> list[bytes]:
    """Honest and dishonest files of every format."""
    network = torch.nn.Linear(3, 2)
    state = network.state_dict()
    training = {"model": state, "ema": state, "args": {"heads": 8}, "epoch": 3, "shape": torch.Size([2])}
    evil = {"weight": torch.eye(2), "other": Call(os.system, f"touch {MARKER}")}
    views = {"t": torch.arange(6.0).reshape(2, 3).t(), "half": torch.ones(2, 2).half(), "u": torch.ones(2, 2, dtype=torch.uint16)}
    files = [saved(value, legacy=legacy) for value in (state, views, evil) for legacy in (False, True)]
    return [*files, saved(training), safetensors.torch.save({"a": torch.eye(2), "b": torch.ones(3).half()}, {"format": "pt"})]


MAGIC = 15
"""Bytes of the first pickle of torch's older stream."""

PIECES = [
    f"cposix\nsystem\n(Vtouch {MARKER}\ntR".encode(),
    f"c__builtin__\nexec\n(Vopen({str(MARKER)!r},'w')\ntR".encode(),
    b"ctorch._utils\n_rebuild_tensor_v2\n",
    b"ctorch\nFloatStorage\n",
    b"h\x00h\x00\x86q\x00",
    b"r\xff\xff\xff\xff",
    b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    *(bytes([code]) for code in b"(.)]}\x8f0123NQRabdehijloqrstu\x80\x81\x82\x85\x86\x87\x88\x89\x8a\x93\x94\x95"),
    b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},',
    b"99999999999999999999",
    b"-1",
    b"PK\x01\x02",
    b"\0" * 64,
]

Edit = Callable[[bytes], bytes]


def edits() -> st.SearchStrategy[Edit]:
    """One change of some bytes."""
    place = st.integers(0, 2**16).map(lambda number: number * 40503 % 2**16 / 2**16)  # spread: small numbers are drawn most often
    size = st.integers(1, 40)

    def flip(at: float, bit: int) -> Edit:
        def change(data: bytes) -> bytes:
            i = int(at * (len(data) - 1))
            return data[:i] + bytes([data[i] ^ 1 << bit]) + data[i + 1 :] if data else data

        return change

    def put(at: float, count: int, piece: bytes) -> Edit:
        return lambda data: data[: (i := int(at * len(data)))] + piece + data[i + count :]

    def cut(at: float) -> Edit:
        return lambda data: data[: int(at * len(data))]

    def copy(start: float, count: int, to: float) -> Edit:
        def change(data: bytes) -> bytes:
            piece = data[(i := int(start * len(data))) : i + count]
            return data[: (j := int(to * len(data)))] + piece + data[j:]

        return change

    return st.one_of(
        st.builds(flip, place, st.integers(0, 7)),
        st.builds(put, place, st.integers(0, 8), st.sampled_from(PIECES)),
        st.builds(put, place, st.integers(0, 8), st.binary(max_size=8)),
        st.builds(put, place, size, st.just(b"")),
        st.builds(copy, place, size, place),
        st.builds(cut, place),
    )


def in_part(data: bytes, part: int, edit: Edit) -> bytes:
    """Changes one part of a file so that the parts around it still fit: an entry of an archive, a header."""
    if data.startswith(b"PK\x03\x04"):
        try:
            entries = entries_of(data)
        except Exception:
            return edit(data)
        which = 0 if part % 2 else part % len(entries)
        entries[which] = (entries[which][0], edit(entries[which][1]))
        if part % 7 == 6:
            entries[which] = (edit(entries[which][0].encode()).decode("latin-1").replace("\0", "") or "a", entries[which][1])
        return zipped(entries)
    if data[8:9] == b"{":
        length = int.from_bytes(data[:8], "little")
        return headed(edit(data[8 : 8 + length]), data[8 + length :])
    return data[:MAGIC] + edit(data[MAGIC:900]) + data[900:]


@st.composite
def files(draw: st.DrawFn, honest: list[bytes]) -> bytes:
    data = draw(st.sampled_from(honest))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 4]))):
        edit = draw(edits())
        data = in_part(data, draw(st.integers(0, 40)), edit) if draw(st.integers(0, 9)) else edit(data)
    return data


class Watch:
    """Counts what Python's audit hooks report while a file is being opened."""

    def __init__(self) -> None:
        self.on = False
        self.seen: Counter[str] = Counter()
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.on and event.startswith(FORBIDDEN):
            self.seen[f"{event} {arguments[:1]}"] += 1


def opened(data: bytes) -> reader.OpenedFile:
    """What `read_upload` does, the other process' work done here."""
    described = plan.from_json(json.loads(plan.to_json(sandbox.describe(io.BytesIO(data), "x.pt"))))
    storages = {key: reader._storage(io.BytesIO(data), where, "x.pt") for key, where in described.storages.items()}  # type: ignore[arg-type]
    tables = {
        name: {key: reader._tensor(storages[tensor.storage], tensor) for key, tensor in table.items()}
        for name, table in described.candidates.items()
    }
    return reader.OpenedFile(described.format, len(data), tables, described.others, tuple(reader._problems(tables)))


def check(data: bytes, found: reader.OpenedFile) -> None:
    """Every number can be read, and safetensors' own library reads the same ones."""
    tensors = [tensor for table in found.candidates.values() for tensor in table.values()]
    assert sum(tensor.numel() * tensor.element_size() for tensor in tensors) <= limits.SHARING * len(data) + limits.SPARE
    for tensor in tensors:
        tensor.contiguous().reshape(-1).view(torch.uint8).sum()
    if found.format == "safetensors":
        expected = safetensors.torch.load(data)
        assert expected.keys() == found.candidates[""].keys()
        for key, tensor in expected.items():
            assert torch.equal(tensor.contiguous().view(torch.uint8), found.candidates[""][key].contiguous().view(torch.uint8))


def fuzz(count: int) -> Counter[str]:
    """Opens `count` mutated files.

    Returns:
        How many were opened in which format, and refused for what.
    """
    honest, watch, outcomes = seeds(), Watch(), Counter[str]()
    for name in CODECS:
        codecs.lookup(name)

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(files(honest))
    def one(data: bytes) -> None:
        watch.on, began = True, time.process_time()
        try:
            found = opened(data)
        except CheckpointError as error:
            outcomes[type(error).__name__] += 1
            return
        finally:
            watch.on = False
            assert time.process_time() - began < SECONDS
        outcomes[f"opened as {found.format}"] += 1
        check(data, found)

    one()
    assert not watch.seen, watch.seen
    assert not MARKER.exists()
    return outcomes


def limit_this_process(count: int) -> None:
    """No more than `SPACE` beyond what this process has now, and a tenth of a second for each of `count` files."""
    import resource

    seconds = 30 + count // 10
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + SPACE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    torch.set_num_threads(1)
    opened(forge.archive({"w": forge.Forged(forge.Storage(), 0, (2, 2), (2, 1))}))
    if sys.platform == "linux":
        limit_this_process(int(sys.argv[1]))
    print(json.dumps(fuzz(int(sys.argv[1])), sort_keys=True))
