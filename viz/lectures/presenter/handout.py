"""The handout of a lecture: a PDF with a page a step, its pictures as vectors, typeset by typst.

Everything that the lecture says reaches typst as data (JSON), so nothing in it can become markup there.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from markdown_it.token import Token

from model.engine.api import Run
from model.errors import HeadlightError
from model.spec.request import KEEP
from model.trace import stages
from model.trace.types import Site, Trace
from viz.canvas.wire import strings
from viz.export.print import fonts
from viz.export.print.catalogue import Choice, Figure, caption, standard_figures
from viz.export.print.options import ONE_COLUMN, TWO_COLUMNS, Options
from viz.export.print.svg import svg
from viz.i18n.translate import _, localized, speaking
from viz.lectures.classroom.deck import Answer, Question
from viz.lectures.presenter import markdown as markup
from viz.lectures.presenter import survey_panels
from viz.lectures.presenter.deck import LectureDeck
from viz.lectures.presenter.headless_page import NotDrawable, headless_page
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
#for (number, step) in told.steps.enumerate() {
  if number > 0 { pagebreak() }
  text(size: 9pt, fill: luma(90), step.chapter)
  block(text(size: 15pt, weight: "bold", step.title))
  for block in step.words { par(line(block)) }
  grid(columns: if step.figures.len() > 1 { (1fr, 1fr) } else { 1 }, gutter: 4mm, ..step.figures.map(figure => {
    image(bytes(figure.svg), format: "svg", width: figure.width * 1mm)
    text(size: 8.5pt, fill: luma(60), figure.caption)
  }))
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
    said = {"title": deck.title, "language": deck.language.partition("-")[0], "fonts": [fonts.OWN, *fonts.PREFERRED]}
    told = json.dumps(said | {"steps": steps}, ensure_ascii=False)
    import typst  # a tenth of a second, and only for who asks for a PDF

    made: bytes = typst.compile(input=_DOCUMENT, font_paths=fonts.library(), sys_inputs={"told": told}, format="pdf")
    return made


def _step(deck: LectureDeck, number: int) -> dict[str, Any]:
    """One page as JSON values."""
    one, slide = deck.lecture.steps[number], deck.slides[number]
    try:
        figures = list(_figures(deck, one)) if deck.view(number) else []
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
        return _("The run gives {number}.", number=localized(f"{answer.number:.4g}"))
    texts = [
        f"{question.options[index]}{localized(f' ({answer.shares[index]:.2f})') if answer.shares else ''}" for index in answer.right
    ]
    return _("The run gives {number}.", number=", ".join(texts))


def _figures(deck: LectureDeck, step: Step) -> Iterator[dict[str, Any]]:
    """The pictures of a step's view; two fit side by side in width."""
    found = list(_chosen(deck, step))
    width = ONE_COLUMN if len(found) > 1 else TWO_COLUMNS if found and found[0][0].name in _WIDE else ONE_COLUMN * 1.4
    for figure, trace in found:
        sheet = figure.draw(Options(width=width, font_size=8))
        yield {"svg": svg(sheet).decode(), "width": width, "caption": caption(trace, figure.title)}


_WIDE = ("atlas", "tree")


def _chosen(deck: LectureDeck, step: Step) -> Iterator[tuple[Figure, Trace]]:
    if not step.page:
        return
    if step.page == "training":
        yield from _film(headless_page(deck.engine, step.view))
        return
    page = headless_page(
        deck.engine,
        step.view,
        masks.opens_on if step.page == "masks" else Trace.last_cross,
        unedited=step.page in ("whatif", "survey"),
    )
    first = page.trace
    if step.page == "survey":
        yield survey_panels.printed(page), first
        return
    if _stage_of(step) == "scores":
        first = deck.engine.ask(Run(page.view.request(keep=KEEP)))
    elif step.page == "masks" and step.view.pad_to > len(first.tokens["source"]):
        first = deck.engine.ask(Run(page.view.request(pad_to=step.view.pad_to)))
    yield from ((figure, first) for figure in _named(page, first, _names(step, first)))
    if step.page in ("compare", "whatif"):
        view = second_side(page.view) if step.page == "compare" else page.view
        second = deck.engine.ask(Run(view.request()))
        yield from ((figure, second) for figure in _named(page, second, ("head",)))


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
        for figure in _named(page, frames[place].fed, ("head",)):
            yield replace(figure, title=f"{strings.snapshot(steps[place])}. {figure.title}"), frames[place].fed


def _named(page: Page, trace: Trace, names: Sequence[str]) -> list[Figure]:
    """The figures of these names that the run has, at the site and head of the page."""
    site = page.attention.site
    if stage := page.view.stage:
        own = stages.find(trace, stage).site
        site = own or site
    attention = trace.at(site) if Site.parse(str(site)) in trace.attention else next(iter(trace.attention.values()))
    head = page.head if page.head < attention.heads else 0
    query = page.view.query if page.view.query < attention.weights.shape[1] else -1
    choice = Choice(attention, head, query, -1, page.view.hypothesis)
    return [figure for figure in standard_figures(trace, choice) if figure.name in names]


def _stage_of(step: Step) -> str:
    """Name of the stage that a step shows; empty: it shows none."""
    return step.view.stage.rpartition("/")[2] if step.page == "step" and step.view.clock == "computation" else ""


def _names(step: Step, trace: Trace) -> tuple[str, ...]:
    """Names of the standard figures that show a view."""
    match step.page:
        case "masks":
            return ("mask-causal", "mask-padding") if len(trace.of("decoder", "self")) else ("mask",)
        case "positions":
            return ("positions-encoder", "positions-encoder-curves") if "encoder" in trace.positions else ("positions-decoder",)
        case "step" if trace.tree:
            return ("tree",)
        case "step" if _stage_of(step) == "scores":
            return ("scores",)
    return ("head",)


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
