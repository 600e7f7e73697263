"""The language of `expect:`, `answer:` and `point:` lines; docs/lectures.md defines it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from model.errors import HeadlightError
from model.measures.catalogue import MEASURES
from model.spec.edits import read_edits
from viz.i18n.translate import _
from viz.lectures.script.lecture import Claim, Head, Point, Question, Scope, Subject
from viz.lectures.script.line_parser import Parts, Unreadable
from viz.lectures.script.today import KEPT, MOVED

RELATIONS = {"=": "=", "≠": "≠", "!=": "≠", "<": "<", ">": ">", "≤": "≤", "<=": "≤", "≥": "≥", ">=": "≥"}
OF_RUNS = (*(name for name in MEASURES if name not in ("norm", "alignment_error")), "similarity")
"""Measures of a head in one run; runs of lectures keep no context vectors, and nobody typed an alignment of their words."""

WORDS = {"contains", "lacks"}
TEXTS = ("output", "source", "key", "lens", "mask", "roles")
"""Subjects that are texts; all others are numbers."""


def subject(parts: Parts) -> Subject:
    """The subject of a claim or of a question.

    Raises:
        Unreadable: the line does not begin with a subject.
    """
    kind = parts.take(_("claim"))
    if kind not in _SUBJECTS:
        raise Unreadable(_("“{kind}” is not one of: {there}", kind=kind, there=", ".join(_SUBJECTS)))
    return _SUBJECTS[kind](kind, parts)


def _alone(kind: str, _parts: Parts) -> Subject:
    return Subject(kind)


def _cell(kind: str, parts: Parts) -> Subject:
    head, row = parts.head(), parts.row()
    parts.expect("→")
    return Subject(kind, head=head, query=row, key=parts.token(_("column")))


def _row(kind: str, parts: Parts) -> Subject:
    return Subject(kind, head=parts.head(), query=parts.row())


def _column(kind: str, parts: Parts) -> Subject:
    return Subject(kind, head=parts.head(), key=parts.token(_("column")))


def _head(kind: str, parts: Parts) -> Subject:
    return Subject(kind, head=parts.head())


def _candidate(kind: str, parts: Parts) -> Subject:
    text = parts.quoted(_("token"))
    parts.expect("at")
    return Subject(kind, name=text, at=parts.token(_("step")))


def _measure(kind: str, parts: Parts) -> Subject:
    known = OF_RUNS if kind == "measure" else tuple(MEASURES)
    return Subject(kind, name=_one_of(parts, _("measure"), known), head=parts.head())


def _why(kind: str, parts: Parts) -> Subject:
    side = _one_of(parts, _("query or key"), ("query", "key"))
    name = parts.quoted(_("part of the sum"))
    return replace(_cell(kind, parts), name=name, number=int(side == "key"))


def _writes(kind: str, parts: Parts) -> Subject:
    name = parts.quoted(_("part of the sum"))
    parts.expect("at")
    return Subject(kind, name=name, at=parts.token(_("step")))


def _lens(kind: str, parts: Parts) -> Subject:
    layer = parts.whole(_("layer"))
    parts.expect("at")
    return Subject(kind, number=layer, at=parts.token(_("step")))


def _loss(kind: str, parts: Parts) -> Subject:
    return Subject(kind, number=parts.whole(_("position of the first token")) if parts.skip("from") else 0)


def _padding(kind: str, parts: Parts) -> Subject:
    return Subject(kind, name=_one_of(parts, _("weight or difference"), ("weight", "difference")))


def _one_of(parts: Parts, what: str, known: Sequence[str]) -> str:
    name = parts.take(what)
    if name not in known:
        raise Unreadable(_("“{kind}” is not one of: {there}", kind=name, there=", ".join(known)))
    return name


def _moved(kind: str, parts: Parts) -> Subject:
    return Subject(kind, name=_one_of(parts, _("way"), MOVED), head=parts.head())


def _kept(kind: str, parts: Parts) -> Subject:
    return Subject(kind, number=parts.whole(_("tokens")), name=parts.take("") if parts.next in KEPT else "model")


def _operations(kind: str, parts: Parts) -> Subject:
    return Subject(kind, name=_one_of(parts, _("way"), ("cached", "whole")))


def _wavelength(kind: str, parts: Parts) -> Subject:
    return Subject(kind, head=parts.head(), number=parts.whole(_("pair")))


def _distance(kind: str, parts: Parts) -> Subject:
    far = parts.whole(_("positions"))
    return replace(_cell(kind, parts), number=far)


def _reach(kind: str, parts: Parts) -> Subject:
    return Subject(kind, head=parts.head(), number=parts.whole(_("layers")))


_SUBJECTS: Mapping[str, Callable[[str, Parts], Subject]] = {
    "output": _alone,
    "source": _alone,
    "weight": _cell,
    "score": _cell,
    "mask": _cell,
    "key": _row,
    "entropy": _row,
    "mean": _column,
    "value": _column,
    "measure": _measure,
    "probability": _candidate,
    "rank": _candidate,
    "log-probability": _alone,
    "loss": _loss,
    "lens": _lens,
    "padding": _padding,
    "breaks-at": _alone,
    "survey": _measure,
    "share": _measure,
    "roles": _head,
    "why": _why,
    "writes": _writes,
    "sum": _row,
    "linear": _cell,
    "moved": _moved,
    "tiled": _head,
    "wavelength": _wavelength,
    "distance": _distance,
    "reach": _reach,
    "kept": _kept,
    "equal-at": _alone,
    "operations": _operations,
}


def scope(parts: Parts) -> Scope:
    """The words before a subject: change, B, without edits, with {…}, snapshot N. They end with a colon."""
    said = Scope()
    while True:
        if parts.skip("change"):
            said = replace(said, change=True)
        elif parts.skip("B"):
            said = replace(said, side="B")
        elif parts.skip("without"):
            parts.expect("edits")
            said = replace(said, side="plain")
        elif parts.skip("with"):
            said = replace(said, edits=_edits(parts.take(_("edits in braces"))))
        elif parts.skip("snapshot"):
            said = replace(said, snapshot=parts.whole(_("step of the snapshot")))
        else:
            break
    if said != Scope():
        parts.expect(":")
    return said


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
    textual = what.kind in TEXTS
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
    if numeric and what.kind not in TEXTS:
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
    told, _dash, note = text.partition(" — ")
    if told.startswith("stage "):
        return Point("stage", note.strip(), line, stage=told.removeprefix("stage ").strip())
    parts = Parts(told)
    kind = parts.take(_("target of the pointer"))
    match kind:
        case "token":
            strip = parts.take(_("source or target"))
            if strip not in ("source", "target"):
                raise Unreadable(_("“{kind}” is not one of: {there}", kind=strip, there="source, target"))
            found = Point("token", note.strip(), line, strip=strip, key=parts.token(_("token")))
        case "row":
            found = Point("row", note.strip(), line, head=parts.head(), query=parts.row())
        case "cell":
            cell = _cell("", parts)
            found = Point("cell", note.strip(), line, head=cell.head, query=cell.query, key=cell.key)
        case "head":
            site = parts.head().site
            found = Point("head", note.strip(), line, head=Head(site, parts.whole(_("head number"))))
        case _unknown:
            raise Unreadable(_("“{kind}” is not one of: {there}", kind=kind, there="token, row, cell, head, stage"))
    parts.end()
    return found
