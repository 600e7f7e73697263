"""The language of `expect:`, `answer:` and `point:` lines; docs/lectures.md defines it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from model.errors import HeadlightError
from model.measures.catalogue import MEASURES
from model.requests.edits import read_edits
from viz.claims.kinds import alone, brought_kinds, cell, one_of, row
from viz.claims.line_parser import Parts, Unreadable
from viz.claims.subjects import Head, Scope, Subject
from viz.features.lectures.script.lecture import Claim, Point, Question
from viz.i18n.translate import _

RELATIONS = {"=": "=", "≠": "≠", "!=": "≠", "<": "<", ">": ">", "≤": "≤", "<=": "≤", "≥": "≥", ">=": "≥"}
OF_RUNS = (*(name for name in MEASURES if name not in ("norm", "alignment_error")), "similarity")
"""Measures of a head in one run; runs of lectures keep no context vectors, and nobody typed an alignment of their words."""

WORDS = {"contains", "lacks"}
TEXTS = ("output", "source", "key", "lens", "mask")
"""Subjects of the core that are texts; all others are numbers."""


def is_text(subject: Subject) -> bool:
    """Whether the value of a subject is a text."""
    brought = brought_kinds()
    return brought[subject.kind].is_text if subject.kind in brought else subject.kind in TEXTS


def subject(parts: Parts) -> Subject:
    """The subject of a claim or of a question.

    Raises:
        Unreadable: the line does not begin with a subject.
    """
    kind = parts.take(_("claim"))
    readers = {**_SUBJECTS, **{name: brought.read for name, brought in brought_kinds().items()}}
    if kind not in readers:
        raise Unreadable(_("“{kind}” is not one of: {there}", kind=kind, there=", ".join(readers)))
    return readers[kind](kind, parts)


def _column(kind: str, parts: Parts) -> Subject:
    return Subject(kind, head=parts.head(), key=parts.token(_("column")))


def _candidate(kind: str, parts: Parts) -> Subject:
    text = parts.quoted(_("token"))
    parts.expect("at")
    return Subject(kind, name=text, at=parts.token(_("step")))


def _lens(kind: str, parts: Parts) -> Subject:
    layer = parts.whole(_("layer"))
    parts.expect("at")
    return Subject(kind, number=layer, at=parts.token(_("step")))


def _loss(kind: str, parts: Parts) -> Subject:
    return Subject(kind, number=parts.whole(_("position of the first token")) if parts.skip("from") else 0)


def _padding(kind: str, parts: Parts) -> Subject:
    return Subject(kind, name=one_of(parts, _("weight or difference"), ("weight", "difference")))


def _wavelength(kind: str, parts: Parts) -> Subject:
    return Subject(kind, head=parts.head(), number=parts.whole(_("pair")))


def _distance(kind: str, parts: Parts) -> Subject:
    far = parts.whole(_("positions"))
    return replace(cell(kind, parts), number=far)


def _measure(kind: str, parts: Parts) -> Subject:
    return Subject(kind, name=one_of(parts, _("measure"), OF_RUNS), head=parts.head())


_SUBJECTS: Mapping[str, Callable[[str, Parts], Subject]] = {
    "output": alone,
    "source": alone,
    "weight": cell,
    "score": cell,
    "mask": cell,
    "key": row,
    "entropy": row,
    "mean": _column,
    "value": _column,
    "measure": _measure,
    "probability": _candidate,
    "rank": _candidate,
    "log-probability": alone,
    "loss": _loss,
    "lens": _lens,
    "padding": _padding,
    "wavelength": _wavelength,
    "distance": _distance,
}


def scope(parts: Parts) -> Scope:
    """The words before a subject: change, B, without edits, with {…}, snapshot N. They end with a colon."""
    scope = Scope()
    while True:
        if parts.skip("change"):
            scope = replace(scope, change=True)
        elif parts.skip("B"):
            scope = replace(scope, side="B")
        elif parts.skip("without"):
            parts.expect("edits")
            scope = replace(scope, side="plain")
        elif parts.skip("with"):
            scope = replace(scope, edits=_edits(parts.take(_("edits in braces"))))
        elif parts.skip("snapshot"):
            scope = replace(scope, snapshot=parts.whole(_("step of the snapshot")))
        else:
            break
    if scope != Scope():
        parts.expect(":")
    return scope


def _edits(part: str) -> str:
    text = part.removeprefix("{").removesuffix("}")
    try:
        edits = read_edits(text)
    except HeadlightError as error:
        raise Unreadable(str(error)) from error
    if not edits or part[0] != "{":
        raise Unreadable(_("edits must be in braces: {form}", form="with {silence site=decoder.0.2.cross head=4}:"))
    return text


def claim(text: str, line: int) -> Claim:
    """An `expect:` line.

    Raises:
        Unreadable: it is not of that form.
    """
    parts = Parts(text)
    where, what = scope(parts), subject(parts)
    written = parts.take(_("relation"))
    textual = is_text(what)
    allowed = ["=", "≠", *sorted(WORDS)] if textual else [*dict.fromkeys(RELATIONS.values())]
    relation = RELATIONS.get(written, written)
    if relation not in allowed:
        raise Unreadable(_("“{kind}” is not one of: {there}", kind=written, there=", ".join(allowed)))
    if where.change and textual:
        raise Unreadable(_("change needs a number"))
    value = parts.quoted(_("value")) if textual else _number(parts.take(_("value")))
    parts.end()
    return Claim(text, line, what, where, relation, value, textual)


def _number(text: str) -> str:
    plain = text.replace("−", "-")
    try:
        float(plain)
    except ValueError as error:
        raise Unreadable(_("{what}: {found} is not a number", what=_("value"), found=text)) from error
    return plain


_ASKED: Mapping[str, Literal["key", "head", "output"]] = {"key": "key", "weight": "head", "output": "output"}


def question(prompt: str, answer: str, options: tuple[str, ...], line: int) -> Question:
    """A question and its `answer:` line, which says what the run is asked for.

    Raises:
        Unreadable: it is not of that form.
    """
    parts = Parts(answer)
    where = scope(parts)
    if parts.skip("token"):
        parts.expect("at")
        what = Subject("token", at=parts.token(_("step")))
        parts.end()
        return Question(prompt, "token", options, what, where, line)
    numeric, what = parts.skip("number"), subject(parts)
    parts.end()
    if numeric and not is_text(what):
        return Question(prompt, "number", (), what, where, line)
    kind = _ASKED.get(what.kind)
    if numeric or kind is None:
        raise Unreadable(_("a question can ask for a token, key, weight, output or number, but not for “{kind}”", kind=what.kind))
    if kind == "output" and len(options) < 2:
        raise Unreadable(_("a question about an output needs at least two option: lines"))
    return Question(prompt, kind, options if kind == "output" else (), what, where, line)


def point(text: str, line: int) -> Point:
    """A `point:` line; what follows " — " is its note.

    Raises:
        Unreadable: it is not of that form.
    """
    location, _dash, note = text.partition(" — ")
    if location.startswith("stage "):
        return Point("stage", note.strip(), line, stage=location.removeprefix("stage ").strip())
    parts = Parts(location)
    kind = parts.take(_("target of the pointer"))
    match kind:
        case "token":
            strip = parts.take(_("source or target"))
            if strip not in ("source", "target"):
                raise Unreadable(_("“{kind}” is not one of: {there}", kind=strip, there="source, target"))
            point = Point("token", note.strip(), line, strip=strip, key=parts.token(_("token")))
        case "row":
            point = Point("row", note.strip(), line, head=parts.head(), query=parts.row())
        case "cell":
            cell_ = cell("", parts)
            point = Point("cell", note.strip(), line, head=cell_.head, query=cell_.query, key=cell_.key)
        case "head":
            site = parts.head().site
            point = Point("head", note.strip(), line, head=Head(site, parts.whole(_("head number"))))
        case _unknown:
            raise Unreadable(_("“{kind}” is not one of: {there}", kind=kind, there="token, row, cell, head, stage"))
    parts.end()
    return point
