"""Malformed GGUF files: each is refused in one sentence, soon, and in little memory."""

import struct
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from gguf import GGMLQuantizationType

from model.errors import BadGguf, CheckpointError
from model.safe_loading import limits
from model.safe_loading.gguf import TYPES
from model.safe_loading.gguf_tensors import GgufFile, read_gguf
from tests import ggufs, known
from tests.model.safe_loading.forged_gguf import LIST, TEXT, U32, U64, Forged, numbered, taken_apart, text

HUGE = 2**60


def tensor(
    at: int = 0, shape: list[int] | None = None, kind: int | None = None, offset: int | None = None
) -> Callable[[Forged], None]:
    """Changes the tensor number `at`."""

    def change(forged: Forged) -> None:
        new = (None, shape, kind, offset)
        forged.tensors[at] = tuple(old if value is None else value for value, old in zip(new, forged.tensors[at], strict=True))  # type: ignore[assignment]

    return change


def setting(name: bytes, kind: int, value: bytes) -> Callable[[Forged], None]:
    return lambda forged: forged.set(name, kind, value)


def attribute(**values: object) -> Callable[[Forged], None]:
    def change(forged: Forged) -> None:
        for name, value in values.items():
            setattr(forged, name, value)

    return change


def a_list(inner: int, count: int, content: bytes = b"") -> bytes:
    return struct.pack("<IQ", inner, count) + content


REFUSED: dict[str, tuple[Callable[[Forged], None], str]] = {
    "another magic number": (attribute(magic=b"GGML"), "does not begin with GGUF"),
    "version 1": (attribute(version=1), "it is of version 1; versions 2 and 3 are read"),
    "version 2000": (attribute(version=2000), "it is of version 2000"),
    "big-endian": (attribute(version=3 << 24), "big-endian"),
    "a trillion tensors": (attribute(tensor_count=10**12), "it claims 1,000,000,000,000 tensors"),
    "2^63 settings": (attribute(setting_count=2**63), "settings; at most"),
    "one tensor too many": (lambda forged: setattr(forged, "tensor_count", len(forged.tensors) + 1), ""),
    "one setting too many": (lambda forged: setattr(forged, "setting_count", len(forged.settings) + 1), ""),
    "no architecture": (lambda forged: setattr(forged, "settings", forged.settings[1:]), "it names no architecture"),
    "an architecture that is a number": (setting(b"general.architecture", U32, bytes(4)), "it names no architecture"),
    "a text beyond the file": (setting(b"x", TEXT, struct.pack("<Q", HUGE)), "reaches beyond"),
    "a text of 2^64 - 1 bytes": (setting(b"x", TEXT, struct.pack("<Q", 2**64 - 1)), "reaches beyond"),
    "a text that is no text": (setting(b"x", TEXT, text(b"\xff\xfe\xfd")), "is not UTF-8"),
    "a type that does not exist": (setting(b"x", 99, b""), "of the type 99, which does not exist"),
    "a list of lists": (setting(b"x", LIST, a_list(LIST, 1)), "items of the type 9, which are not read"),
    "a list of what does not exist": (setting(b"x", LIST, a_list(77, 3)), "items of the type 77"),
    "a list of 2^60 numbers": (setting(b"x", LIST, a_list(U64, HUGE)), "items; at most"),
    "a list of 2^60 texts": (setting(b"x", LIST, a_list(TEXT, HUGE)), "items; at most"),
    "a list longer than the file": (setting(b"x", LIST, a_list(U64, 1_000_000)), "reaches beyond"),
    "a setting twice": (lambda forged: forged.settings.append(forged.settings[1]), "occurs twice"),
    "a setting without a name": (setting(b"", U32, bytes(4)), "is empty, too long or cannot be printed"),
    "a setting whose name is a megabyte": (setting(b"x" * 2**20, U32, bytes(4)), "is empty, too long"),
    "a setting with a line break in its name": (setting(b"a\nb", U32, bytes(4)), "cannot be printed"),
    "settings beyond number": (
        lambda forged: forged.settings.extend(numbered(b"n%d" % n for n in range(limits.MAX_SETTINGS))),
        "settings; at most",
    ),
    "a tensor twice": (lambda forged: forged.tensors.append(forged.tensors[0]), "occurs twice"),
    "a tensor without axes": (tensor(shape=[]), "has 0 axes"),
    "a tensor of 300 axes": (tensor(shape=[1] * 300), "has 300 axes"),
    "a tensor of no numbers": (tensor(shape=[0, 5]), "do not fill"),
    "a tensor whose size overflows": (tensor(shape=[2**62, 2**62, 32]), "reaches beyond"),
    "blocks that its rows do not fill": (tensor(shape=[33, 32], kind=2), "which blocks of 32 numbers do not fill"),
    "a type of tensor that was taken away": (tensor(kind=4), "is of the type number 4"),
    "a type of tensor that does not exist": (tensor(kind=2**31), "is of the type number 2147483648"),
    "an offset beyond the file": (tensor(offset=HUGE - HUGE % 32), "reaches beyond"),
    "an offset of 2^64 - 32": (tensor(offset=2**64 - 32), "reaches beyond"),
    "an offset between two multiples": (tensor(offset=33), "does not begin at a multiple of 32"),
    "two tensors in one place": (lambda forged: tensor(1, offset=forged.tensors[0][3])(forged), "shares bytes with another"),
    "an alignment of 0": (setting(b"general.alignment", U32, bytes(4)), "its alignment is 0"),
    "an alignment of 3": (setting(b"general.alignment", U32, struct.pack("<I", 3)), "its alignment is 3"),
    "an alignment of 4 GB": (setting(b"general.alignment", U64, struct.pack("<Q", 2**32)), "its alignment is"),
    "no numbers": (attribute(size=0), "reaches beyond"),
    "half of the numbers": (lambda forged: setattr(forged, "size", forged.size // 2), "reaches beyond"),
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Forged:
    """The header of a network of two layers."""
    return taken_apart(ggufs.write(tmp_path_factory.mktemp("gguf") / "a.gguf", "llama", ggufs.network("llama")))


def test_a_header_that_nothing_is_wrong_with_is_read(tiny: Forged, tmp_path: Path) -> None:
    found = read_gguf(tiny.write(tmp_path / "a.gguf"))
    assert isinstance(found, GgufFile)
    assert len(found.header.tensors) == len(tiny.tensors)
    assert len(found.header.settings) == len(tiny.settings)


@pytest.mark.parametrize("case", REFUSED)
def test_a_malformed_file_is_refused_in_a_sentence(case: str, tiny: Forged, tmp_path: Path) -> None:
    forged, (change, said) = deepcopy(tiny), REFUSED[case]
    change(forged)
    with pytest.raises(BadGguf) as refused:
        read_gguf(forged.write(tmp_path / "a.gguf"))
    assert said in str(refused.value)
    assert str(refused.value).count(str(tmp_path)) == 1


@pytest.mark.parametrize("length", [0, 3, 4, 8, 23, 24, 40, 100, 1_000])
def test_a_file_that_ends_too_early_is_refused(length: int, tiny: Forged, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(tiny.header()[:length])
    with pytest.raises(CheckpointError):
        read_gguf(tmp_path / "a.gguf")


def test_types_are_those_of_the_package() -> None:
    from gguf import GGML_QUANT_SIZES

    for number, (name, numbers, size) in TYPES.items():
        assert (GGMLQuantizationType(number).name, GGML_QUANT_SIZES[GGMLQuantizationType(number)]) == (name, (numbers, size))


SECONDS, MEGABYTES = 2, 200
"""Of CPU time, which is the same on a busy machine, and of memory."""

MEASURED = """
import resource, sys
from pathlib import Path
from model.errors import CheckpointError
from model.safe_loading.sandbox_process import look_into

def taken():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

worst = 0.0
for path in sorted(Path(sys.argv[1]).glob("*.gguf")):
    begun = taken()
    try:
        with path.open("rb") as file:
            look_into(file, str(path), "gguf")
        print("not refused:", path)
    except CheckpointError as error:
        assert len(str(error).splitlines()) == 1
    worst = max(worst, taken() - begun)
print(worst, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


@pytest.mark.slow
def test_what_was_made_of_a_real_file_is_refused_soon_and_in_little_memory(tmp_path: Path) -> None:
    real = taken_apart(known.smollm2())
    for number, (change, _) in enumerate([*REFUSED.values()][::3]):
        forged = deepcopy(real)
        change(forged)
        forged.write(tmp_path / f"{number}.gguf")
    done = subprocess.run([sys.executable, "-c", MEASURED, tmp_path], capture_output=True, text=True, check=True)
    assert "not refused" not in done.stdout
    seconds, megabytes = map(float, done.stdout.split())
    assert seconds < SECONDS
    assert megabytes < MEGABYTES
