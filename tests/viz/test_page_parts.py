"""Every part of every page stands in a lecture by its link: what a page draws in cards of its own is there without the page."""

import re
from pathlib import Path

import pytest
import torch

from model.engine.api import Engine
from model.engine.local import LocalEngine
from tests.app.conftest import tiny  # noqa: F401
from tests.known import bundled_engine
from viz.feature import features
from viz.features.lectures.presenter.panels import is_empty
from viz.features.lectures.presenter.pictures import page_and_panels, pictured
from viz.features.lectures.script import parser
from viz.panels import NotDrawable
from viz.views.page_panels import pages_of_steps

ROOT = Path(__file__).parents[2]

LINKS = {
    "compare": "text=w4+w5&against=text%3Dw4+w6",
    "training": "model=induction",
    "paths": "text=w4+w5&corrupted=w4+w6",
    "survey": "model=reverse-digits",
    "survey-alike": "model=induction",
    "survey-two": "model=induction&survey=induction",
}
"""What a part needs beside its name: by page, or by part."""

SELF_EXPLAINING = {"Text", "Film"}
"""Kinds of drawings whose own words say what they are."""

CONTROLS = {"against", "edits"}
"""Cards in which something is chosen; they show nothing of a run."""

PARTS = [(path, name) for path, page in pages_of_steps().items() if page is not None for name in page.parts]

WITHOUT_AN_EXAMPLE = {"survey-relations"}
"""Parts that no bundled model has: no text of a bundled survey has a parse."""


@pytest.fixture(scope="module")
def engine(tiny: Path) -> Engine:  # noqa: F811
    return LocalEngine(tiny.parent, torch.device("cpu"))


@pytest.fixture(scope="module")
def bundled() -> Engine:
    return bundled_engine()


@pytest.mark.parametrize(("path", "name"), PARTS)
def test_a_lecture_shows_each_part_of_each_page_by_its_link(engine: Engine, bundled: Engine, path: str, name: str) -> None:
    link = LINKS.get(name, LINKS.get(path, ""))
    of_bundle = "model=" in link
    page, view, problems = parser.parse_link(f"/{path}?{'' if of_bundle else 'model=tiny&'}{link}&open={name}")
    assert problems == []
    if name in WITHOUT_AN_EXAMPLE:
        with pytest.raises(NotDrawable):
            page_and_panels(bundled, page, view)
        return
    found = pictured(*page_and_panels(bundled if of_bundle else engine, page, view))
    assert found.panels
    assert not is_empty(found)
    assert all(panel.heading or panel.note or panel.kind in SELF_EXPLAINING for panel in found.panels), "a drawing says what it is"
    assert found.packed()


def test_each_card_of_a_feature_is_a_part_of_its_page() -> None:
    opened = {name for feature in features() for name in (*feature.opens, *(part.name for part in feature.folded))}
    opened |= {panel.name for feature in features() for panel in feature.cell_panels} | {name for _path, name in PARTS}
    for folder in sorted((ROOT / "viz" / "features").iterdir()):
        sources = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
        cards = set(re.findall(r'(?:card|panel)\("([a-z-]+)"', sources))
        assert cards <= opened | CONTROLS, folder.name
