"""Panels: what a page shows, as data that a page, a lecture and paper draw; neither of them knows a page or a panel by name."""

import ast

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from tests.test_house import imports, modules, tree_of, within
from viz.panels import Arrows, Bars, Table, Text, TextLine
from viz.views.page_panels import pages_of_steps


def test_lectures_import_no_page_and_no_renderer_of_pages() -> None:
    for module in modules("viz.features.lectures"):
        wrong = sorted(
            name for name in imports(module) if within(name, "viz.views", "viz.widgets") and name != "viz.views.page_panels"
        )
        assert not wrong, f"A step's link says which page, and viz.views.page_panels what it shows: {module} imports {wrong}"


def test_what_shows_lectures_names_no_page_and_no_panel() -> None:
    words = {"step"}  # of a lecture, too
    pages = pages_of_steps().keys() - words
    for module in modules("viz.features.lectures.presenter", "viz.features.lectures.editor"):
        for node in ast.walk(tree_of(module)):
            assert not (isinstance(node, ast.Constant) and node.value in pages), f"{module}:{node.lineno} names a page"
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr in ("scene", "name"):
                literals = [right for right in node.comparators if isinstance(right, ast.Constant)]
                assert not literals, f"{module}:{node.lineno} asks for a panel by its name"


def test_panels_are_made_without_streamlit() -> None:
    makers = [
        module
        for module in modules("viz")
        if module.endswith("panels") and not within(module, "viz.features.lectures", "viz.widgets")
    ]
    assert len(makers) > 8
    for module in makers:
        wrong = sorted(name for name in imports(module) if within(name, "streamlit", "viz.widgets", "viz.features.lectures"))
        assert not wrong, f"A part says what is shown, and does not draw it: {module} imports {wrong}"


@pytest.mark.parametrize(
    ("value", "text"), [(True, "✓"), (False, ""), (-3, "−3"), (-0.0001, "0.000"), (float("nan"), "–"), ("a", "a")]
)
def test_a_cell_is_written_as_pages_write_it(value: object, text: str) -> None:
    table = Table(pd.DataFrame({"column": [value]}, index=pd.Index(["row"], name="names")))
    assert (table.columns, table.rows) == (["names", "column"], [["row", text]])


def test_bars_are_a_table_whose_largest_number_has_the_darkest_cell() -> None:
    table = Bars(["a", "b"], [0.5, -1.0], 1).table
    assert (table.rows, table.chosen) == ([["a", "0.50"], ["b", "−1.00"]], 1)
    assert np.array(table.shades).tolist() == [[0.5], [1.0]]
    assert Bars([], []).table.rows == []


def test_formulas_stand_in_lines_of_their_own_and_tokens_are_no_markup() -> None:
    assert Text([TextLine("a *b*"), TextLine("x^2", formula=True)]).markdown == "a \\*b\\*\n\n$$x^2$$"


def test_arrows_have_the_length_that_they_had_before_they_were_turned() -> None:
    before, after = Arrows(["pair"], np.array([[3.0, 4.0]]), np.array([[-4.0, 3.0]]), lambda _dark: go.Figure()).unit
    assert before.tolist() == [[0.6, 0.8]]
    assert after.tolist() == [[-0.8, 0.6]]
