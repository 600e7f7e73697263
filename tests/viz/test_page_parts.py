"""Every part of every page stands in a lecture by its link: what a page draws in cards of its own is there without the page."""

from pathlib import Path

import pytest
import torch

from model.engine.api import Engine
from model.engine.local import LocalEngine
from tests.app.conftest import tiny  # noqa: F401
from viz.features.lectures.presenter.panels import is_empty
from viz.features.lectures.presenter.pictures import page_and_panels, pictured
from viz.features.lectures.script import parser
from viz.views.page_panels import pages_of_steps

ROOT = Path(__file__).parents[2]

LINKS = {"compare": "text=w4+w5&against=text%3Dw4+w6"}
"""What a part needs beside its name: by page, or by part."""

CONTROLS = {"against", "edits"}
"""Cards in which something is chosen; they show nothing of a run."""

PARTS = [(path, name) for path, page in pages_of_steps().items() if page is not None for name in page.parts]


@pytest.fixture(scope="module")
def engine(tiny: Path) -> Engine:  # noqa: F811
    return LocalEngine(tiny.parent, torch.device("cpu"))


@pytest.mark.parametrize(("path", "name"), PARTS)
def test_a_lecture_shows_each_part_of_each_page_by_its_link(engine: Engine, path: str, name: str) -> None:
    link = LINKS.get(name, LINKS.get(path, ""))
    model = "" if "model=" in link else "model=tiny&"
    page, view, problems = parser.parse_link(f"/{path}?{model}{link}&open={name}")
    assert problems == []
    found = pictured(*page_and_panels(engine, page, view))
    assert found.panels
    assert not is_empty(found)
    assert all(panel.heading or panel.note or panel.kind == "Text" for panel in found.panels), "a drawing says what it is"
    assert found.packed()
