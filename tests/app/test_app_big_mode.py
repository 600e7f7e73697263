"""Big mode: tables show two decimals, which is what the last row of a lecture room can read."""

import json
from typing import Any

import pytest

from tests.app.visiting import Visitor

PAGES: tuple[tuple[str, dict[str, str]], ...] = (
    ("explore", {}),
    ("step", {"decode": "beam"}),
    ("compare", {"against": "decode=beam"}),
    ("whatif", {}),
    ("positions", {}),
    ("training", {}),
    ("checkpoint", {}),
)


def long_numbers(table: Any) -> list[str]:
    """The columns of a table that show more than two decimals."""
    formats = json.loads(table.proto.columns or "{}")
    found = []
    for name, column in table.value.items():
        form = formats.get(str(name), {}).get("type_config", {}).get("format")
        numbers = column.dtype.kind == "f" and (column.dropna() != column.dropna().round(2)).any()
        if numbers and form not in ("%.2f", "percent", "localized"):
            found.append(str(name))
    return found


@pytest.mark.parametrize(("path", "query"), PAGES)
def test_tables_had_more_than_two_decimals_in_big_mode(path: str, query: dict[str, str]) -> None:
    visitor = Visitor(path, model="reverse-digits", big="1", **query)
    visitor.open("part-search")  # drawn where there is a search
    shown = {place: long_numbers(table) for place, table in enumerate(visitor.app.dataframe)}
    assert not any(shown.values()), shown
    assert shown or path in ("explore", "whatif", "positions", "checkpoint"), "there is a table to look at"
