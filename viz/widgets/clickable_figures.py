"""Figures whose points can be clicked."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st


def choosing_point(key: str, act: Callable[[Any], None]) -> dict[str, Any]:
    """Options of a chart: a click on a point calls `act` with the point's `customdata`, before the script runs.

    Args:
        key: of the chart.
    """
    return {"on_select": partial(_clicked, key, act), "selection_mode": "points"}


def _clicked(key: str, act: Callable[[Any], None]) -> None:
    for point in st.session_state[key].selection.points:
        act(point["customdata"])
