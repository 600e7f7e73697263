"""Bytes of a trace: the same after a round trip, named as documented, and never trusted."""

import json
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from model.errors import WireError
from model.trace.beam_tree import Fate, Node
from model.trace.recorded import Recorded, RecordedSite
from model.trace.serialization import from_bytes, to_bytes
from model.trace.steps import Candidate, Step
from model.trace.types import AXES, Array, Attention, Kind, Site, Tokens, Trace
from tests import opened
from tests.examples import examples
from tests.traces import translation

FATES: tuple[Fate, ...] = ("kept", "finished", "pruned")
NUMBERS = st.floats(allow_nan=False)
TEXTS = st.text(st.characters(codec=None), max_size=6)
NAMES = st.text("abc.", min_size=1, max_size=4)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Any trace: every optional array there or not, hostile texts, several sites, few tokens."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = {"source": draw(st.integers(1, 4)), "target": draw(st.integers(1, 4))}

    def strip(name: str) -> Tokens:
        count, with_ids = lengths[name], draw(st.booleans())
        texts = tuple(draw(st.lists(TEXTS, min_size=count, max_size=count)))
        flags = draw(st.lists(st.booleans(), min_size=count, max_size=count))
        ids = tuple(rng.integers(-9, 2**40, count).tolist()) if with_ids else ()
        return Tokens(name, ids, texts, tuple(flags), tuple(not flag for flag in flags))

    def attention(site: Site) -> Attention:
        query, key = draw(st.sampled_from([("source", "source"), ("target", "target"), ("target", "source")]))
        sizes = {"head": 2, "query": draw(st.integers(1, lengths[query])), "key": draw(st.integers(1, lengths[key]))}
        sizes |= {"head_dim": 3, "head_dim of v": 1, "model": 5}
        kept = {"weights", "mask"} | draw(st.sets(st.sampled_from(sorted(AXES))))
        arrays: dict[str, Array] = {}
        for name in (name for name in AXES if name in kept):
            values = rng.normal(size=[sizes[axis] for axis in AXES[name]]).astype(np.float32)
            arrays[name] = values > 0 if name.startswith("mask") else values
        return Attention(site, query, key, **arrays)

    kinds: tuple[Kind, ...] = ("self", "cross", "memory", "unknown")
    stacks = st.sampled_from(["encoder", "decoder", "program"])
    sites = st.builds(Site, stacks, st.integers(0, 1), st.integers(0, 9), st.sampled_from(kinds))
    candidates = st.builds(Candidate, st.integers(-1, 99), TEXTS, st.floats(allow_nan=False))
    steps = st.builds(Step, st.integers(0, 9), candidates, st.lists(candidates, max_size=2).map(tuple), st.just((0, 1)))
    nodes = st.builds(
        Node,
        st.integers(0, 9),
        st.just(-1),
        st.integers(-1, 99),
        TEXTS,
        NUMBERS,
        NUMBERS,
        st.sampled_from(FATES),
        st.integers(-1, 3),
    )
    found = draw(st.lists(sites, max_size=3, unique=True))
    differences = st.none() | st.floats(0, allow_infinity=False)
    site_parts = st.builds(RecordedSite, TEXTS, st.sampled_from(["computed", "recomputed"]), TEXTS, differences, st.integers(1, 9))
    of_program = Recorded("vit.py", "2.13.0", "0:2", 1, ("source",), {str(site): draw(site_parts) for site in found})
    groups = [{name: rng.normal(size=(2, 3)).astype(np.float32) for name in draw(st.sets(NAMES, max_size=2))} for _ in range(4)]
    return Trace(
        model=draw(st.dictionaries(TEXTS, TEXTS | st.integers() | st.none() | st.lists(TEXTS), max_size=3)),
        request=draw(st.dictionaries(TEXTS, st.booleans() | st.floats(allow_nan=False), max_size=3)),
        tokens={name: strip(name) for name in lengths},
        attention={site: attention(site) for site in found},
        positions=groups[0],
        embedded=groups[1],
        hidden=groups[2],
        stages=groups[3],
        logits=rng.normal(size=(1, 4)).astype(np.float32) if draw(st.booleans()) else None,
        steps=tuple(draw(st.lists(steps, max_size=2))),
        tree=tuple(draw(st.lists(nodes, max_size=2))),
        missing=draw(st.dictionaries(TEXTS, TEXTS, max_size=2)),
        recorded=draw(st.sampled_from([None, of_program])),
    )


def assert_equal(found: Trace, expected: Trace) -> None:
    for name in ("schema", "model", "request", "tokens", "steps", "tree", "missing", "recorded"):
        assert getattr(found, name) == getattr(expected, name), name
    for group in ("positions", "embedded", "hidden", "stages"):
        assert getattr(found, group).keys() == getattr(expected, group).keys()
        for name, array in getattr(expected, group).items():
            np.testing.assert_array_equal(getattr(found, group)[name], array)
    assert list(found.attention) == list(expected.attention)
    for site, attention in expected.attention.items():
        twin = found.attention[site]
        assert (twin.query_tokens, twin.key_tokens) == (attention.query_tokens, attention.key_tokens)
        for name in AXES:
            ours, theirs = getattr(twin, name), getattr(attention, name)
            assert (ours is None) == (theirs is None)
            if ours is not None:
                assert ours.dtype == theirs.dtype
                np.testing.assert_array_equal(ours, theirs)
    assert (found.logits is None) == (expected.logits is None)


@given(traces())
def test_any_trace_comes_back_as_it_was_and_its_bytes_too(trace: Trace) -> None:
    data = to_bytes(trace)
    again = from_bytes(data)
    assert_equal(again, trace)
    assert to_bytes(again) == data
    assert not any(array.flags.writeable for array in again.arrays())


def test_a_text_of_half_characters_and_nul_comes_back() -> None:
    hostile = "\ud800\x00\udfff\u2028</script>"
    strip = Tokens("source", (0,), (hostile,), (False,), (True,))
    trace = Trace({"title": hostile}, {"source": hostile}, {"source": strip}, {}, missing={hostile: hostile})
    assert_equal(from_bytes(to_bytes(trace)), trace)


def test_scores_that_were_never_computed_stay_nan() -> None:
    attention = translation(layers=1).at("decoder.0.0.self")
    scores = np.full_like(attention.weights, np.nan)
    trace = replace(translation(layers=1), attention={attention.site: replace(attention, scores=scores)})
    again = from_bytes(to_bytes(trace)).at("decoder.0.0.self").scores
    assert again is not None
    assert np.isnan(again).all()


def full() -> Trace:
    """A trace of one site with every array that there is."""
    sizes = {"head": 2, "query": 3, "key": 3, "head_dim": 4, "head_dim of v": 4, "model": 5}
    arrays = {name: np.ones([sizes[a] for a in axes], np.float32) for name, axes in AXES.items()}
    arrays |= {name: array.astype(bool) for name, array in arrays.items() if name.startswith("mask")}
    site = Site("decoder", 1, 0, "cross")
    strip = Tokens("source", (2, 5, 3), ("<sos>", "hund", "<eos>"), (True, False, True), (False, False, False))
    return Trace(
        model={"name": "m"},
        request={"source": "Hund"},
        tokens={"source": strip, "target": replace(strip, name="target")},
        attention={site: Attention(site, "target", "source", **arrays)},
        positions={"encoder": np.ones((3, 5)), "decoder": np.ones((3, 5))},
        embedded={"encoder": np.ones((3, 5))},
        hidden={"decoder.1.0": np.ones((3, 5))},
        stages={"decoder/final": np.ones((3, 5))},
        logits=np.ones((3, 7)),
        steps=(Step(0, Candidate(5, "dog", -0.5), (Candidate(5, "dog", -0.5),), (0, 1)),),
        tree=(Node(0, -1, 5, "dog", -0.5, -0.5, "finished", 0),),
        missing={"logits": "why not"},
    )


def parts(data: bytes) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays of a file, and what its entry `headlight` says."""
    (length,) = struct.unpack("<Q", data[:8])
    return load(data), json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["headlight"])


def rebuilt(arrays: dict[str, Array], header: Any) -> bytes:
    return save(arrays, metadata={"headlight": json.dumps(header)})


def recording(**changes: Any) -> Trace:
    """A trace that claims to be a recording: each site has a module."""
    plain = translation(layers=1)
    sites = {str(site): RecordedSite(f"layers.{n}", "recomputed", "aten.x", 0.5) for n, site in enumerate(plain.attention)}
    return replace(plain, recorded=replace(Recorded("program.py", "2.13.0", "0:1", 0, (), sites), **changes))


def test_a_recording_names_the_module_of_each_site_and_no_other_sites() -> None:
    assert from_bytes(to_bytes(recording())).module("decoder.0.0.cross") == "layers.2"
    assert translation().module("decoder.0.0.cross") == ""
    with pytest.raises(WireError, match="not the sites of the trace"):
        from_bytes(to_bytes(recording(sites={})))


@pytest.mark.parametrize("change", [{"difference": -0.5}, {"batch": 0}, {"origin": "guessed"}])
def test_a_recorded_site_that_cannot_be_is_refused(change: dict[str, Any]) -> None:
    arrays, header = parts(to_bytes(recording()))
    header["recorded"]["sites"]["decoder.0.0.cross"] |= change
    with pytest.raises(WireError, match=next(iter(change))):
        from_bytes(rebuilt(arrays, header))


def test_the_names_in_the_file_are_those_of_the_documentation() -> None:
    arrays, header = parts(to_bytes(full()))
    site = "attention/decoder.1.0.cross"
    assert arrays.keys() == {
        *(f"{site}/{name}" for name in ("weights", "scores", "q", "k", "v", "context", "output")),
        *(f"{site}/{name}" for name in ("mask", "mask_padding", "mask_causal")),
        "positions/encoder",
        "positions/decoder",
        "embedded/encoder",
        "hidden/decoder.1.0",
        "stages/decoder/final",
        "logits",
        "ids/source",
        "ids/target",
    }
    for name, array in arrays.items():
        assert array.dtype == (np.uint8 if "/mask" in name else np.int64 if name.startswith("ids/") else np.float32)
    assert header == {
        "schema": 1,
        "model": {"name": "m"},
        "request": {"source": "Hund"},
        "tokens": {
            name: {"texts": ["<sos>", "hund", "<eos>"], "special": [True, False, True], "unknown": [False, False, False]}
            for name in ("source", "target")
        },
        "sites": {"decoder.1.0.cross": ["target", "source"]},
        "steps": [
            {
                "index": 0,
                "chosen": {"id": 5, "text": "dog", "log_probability": -0.5},
                "candidates": [{"id": 5, "text": "dog", "log_probability": -0.5}],
                "computed": [0, 1],
            }
        ],
        "missing": {"logits": "why not"},
        "unwritten": {},
        "tree": [
            {"step": 0, "parent": -1, "id": 5, "text": "dog", "log_probability": -0.5, "total": -0.5, "fate": "finished", "rank": 0}
        ],
    }


def assert_refused_or_sound(data: bytes) -> bool:
    """True if refused; what is accepted is a whole trace, which has bytes of its own that come back."""
    try:
        trace = from_bytes(data)
    except WireError:
        return True
    again = to_bytes(trace)
    assert to_bytes(from_bytes(again)) == again
    return False


def test_a_file_cut_anywhere_is_refused() -> None:
    data = to_bytes(full())
    for length in [*range(0, len(data), 97), len(data) - 1]:
        assert assert_refused_or_sound(data[:length]), length


def test_a_longer_file_is_refused() -> None:
    assert assert_refused_or_sound(to_bytes(full()) + b"\0")


@settings(max_examples=examples(300))
@given(st.data())
def test_a_flipped_bit_gives_a_sentence_or_a_whole_trace(data: st.DataObject) -> None:
    damaged = bytearray(to_bytes(full()))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert_refused_or_sound(bytes(damaged))


@settings(max_examples=examples(200))
@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda raw: struct.pack("<Q", len(raw)) + raw))
def test_any_bytes_are_refused(data: bytes) -> None:
    assert assert_refused_or_sound(data)


@pytest.mark.parametrize("length", [2**63, 2**40, 10**8, 2**64 - 1])
def test_a_huge_header_is_refused_without_being_read(length: int) -> None:
    assert assert_refused_or_sound(struct.pack("<Q", length) + b"{}" * 100)


@pytest.mark.parametrize("schema", [0, 2, -1, "1", 1.5, 1.0, True, None, [1]])
def test_another_schema_is_named(schema: Any) -> None:
    arrays, header = parts(to_bytes(full()))
    with pytest.raises(
        WireError, match=r"This is not a trace that this version of Headlight can read: its schema is .*, this version reads 1"
    ):
        from_bytes(rebuilt(arrays, header | {"schema": schema}))


@pytest.mark.parametrize("header", [[], None, 3, "text", {}, "[" * 100_000], ids=repr)
def test_an_entry_that_is_no_header_is_refused(header: Any) -> None:
    assert assert_refused_or_sound(rebuilt({}, header))
    assert assert_refused_or_sound(save({}, metadata={"headlight": header if isinstance(header, str) else "{"}))
    assert assert_refused_or_sound(save({}, metadata={"other": "{}"}))
    assert assert_refused_or_sound(save({}))


def test_every_entry_of_the_header_is_needed_and_no_other_is_allowed() -> None:
    arrays, header = parts(to_bytes(full()))
    for name in header.keys() - {"unwritten", "tree"}:  # whose defaults say that there is none
        assert assert_refused_or_sound(rebuilt(arrays, {key: value for key, value in header.items() if key != name})), name
    assert assert_refused_or_sound(rebuilt(arrays, header | {"more": 1}))


@pytest.mark.parametrize("site", ["decoder.1.0.crоss", "decoder.01.0.cross", "x", f"decoder.{'9' * 5000}.0.cross"])
def test_a_site_that_is_none_is_refused(site: str) -> None:
    arrays, header = parts(to_bytes(full()))
    assert assert_refused_or_sound(rebuilt(arrays, header | {"sites": {site: ["target", "source"]}}))


OPTIONAL = ("scores", "q", "k", "v", "context", "output", "mask_padding", "mask_causal")
CROSS = "attention/decoder.1.0.cross"


@pytest.mark.parametrize("name", sorted(parts(to_bytes(full()))[0]))
def test_each_array_has_one_type_one_shape_and_one_place(name: str) -> None:
    arrays, header = parts(to_bytes(full()))
    optional = [f"{CROSS}/{n}" for n in OPTIONAL] + [n for n in arrays if n.startswith(("pos", "emb", "hid", "sta", "log"))]
    without = {key: value for key, value in arrays.items() if key != name}
    assert assert_refused_or_sound(rebuilt(without, header)) == (name not in optional)
    array = arrays[name]
    for dtype in {np.float64, np.float32, np.uint8, np.int64} - {array.dtype.type}:
        assert assert_refused_or_sound(rebuilt(without | {name: array.astype(dtype)}, header))
    assert assert_refused_or_sound(rebuilt(without | {name: array[None]}, header))
    if name.startswith((CROSS, "ids", "logits")):
        assert assert_refused_or_sound(rebuilt(without | {f"{name}s": array}, header))
    if name.startswith((CROSS, "ids")):
        assert assert_refused_or_sound(rebuilt(without | {name: np.concatenate([array, array])}, header))


@pytest.mark.parametrize(
    "change",
    [
        {"sites": {"decoder.1.0.cross": ["target", "middle"]}},
        {"sites": {"decoder.1.0.cross": ["target"]}},
        {"sites": {}},
        {"sites": ["decoder.1.0.cross"]},
        {"tokens": {}},
        {"tokens": {"source": {"texts": [1], "special": [True], "unknown": [True]}}},
        {"steps": [{"index": 0}]},
        {"steps": {}},
        {"tree": [{"step": 0}]},
        {"tree": [vars(Node(0, 0, 5, "dog", -0.5, -0.5, "kept"))]},
        {"tree": [vars(Node(0, -1, 5, "dog", -0.5, -0.5, "kept")) | {"fate": "lost"}]},
        {"model": []},
        {"missing": {"logits": 3}},
    ],
    ids=str,
)
def test_parts_that_do_not_fit_together_are_refused(change: dict[str, Any]) -> None:
    arrays, header = parts(to_bytes(full()))
    with pytest.raises(WireError, match="its parts do not fit together"):
        from_bytes(rebuilt(arrays, header | change))


def test_a_strip_shorter_than_its_maps_is_refused() -> None:
    arrays, header = parts(to_bytes(full()))
    short = {"texts": ["a"], "special": [True], "unknown": [False]}
    with pytest.raises(WireError, match="more queries or keys than there are tokens"):
        from_bytes(rebuilt(arrays | {"ids/source": np.array([2])}, header | {"tokens": header["tokens"] | {"source": short}}))


@pytest.mark.parametrize("name", ["greedy", "beam", "long"])
def test_a_file_of_this_schema_is_written_as_it_was_read(name: str) -> None:
    """These files are not made anew: where this fails, SCHEMA goes up."""
    data = opened.stored(name)
    (arrays, header), (again, written) = parts(data), parts(to_bytes(from_bytes(data)))
    assert written == header
    assert again.keys() == arrays.keys()
    assert all(np.array_equal(again[path], array, equal_nan=True) for path, array in arrays.items())
