"""Tables in big mode show two decimals, which is what the last row of a lecture room can read, and in German no decimal point."""

import json
import re
from typing import Any

import pytest

from tests.app.visiting import Visitor
from viz.i18n import translate

PAGES: tuple[tuple[str, dict[str, str]], ...] = (
    ("explore", {"open": "lens"}),
    ("step", {"clock": "computation", "stage": "encoder/ids", "picture": "stage"}),
    ("compare", {"against": "decode=beam"}),
    ("whatif", {}),
    ("positions", {"picture": "curves"}),
    ("training", {"picture": "curves"}),
    ("checkpoint", {}),
)


def long_numbers(table: Any) -> list[str]:
    """The columns of a table that show more than two decimals, though their largest number can be read with two."""
    columns = json.loads(table.proto.columns or "{}")
    found = []
    for name, column in table.value.select_dtypes("floating").items():
        form = columns[str(name)]["type_config"]
        if column.abs().max() >= 0.1 and form["format"] != "percent" and form.get("step") != 0.01:
            found.append(str(name))
    return found


def points(table: Any) -> list[str]:
    """The cells and columns of a table that have a decimal point on a German page."""
    columns = json.loads(table.proto.columns or "{}")
    floats = [str(name) for name in table.value.select_dtypes("floating")]
    theirs = [name for name in floats if columns[name]["type_config"]["format"] not in ("localized", "percent", "scientific")]
    texts = [str(name) for name in (*table.value.columns, *table.value.index.names)]
    texts += [column["label"] for column in columns.values() if column.get("label")]
    cells = table.value.select_dtypes(exclude="number").to_numpy().ravel()
    texts += [cell for cell in cells if isinstance(cell, str)]
    return theirs + [text for text in texts if re.search(r"\d[.]\d(?!\d\d\b)", text)]


def hovers(chart: Any) -> list[str]:
    """The texts that a chart shows when it is pointed at: written by us, and numbers that plotly writes."""
    drawn = json.loads(chart.proto.spec)["data"]
    written = re.findall(r'"([^"]*)"', json.dumps([trace.get("customdata") for trace in drawn]))
    return [*written, *(trace["hovertemplate"] for trace in drawn if "hovertemplate" in trace)]


@pytest.mark.parametrize(("path", "query"), PAGES)
def test_tables_had_more_than_two_decimals_in_big_mode_and_points_in_german(path: str, query: dict[str, str]) -> None:
    with translate.speaking("de"):  # AppTest calls format functions outside of the session
        visitor = Visitor(path, model="reverse-digits", big="1", lang="de", **query)
    assert [points(table) for table in visitor.app.dataframe] == [[] for _table in visitor.app.dataframe]
    shown = {place: long_numbers(table) for place, table in enumerate(visitor.app.dataframe)}
    assert not any(shown.values()), shown
    texts = {text for chart in visitor.app.get("plotly_chart") for text in hovers(chart)}
    assert [text for text in texts if re.search(r"\d[.,]\d{3}|\.[3-9]f|\d\.\d", text)] == [], "in what charts say when pointed at"
    assert shown or texts or path in ("explore", "whatif", "checkpoint"), "there is a table or a chart to look at"
