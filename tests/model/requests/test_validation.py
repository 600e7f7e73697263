"""The reader of plain values: types are the rules, and bool is no int."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import BadSetting
from model.requests.validation import Between, read


@dataclass(frozen=True)
class Inner:
    size: Annotated[int, Between(1, 5)]
    share: float = 0.5


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner
    either: str | tuple[int, ...] = ""
    maybe: Inner | None = None
    pair: tuple[int, int] = (0, 0)
    several: tuple[Inner, ...] = ()
    by_name: Mapping[str, float] = field(default_factory=dict)
    choice: Literal["a", "b"] = "a"
    whatever: Any = None


WHOLE = {
    "name": "x",
    "inner": {"size": 5, "share": 1},
    "either": [1, 2],
    "maybe": None,
    "pair": [3, 4],
    "several": [{"size": 1}, {"size": 2}],
    "by_name": {"k": 2.5},
    "choice": "b",
    "whatever": {"deep": [None]},
}


def test_every_kind_of_field_is_read() -> None:
    expected = Outer("x", Inner(5, 1.0), (1, 2), None, (3, 4), (Inner(1), Inner(2)), {"k": 2.5}, "b", {"deep": [None]})
    found = read(Outer, WHOLE, "outer")
    assert found == expected
    assert type(found.inner.share) is float
    assert read(Outer, MappingProxyType({"name": "x", "inner": {"size": 1}}), "outer") == Outer("x", Inner(1))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": 3}, "outer.name: “3” is not accepted. Allowed: a string"),
        ({"inner": {"size": 6}}, "outer.inner.size: “6” is not accepted. Allowed: a whole number from 1 to 5"),
        ({"inner": {"size": True}}, "outer.inner.size: “True” is not accepted. Allowed: a whole number"),
        ({"inner": {"size": 1, "share": True}}, "outer.inner.share: “True” is not accepted. Allowed: a number"),
        ({"inner": {"size": 1, "share": 10**400}}, "outer.inner.share: “1000"),
        ({"inner": {}}, "outer.inner.size: “None” is not accepted. Allowed: a whole number"),
        ({"either": 1.5}, "outer.either: “1.5” is not accepted. Allowed: a string; a list; each item: a whole number"),
        ({"either": ["a"]}, "outer.either: “['a']” is not accepted. Allowed: a string; a list; each item: a whole number"),
        ({"maybe": 7}, "outer.maybe: “7” is not accepted. Allowed: an object with the fields size, share"),
        ({"pair": [1]}, "outer.pair: “[1]” is not accepted. Allowed: a list of length 2; each item: a whole number"),
        ({"pair": [1, 2, 3]}, "outer.pair: “[1, 2, 3]” is not accepted. Allowed: a list of length 2; each item: a whole number"),
        ({"pair": []}, "outer.pair: “[]” is not accepted. Allowed: a list of length 2; each item: a whole number"),
        (
            {"several": [{"size": 1}, {"size": 0}]},
            "outer.several[1].size: “0” is not accepted. Allowed: a whole number from 1 to 5",
        ),
        ({"several": {"size": 1}}, "outer.several: “{'size': 1}” is not accepted. Allowed: a list"),
        ({"by_name": {"k": "v"}}, "outer.by_name.k: “v” is not accepted. Allowed: a number"),
        ({"by_name": [1]}, "outer.by_name: “[1]” is not accepted. Allowed: names with their values"),
        ({"by_name": {1: 2.0}}, "outer.by_name: “{1: 2.0}” is not accepted. Allowed: names with their values"),
        ({"choice": "c"}, "outer.choice: “c” is not accepted. Allowed: a, b"),
        ({"extra": 1}, "outer has no field “extra”. Allowed: name, inner"),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadSetting) as caught:
        read(Outer, WHOLE | changes, "outer")
    assert str(caught.value).startswith(sentence)


@given(st.floats() | st.integers())
def test_limits_are_allowed_themselves_and_nothing_outside_them(value: float) -> None:
    assert (value in Between(-2, 3)) == (value >= -2 and value <= 3)
    assert float("nan") not in Between(-2, 3)
