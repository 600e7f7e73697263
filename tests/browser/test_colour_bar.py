"""The color bar of a figure: its title above it and its numbers below it, in figures of any height."""

import numpy as np
import plotly.graph_objects as go
import pytest
from playwright.sync_api import Page

from viz.figures.annotated_heatmap import grid
from viz.figures.layout import projected
from viz.figures.weights import matrix

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

PLACES = """() => [...document.querySelectorAll(".js-plotly-plot")].map((figure) => {
  const place = (part) => figure.querySelector(part).getBoundingClientRect();
  const [title, bar, numbers, cells] = [".gtitle", ".cbfills", ".cbaxis", ".heatmaplayer"].map(place);
  return [figure.getBoundingClientRect().top, title.top, title.bottom, bar.top, bar.bottom, numbers.top, numbers.bottom, cells.top];
})"""


def figures() -> list[go.Figure]:
    """Low ones and high ones, and each as big mode shows it."""
    columns = [f"{column} Straßenmusiker" for column in range(8)]
    grids = [
        grid([str(row) for row in range(rows)], columns, np.eye(rows, 8), [["x"] * 8] * rows, dark=False, quantity="gjÄ of the row")
        for rows in (1, 2, 3, 6, 12, 24)
    ]
    found = [*grids, matrix(np.eye(4), "down", "across", dark=False)]
    return [*found, *map(projected, found)]


def test_the_title_of_a_colour_bar_lay_on_the_bar_in_a_low_figure(page: Page) -> None:
    drawn = [figure.to_html(include_plotlyjs=not place, full_html=False) for place, figure in enumerate(figures())]
    page.set_viewport_size({"width": 390, "height": 844})
    page.set_content("".join(drawn))
    page.wait_for_function(f"document.querySelectorAll('.cbaxis text').length >= {3 * len(drawn)}")
    for place, (figure, *parts) in enumerate(page.evaluate(PLACES)):
        assert parts[0] >= figure - 2, place  # the box of a letter is higher than the letter
        assert parts[-1] - parts[-2] >= 5, "the numbers almost touched the first row"
        assert [round(part - figure) for part in parts] == sorted(round(part - figure) for part in parts), place
