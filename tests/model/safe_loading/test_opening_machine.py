"""The pickle machine against Python's own unpickler, on values that need no class; and what it makes of everything else."""

import argparse
import collections
import copyreg
import io
import os
import pickle
import pickletools
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from model.errors import DamagedFile, HeadlightError, OverLimit, UnsafeFile, UnsoundFile
from model.safe_loading import limits
from model.safe_loading.inert_values import Inert, Named, Storage, Tensor
from model.safe_loading.pickle_machine import PLAIN, Machine
from tests.examples import examples
from tests.model.safe_loading import forge
from tests.model.safe_loading.forge import Call, Forged, pickled

PLAIN_VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
KEYS = st.text() | st.integers() | st.booleans() | st.floats(allow_nan=False)
VALUES = st.recursive(
    PLAIN_VALUES,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(KEYS, inner)
        | st.dictionaries(KEYS, inner).map(collections.OrderedDict)
    ),
    max_leaves=20,
)


def followed(written: bytes) -> Any:
    return Machine("a.pt").follow(io.BytesIO(written))


@settings(max_examples=examples(100))
@given(VALUES, st.integers(0, 5))
def test_plain_values_are_what_python_makes_of_them(value: Any, protocol: int) -> None:
    written = pickle.dumps(value, protocol)
    assume(protocol > 2 or not (b"_codecs" in written or b"bytes" in written))
    expected = pickle.loads(written)
    assert repr(followed(written)) == repr(plain(expected))
    assert repr(followed(pickletools.optimize(written))) == repr(plain(expected))


def plain(value: Any) -> Any:
    """The value with plain tables."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return type(value)(map(plain, value)) if isinstance(value, list | tuple) else value


def test_instructions_that_put_their_argument_on_the_stack_are_numbers_texts_and_bytes() -> None:
    kinds = ("INT", "LONG", "FLOAT", "STRING", "UNICODE", "BYTES", "BYTEARRAY8")
    names = {code.name for code in pickletools.opcodes if any(kind in code.name for kind in kinds)}
    assert names - {"LONG_BINPUT", "LONG_BINGET"} == PLAIN


def test_a_value_within_itself_is_followed() -> None:
    loop: list[Any] = []
    loop.append(loop)
    found = followed(pickle.dumps(loop))
    assert found[0] is found


@pytest.mark.parametrize("protocol", range(6))
def test_objects_become_notes_of_their_class_and_attributes(protocol: int) -> None:
    if protocol < 2:
        written = pickle.dumps(argparse.Namespace(heads=8), protocol)
    else:
        written = pickled(argparse.Namespace(heads=8), protocol)
    found = followed(written)
    assert isinstance(found, Inert)
    assert (found.kind, found.state) == ("argparse.Namespace", {"heads": 8})


def test_entries_of_a_class_of_tables_and_items_of_a_class_of_lists_are_kept() -> None:
    found = followed(b"\x80\x02c__main__\nTable\n)\x81}X\x01\x00\x00\x00aK\x01s0(X\x01\x00\x00\x00bK\x02uK\x03a.")
    assert (found.kind, list(found.items.values())) == ("__main__.Table", [2, 3])


def test_a_tensor_becomes_its_description() -> None:
    found = followed(pickled(Forged(forge.Storage(torch.HalfStorage, "7", 12), 1, (2, 3), (3, 1))))
    assert isinstance(found, Tensor)
    assert (found.dtype, found.offset, found.shape, found.stride) == ("float16", 1, (2, 3), (3, 1))
    assert (found.storage.key, found.storage.count) == ("7", 12)


def test_storages_are_known_by_their_keys() -> None:
    machine = Machine("a.pt")
    machine.follow(io.BytesIO(pickled([forge.Storage(key="a"), forge.Storage(key="b"), forge.Storage(key="a")])))
    assert machine.storages.keys() == {"a", "b"}
    assert all(isinstance(storage, Storage) for storage in machine.storages.values())


REFUSED: dict[str, Any] = {
    "posix.system" if os.name == "posix" else "nt.system": Call(os.system, "true"),
    "builtins.exec": Call(exec, "1"),
    "builtins.eval": Call(eval, "1"),
    "builtins.getattr": Call(getattr, "a", "upper"),
    "builtins.__import__": Call(__import__, "os"),
    "io.open": Call(open, "a"),
    "torch.serialization.load": Call(torch.load, "a"),
    "torch.hub.load": Call(torch.hub.load, "a"),
    "torch.storage._load_from_bytes": Call(torch.storage._load_from_bytes, b""),
    "pickle.loads": Call(pickle.loads, b""),
    "copyreg.add_extension": Call(copyreg.add_extension, "os", "system", 1),
}


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("name", REFUSED)
def test_a_call_is_refused_by_name(name: str, protocol: int) -> None:
    with pytest.raises(UnsafeFile) as refused:
        followed(pickled({"weight": 1, "other": REFUSED[name]}, protocol))
    assert refused.value.fields["called"] in (name, name.replace("pickle.", "_pickle."))


CODES: dict[str, tuple[bytes, type[HeadlightError]]] = {
    "REDUCE": (b"cos\nsystem\n(Vtrue\ntR.", UnsafeFile),
    "INST": (b"(Vtrue\nios\nsystem\n.", UnsafeFile),
    "OBJ": (b"(cos\nsystem\nVtrue\no.", UnsafeFile),
    "STACK_GLOBAL": (b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.", UnsafeFile),
    "a call of a call": (b"c_codecs\nencode\n)R)R.", UnsafeFile),
    "a new object of a call": (b"c_codecs\nencode\n)R)\x81.", UnsafeFile),
    "a call without a tuple": (b"cos\nsystem\n]R.", UnsafeFile),
    "a rebuilt parameter of a call": (b"ctorch._utils\n_rebuild_parameter\n(cos\nsystem\n)R\x89}tR.", UnsafeFile),
    "a subclass rebuilt by a call": (
        b"ctorch._tensor\n_rebuild_from_type_v2\n(cos\nsystem\nctorch\nTensor\n(Vtrue\nt}tR.",
        UnsafeFile,
    ),
    "PERSID": (b"Pabc\n.", UnsoundFile),
    "EXT1": (b"\x80\x02\x82\x01.", UnsoundFile),
    "EXT4": (b"\x80\x02\x84\x01\x00\x00\x00.", UnsoundFile),
    "NEXT_BUFFER": (b"\x80\x05\x97.", UnsoundFile),
    "READONLY_BUFFER": (b"\x80\x05]\x98.", UnsoundFile),
    "nothing": (b"", DamagedFile),
    "no end": (b"\x80\x02]", DamagedFile),
    "an empty stack": (b".", DamagedFile),
    "no mark": (b"K\x01t.", DamagedFile),
    "an unknown instruction": (b"\xff.", DamagedFile),
    "a memo that is not there": (b"h\x05.", DamagedFile),
    "a persistent id that is no storage": (b"\x80\x02K\x01Q.", DamagedFile),
    "entries of a number": (b"K\x01K\x02K\x03s.", DamagedFile),
    "items of a number": (b"K\x01K\x02a.", DamagedFile),
    "a key without a value": (b"}(K\x01u.", DamagedFile),
    "a global without a name": (b"\x80\x04K\x01K\x02\x93.", DamagedFile),
    "a number of 10,000 digits": (b"L" + b"9" * 10_000 + b"L\n.", DamagedFile),
    "a text longer than the file": (b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fa.", DamagedFile),
    "subclasses within subclasses": (
        b"ctorch._tensor\n_rebuild_from_type_v2\nq\x000" + b"(h\x00N" * 9_000 + b"(" + b"t}t" * 9_000 + b"0.",
        DamagedFile,
    ),
}


@pytest.mark.parametrize("name", CODES)
def test_instructions_that_weights_do_not_need_are_refused(name: str) -> None:
    written, kind = CODES[name]
    with pytest.raises(kind):
        followed(written)


def test_a_name_in_a_sentence_is_short_and_printable() -> None:
    with pytest.raises(UnsafeFile) as refused:
        followed(b"\x80\x04\x8c\x01o\x8c\x05a\x1b[2\n" + b"\x93" + b")R.")
    assert refused.value.fields["called"] == "o.a�[2�"
    with pytest.raises(UnsafeFile) as refused:
        followed(b"c" + b"a" * 5_000 + b"\nb\n)R.")
    assert refused.value.fields["called"] == "a" * 80 + "…"


def test_the_instructions_of_all_pickles_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_INSTRUCTIONS", 10)
    machine = Machine("a.pt")
    machine.follow(io.BytesIO(b"]" + b"0]" * 3 + b"."))
    with pytest.raises(OverLimit, match="more than 10 instructions"):
        machine.follow(io.BytesIO(b"]0]."))


def test_copies_of_a_table_are_counted_by_their_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a hundred thousand entries, copied by a hundred thousand calls, would take for ever."""
    monkeypatch.setattr(limits, "MAX_INSTRUCTIONS", 100)
    entries = b"".join(b"K%cK\x00" % i for i in range(20))
    written = b"}(" + entries + b"uq\x000" + b"ccollections\nOrderedDict\nh\x00\x85R0" * 3 + b"h\x00."
    with pytest.raises(OverLimit):
        followed(written)


def test_keys_that_would_take_for_ever_to_hash_are_not_hashed() -> None:
    """60 tuples, each of the one before twice: hashing the last takes 2**60 steps, and Python's own unpickler never returns."""
    written = b"\x80\x02}()q\x00" + b"h\x00h\x00\x86q\x00" * 61 + b"u."
    assert all(isinstance(key, Inert) and key.kind == "tuple" for key in followed(written))


def test_a_memo_with_an_absurd_number_takes_no_room() -> None:
    """Python's own unpickler makes room for 4 billion entries."""
    assert followed(b"\x80\x02]r\xf0\xff\xff\xff.") == []


def test_named_things_are_not_imported() -> None:
    found = followed(b"cantigravity\nfly\n.")
    assert isinstance(found, Named)
    assert found.name == "antigravity.fly"
