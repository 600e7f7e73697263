"""The handout of a lecture: a PDF with a page a step, its pictures as vectors, typeset by typst.

Everything that the lecture says reaches typst as data (JSON), so nothing in it can become markup there.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markdown_it.token import Token

from model.engine.api import Run
from model.errors import HeadlightError
from model.trace.types import Trace
from viz.canvas.wire import strings
from viz.canvas.wire.transport import unpack
from viz.export.print import fonts
from viz.export.print.catalogue import Choice, Figure, caption, standard_figures
from viz.export.print.options import ONE_COLUMN, TWO_COLUMNS, Options
from viz.export.print.svg import svg
from viz.figures.theme import LIGHT
from viz.i18n.translate import _, localized, speaking
from viz.lectures.classroom.deck import Answer, Question
from viz.lectures.presenter import markdown as markup
from viz.lectures.presenter import printed, survey_panels
from viz.lectures.presenter.deck import LectureDeck
from viz.lectures.presenter.headless_page import NotDrawable, headless_page
from viz.lectures.presenter.panels import Panel
from viz.lectures.script.lecture import Step
from viz.session.state import Page
from viz.url.view_state import second_side
from viz.views import masks
from viz.views.training import runs

_DOCUMENT = b"""
#let told = json(bytes(sys.inputs.told))
#set document(title: told.title, date: none)
#set page(paper: "a4", margin: (x: 18mm, y: 16mm), numbering: "1", footer-descent: 30%)
#set text(size: 10.5pt, lang: told.language, font: told.fonts)
#let run(part) = {
  let shown = if part.code { raw(part.text) } else { text(part.text) }
  if part.strong { shown = strong(shown) }
  if part.em { shown = emph(shown) }
  shown
}
#let line(block) = { if block.item [\\u{2022} ]; for part in block.parts { run(part) } }
#let numbers(figure) = {
  let own = figure.table
  let cells = own.rows.enumerate().map(((row, texts)) => texts.enumerate().map(((at, said)) => {
    let shade = own.shades.at(row, default: ()).at(calc.max(at, 1) - 1, default: 0)
    let shown = if own.chosen == row { strong(said) } else { said }
    table.cell(fill: if at > 0 and shade > 0 { color.mix((rgb(told.accent), 55% * shade), (white, 100% - 55% * shade)) }, shown)
  })).flatten()
  set text(size: 8.5pt)
  if figure.title != "" { strong(figure.title); linebreak() }
  table(columns: calc.max(1, ..own.rows.map(row => row.len()), own.columns.len()), stroke: 0.4pt + luma(190), inset: 1.6mm,
    ..own.columns.map(name => strong(name)), ..cells)
}
#for (number, step) in told.steps.enumerate() {
  if number > 0 { pagebreak() }
  text(size: 9pt, fill: luma(90), step.chapter)
  block(text(size: 15pt, weight: "bold", step.title))
  for block in step.words { par(line(block)) }
  grid(columns: if step.figures.len() > 1 { (1fr, 1fr) } else { 1 }, gutter: 4mm, ..step.figures.map(figure => grid.cell(
    colspan: if figure.wide and step.figures.len() > 1 { 2 } else { 1 }, {
    if figure.svg != "" { image(bytes(figure.svg), format: "svg", width: figure.width * 1mm) }
    if figure.table != none { numbers(figure) }
    for block in figure.words { par(line(block)) }
    text(size: 8.5pt, fill: luma(60), figure.caption)
  })))
  if step.question != none {
    block(stroke: 0.6pt + luma(120), inset: 3mm, radius: 1mm, width: 100%, {
      for block in step.question.prompt { par(line(block)) }
      if step.question.answer != "" { text(size: 9pt, step.question.answer) }
    })
  }
}
"""


def pdf(deck: LectureDeck) -> bytes:
    """The handout. Waits for the runs of all steps."""
    deck.wait()
    with speaking(deck.language):
        steps = [_step(deck, number) for number in range(len(deck.slides))]
    said = {
        "title": deck.title,
        "language": deck.language.partition("-")[0],
        "fonts": [fonts.OWN, *fonts.PREFERRED],
        "accent": LIGHT.accent,
    }
    told = json.dumps(said | {"steps": steps}, ensure_ascii=False)
    import typst  # a tenth of a second, and only for who asks for a PDF

    made: bytes = typst.compile(input=_DOCUMENT, font_paths=fonts.library(), sys_inputs={"told": told}, format="pdf")
    return made


def _step(deck: LectureDeck, number: int) -> dict[str, Any]:
    """One page as JSON values."""
    one, slide = deck.lecture.steps[number], deck.slides[number]
    try:
        figures = list(_figures(deck, number))
    except (HeadlightError, NotDrawable):
        figures = []  # a view that has no picture has none here
    asked = None
    if slide.question is not None and one.question is not None:
        prompt, answer = blocks(one.question.prompt), deck.answer(number)
        asked = {"prompt": prompt, "answer": _answer(slide.question, answer) if answer is not None else ""}
    return {"title": slide.title, "chapter": slide.chapter, "words": blocks(one.words), "figures": figures, "question": asked}


def _answer(question: Question, answer: Answer) -> str:
    """The answer of the run as a sentence."""
    if answer.number is not None:
        exact = f"{answer.number:,.0f}" if abs(answer.number) >= 1000 else f"{answer.number:.4g}"
        return _("The run gives {number}.", number=localized(exact))
    texts = [
        f"{question.options[index]}{localized(f' ({answer.shares[index]:.2f})') if answer.shares else ''}" for index in answer.right
    ]
    return _("The run gives {number}.", number=", ".join(texts))


@dataclass(frozen=True, eq=False)
class _Shown:
    """A drawing of a step on its page.

    Attributes:
        drawn: a figure, the texts of a table, or sentences in Markdown.
        title: above a table.
        caption: below it.
    """

    drawn: Figure | dict[str, Any] | str
    title: str
    caption: str

    @property
    def is_wide(self) -> bool:
        """Whether it asks for the width of the page."""
        if isinstance(self.drawn, Figure):
            return self.drawn.name in _WIDE
        return isinstance(self.drawn, dict) and len(self.drawn["columns"]) > MOST_NARROW

    def told(self, width: float, wide: bool) -> dict[str, Any]:
        """Its JSON values, with so many millimeters of width."""
        told = {"title": self.title, "caption": self.caption, "width": width, "wide": wide, "svg": "", "table": None, "words": []}
        if isinstance(self.drawn, Figure):
            return told | {"svg": svg(self.drawn.draw(Options(width=width, font_size=8))).decode()}
        return told | ({"words": blocks(self.drawn)} if isinstance(self.drawn, str) else {"table": self.drawn})


_WIDE, MOST_NARROW = ("atlas", "tree"), 4
"""Figures that are as wide as the page, if they come first; columns of a table that is not."""


def _figures(deck: LectureDeck, number: int) -> Iterator[dict[str, Any]]:
    """The drawings of a step's picture, as the screen shows them; two that are not wide fit side by side."""
    packed = deck.packed(number)
    found = list(_chosen(deck, deck.lecture.steps[number], gzip.decompress(packed.data))) if packed is not None else []
    wide = [shown for shown in found if shown.is_wide and (shown is found[0] or not isinstance(shown.drawn, Figure))]
    for shown in sorted(found, key=lambda one: one in wide and one is not found[0]):
        width = TWO_COLUMNS if shown in wide else ONE_COLUMN if len(found) > 1 else ONE_COLUMN * 1.4
        yield shown.told(width, shown in wide)


def _chosen(deck: LectureDeck, step: Step, picture: bytes) -> Iterator[_Shown]:
    """What is printed of each panel: numbers as the screen has them, maps as figures of the run."""
    header, scenes = unpack(picture)
    page = headless_page(
        deck.engine,
        step.view,
        masks.opens_on if step.page == "masks" else Trace.last_cross,
        unedited=step.page in ("whatif", "survey"),
    )
    shown, first, large = [Panel(**each) for each in header["panels"]], True, header["choice"].get("large")
    two = step.page in ("compare", "whatif") and not any(panel.follows for panel in shown)
    if two:
        yield from _of_run(deck, page, step, "Both")
    for panel in shown:
        if panel.kind in printed.PRINTED:
            title, scene = (panel.heading or panel.note).rstrip(".:"), scenes[panel.scene].tobytes()
            told = [caption(page.trace, title)] if first and title else []
            said = " ".join([*told, *([panel.note] if panel.note.rstrip(".:") != title else [])])
            yield _Shown(printed.PRINTED[panel.kind](*unpack(scene), title), "" if first else panel.heading, said)
        elif not two:
            yield from _of_run(deck, page, step, "Head" if panel.kind == "Atlas" and large else panel.kind)
        first = False


_NAMES: Mapping[str, str] = {
    "Head": "head",
    "Atlas": "atlas",
    "Lines": "lines",
    "Player": "head",
    "Tree": "tree",
    "Overlay": "image",
}
"""By the kind of a panel, the standard figure that prints it; `Head` is a head that is shown large."""


def _of_run(deck: LectureDeck, page: Page, step: Step, kind: str) -> Iterator[_Shown]:
    """What is printed of a panel that is drawn from the run itself."""
    found: Iterable[tuple[Figure, Trace]] = ()
    if kind == "Film":
        found = _film(page)
    elif kind == "Dots":
        found = [(survey_panels.printed(page), page.trace)]
    elif kind == "Sound":
        heard = printed.spectrogram(page.trace, page.attention.site, page.head)
        found = [(figure, page.trace) for figure in ([heard] if heard else []) + _named(page, page.trace, "head")]
    elif kind == "Both":
        view = second_side(page.view) if step.page == "compare" else page.view
        runs_of = (page.trace, deck.engine.ask(Run(view.request())))
        found = [(figure, trace) for trace in runs_of for figure in _named(page, trace, "head")]
    elif name := _NAMES.get(kind):
        found = [(figure, page.trace) for figure in _named(page, page.trace, name)]
    yield from (_Shown(figure, figure.title, caption(trace, figure.title)) for figure, trace in found)


MOST_SNAPSHOTS = 4
"""Most snapshots of a training film on one page."""


def _film(page: Page) -> Iterator[tuple[Figure, Trace]]:
    """The selected head at some snapshots: that of the link, the last one, and others evenly between."""
    frames, _problems = runs.frames(page)
    steps = [frame.step for frame in frames]
    at = steps.index(page.view.snapshot) if page.view.snapshot in steps else 0
    evenly = (round(part * (len(steps) - 1) / (MOST_SNAPSHOTS - 1)) for part in range(MOST_SNAPSHOTS))
    chosen = sorted(dict.fromkeys([at, len(steps) - 1, *evenly]).keys())
    while len(chosen) > MOST_SNAPSHOTS:  # the one that is nearest to that of the link goes
        chosen.remove(min((place for place in chosen[:-1] if place != at), key=lambda place: abs(place - at)))
    for place in chosen:
        for figure in _named(page, frames[place].fed, "head"):
            yield replace(figure, title=f"{strings.snapshot(steps[place])}. {figure.title}"), frames[place].fed


def _named(page: Page, trace: Trace, name: str) -> list[Figure]:
    """The figure of this name, if the run has it, at the site and head of the page."""
    site = page.attention.site
    attention = trace.at(site) if site in trace.attention else next(iter(trace.attention.values()))
    head = page.head if page.head < attention.heads else 0
    query = page.view.query if page.view.query < attention.weights.shape[1] else -1
    choice = Choice(attention, head, query, -1, page.view.hypothesis, page.view.overlay)
    return [figure for figure in standard_figures(trace, choice) if figure.name == name]


def blocks(markdown: str) -> list[dict[str, Any]]:
    """The paragraphs and items of a text in Markdown, each as runs of text with their emphasis."""
    found, item = list[dict[str, Any]](), False
    for token in markup.tokens(markdown):
        if token.type in ("list_item_open", "list_item_close"):
            item = token.type == "list_item_open"
        elif token.type == "inline":
            found.append({"item": item, "parts": list(_runs(token.children or []))})
        elif token.type in ("fence", "code_block", "math_block"):
            found.append({"item": False, "parts": [_run(token.content, ["code"])]})
    return found


def _runs(tokens: Sequence[Token]) -> Iterator[dict[str, Any]]:
    marks: list[str] = []
    for token in tokens:
        if token.type.endswith("_open"):
            marks.append(token.type.removesuffix("_open"))
        elif token.type.endswith("_close"):
            marks.remove(token.type.removesuffix("_close"))
        elif token.type in ("code_inline", "math_inline"):
            yield _run(token.content, [*marks, "code"])
        elif text := " " if token.type in ("softbreak", "hardbreak") else token.content:
            yield _run(text, marks)


def _run(text: str, marks: Sequence[str]) -> dict[str, Any]:
    return {"text": text, "strong": "strong" in marks, "em": "em" in marks, "code": "code" in marks}
