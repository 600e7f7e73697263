"""ModelSpec to JSON and back, and every wrong value refused in one sentence."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import BadSetting
from model.requests.network import AttentionSpec, ModelSpec, StackSpec, from_json, to_json
from tests.networks import VARIANTS

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def changed(path: str, value: Any) -> dict[str, Any]:
    """The paper's spec in JSON values with one value replaced."""
    data: dict[str, Any] = json.loads(json.dumps(to_json(VARIANTS["paper"])))
    *parents, last = path.split(".")
    inner = data
    for parent in parents:
        inner = inner[parent]
    inner[last] = value
    return data


def paths(data: Mapping[str, Any], above: str = "") -> list[str]:
    found = []
    for name, value in data.items():
        found.append(f"{above}{name}")
        found += paths(value, f"{above}{name}.") if isinstance(value, dict) else []
    return found


@pytest.mark.parametrize("name", VARIANTS)
def test_a_spec_comes_back_from_json_as_it_was(name: str) -> None:
    assert from_json(json.loads(json.dumps(to_json(VARIANTS[name])))) == VARIANTS[name]


def test_what_has_a_default_may_be_left_out() -> None:
    attention = {"heads": 2, "head_dim": 4}
    stack = {"vocab": 11, "d_model": 8, "layers": 2, "attention": attention, "hidden": 12}
    assert from_json({"decoder": stack}) == ModelSpec(StackSpec(11, 8, 2, AttentionSpec(2, 4), 12))


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("encoder.passes", 0, "spec.encoder.passes: “0” is not accepted. Allowed: a whole number from 1 to 1,000"),
        ("encoder.layers", True, "spec.encoder.layers: “True” is not accepted. Allowed: a whole number"),
        ("encoder.layers", 2.0, "spec.encoder.layers: “2.0” is not accepted. Allowed: a whole number"),
        ("encoder.layers", "2", "spec.encoder.layers: “2” is not accepted. Allowed: a whole number"),
        ("encoder.layers", None, "spec.encoder.layers: “None” is not accepted. Allowed: a whole number"),
        (
            "decoder.attention.heads",
            -1,
            "spec.decoder.attention.heads: “-1” is not accepted. Allowed: a whole number from 1 to 1,000",
        ),
        ("decoder.bias", 1, "spec.decoder.bias: “1” is not accepted. Allowed: true, false"),
        ("decoder.norm_order", "middle", "spec.decoder.norm_order: “middle” is not accepted. Allowed: post, pre"),
        ("decoder.norm_order", ["pre"], "spec.decoder.norm_order: “['pre']” is not accepted. Allowed: post, pre"),
        ("decoder.positions", 3, "spec.decoder.positions: “3” is not accepted. Allowed: learned, sinusoidal"),
        ("decoder.dropuot", 0.1, "spec.decoder has no field “dropuot”. Allowed: vocab, d_model"),
        (
            "decoder.attention",
            8,
            "spec.decoder.attention: “8” is not accepted. Allowed: an object with the fields heads, head_dim, bias",
        ),
        ("decoder", 7, "spec.decoder: “7” is not accepted. Allowed: an object with the fields vocab"),
        ("encoder.attention", None, "spec.encoder.attention: “None” is not accepted. Allowed: an object with the fields heads"),
        ("dropout", 1.0, "spec.dropout: “1.0” is not accepted. Allowed: a number from 0.0 to 0.99"),
        ("dropout", -1, "spec.dropout: “-1.0” is not accepted. Allowed: a number from 0.0 to 0.99"),
        ("dropout", float("nan"), "spec.dropout: “nan” is not accepted. Allowed: a number from 0.0 to 0.99"),
        ("suppressed", 3, "spec.suppressed: “3” is not accepted. Allowed: a list; each item: a whole number"),
        ("suppressed", [0, 1.5], "spec.suppressed[1]: “1.5” is not accepted. Allowed: a whole number"),
        ("suppressed", [0, 10], "suppressed[1]: “10” is not accepted. Allowed: a number below 10, the number of ids"),
        ("end_id", 10, "end_id: “10” is not accepted. Allowed: a number below 10, the number of ids"),
        ("output.tied", "yes", "spec.output.tied: “yes” is not accepted. Allowed: true, false"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(path: str, value: Any, sentence: str) -> None:
    with pytest.raises(BadSetting) as caught:
        from_json(changed(path, value))
    assert str(caught.value).startswith(sentence)
    assert str(caught.value).endswith(".")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("gone", ["decoder.vocab", "decoder.attention.head_dim", "encoder.hidden"])
def test_a_missing_field_is_named(gone: str) -> None:
    data = changed("dropout", 0.1)
    *parents, last = gone.split(".")
    inner = data
    for parent in parents:
        inner = inner[parent]
    del inner[last]
    with pytest.raises(BadSetting, match=rf"spec.{gone}: “None” is not accepted. Allowed: "):
        from_json(data)


def test_a_sentence_quotes_only_the_beginning_of_what_is_long() -> None:
    with pytest.raises(BadSetting) as caught:
        from_json(changed("dropout", ["x" * 10_000]))
    assert len(str(caught.value)) < 300


@given(path=st.sampled_from(paths(to_json(VARIANTS["paper"]))), value=PLAIN)
def test_any_value_anywhere_gives_a_spec_or_a_sentence(path: str, value: Any) -> None:
    with suppress(BadSetting):
        spec = from_json(changed(path, value))
        assert from_json(to_json(spec)) == spec


@given(PLAIN)
def test_anything_else_gives_a_sentence(data: Any) -> None:
    with pytest.raises(BadSetting):
        from_json(data)
