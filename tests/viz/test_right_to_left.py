"""Right-to-left words are isolated wherever they stand beside other text: strips, axes, tables and files keep their order."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from model.trace.beam_tree import Node
from tests.traces import translation
from viz.canvas import standalone
from viz.export import tables as export
from viz.features.print.catalogue import Choice, caption, standard_figures
from viz.features.print.options import Options
from viz.features.print.shapes import Drawing, Text
from viz.features.print.svg import svg
from viz.labels import alt_text, tokens
from viz.widgets import recorded_run

HEBREW = ["<sos>", "הילד", "קורא", "ספר", "3", "<eos>"]
ARABIC = ["<sos>", "الولد", "يقرأ", "كتاب", "<eos>"]
NODES = (Node(0, -1, 5, "الولد", -0.25, -0.25, "kept"), Node(1, 0, 7, "يقرأ", -0.5, -0.75, "finished", 0))
RUN = replace(translation(HEBREW, ARABIC, layers=2, heads=2), tree=NODES)
CROSS = RUN.of("decoder", "cross")[-1]
ISOLATED = re.compile("\\u2068[^\\u2068\\u2069]*\\u2069")


def test_the_sign_of_a_piece_stands_where_the_piece_before_it_does() -> None:
    assert tokens.word("##حبا") == "##\u2068حبا\u2069"


def directions(text: str) -> set[str]:
    """The directions of a text's letters and digits outside of isolates: R for right to left, L for left to right and digits."""
    kinds = {unicodedata.bidirectional(letter) for letter in ISOLATED.sub("", text)}
    return {"R" for kind in kinds & {"R", "AL"}} | {"L" for kind in kinds & {"L", "EN"}}


def mixed(texts: Iterator[str]) -> list[str]:
    """The texts in which a right-to-left word can reorder what stands beside it. There must be right-to-left words at all."""
    all_ = list(texts)
    assert any(unicodedata.bidirectional(letter) in ("R", "AL") for text in all_ for letter in text)
    return [text for text in all_ if directions(text) == {"L", "R"}]


class Page(HTMLParser):
    """The texts of an HTML page outside of scripts, and what its elements are called; a `bdi` isolates its text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "br", "input"):
            self.open.append(tag)
        self.texts += [value for name, value in attrs if name in ("alt", "aria-label", "title", "content") and value]

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.texts.append(f"\u2068{data}\u2069" if "bdi" in self.open else data)


@cache
def sheets() -> tuple[Drawing, ...]:
    """The standard figures."""
    return tuple(figure.draw(Options()) for figure in standard_figures(RUN, Choice(CROSS, 1, 1, 2)))


def figures() -> Iterator[str]:
    """The texts of all figures as SVG, with their titles and descriptions."""
    for sheet in sheets():
        root = ElementTree.fromstring(svg(sheet).decode())
        for element in root.iter():
            if element.tag.rpartition("}")[2] in ("text", "title", "desc"):
                yield "".join(element.itertext())


def printed() -> Iterator[str]:
    """The texts that a PDF and a PNG are made of."""
    yield from (shape.text for sheet in sheets() for shape in sheet.shapes if isinstance(shape, Text))


def tables() -> Iterator[str]:
    """The cells of a map as CSV."""
    content = export.csv(export.map_table(RUN, CROSS, CROSS.head(0), range(len(HEBREW)))).decode("utf-8-sig")
    yield from (cell for row in csv.reader(io.StringIO(content)) for cell in row)


def page() -> Iterator[str]:
    """The overview as a page of its own."""
    parser = Page()
    parser.feed(standalone.page(RUN, CROSS.site, 0, 1).decode())
    yield from parser.texts


def sentences() -> Iterator[str]:
    """Captions, descriptions for screen readers, and what is said of a recorded run."""
    yield caption(RUN, "Title", "https://example.org/?text=x")
    yield alt_text.head(RUN, CROSS, 0)
    yield alt_text.tree(NODES)
    yield recorded_run.about(RUN)
    yield tokens.line(HEBREW)


@pytest.mark.parametrize("texts", [figures, printed, tables, page, sentences], ids=lambda each: each.__name__)
def test_a_right_to_left_word_reorders_nothing_beside_it(texts: object) -> None:
    assert mixed(texts()) == []  # type: ignore[operator]  # one of the functions above


def test_a_word_without_isolates_would_be_found() -> None:
    assert mixed(iter(["3 ספר", "ספר", "3 \u2068ספר\u2069"])) == ["3 ספר"]
