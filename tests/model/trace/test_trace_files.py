"""Opening trace files: what is read is what is in the file, and a bad file is refused in words."""

import io
import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load, save

from model.engine.trace_engine import OF_LECTURES
from model.errors import BadTrace, OpeningEnded, WireError
from model.safe_loading import limits, packed_trace, sandbox_process
from model.trace import trace_files
from model.trace.serialization import from_bytes, to_bytes
from model.trace.types import Array, Trace
from tests import opened

DATA = opened.GREEDY.read_bytes()
RUN = from_bytes(DATA)
SITE = "decoder.0.1.cross"
PLACE = f"attention/{SITE}/weights"


def header_of(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["headlight"])
    return found


def rewritten(change: Callable[[dict[str, Any], dict[str, Array]], object]) -> bytes:
    """The file of RUN with another header or other arrays."""
    header, arrays = header_of(DATA), {name: np.array(array) for name, array in load(DATA).items()}
    change(header, arrays)
    return save(arrays, metadata={"headlight": json.dumps(header)})


def set_weight(value: float, query: int = 0, key: int = 0) -> bytes:
    def change(header: dict[str, Any], arrays: dict[str, Array]) -> None:
        arrays[PLACE][0, query, key] = value

    return rewritten(change)


def forbid(header: dict[str, Any], arrays: dict[str, Array]) -> None:
    arrays[f"attention/{SITE}/mask"][:, 0] = 0


def tell(name: str, value: object) -> Callable[[dict[str, Any], dict[str, Array]], None]:
    return lambda header, arrays: header["model"].update({name: value})


def nested(depth: int) -> list[Any]:
    return [] if depth == 0 else [nested(depth - 1)]


BAD = {
    "NaN": (set_weight(np.nan), "the weights of head 0 of decoder.0.1.cross hold NaN"),
    "sum": (set_weight(0.9), "row 0 of head 0 of decoder.0.1.cross sums to"),
    "negative": (set_weight(-0.5), "not between 0 and 1"),
    "forbidden": (rewritten(forbid), "on a key that its mask forbids"),
    "schema": (rewritten(lambda header, arrays: header.update(schema=2)), "its schema is 2, this version reads 1"),
    "missing": (rewritten(lambda header, arrays: arrays.pop(PLACE)), "decoder.0.1.cross lacks one of mask, weights"),
    "shape": (rewritten(lambda header, arrays: arrays.update({PLACE: arrays[PLACE][:, :1]})), "has the shape"),
    "stranger": (rewritten(lambda header, arrays: arrays.update(more=np.zeros(1, np.float32))), "no place for more"),
    "dtype": (rewritten(tell("dtype", "float8")), "header.model.dtype: “float8”"),
    "spec": (rewritten(tell("spec", {"decoder": 3})), "header.model.spec"),
    "notes": (rewritten(tell("notes", [["<script>"]])), "header.model.notes[0]"),
    "deep": (rewritten(tell("more", nested(40))), "nested more than 32 levels deep"),
    "request": (rewritten(lambda header, arrays: header["request"].update(beam=3)), "“beam”"),
    "step": (rewritten(lambda header, arrays: header["steps"][0].update(computed=[0, 99])), "step 0 does not fit its tokens"),
    "logits": (rewritten(lambda header, arrays: arrays["logits"].fill(np.inf)), "logits holds NaN or infinite numbers"),
    "cut": (DATA[:-4], "SafetensorError"),
    "long": (b"\xff" * 7 + b"\x00" + DATA[8:], "its header would have"),
    "no JSON": (DATA[:8] + b"[" * 900 + DATA[908:], "its header cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_trace_is_refused_in_words(name: str) -> None:
    data, words = BAD[name]
    with pytest.raises(BadTrace) as caught:
        trace_files.read_bytes(data, "a.trace.safetensors")
    assert str(caught.value).startswith("a.trace.safetensors is not a trace that can be opened: ")
    assert words in str(caught.value)


def test_rows_may_sum_to_less_than_1_only_where_the_run_says_that_there_are_sinks() -> None:
    whole = trace_files.read_path(OF_LECTURES / "sinks.trace.safetensors")
    assert whole.at("decoder.0.1.self").weights[0].sum(axis=-1).max() < 0.93
    notes = tuple(note for note in whole.model["notes"] if "sink" not in str(note))
    silent = replace(whole, model={**whole.model, "notes": notes})
    with pytest.raises(BadTrace, match="sums to"):
        trace_files.read_bytes(to_bytes(silent), "a.trace.safetensors")
    site, own = next(iter(whole.attention.items()))
    more = replace(whole, attention={**whole.attention, site: replace(own, weights=own.weights * 1.5 + 0.3 * own.mask)})
    with pytest.raises(BadTrace, match=r"sums to|not between"):
        trace_files.read_bytes(to_bytes(more), "a.trace.safetensors")


def same(one: Trace, other: Trace) -> bool:
    return to_bytes(one) == to_bytes(other)


def test_a_large_file_is_mapped_and_holds_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_files, "MAPPED_FROM", 0)
    found = trace_files.read_path(opened.GREEDY)
    assert same(found, RUN)
    assert not found.at(SITE).weights.flags.owndata, "its numbers stay in the file"
    with safe_open(opened.GREEDY, framework="numpy") as file:
        assert np.array_equal(found.at(SITE).weights, file.get_tensor(PLACE))
    (tmp_path / "cut.trace.safetensors").write_bytes(DATA[:-4])
    with pytest.raises(BadTrace, match="SafetensorError"):
        trace_files.read_path(tmp_path / "cut.trace.safetensors")


@pytest.mark.parametrize("stack", ["program", "decoder"])
def test_the_recording_of_a_program_is_opened(stack: str) -> None:
    found = trace_files.read_bytes(opened.file(opened.program(stack=stack)), "vit.trace.safetensors")
    assert found.recorded
    assert found.module(f"{stack}.0.0.unknown") == "blocks.0.attn"


def test_a_recording_that_claims_a_network_is_refused() -> None:
    with pytest.raises(BadTrace, match="is the recording of a program and has a request"):
        trace_files.read_bytes(opened.file(replace(opened.program(), request=RUN.request)), "a")


def packed(**files: bytes) -> bytes:
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return box.getvalue()


def test_an_archive_opens_its_trace(tmp_path: Path) -> None:
    data = packed(**{"run/run.trace.safetensors": DATA, "run/tables/head.csv": b"1"})
    assert trace_files.holds_trace(data)
    assert same(trace_files.read_bytes(data, "run.zip"), RUN)
    (tmp_path / "run.zip").write_bytes(data)
    assert trace_files.is_trace_file(tmp_path / "run.zip")
    assert same(trace_files.read_path(tmp_path / "run.zip"), RUN)


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packed_bytes_that_are_damaged_are_refused_in_words(packing: int) -> None:
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w", packing) as archive:
        archive.writestr("x.trace.safetensors", to_bytes(RUN))
    data = bytearray(box.getvalue())
    data[60:160] = b"\xff" * 100
    with pytest.raises(BadTrace, match="its archive is damaged"):
        trace_files.read_bytes(bytes(data), "run.zip")


def claiming(length: int) -> bytes:
    """A file of zeros behind a header that lists so many bytes."""
    said = json.dumps({"w": {"dtype": "F32", "shape": [length // 4], "data_offsets": [0, length]}}).encode()
    return len(said).to_bytes(8, "little") + said + bytes(length)


BOMBS = {
    "zeros": (bytes(2**24), "its header cannot be read"),
    "too much for its size": (claiming(2**25), r"it would have 33,554,5\d\d bytes unpacked; at most 20,\d{3},\d{3} are read"),
    "another length": (claiming(2**12) + bytes(2**13), "its header gives a different length"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_zip_bomb_is_refused_before_it_is_unpacked(name: str) -> None:
    data, words = BOMBS[name]
    bomb, into = packed(**{"run.trace.safetensors": data}), io.BytesIO()
    with pytest.raises(BadTrace, match=words):
        trace_files.read_bytes(bomb, "bomb.zip")
    with pytest.raises(WireError):
        packed_trace.unpack(io.BytesIO(bomb), into)
    assert not into.getvalue(), "not a byte of it was written"


def test_an_archive_is_unpacked_by_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed(**{"run.trace.safetensors": DATA})
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("unpacked in this process"))
    assert same(trace_files.read_bytes(data, "run.zip"), RUN)


def test_an_archive_that_lies_about_its_size_is_refused() -> None:
    bomb = packed(**{"run.trace.safetensors": bytes(2**21)})
    assert len(bomb) < 2**14
    liar = bomb.replace((2**21).to_bytes(4, "little"), (9).to_bytes(4, "little"))
    with pytest.raises(BadTrace):
        trace_files.read_bytes(liar, "liar.zip")


def test_another_process_that_ends_or_takes_too_long_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed(**{"run.trace.safetensors": DATA})
    monkeypatch.setattr(sandbox_process, "UNPACKING", "raise SystemExit(3)")
    with pytest.raises(OpeningEnded, match="exit 3"):
        trace_files.read_bytes(data, "run.zip")
    monkeypatch.setattr(sandbox_process, "UNPACKING", "input()")
    monkeypatch.setattr(limits, "MAX_SECONDS", 0)
    with pytest.raises(BadTrace, match="unpacking it takes more than 0 seconds"):
        trace_files.read_bytes(data, "run.zip")


@given(st.binary(max_size=400), st.integers(0, 3000))
def test_whatever_an_archive_holds_it_is_unpacked_within_its_bound_or_refused(data: bytes, cut: int) -> None:
    """Bytes put in the place of others, anywhere."""
    whole = bytearray(packed(**{"run.trace.safetensors": DATA}))
    whole[cut : cut + len(data)] = data
    into = io.BytesIO()
    with suppress(WireError):
        packed_trace.unpack(io.BytesIO(bytes(whole)), into)
    assert len(into.getvalue()) <= packed_trace.SPARE + packed_trace.MOST_GAIN * len(whole)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04",
        packed(data=b"weights of torch"),
        packed(**{"a.trace.safetensors": DATA, "b.trace.safetensors": DATA}),
        save({"weight": np.zeros(2, np.float32)}),
        save({"weight": np.zeros(2, np.float32)}, metadata={"format": "pt"}),
    ],
)
def test_other_files_are_no_traces(data: bytes) -> None:
    assert not trace_files.holds_trace(data)


def test_a_long_list_of_files_in_an_archive_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed(**{"run.trace.safetensors": DATA})
    monkeypatch.setattr(packed_trace, "MOST_DIRECTORY", 60)
    monkeypatch.setattr(zipfile, "ZipFile", lambda file: pytest.fail("the list was read"))
    assert not trace_files.holds_trace(data)
