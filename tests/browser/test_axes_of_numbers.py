"""Positions in a real browser: axes of numbers name round ones."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Serve
from tests.browser.patience import expect
from tests.browser.servers import APP
from tests.browser.visits import drawing, rest

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
