"""The overview in a notebook: one frame that holds the whole run, asks for nothing, and whose content cannot break out."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from model.errors import BadTrace, UnknownHead, UnknownSite
from model.trace import serialization
from tests import opened
from viz.canvas import standalone
from viz.features.print import jupyter

RUN = serialization.from_bytes(opened.GREEDY.read_bytes())
SITE = "decoder.0.1.cross"


class Elements(HTMLParser):
    """The elements of a text with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_a_cell_shows_one_frame_with_the_page_inside() -> None:
    shown = jupyter.show(opened.GREEDY, site=SITE, head=1)
    ((tag, attributes),) = Elements(shown._repr_html_()).found
    assert (tag, attributes["title"]) == ("iframe", "Tiny")
    assert attributes["srcdoc"] == standalone.page(RUN, RUN.at(SITE).site, 1, -1, in_notebook=True).decode()
    assert "src" not in attributes
    assert repr(shown) == "<overview of 6 attention sites: Tiny>"


def test_it_shows_a_trace_in_memory_an_archive_and_a_recorded_program(tmp_path: Path) -> None:
    (tmp_path / "vit.trace.safetensors").write_bytes(opened.file(opened.program()))
    assert "blocks.1.attn" not in jupyter.show(RUN).html
    assert jupyter.show(tmp_path / "vit.trace.safetensors").words == "<overview of 2 attention sites: A ViT>"
    with pytest.raises(BadTrace):
        jupyter.show(Path(__file__))
    with pytest.raises(UnknownSite):
        jupyter.show(RUN, site="encoder.0.9.self")
    with pytest.raises(UnknownHead):
        jupyter.show(RUN, head=9)


def test_no_text_of_a_run_ends_the_frame() -> None:
    hostile = '"></iframe><script>alert(1)</script>'
    strip = replace(RUN.tokens["source"], texts=(hostile,) * len(RUN.tokens["source"]))
    trace = replace(RUN, model={**RUN.model, "title": hostile}, tokens={**RUN.tokens, "source": strip})
    assert [tag for tag, _attributes in Elements(jupyter.show(trace).html).found] == ["iframe"]
