"""Numbers in tables: localized, with equal decimals in a column, rounded and not cut off."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.test_house import ROOT
from viz.widgets import numeric_tables
from viz.widgets.numeric_tables import decimals_of

NUMBERS = pd.DataFrame(
    {
        "word": ["a", "b", "c"],
        "id": [1, 22, 333],
        "probability": [0.4, 0.45678, 0.99996],
        "difference": np.array([3e-7, -1e-8, 0], np.float32),
    }
)


def drawn(draw: Callable[[], None]) -> Any:
    """The one table that a function draws."""
    app = AppTest.from_function(draw)
    app.run()
    assert not app.exception, app.exception
    return app.dataframe[0]


def test_numbers_of_a_column_had_different_decimals_and_a_point_in_every_language() -> None:
    def page() -> None:
        from tests.viz.test_numeric_tables import NUMBERS
        from viz.widgets import numeric_tables

        numeric_tables.draw(NUMBERS, titles={"word": "Wort", "probability": "p"}, hide_index=True)

    table = drawn(page)
    columns = json.loads(table.proto.columns)
    assert columns["word"]["label"] == "Wort"
    assert columns["probability"]["label"] == "p"
    assert columns["probability"]["type_config"].items() >= {"type": "number", "format": "localized", "step": 0.0001}.items()
    assert columns["difference"]["type_config"]["format"] == "scientific"
    assert "id" not in columns
    assert table.value["probability"].tolist() == [0.4, 0.4568, 1.0]  # Streamlit would cut 0.4567 and 0.9999 off
    assert table.value["difference"].tolist() == NUMBERS["difference"].tolist()
    assert NUMBERS["probability"].tolist() == [0.4, 0.45678, 0.99996], "the table itself is not changed"


def test_an_empty_cell_said_none_in_english() -> None:
    def page() -> None:
        import pandas as pd

        from viz.widgets import numeric_tables

        numeric_tables.draw(pd.DataFrame({"score": [-0.00001, float("nan")]}))

    table = drawn(page)
    assert table.proto.HasField("placeholder")
    assert table.proto.placeholder == ""


def test_a_masked_score_said_infinity_in_english() -> None:
    def page() -> None:
        import pandas as pd

        from viz.widgets import numeric_tables

        numeric_tables.draw(pd.DataFrame({"score": [-0.5, -float("inf")], "exponential": [-1e-9, 1.0]}))

    table = drawn(page)
    assert table.proto.placeholder == "−∞"
    assert table.value["score"].isna().tolist() == [False, True]
    assert not np.signbit(table.value["exponential"][0]), "“-0.0000”"


@pytest.mark.parametrize(
    ("table", "usual", "decimals"),
    [
        ({"a": [0.5], "b": [2e-3], "c": ["x"]}, 4, {"a": 4, "b": 4}),
        ({"a": [0.5], "b": [2e-5], "c": ["x"]}, 3, {"a": 3, "b": 6}),
        ({"a": [0.5], "b": [2e-5]}, 3, {"a": 3, "b": 3}),  # a matrix
        ({"a": [0.5, np.nan], "b": [-200.0, np.inf], "c": [1, 2]}, 2, {"a": 2, "b": 2}),
        ({"a": [0.02], "b": [2e-9], "c": [0.0], "d": ["x"]}, 2, {"a": 4, "b": None, "c": 2}),
        ({"a": [np.nan], "d": ["x"]}, 4, {"a": 4}),
        ({"a": ["x"]}, 4, {}),
    ],
)
def test_a_column_has_enough_decimals_for_its_largest_number(table: Any, usual: int, decimals: dict[str, int | None]) -> None:
    assert decimals_of(pd.DataFrame(table), usual) == decimals


def test_no_table_passes_by() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "viz").rglob("*.py")
        if any(f"st.{name}(" in path.read_text("utf-8") for name in ("dataframe", "table", "data_editor"))
    ]
    assert wrong == ["viz/widgets/numeric_tables.py"], (
        "Tables are drawn by numeric_tables.draw: it writes numbers as the language does."
    )
    assert numeric_tables.draw.__doc__


def test_what_is_true_has_a_sign_instead_of_a_box_to_check() -> None:
    def script() -> None:
        import pandas as pd

        from viz.widgets import numeric_tables

        numeric_tables.draw(pd.DataFrame({"token": ["a", "b"], "special": [True, False]}))

    (table,) = AppTest.from_function(script).run().dataframe
    assert list(table.value["special"]) == ["✓", ""]
