"""Figures whose points can be clicked."""

from collections.abc import Callable
from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from model.trace.types import Trace
from viz.figures.layout import CONFIG
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
        config=CONFIG,
        key=key,
        alt=alt,
        on_select=partial(_clicked, key, act),
        selection_mode="points",
    )


def _clicked(key: str, act: Callable[[Any], None]) -> None:
    for point in st.session_state[key].selection.points:
        act(point["customdata"])
