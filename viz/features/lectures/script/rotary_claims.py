"""Claims about rotary positions: the wavelength of a pair, and the score of a cell at another distance."""

from collections.abc import Callable, Mapping

import numpy as np

from model.errors import BadClaim, HeadlightError
from model.trace.types import Array, Attention
from viz.claims.runs import StepRuns, column, row
from viz.claims.subjects import Scope, Subject
from viz.i18n.translate import _
from viz.metrics.rotary import scores_by_distance


def rotation(runs: StepRuns, attention: Attention) -> Array:
    """The rotation [pair, 3] of a site.

    Raises:
        BadClaim: it has none, or it is not known.
    """
    name = f"rotation/{attention.site}"
    try:
        return runs.tensors((name,))[name]
    except HeadlightError as error:
        raise BadClaim(reason=_("this model has no rotary positions")) from error


def _wavelength(runs: StepRuns, attention: Attention, _head: int, _at: tuple[int, int], subject: Subject) -> float:
    turns = rotation(runs, attention)
    if not 0 <= subject.number < len(turns):
        raise BadClaim(reason=_("there is no pair {pair}: pairs are counted from 0", pair=subject.number))
    return float(2 * np.pi / turns[subject.number, 2])


def _distance(runs: StepRuns, attention: Attention, head: int, at: tuple[int, int], subject: Subject) -> float:
    """The score of a cell if its key stood so many positions before the query."""
    if attention.q is None or attention.k is None or attention.scores is None:
        raise BadClaim(reason=_("the run recorded no scores"))
    query, key = at
    q, k = (vectors[head].astype(np.float64) for vectors in (attention.q, attention.k))
    scale = float(attention.scores[head, query, key] / (q[query] @ k[key]))
    distance = np.array([float(subject.number)])
    return float(scores_by_distance(q[query], k[key], rotation(runs, attention), scale, query - key, distance)[0])


OF_PAIRS: Mapping[str, Callable[[StepRuns, Attention, int, tuple[int, int], Subject], float]] = {
    "wavelength": _wavelength,
    "distance": _distance,
}
"""Subjects whose value is computed here."""


def number(runs: StepRuns, subject: Subject, scope: Scope) -> float:
    """The value of one of these subjects.

    Raises:
        HeadlightError: the run is not possible, or has no such head, row or key, or no rotary positions.
    """
    if scope.change:
        raise BadClaim(reason=_("change needs two runs; this is a number of one: use two claims"))
    trace = runs.run(scope)
    attention, head = runs.attention(trace, subject.head)
    at = (
        0 if subject.query is None else row(trace, attention, subject.query),
        0 if subject.key is None else column(trace, attention, subject.key),
    )
    return OF_PAIRS[subject.kind](runs, attention, head, at, subject)
