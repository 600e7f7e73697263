"""The handout of a lecture: a PDF with a page a step, its pictures as vectors, typeset by typst.

Everything that the lecture says reaches typst as data (JSON), so nothing in it can become markup there.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it.token import Token

from model.engine import log
from model.errors import HeadlightError
from viz.claims.runs import StepRuns
from viz.features.lectures.classroom.deck import Answer, Question
from viz.features.lectures.presenter import formulas, scenes
from viz.features.lectures.presenter import markdown as markup
from viz.features.lectures.presenter.deck import LectureDeck
from viz.features.lectures.presenter.pictures import page_and_panels
from viz.features.lectures.presenter.questions import revealed_view
from viz.features.lectures.script.lecture import Step
from viz.features.print import fonts
from viz.features.print.catalogue import Figure, caption
from viz.features.print.options import ONE_COLUMN, TWO_COLUMNS, Options
from viz.features.print.panel_figures import content_of, figure_of
from viz.features.print.svg import svg
from viz.figures.theme import LIGHT
from viz.i18n.translate import _, error_message, localized, speaking
from viz.panels import NotDrawable, OfRun, Panel, Table
from viz.session.state import Page

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
    lecture_ = {
        "title": deck.title,
        "language": deck.language.partition("-")[0],
        "fonts": [fonts.BUNDLED, *fonts.PREFERRED],
        "accent": LIGHT.accent,
        "steps": steps,
    }
    import typst

    inputs = {"told": json.dumps(lecture_, ensure_ascii=False)}
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
    step, slide, problem = deck.lecture.steps[number], deck.slides[number], deck.problem(number)
    try:
        rows = _side_by_side(_figures(deck, number))
    except (HeadlightError, NotDrawable) as error:
        rows, problem = [], error_message(error) if isinstance(error, HeadlightError) else str(error)
    except Exception:
        _log.exception("The picture of step %d of the lecture %s could not be printed.", number + 1, deck.name)
        rows, problem = [], _not_printed()
    asked = None
    if slide.question is not None and step.question is not None:
        prompt, answer = blocks(step.question.prompt), deck.answer(number)
        asked = {"prompt": prompt, "answer": _answer(slide.question, answer) if answer is not None else ""}
    page_ = {"title": slide.title, "chapter": slide.chapter, "words": blocks(step.words), "question": asked}
    return page_ | {"rows": rows, "problem": problem}


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
class _Drawing:
    """A drawing of a step on its page.

    Attributes:
        drawn: a figure, a table, or sentences in Markdown.
        title: above a table.
        caption: below it.
    """

    drawn: Figure | Table | str
    title: str
    caption: str

    @property
    def is_wide(self) -> bool:
        """Whether it asks for the width of the page."""
        if isinstance(self.drawn, Figure):
            return self.drawn.name in _WIDE
        return isinstance(self.drawn, Table) and len(self.drawn.columns) > MOST_NARROW

    def described(self, width: float, wide: bool) -> dict[str, Any]:
        """Its JSON values, with so many millimeters of width."""
        fields = {"title": self.title, "caption": self.caption, "width": width, "wide": wide, "svg": "", "table": None, "words": []}
        match self.drawn:
            case Figure():
                fields["svg"] = svg(self.drawn.draw(Options(width=width, font_size=8))).decode()
            case str():
                fields["words"] = blocks(self.drawn)
            case _:
                fields["table"] = scenes.table_header(self.drawn)
        return fields


_WIDE, MOST_NARROW = ("atlas", "tree"), 4
"""Figures that are as wide as the page, if they come first; columns of a table that is not."""


def _figures(deck: LectureDeck, number: int) -> Iterator[dict[str, Any]]:
    """The drawings of a step's picture, as the screen shows them; two that are not wide fit side by side."""
    drawn = list(_drawn(deck, deck.lecture.steps[number])) if deck.packed(number) is not None else []
    wide = [part for part in drawn if part.is_wide and (part is drawn[0] or not isinstance(part.drawn, Figure))]
    for part in sorted(drawn, key=lambda drawing: drawing in wide and drawing is not drawn[0]):
        width = TWO_COLUMNS if part in wide else ONE_COLUMN if len(drawn) > 1 else ONE_COLUMN * 1.4
        yield part.described(width, part in wide)


def _drawn(deck: LectureDeck, step: Step) -> Iterator[_Drawing]:
    """What is printed of each panel: figures of runs with captions of their own, and the numbers that the screen has."""
    page, panels = page_and_panels(deck.engine, step.page, revealed_view(StepRuns(deck.engine, step), step))
    for panel in panels:
        title = (panel.title or panel.note).rstrip(".:")
        for part in panel.paper() if panel.paper is not None else [panel]:
            drawn = content_of(part, title) if isinstance(part, Panel) else figure_of(part, title)
            if isinstance(part, OfRun) and isinstance(drawn, Figure):
                yield _Drawing(drawn, drawn.title, caption(part.trace, drawn.title))
            elif drawn is not None:
                yield _Drawing(drawn, *_texts(page, panel, title, first=panel is panels[0]))


def _texts(page: Page, panel: Panel, title: str, first: bool) -> tuple[str, str]:
    """The title above a panel's own figure or table, and its caption; that of the first names the run, too."""
    described = [caption(page.trace, title)] if first and title else []
    notes = [panel.note] if panel.note.rstrip(".:") != title else []
    return "" if first else panel.title, " ".join([*described, *notes])


def blocks(markdown: str) -> list[dict[str, Any]]:
    """The paragraphs and items of a text in Markdown, each as runs of text with their emphasis."""
    paragraphs, item = list[dict[str, Any]](), False
    for token in markup.tokens(markdown):
        if token.type in ("list_item_open", "list_item_close"):
            item = token.type == "list_item_open"
        elif token.type == "inline":
            paragraphs.append({"item": item, "parts": list(_runs(token.children or []))})
        elif token.type == "math_block":
            paragraphs.append({"item": False, "parts": [_formula(token.content, [], block=True)]})
        elif token.type in ("fence", "code_block"):
            paragraphs.append({"item": False, "parts": [_run(token.content, ["code"])]})
    return paragraphs


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
    formula = formulas.tree(latex, block)
    if formula is None:
        return _run(latex, [*marks, "code"])
    return _run("", marks) | {"formula": formula, "block": block}


def _run(text: str, marks: Sequence[str]) -> dict[str, Any]:
    run = {"text": text, "strong": "strong" in marks, "em": "em" in marks, "code": "code" in marks}
    return run | {"formula": None, "block": False}
