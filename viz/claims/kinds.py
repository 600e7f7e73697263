"""Kinds of claims: how the subject of each is read from a line, and what its value is in a run.

A reader raises Unreadable if the next part has another form.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from viz.claims.line_parser import Parts, Unreadable
from viz.claims.runs import StepRuns
from viz.claims.subjects import Scope, Subject
from viz.feature import features
from viz.i18n.translate import _


@dataclass(frozen=True)
class ClaimKind:
    """A kind of claim.

    Attributes:
        read: reads the subject from a line whose first word, the kind, was taken; raises Unreadable if it has another form.
        value: its value in the runs of a step: a text or a number; raises HeadlightError if there is none.
        is_text: whether the value is a text.
    """

    read: Callable[[str, Parts], Subject]
    value: Callable[[StepRuns, Subject, Scope], float | str]
    is_text: bool = False


def brought_kinds() -> dict[str, ClaimKind]:
    """The kinds that features bring, by their word."""
    kinds: dict[str, ClaimKind] = {}
    for feature in features():
        kinds |= feature.claims
    return kinds


def alone(kind: str, _parts: Parts) -> Subject:
    """Reads a subject of one word: nothing follows it."""
    return Subject(kind)


def cell(kind: str, parts: Parts) -> Subject:
    """Reads a cell: head, row and column."""
    head, row = parts.head(), parts.row()
    parts.expect("→")
    return Subject(kind, head=head, query=row, key=parts.token(_("column")))


def row(kind: str, parts: Parts) -> Subject:
    """Reads a row of a head."""
    return Subject(kind, head=parts.head(), query=parts.row())


def head(kind: str, parts: Parts) -> Subject:
    """Reads a head."""
    return Subject(kind, head=parts.head())


def one_of(parts: Parts, what: str, known: Sequence[str]) -> str:
    """The next part, one of the known words."""
    name = parts.take(what)
    if name not in known:
        raise Unreadable(_("“{kind}” is not one of: {there}", kind=name, there=", ".join(known)))
    return name
