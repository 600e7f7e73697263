"""What a run is asked for: frozen, hashable, checked, and the same after JSON."""

import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from types import MappingProxyType
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import BadSetting
from model.requests.edits import Silence
from model.requests.request import KEEP, Decoding, Keep, Method, RunRequest
from tests.edits import ANY_EDIT

DECODINGS = st.builds(
    Decoding,
    method=st.sampled_from(get_args(Method)),
    max_length=st.integers(0, 1000),
    beam_size=st.integers(1, 32),
    hypothesis=st.integers(0, 63),
    temperature=st.floats(0.01, 10),
    top_k=st.integers(0, 1_000_000),
    top_p=st.floats(0, 1, exclude_min=True),
    seed=st.integers(0, 2**63 - 1),
)
INPUTS = st.text(max_size=9) | st.lists(st.integers(), max_size=4).map(tuple)
REQUESTS = st.builds(
    RunRequest,
    model=st.text(max_size=5),
    source=INPUTS,
    target=st.none() | INPUTS,
    decoding=DECODINGS,
    source_valid=st.none() | st.integers(0, 99),
    source_pad_to=st.none() | st.integers(0, 99),
    keep=st.lists(st.sampled_from(KEEP)).map(tuple),
    edits=st.lists(ANY_EDIT, max_size=3).map(tuple),
)


@given(REQUESTS)
def test_a_request_comes_back_from_json_equal_and_with_the_same_hash(request_: RunRequest) -> None:
    plain = json.loads(json.dumps(request_.to_json()))
    again = RunRequest.from_json(plain)
    assert again == request_
    assert hash(again) == hash(request_)
    assert RunRequest.from_json(MappingProxyType(plain)) == request_


def test_what_is_kept_has_one_order_so_that_equal_requests_are_equal() -> None:
    first, second = (RunRequest("m", "x", keep=keep) for keep in (("hidden", "scores", "scores"), ("scores", "hidden")))
    assert first == second
    assert first.keep == ("scores", "hidden")
    assert len({first, second}) == 1
    assert set(KEEP) == set(get_args(Keep))


def test_a_request_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        RunRequest("m", "x").model = "n"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("field", "bad", "allowed"),
    [
        ("method", "gready", "greedy, sample, beam"),
        ("max_length", -1, "from 0 to 1,000"),
        ("max_length", 1001, "from 0 to 1,000"),
        ("temperature", 0.0, "from 0.01 to 10"),
        ("temperature", float("nan"), "from 0.01 to 10"),
        ("temperature", float("inf"), "from 0.01 to 10"),
        ("top_k", -1, "a number of tokens; 0: all"),
        ("top_p", 0.0, "a number above 0, at most 1"),
        ("top_p", 1.01, "a number above 0, at most 1"),
        ("seed", -1, "a whole number from 0, below 2^63"),
        ("seed", 2**63, "a whole number from 0, below 2^63"),
        ("beam_size", 0, "from 1 to 32"),
        ("beam_size", 33, "from 1 to 32"),
        ("hypothesis", -1, "from 0 to 63"),
        ("hypothesis", 64, "from 0 to 63"),
    ],
)
def test_a_decoding_outside_what_is_allowed_is_refused_in_words(field: str, bad: Any, allowed: str) -> None:
    with pytest.raises(BadSetting) as caught:
        Decoding(**{field: bad})
    assert str(caught.value) == f"{field}: “{bad}” is not accepted. Allowed: {allowed}."


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model": None}, "run request.model: “None” is not accepted. Allowed: a string"),
        ({"source": 5}, "run request.source: “5” is not accepted. Allowed: a string; a list; each item: a whole number"),
        (
            {"source": [1, "2"]},
            "run request.source: “[1, '2']” is not accepted. Allowed: a string; a list; each item: a whole number",
        ),
        ({"source": [True]}, "run request.source: “[True]” is not accepted. Allowed: a string; a list; each item: a whole number"),
        ({"target": {}}, "run request.target: “{}” is not accepted. Allowed: a string; a list; each item: a whole number"),
        ({"source_valid": "3"}, "run request.source_valid: “3” is not accepted. Allowed: a whole number"),
        ({"source_pad_to": 3.0}, "run request.source_pad_to: “3.0” is not accepted. Allowed: a whole number"),
        ({"keep": "scores"}, "run request.keep: “scores” is not accepted. Allowed: a list; each item: scores, qkv, "),
        ({"keep": ["score"]}, "run request.keep[0]: “score” is not accepted. Allowed: scores, qkv, "),
        ({"decoding": {"max_length": 1.5}}, "run request.decoding.max_length: “1.5” is not accepted. Allowed: a whole number"),
        ({"decoding": {"max_length": True}}, "run request.decoding.max_length: “True” is not accepted. Allowed: a whole number"),
        ({"decoding": {"max_length": 2000}}, "max_length: “2000” is not accepted. Allowed: from 0 to 1,000"),
        (
            {"decoding": {"methd": "greedy"}},
            "run request.decoding has no field “methd”. Allowed: method, max_length",
        ),
        ({"interventions": []}, "run request has no field “interventions”. Allowed: model, source"),
        ({"edits": [7]}, "run request.edits[0]: “7” is not accepted. Allowed: a string"),
        ({"more": 1}, "run request has no field “more”. Allowed: model, source"),
    ],
    ids=str,
)
def test_a_request_of_other_types_is_refused_in_words(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadSetting) as caught:
        RunRequest.from_json({"model": "m", "source": "x"} | changes)
    assert str(caught.value).startswith(sentence)


def test_a_thing_that_cannot_be_kept_is_refused_in_words() -> None:
    with pytest.raises(BadSetting, match=r"^keep: “gradients, score” is not accepted. Allowed: scores, qkv, "):
        RunRequest("m", "x", keep=("score", "gradients"))  # type: ignore[arg-type]


def test_a_number_type_that_is_not_computed_in_is_refused_in_words() -> None:
    with pytest.raises(BadSetting, match=r"^precision: “int4” is not accepted. Allowed: float32, bfloat16, float16"):
        RunRequest("m", "x", precision="int4")  # type: ignore[arg-type]


SETTINGS: dict[str, Callable[[RunRequest], RunRequest]] = {
    "model": lambda r: replace(r, model="other"),
    "source": lambda r: replace(r, source=(1, 2)),
    "target": lambda r: replace(r, target="y"),
    "decoding": lambda r: replace(r, decoding=Decoding(seed=1)),
    "source_valid": lambda r: replace(r, source_valid=1),
    "source_pad_to": lambda r: replace(r, source_pad_to=9),
    "keep": lambda r: replace(r, keep=("scores",)),
    "edits": lambda r: replace(r, edits=(Silence("encoder.0.0.self", (0,)),)),
    "precision": lambda r: replace(r, precision="bfloat16"),
}


def test_requests_that_differ_in_anything_are_different_keys_of_a_cache() -> None:
    plain = RunRequest("m", "x")
    assert len({plain, *(change(plain) for change in SETTINGS.values())}) == 1 + len(SETTINGS)
    assert set(SETTINGS) <= set(plain.to_json())
