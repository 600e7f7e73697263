"""Every link into the app that the documentation, the README or a model's card shows opens, without a complaint."""

import re
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from tests.app.visiting import Visitor

ROOT = Path(__file__).parents[2]
TEXTS = [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md"), *(ROOT / "checkpoints").glob("*/CARD.md")]
LINK = re.compile(r"(?:`|127\.0\.0\.1:8501)/([a-z-]+)\?([^`\s)>]+)")
LINKS = sorted({found for text in TEXTS for found in LINK.findall(text.read_text(encoding="utf-8"))})


def test_the_documentation_shows_links() -> None:
    assert len(LINKS) >= 7
    assert {"explore", "step", "compare", "training"} <= {path for path, _query in LINKS}


@pytest.mark.parametrize(("path", "query"), LINKS, ids=[f"{page}?{query}" for page, query in LINKS])
def test_a_link_of_the_documentation_opens(path: str, query: str) -> None:
    visitor = Visitor(path, **dict(parse_qsl(query, keep_blank_values=True)))
    assert visitor.problems == []
    assert visitor.drawn
