"""Positions in a real browser: axes of numbers name round ones, and cells smaller than pixels are mixed evenly."""

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page

from model.trace.types import Array
from tests.browser.conftest import Serve
from tests.browser.patience import expect
from tests.browser.servers import APP
from tests.browser.visits import drawing, rest
from viz.figures.theme import LIGHT

pytestmark = [pytest.mark.browser, pytest.mark.thorough]


@pytest.mark.parametrize("width", [1440, 390])
def test_tables_of_numbers_name_round_ones_the_same_on_both_sides_of_a_square(
    within: Callable[[str], Page], watched: Page, serve: Serve, width: int
) -> None:
    watched.set_viewport_size({"width": width, "height": 900})
    page = within(f"{serve(APP)}/positions?model=multi30k-de-en")
    rest(page, drawn=".hl[data-drawing=cells] canvas")
    expect(drawing(page, "cells")).to_have_count(4)
    tables = [json.loads(table.get_attribute("data-layout") or "")[0] for table in drawing(page, "cells").all()]
    for table in tables:
        for names, most in ((table["named"]["rows"], table["rows"]), (table["named"]["columns"], table["columns"])):
            step = int(names[0])
            assert step in (2, 5, 10, 20, 50, 100, 200)
            assert names == [str(number) for number in range(step, most + 1, step)]
        if table["rows"] == table["columns"]:
            assert table["named"]["rows"] == table["named"]["columns"]


ROW_OF_PIXELS = """(canvas, [x, y, width]) => {
  const { data } = canvas.getContext("2d").getImageData(x, y, width, 1);
  return [...data].filter((_, at) => at % 4 < 3);
}"""


def sinusoids(positions: int, dimensions: int) -> Array:
    """The paper's table, as its formula says: [position, dimension]."""
    position, dimension = np.mgrid[:positions, :dimensions]
    angles = position / 10_000 ** (2 * (dimension // 2) / dimensions)
    table: Array = np.where(dimension % 2, np.cos(angles), np.sin(angles))
    return table


def covered(pixel: int, pixels: int, cells: int) -> slice:
    """The cells that a pixel touches; where they are larger than pixels, the one below its middle."""
    size = cells / pixels
    if size <= 1:
        return slice(math.floor((pixel + 0.5) * size), math.floor((pixel + 0.5) * size) + 1)
    return slice(math.floor(pixel * size), math.ceil((pixel + 1) * size))


def test_a_pixel_of_several_numbers_with_a_sign_has_the_color_of_their_mean(
    within: Callable[[str], Page], watched: Page, serve: Serve
) -> None:
    """The largest of neighbors made sinusoids look positive: brown where they are brown and blue."""
    watched.set_viewport_size({"width": 320, "height": 900})
    page = within(f"{serve(APP)}/positions?model=multi30k-de-en")
    rest(page, drawn=".hl[data-drawing=cells] canvas")
    table = drawing(page, "cells").nth(1)  # the first is the learned table
    expect(table.locator(".mixed")).to_contain_text("a pixel shows the mean of its cells")
    (shape,) = json.loads(table.get_attribute("data-layout") or "")
    offset = table.evaluate("node => node.querySelector('canvas').getBoundingClientRect().y - node.getBoundingClientRect().y")
    width, height, down = round(shape["width"]), round(shape["height"]), 7
    assert width < shape["columns"]
    place = [round(shape["x"]), round(shape["y"] - offset) + down, width]
    painted = np.array(table.locator("canvas").evaluate(ROW_OF_PIXELS, place)).reshape(width, 3)
    codes = np.rint(128 + 127 * sinusoids(shape["rows"], shape["columns"]))[covered(down, height, shape["rows"])]
    stops = np.array([[int(color[digit : digit + 2], 16) for digit in (1, 3, 5)] for color in LIGHT.diverging])
    for pixel in range(width):
        code = codes[:, covered(pixel, width, shape["columns"])].mean()
        at = (0.5 + (code - 128) / 254) * (len(stops) - 1)
        expected = [np.interp(at, range(len(stops)), channel) for channel in stops.T]
        assert np.abs(painted[pixel] - expected).max() < 4, (pixel, code)
