"""Claims about why a head attends where it does, and about what wrote a token: sums of the parts of the stream (docs/why.md)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from model.errors import BadClaim
from model.features.circuit.sums import Part, Why, Writes
from model.trace.types import Array
from viz.claims.kinds import ClaimKind, cell, one_of
from viz.claims.line_parser import Parts
from viz.claims.runs import StepRuns, column, row, step_of
from viz.claims.subjects import Scope, Subject
from viz.i18n.translate import _


def number(runs: StepRuns, subject: Subject, scope: Scope) -> float:
    """What one part adds to the score of a cell, or to the logit of a generated token less that of the runner-up.

    Raises:
        HeadlightError: the run is not possible, its network's maps are not known, or it has no such head, token, step or part.
    """
    if scope.change:
        raise BadClaim(reason=_("change needs two runs; a part of a sum belongs to one: use two claims"))
    trace, request = runs.run(scope), runs.request(scope)
    if subject.kind == "writes":
        logit_sum = runs.engine.ask(Writes(request, step_of(trace, subject.at), "runner-up"))
        return _of_part(subject.name, logit_sum.parts, logit_sum.values)
    attention, head = runs.attention(trace, subject.head)
    query, key = row(trace, attention, subject.query), column(trace, attention, subject.key)
    score = runs.engine.ask(Why(request, str(attention.site), head, query, key))
    parts, axis = (score.parts_key, 0) if subject.number else (score.parts_query, 1)
    return _of_part(subject.name, parts, score.matrix.sum(axis=axis))


def _of_part(name: str, parts: Sequence[Part], values: Array) -> float:
    """The value of a part by its text; biases of one name, such as those of several norms, are added up."""
    places = [index for index, part in enumerate(parts) if str(part) == name]
    if not places:
        parts_there = ", ".join(dict.fromkeys(map(str, parts)))
        raise BadClaim(reason=_("the sum has no part “{part}”; parts: {there}", part=name, there=parts_there))
    return float(np.sum(values[places]))


def _why(kind: str, parts: Parts) -> Subject:
    side = one_of(parts, _("query or key"), ("query", "key"))
    name = parts.quoted(_("part of the sum"))
    return replace(cell(kind, parts), name=name, number=int(side == "key"))


def _writes(kind: str, parts: Parts) -> Subject:
    name = parts.quoted(_("part of the sum"))
    parts.expect("at")
    return Subject(kind, name=name, at=parts.token(_("step")))


CLAIMS = {"why": ClaimKind(_why, number), "writes": ClaimKind(_writes, number)}
"""As `viz.feature.Feature.claims`."""
