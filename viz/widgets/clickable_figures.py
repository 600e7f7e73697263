"""Figures whose points can be clicked."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from model.trace.types import Site, Trace
from viz.figures.annotated_heatmap import grid
from viz.i18n.translate import _
from viz.labels import tokens
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
        on_select=partial(_clicked, key, act),
        selection_mode="points",
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
    sites = by_kind(list(dict.fromkeys(site for site, _head in numbers)))
    width = 1 + max(head for _site, head in numbers)
    values = np.full((len(sites), width), np.nan)
    hover = [[""] * width for _site in sites]
    for (site, head), value in numbers.items():
        row = sites.index(site)
        values[row, head] = value
        hover[row][head] = said(tokens.site(Site.parse(site), head), value)
    names = [tokens.site(Site.parse(site)) for site in sites]
    columns = [_("H{head}", head=head + 1) for head in range(width)]
    figure = grid(names, columns, values, hover, page.dark, quantity)
    clickable(figure, key, lambda place: act(sites[place[0]], place[1]), alt, (page.trace, title))


def by_kind(sites: Sequence[str]) -> list[str]:
    """Sites in the order of the overview: those of a kind together, each in the order in which they run."""
    parsed = [Site.parse(site) for site in sites]
    kinds = list(dict.fromkeys((site.stack, site.kind) for site in parsed))
    return [str(site) for site in sorted(parsed, key=lambda site: kinds.index((site.stack, site.kind)))]


def _clicked(key: str, act: Callable[[Any], None]) -> None:
    for point in st.session_state[key].selection.points:
        act(point["customdata"])
