"""The handout of a lecture prints what the screen shows: each panel from the scene that the screen draws."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from tests.known import bundled_engine
from viz.canvas.scenes import matrix
from viz.canvas.wire.transport import changed, unpack
from viz.features.lectures.presenter import formulas, handout, markdown
from viz.features.lectures.presenter.deck import LectureDeck
from viz.features.lectures.presenter.pictures import picture
from viz.features.lectures.script import library, parser
from viz.features.print import axes
from viz.features.print.catalogue import Figure
from viz.features.print.options import Options
from viz.features.print.panel_figures import content_of
from viz.features.print.shapes import Circle
from viz.features.print.svg import svg
from viz.figures.costs import Line
from viz.panels import Arrows, Bars, Chart, Content, Panel, Scene

RUN = "model=captions-lm&text=two+dogs+run+in+the&decode=greedy&max=3"
LINKS = (
    f"/positions?{RUN}&site=decoder.0.2.self&query=3&key=2",
    f"/step?{RUN}&open=ways",
    f"/step?{RUN}&open=tiles&step=1&site=decoder.0.2.self",
    f"/masks?{RUN}&open=mask-kinds",
    f"/explore?{RUN}",
    f"/explore?{RUN}&site=decoder.0.1.self&head=2",
    f"/step?{RUN}&clock=computation&stage=decoder.0.2.self%2Fweights&site=decoder.0.2.self&head=1&query=3&key=2",
    "/explore?model=vision.trace.safetensors&site=encoder.0.0.self&head=1&query=0",
    "/explore?model=sound.trace.safetensors&site=decoder.0.1.cross&head=3",
    "/step?model=latents.trace.safetensors&open=latents&site=decoder.0.1.self",
    "/masks?model=sinks.trace.safetensors&open=sinks&site=decoder.0.1.self&head=0",
    "/survey?model=induction&site=decoder.0.1.self&head=1&x=previous&y=induction",
)
PRINTED = (
    ["arrows", "distance", "waves", "rotary-alike"],
    ["table"],
    ["cells", "table"],
    ["mask-mask", "table"],
    ["atlas", "lines"],
    ["head", "lines"],
    ["words", "cells", "table"],
    ["image", "atlas"],
    ["spectrogram", "head", "atlas"],
    ["cells", "cells"],
    ["cells", "cells"],
    ["survey-dots", "table", "table"],
)
"""What is printed of each link."""


@pytest.fixture(scope="module")
def deck() -> LectureDeck:
    steps = "---\n".join(f"# Chapter\n\n## Step\n\nview: {link}\n" for link in LINKS)
    text = f"---\ntitle: T\nlanguage: en\nminutes: 5\nmodels: captions-lm\n---\n{steps}"
    found = LectureDeck(parser.read(text, "t.en"), bundled_engine())
    found.wait()
    return found


def figures_of(deck: LectureDeck, number: int) -> list[dict[str, Any]]:
    return [figure for row in handout._step(deck, number)["rows"] for figure in row]


def drawn(content: Content) -> str:
    found = content_of(Panel("panel", "Title", content), "Title")
    assert isinstance(found, Figure)
    return svg(found.draw(Options(width=100))).decode()


def test_each_panel_of_each_step_is_printed(deck: LectureDeck, monkeypatch: pytest.MonkeyPatch) -> None:
    names = list[str]()
    told = handout._Drawing.described

    def noted(shown: handout._Drawing, width: float, wide: bool) -> dict[str, Any]:
        what = shown.drawn
        names.append(what.name if isinstance(what, Figure) else "words" if isinstance(what, str) else "table")
        return told(shown, width, wide)

    monkeypatch.setattr(handout._Drawing, "described", noted)
    for number, expected in enumerate(PRINTED):
        names.clear()
        figures = figures_of(deck, number)
        assert sorted(names) == sorted(expected), LINKS[number]
        assert "Model: " in figures[0]["caption"]
        assert all(figure["svg"] or figure["table"] or figure["words"] for figure in figures)
    assert handout.pdf(deck).startswith(b"%PDF-")


@pytest.mark.parametrize("broken", ["typst refuses it", "it cannot be drawn"])
def test_a_picture_that_fails_costs_its_picture_and_not_the_file(
    deck: LectureDeck, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """A picture that nobody foresaw: one that typst does not read, and one whose drawing raises."""
    figures = handout._figures

    def failing(lecture: LectureDeck, number: int) -> list[dict[str, Any]]:
        found = list(figures(lecture, number))
        if number == 4 and broken == "it cannot be drawn":
            raise ZeroDivisionError
        return [figure | {"svg": "<no picture"} for figure in found] if number == 4 else found

    typeset, told = handout._typeset, list[Any]()

    def noted(lecture: LectureDeck, steps: list[dict[str, Any]]) -> bytes:
        told[:] = steps
        return typeset(lecture, steps)

    monkeypatch.setattr(handout, "_figures", failing)
    monkeypatch.setattr(handout, "_typeset", noted)
    assert handout.pdf(deck).startswith(b"%PDF-")
    assert [number for number, step in enumerate(told) if step["problem"]] == [4]
    assert told[4]["problem"].startswith("The picture of this step could not be printed")
    assert [bool(step["rows"]) for step in told] == [number != 4 for number in range(len(LINKS))]


def test_a_step_without_a_picture_says_why_in_print_too() -> None:
    text = "---\ntitle: T\nlanguage: en\nminutes: 5\nmodels: captions-lm\n---\n## Step\n\nview: /explore?model=none-such\n"
    found = LectureDeck(parser.read(text, "t.en"), bundled_engine())
    found.wait()
    assert handout._step(found, 0)["problem"] == found.problem(0) != ""


def test_no_formula_is_printed_as_latex(deck: LectureDeck) -> None:
    latex = [r"a' = a \cos p\theta", r"\sqrt[3]{x_i^2}", r"\frac{\exp(-\infty)}{\sum_{k=1}^n e^{s_k}} = \mathbf{0.25}"]
    latex += [r"\text{score} \quad \overline{x}", r"\begin{matrix} a & b \\ c & d \end{matrix}"]
    words = [one for formula in latex for one in handout.blocks(f"Text ${formula}$.\n\n$${formula}$$")]
    parts = [part for block in words for part in block["parts"] if part["formula"]]
    assert len(parts) == 2 * len(latex), "each is typeset, in a line and on its own"
    assert not any("\\" in json.dumps(part["formula"], ensure_ascii=False) for part in parts)
    step = {"title": "T", "chapter": "", "words": words, "rows": [], "problem": "", "question": None}
    plain = step | {"words": [block for block in words if not any(part["formula"] for part in block["parts"])]}
    with_formulas, without = (handout._typeset(deck, [one]) for one in (step, plain))
    assert b"NewCMMath" in with_formulas
    assert b"NewCMMath" not in without
    alone = step | {"words": [block for block in words if block["parts"][0]["block"]][:1]}
    assert b"NewCMMath" in handout._typeset(deck, [alone]), "a formula with a line of its own"


@pytest.mark.parametrize("path", sorted(library.BUNDLED.glob("*.md")), ids=lambda path: path.stem)
def test_every_formula_of_a_bundled_lecture_is_typeset(path: Path) -> None:
    texts = [
        text for step in library.open_file(path).steps for text in (step.words, step.notes, step.question and step.question.prompt)
    ]
    found = [one for text in texts if text for token in markdown.tokens(text) for one in (token, *(token.children or []))]
    refused = [one.content for one in found if one.type.startswith("math") and one.content and formulas.tree(one.content) is None]
    assert not refused


def test_a_printed_table_has_the_texts_of_the_screen(deck: LectureDeck) -> None:
    [ways] = figures_of(deck, 1)
    header = unpack(picture(deck.engine, "step", deck.lecture.steps[1].view).scenes["ways"])[0]
    assert ways["table"] == {name: header[name] for name in ("columns", "rows", "chosen", "shades")}
    bars = Bars(["a", "b"], [0.5, -0.25], 1).table
    assert (bars.rows, bars.chosen) == ([["a", "0.50"], ["b", "−0.25"]], 1)
    assert bars.shades is not None
    assert bars.shades.tolist() == [[1.0], [0.5]]


def test_printed_cells_have_their_numbers_the_first_row_above_and_a_frame() -> None:
    scene = matrix.numbers(np.array([[1.25, np.nan], [-3.5, 0.0]]), ["first", "second"], ["k1", "k2"], ("query", "key"))
    told = drawn(Scene("Cells", changed(scene, {}, frame=[1, 0, 2, 1])))
    places = {text: float(re.search(rf'y="([\d.]+)"[^>]*>{text}<', told)[1]) for text in ("first", "second", "1.25", "−3.50")}  # type: ignore[index]
    assert places["first"] < places["second"]
    assert places["1.25"] < places["−3.50"]
    assert ">0.00<" in told, "a cell that is 0 has a number"
    assert told.count("−") == told.count("−3.5"), "an empty cell has none"
    plain = drawn(Scene("Cells", scene))
    assert told.count("<rect") == plain.count("<rect") + 1


def test_a_printed_mask_names_closed_cells() -> None:
    scene = matrix.mask(np.tri(3, dtype=bool), list("abc"), list("abc"), {"query": "query", "key": "key"})
    told = drawn(Scene("Cells", scene))
    assert (told.count(">−∞<"), told.count(">0<")) == (3, 6)


def test_a_printed_chart_has_lines_a_dot_a_level_and_powers_of_ten() -> None:
    lines = [Line("one", [1e3, 1e6, 1e12]), Line("other", [1e3, 1e4, 1e5], "other")]
    told = drawn(Chart([1e3, 1e5, 1e6], lines, ("tokens", "bytes"), (True, True)))
    assert all(f">{name}<" in told for name in ("one", "other", "tokens", "bytes", "10⁹"))
    marked = drawn(Chart([0, 1, 2], [Line("score", [1, 3, 2])], ("distance", "score"), mark=(1, 3), level=2.0))
    plain = drawn(Chart([0, 1, 2], [Line("score", [1, 3, 2])], ("distance", "score")))
    assert marked.count("<circle") == plain.count("<circle") + 1
    assert marked.count("stroke-dasharray") == plain.count("stroke-dasharray") + 1


def test_printed_arrows_end_where_the_pairs_are() -> None:
    before, after = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 1.0], [-2.0, 0.0]])
    arrows = Arrows(["pair 1", "pair 2"], before, after, lambda _dark: go.Figure())
    found = content_of(Panel("arrows", "", arrows), "")
    assert isinstance(found, Figure)
    sheet = found.draw(Options(width=100))
    tips = [(one.x, one.y) for one in sheet.shapes if isinstance(one, Circle) and one.fill]
    assert np.array(tips) == pytest.approx(np.array([[12.5, 12.5 - 10.5], [37.5 - 10.5, 12.5]]))


def test_a_printed_sound_has_its_words_at_their_times(deck: LectureDeck) -> None:
    figures = figures_of(deck, LINKS.index("/explore?model=sound.trace.safetensors&site=decoder.0.1.cross&head=3"))
    told = figures[0]["svg"]
    places = [float(x) for x in re.findall(r'x="([\d.]+)"[^>]*>(?:do|mi|so|re)<', told)]
    assert len(places) == 5
    assert places == sorted(places)
    assert "A sound of 1.8 s. " in figures[0]["caption"]


def test_axes_that_are_turned_ignore_their_range_as_plotly_does() -> None:
    found = axes.read({"range": [0, 5], "autorange": "reversed"}, (0.0, 5.0), 6)
    assert found.first > found.last
    decades = axes.read({"type": "log"}, (1e3, 1e15), 6).ticks
    assert [text for _value, text in decades] == ["1,000", "10⁶", "10⁹", "10¹²", "10¹⁵"]
