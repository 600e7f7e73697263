"""The handout of a lecture: a PDF with a page a step, its pictures as vectors, typeset by typst.

Everything that the lecture says reaches typst as data (JSON), so nothing in it can become markup there.
"""

import gzip
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markdown_it.token import Token

from model.engine import log
from model.engine.api import Run
from model.errors import HeadlightError
from model.trace.types import Trace
from viz.canvas.wire.transport import unpack
from viz.export.print import fonts
from viz.export.print.catalogue import Choice, Figure, caption, standard_figures
from viz.export.print.options import ONE_COLUMN, TWO_COLUMNS, Options
from viz.export.print.svg import svg
from viz.features.compare.view import second_side
from viz.features.training import runs, texts
from viz.features.training.view import TrainingView
from viz.figures.theme import LIGHT
from viz.i18n.translate import _, error_message, localized, speaking
from viz.lectures.classroom.deck import Answer, Question
from viz.lectures.presenter import formulas, printed, survey_panels
from viz.lectures.presenter import markdown as markup
from viz.lectures.presenter.deck import LectureDeck
from viz.lectures.presenter.headless_page import NotDrawable, headless_page, selected
from viz.lectures.presenter.panels import Panel
from viz.lectures.script.lecture import Step
from viz.session.state import Page
from viz.views import masks

_DOCUMENT = Path(__file__).with_suffix(".typ")
_log = logging.getLogger(log.NAME)


def pdf(deck: LectureDeck) -> bytes:
    """The handout. Waits for the runs of all steps. A step that cannot be typeset loses its pictures, then its words."""
    deck.wait()
    with speaking(deck.language):
        steps = [_step(deck, number) for number in range(len(deck.slides))]
        import typst  # a tenth of a second, and only for who asks for a PDF

        try:
            return _typeset(deck, steps)
        except typst.TypstError:
            _log.exception("The handout of %s could not be typeset with all its pictures.", deck.name)
            return _typeset(deck, [_what_can_be_typeset(deck, step) for step in steps])


def _typeset(deck: LectureDeck, steps: Sequence[Mapping[str, Any]]) -> bytes:
    """The steps as a PDF.

    Raises:
        typst.TypstError: a step holds what typst refuses.
    """
    told = {
        "title": deck.title,
        "language": deck.language.partition("-")[0],
        "fonts": [fonts.OWN, *fonts.PREFERRED],
        "accent": LIGHT.accent,
        "steps": steps,
    }
    import typst

    inputs = {"told": json.dumps(told, ensure_ascii=False)}
    made: bytes = typst.compile(input=_DOCUMENT.read_bytes(), font_paths=fonts.with_formulas(), sys_inputs=inputs, format="pdf")
    return made


def _what_can_be_typeset(deck: LectureDeck, step: dict[str, Any]) -> dict[str, Any]:
    """The step, or else what is left of it without its pictures, or without its words, too."""
    import typst

    without = step | {"rows": [], "problem": _not_printed()}
    for kept in (step, without):
        try:
            _typeset(deck, [kept])
        except typst.TypstError:
            continue
        return kept
    return without | {"words": [], "question": None}


def _not_printed() -> str:
    return _("The picture of this step could not be printed; the server’s log says why.")


def _step(deck: LectureDeck, number: int) -> dict[str, Any]:
    """One page as JSON values."""
    one, slide, problem = deck.lecture.steps[number], deck.slides[number], deck.problem(number)
    try:
        rows = _side_by_side(_figures(deck, number))
    except (HeadlightError, NotDrawable) as error:
        rows, problem = [], error_message(error) if isinstance(error, HeadlightError) else str(error)
    except Exception:
        _log.exception("The picture of step %d of the lecture %s could not be printed.", number + 1, deck.name)
        rows, problem = [], _not_printed()
    asked = None
    if slide.question is not None and one.question is not None:
        prompt, answer = blocks(one.question.prompt), deck.answer(number)
        asked = {"prompt": prompt, "answer": _answer(slide.question, answer) if answer is not None else ""}
    told = {"title": slide.title, "chapter": slide.chapter, "words": blocks(one.words), "question": asked}
    return told | {"rows": rows, "problem": problem}


def _side_by_side(figures: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The figures in rows: two that are not wide share one."""
    rows = list[list[dict[str, Any]]]()
    for figure in figures:
        if rows and len(rows[-1]) == 1 and not (figure["wide"] or rows[-1][0]["wide"]):
            rows[-1].append(figure)
        else:
            rows.append([figure])
    return rows


def _answer(question: Question, answer: Answer) -> str:
    """The answer of the run as a sentence."""
    if answer.number is not None:
        exact = localized(f"{answer.number:,.0f}" if abs(answer.number) >= 1000 else f"{answer.number:.4g}").replace("-", "−")
        if question.unit == "%":
            return _("The run gives {number}%.", number=exact)
        return _("The run gives {number}.", number=f"{exact} {question.unit}".rstrip())
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
    two = any(panel.scene == "second" for panel in shown)
    if two:
        asked = {name: header["choice"][name] for name in ("site", "head") if name in header["choice"]}
        yield from _of_run(deck, selected(page, replace(page.view, **asked)), step, "Both")
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
    at = steps.index(asked) if (asked := page.view.of(TrainingView).snapshot) in steps else 0
    evenly = (round(part * (len(steps) - 1) / (MOST_SNAPSHOTS - 1)) for part in range(MOST_SNAPSHOTS))
    chosen = sorted(dict.fromkeys([at, len(steps) - 1, *evenly]).keys())
    while len(chosen) > MOST_SNAPSHOTS:  # the one that is nearest to that of the link goes
        chosen.remove(min((place for place in chosen[:-1] if place != at), key=lambda place: abs(place - at)))
    for place in chosen:
        for figure in _named(page, frames[place].fed, "head"):
            yield replace(figure, title=f"{texts.snapshot(steps[place])}. {figure.title}"), frames[place].fed


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
        elif token.type == "math_block":
            found.append({"item": False, "parts": [_formula(token.content, [], block=True)]})
        elif token.type in ("fence", "code_block"):
            found.append({"item": False, "parts": [_run(token.content, ["code"])]})
    return found


def _runs(tokens: Sequence[Token]) -> Iterator[dict[str, Any]]:
    marks: list[str] = []
    for token in tokens:
        if token.type.endswith("_open"):
            marks.append(token.type.removesuffix("_open"))
        elif token.type.endswith("_close"):
            marks.remove(token.type.removesuffix("_close"))
        elif token.type.startswith("math_inline"):
            yield _formula(token.content, marks, block=False)
        elif token.type == "code_inline":
            yield _run(token.content, [*marks, "code"])
        elif text := " " if token.type in ("softbreak", "hardbreak") else token.content:
            yield _run(text, marks)


def _formula(latex: str, marks: Sequence[str], block: bool) -> dict[str, Any]:
    """A formula; its source as code where it cannot be converted, as on screen."""
    found = formulas.tree(latex, block)
    if found is None:
        return _run(latex, [*marks, "code"])
    return _run("", marks) | {"formula": found, "block": block}


def _run(text: str, marks: Sequence[str]) -> dict[str, Any]:
    shown = {"text": text, "strong": "strong" in marks, "em": "em" in marks, "code": "code" in marks}
    return shown | {"formula": None, "block": False}
