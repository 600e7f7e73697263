"""Trace, Site, Tokens: frozen, addressed by name, and clear about what is not there."""

import tracemalloc
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import UnknownHead, UnknownSite
from model.trace.beam_tree import Node
from model.trace.steps import Candidate, Step
from model.trace.types import AXES, SCHEMA, TENSORS_OF_ATTENTION, Attention, Site, Trace
from tests.traces import translation

MAPPINGS = ("model", "request", "tokens", "attention", "positions", "embedded", "hidden", "stages", "missing")


@given(
    st.sampled_from(["encoder", "decoder"]),
    st.integers(0, 999),
    st.integers(0, 999),
    st.sampled_from(["self", "cross", "memory"]),
)
def test_a_site_comes_back_from_its_text_form(stack: str, pass_: int, layer: int, kind: str) -> None:
    text = f"{stack}.{pass_}.{layer}.{kind}"
    site = Site.parse(text)
    assert (site.stack, site.pass_, site.layer, site.kind) == (stack, pass_, layer, kind)
    assert str(site) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "decoder",
        "decoder.0.0",
        "decoder.0.0.self.1",
        "decoder.0.0.cros",
        "Decoder.0.0.self",
        "middle.0.0.self",
        "decoder.-1.0.self",
        "decoder.0.00.self",
        "decoder.01.0.self",
        "decoder.+1.0.self",
        "decoder.1_0.0.self",
        "decoder. 1.0.self",
        "decoder.٣.0.self",
        "decoder.².0.self",
        "decoder..0.self",
        f"decoder.0.{'9' * 5000}.self",
    ],
)
def test_a_text_that_names_no_site_is_refused_in_words(text: str) -> None:
    with pytest.raises(UnknownSite, match=r"Available: names of the form stack\.pass\.layer\.kind, such as encoder\.0\.0\.self\."):
        Site.parse(text)


@given(st.text(alphabet="encodrslfmy.0123456789", max_size=24))
def test_any_text_is_a_site_in_its_one_form_or_an_unknown_one(text: str) -> None:
    try:
        site = Site.parse(text)
    except UnknownSite:
        return
    assert str(site) == text


def test_at_takes_a_site_or_its_text_and_names_the_sites_there_are() -> None:
    trace = translation(layers=1)
    site = Site("decoder", 0, 0, "cross")
    assert trace.at(site) is trace.at("decoder.0.0.cross") is trace.attention[site]
    with pytest.raises(UnknownSite) as caught:
        trace.at("decoder.0.7.cross")
    assert str(caught.value) == (
        "This run has no attention layer “decoder.0.7.cross”. Available: encoder.0.0.self, decoder.0.0.self, decoder.0.0.cross."
    )


def test_of_gives_a_stacks_sites_of_a_kind_in_order() -> None:
    trace = translation(layers=3)
    assert [str(a.site) for a in trace.of("decoder", "cross")] == [f"decoder.0.{layer}.cross" for layer in range(3)]
    assert [str(a.site) for a in trace.of("encoder", "self")] == [f"encoder.0.{layer}.self" for layer in range(3)]
    assert trace.of("encoder", "cross") == ()


@pytest.mark.parametrize("index", [-1, 4, 100])
def test_a_head_that_is_not_there_is_refused_in_words(index: int) -> None:
    attention = translation(layers=1, heads=4).at("decoder.0.0.self")
    with pytest.raises(UnknownHead) as caught:
        attention.head(index)
    assert str(caught.value) == (f"There is no head {index} at decoder.0.0.self: its heads are numbered from 0 to 3.")


def test_a_head_is_its_map() -> None:
    attention = translation(heads=4).at("decoder.0.0.self")
    for index in range(4):
        assert np.array_equal(attention.head(index), attention.weights[index])


def test_no_array_can_be_written_to() -> None:
    trace = translation()
    arrays = list(trace.arrays())
    assert len(arrays) == sum(sum(getattr(a, n) is not None for n in TENSORS_OF_ATTENTION) for a in trace.attention.values()) + 3
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_no_field_and_no_mapping_can_be_changed() -> None:
    trace = translation()
    for name in MAPPINGS:
        with pytest.raises(TypeError):
            getattr(trace, name)["new"] = 1
    with pytest.raises(FrozenInstanceError):
        trace.logits = None  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        trace.tokens["source"].texts = ()  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        trace.at("decoder.0.0.self").weights = trace.logits  # type: ignore[misc,assignment]


def test_a_mapping_handed_in_can_change_afterwards_without_the_trace() -> None:
    tokens = dict(translation().tokens)
    trace = Trace(model={}, request={}, tokens=tokens, attention={})
    del tokens["source"]
    assert "source" in trace.tokens


def test_bytes_are_those_of_the_arrays_each_counted_once() -> None:
    trace = replace(translation(), steps=(), tree=())
    assert trace.nbytes == sum(array.size * array.itemsize for array in {id(array): array for array in trace.arrays()}.values())
    row = np.broadcast_to(np.ones(1000, bool), (1000, 1000))
    attention = replace(trace.at("encoder.0.0.self"), mask=row, mask_padding=row)
    assert replace(trace, attention={attention.site: attention}).nbytes < trace.nbytes + 2000


def test_steps_and_the_tree_of_a_beam_are_counted_as_memory() -> None:
    """A wide and long beam search holds tens of megabytes in them, which a cache bounded in bytes did not see."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tree = tuple(Node(i, i - 1, 10_000 + i, f"w{i}", i / 7, i / 3, "kept") for i in range(2000))
        likeliest = [tuple(Candidate(10_000 + i, f"v{i}", i / 9) for i in range(9 * n, 9 * n + 9)) for n in range(500)]
        steps = tuple(Step(i, own[0], own[1:], (i, i + 1)) for i, own in enumerate(likeliest))
        del likeliest
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    counted = Trace({}, {}, {}, {}, steps=steps, tree=tree).nbytes
    assert 0.8 * held < counted < 1.5 * held


def test_every_array_of_an_attention_has_named_axes() -> None:
    assert [f.name for f in fields(Attention)][3:] == list(TENSORS_OF_ATTENTION) == list(AXES)
    assert {name for name, f in Trace.__dataclass_fields__.items() if f.name in MAPPINGS} == set(MAPPINGS)
    assert SCHEMA == 1
