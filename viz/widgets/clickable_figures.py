"""Figures whose points can be clicked."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from model.trace.types import Trace
from viz.figures import head_map as figures
from viz.figures.head_map import sites_of
from viz.session.state import Page
from viz.widgets.cards import chart


def clickable(
    figure: go.Figure, key: str, act: Callable[[Any], None], alt: str, printed: tuple[Trace, str], *, fills: bool = False
) -> None:
    """Draws a figure; a click on a point calls `act` with the point's `customdata`, before the script runs.

    Args:
        printed: the run and the title, for a figure for print.
        fills: whether it is the one picture of its page in big mode.
    """
    chart(
        figure,
        printed,
        fills=fills,
        key=key,
        alt=alt,
        **choosing_point(key, act),
    )


def head_map(
    page: Page,
    numbers: Mapping[tuple[str, int], float],
    said: Callable[[str, float], str],
    quantity: str,
    key: str,
    act: Callable[[str, int], None],
    alt: str,
    title: str,
) -> None:
    """Draws a number of each head, layers × heads; a click on a head calls `act` with its site and its index.

    Args:
        said: what pointing at a head says, given its name and its number.
        quantity: what the numbers are.
        title: of the figure for print.
    """
    sites = sites_of(numbers)
    figure = figures.head_map(numbers, said, quantity, page.dark)
    clickable(figure, key, lambda place: act(sites[place[0]], place[1]), alt, (page.trace, title))


def choosing_point(key: str, act: Callable[[Any], None]) -> dict[str, Any]:
    """Options of a chart: a click on a point calls `act` with the point's `customdata`, before the script runs.

    Args:
        key: of the chart.
    """
    return {"on_select": partial(_clicked, key, act), "selection_mode": "points"}


def _clicked(key: str, act: Callable[[Any], None]) -> None:
    for point in st.session_state[key].selection.points:
        act(point["customdata"])
