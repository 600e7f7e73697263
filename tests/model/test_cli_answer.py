"""How a command prints an answer: the values of its JSON object as lines and tables."""

import json
from typing import Any

import pytest

from model.cli.answer import lines, show, strongest, table


def test_single_values_come_first_and_lists_of_numbers_are_left_out() -> None:
    values: dict[str, Any] = {
        "rows": [{"head": 0}],
        "site": "decoder.0.0.self",
        "q": [1.0, 2.0],
        "tokens": ["a", "b"],
        "of": {"closed": False},
    }
    assert list(lines(values)) == ["site       decoder.0.0.self", "tokens     a b", "of.closed  no", "rows:", "head", "   0"]


def test_what_is_empty_is_left_out_and_zero_is_not() -> None:
    values: dict[str, Any] = {"a": None, "b": "", "c": [], "d": (), "e": {}, "f": 0, "g": 0.0}
    assert list(lines(values)) == ["f  0", "g  0.0000000"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.23456789, "1.2346"), (-0.00001, "-1.0e-05"), (-0.0, "0.0000"), (1234567, "1,234,567"), (None, "–"), (True, "yes")],
)
def test_a_number_has_four_digits_in_a_table(value: Any, text: str) -> None:
    assert list(table([{"x": value}]))[1].strip() == text


def test_columns_are_those_of_all_rows_and_stand_below_their_names() -> None:
    rows: list[dict[str, Any]] = [{"site": "a", "value": -1.0}, {"site": "long", "error": 2, "tokens": [1.0]}]
    rows += [{"site": {"site": "b", "head": 3}}]
    assert list(table(rows)) == [
        "site        value  error",
        "a         -1.0000      –",
        "long            –      2",
        "b head 3        –      –",
    ]


def test_the_strongest_summands_and_all_others_are_the_whole() -> None:
    summands = [(float((-1) ** number * number), f"part {number}") for number in range(20)]
    rows = strongest([*summands, (None, "no summand")])
    assert [row["part"] for row in rows] == [*(f"part {number}" for number in range(19, 7, -1)), "8 others"]
    assert sum(row["value"] for row in rows) == sum(value for value, _part in summands)
    assert strongest(summands[:2]) == [{"value": -1.0, "part": "part 1"}, {"value": 0.0, "part": "part 0"}]


def test_one_object_holds_everything_and_a_text_what_people_read(capsys: pytest.CaptureFixture[str]) -> None:
    show({"a": 1, "matrix": [[1.5]]}, True, {"a": None, "b": "ü"})
    assert json.loads(capsys.readouterr().out) == {"a": 1, "matrix": [[1.5]]}
    show({"a": 1, "matrix": [[1.5]]}, False, {"a": None, "b": "ü"})
    assert capsys.readouterr().out == "b  ü\n"
