"""Every page with every checkpoint that comes with the app, on the sentence that it opens with."""

import pytest

from model.engine.local import CHECKPOINTS
from tests.app.visiting import PAGES, Visitor

BUNDLED = tuple(sorted(folder.name for folder in CHECKPOINTS.iterdir() if (folder / "spec.json").is_file()))
FILMS = {name for name in BUNDLED if (CHECKPOINTS / name / "snapshots").is_dir()}


def test_there_are_checkpoints_and_films() -> None:
    assert {"multi30k-de-en", "reverse-digits"} <= set(BUNDLED)
    assert "reverse-digits" in FILMS


@pytest.mark.parametrize("model", BUNDLED)
def test_every_page_draws_it(model: str) -> None:
    visitor = Visitor(model=model, max="12")
    for page in PAGES:
        visitor.go(page)
        assert visitor.problems == [], page
        assert visitor.drawn, page
    visitor.go("whatif")
    assert visitor.problems == []
    assert visitor.drawn >= 2, "with its example of an edit and without"
    visitor.go("checkpoint")
    assert visitor.problems == []
    assert len(visitor.app.dataframe) > 0
    visitor.go("training")
    assert visitor.problems == []
    assert visitor.drawn, "a model without snapshots shows the film of another one"
    walk = Visitor("step", model=model, max="12", clock="computation")
    assert walk.problems == []
    assert walk.scene("network")
