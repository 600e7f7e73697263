"""Every table of the pages: numbers with the signs of the page's language and, in a column, with the same number of decimals.

Streamlit formats "localized" numbers as `navigator.languages` asks, which `streamlit_strings.js` sets to the language of the page.
It cuts digits off instead of rounding, so numbers are rounded here. Files get the table itself.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from viz.session.state import get_view_state

MOST_DECIMALS = 6
"""Smaller numbers are written with a power of ten."""


def draw(
    table: pd.DataFrame,
    *,
    titles: Mapping[str, str] | None = None,
    decimals: int = 4,
    columns: Mapping[str, ColumnConfig] | None = None,
    widths: Mapping[str, int] | None = None,
    **options: Any,
) -> None:
    """Draws a table with `st.dataframe`. An empty cell stays empty; −∞ is written in a table without empty cells.

    Args:
        table: what is shown; the names of its columns are texts.
        titles: titles of columns by their names; another column's title is its name.
        decimals: of numbers that are not whole; two in big mode; more where a column has only small numbers.
        columns: columns that are drawn in their own way, by their names.
        widths: pixels of columns, where a long one must leave room for others.
        options: those of `st.dataframe`.
    """
    names, floats = titles or {}, table.select_dtypes("floating")
    configured: dict[str, Any] = {name: st.column_config.Column(title) for name, title in names.items()}
    for name, digits in decimals_of(table, usual(decimals)).items():
        configured[name] = _number(names.get(name), digits)
    configured |= columns or {}
    for name, width in (widths or {}).items():
        configured[name] |= {"width": width}
    printed = table.copy(deep=False)
    for name in table.select_dtypes("bool"):  # Streamlit draws these as boxes to check, as in a form
        printed[name] = np.where(table[name], "✓", "")
    for name in floats:
        if step := configured[name]["type_config"].get("step"):
            printed[name] = table[name].astype("float64").round(round(-np.log10(step))) + 0.0  # a zero has no minus
    empty = ""
    if not table.isna().any(axis=None) and (floats == -np.inf).any(axis=None):
        printed, empty = printed.replace(-np.inf, np.nan), "−∞"
    st.dataframe(printed, column_config=configured, placeholder=empty, **options)


def usual(decimals: int) -> int:
    """The decimals of numbers, or two in big mode."""
    return 2 if get_view_state()[0].big else decimals


def _number(title: str | None, digits: int | None) -> ColumnConfig:
    if digits is None:
        return st.column_config.NumberColumn(title, format="scientific")
    return st.column_config.NumberColumn(title, format="localized", step=10.0**-digits)


def decimals_of(table: pd.DataFrame, usual: int) -> dict[str, int | None]:
    """How many decimals each column of floats gets; None: powers of ten.

    They are enough for two digits of the column's largest number. In a matrix, a table of floats alone, all columns are alike.
    """
    floats = table.select_dtypes("floating")
    sizes = floats.abs().replace(np.inf, np.nan).max().fillna(0.0)
    if floats.shape[1] == table.shape[1]:
        sizes[:] = sizes.max()
    return {str(name): _digits(float(size), usual) for name, size in sizes.items()}


def _digits(largest: float, usual: int) -> int | None:
    """`usual` decimals, or more if the largest number needs them."""
    steps = dict.fromkeys((usual, 4, MOST_DECIMALS))
    return next((digits for digits in steps if not largest or largest >= 10.0 ** (1 - digits)), None)
