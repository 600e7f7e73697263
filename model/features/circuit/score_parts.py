"""The score of a cell, taken apart into an exact sum over the parts of the residual streams that it compares (docs/why.md)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeVar

import numpy as np

from model.checkpoints.loader import AnyNetwork
from model.errors import EditedCell, NotTakenApart, TooManyTokens
from model.features.circuit.anatomy import Affine, Anatomy, Heads, anatomy_of
from model.features.circuit.library_anatomy import library_anatomy
from model.features.circuit.stream import ResidualStream
from model.features.circuit.sums import Closed, Part, ScoreSum, Why
from model.features.what_if.edits.stack_edits import reordered
from model.requests.edits import Allow, Forbid, Sharpen, SwapLayers
from model.requests.request import KEEP, RunRequest
from model.trace.cell_arithmetic import ROUNDOFF, TOLERANCE, check_cell
from model.trace.types import Array, Attention, Trace
from model.transformer.networks import BuiltNetwork, RunsWhole

KEYS_AT_ONCE = 256
"""Keys of a row whose parts are held at once where their mean is asked for: at 330 parts of 64 numbers, 43 MB."""


Made = TypeVar("Made")


def kept(run: Callable[[RunRequest], Made], request: RunRequest) -> Made:
    """A run that keeps everything; without scores where a long input leaves no room for them (its products are computed then).

    Raises:
        HeadlightError: as `run` says.
    """
    try:
        return run(replace(request, keep=KEEP))
    except TooManyTokens:
        return run(replace(request, keep=tuple(name for name in KEEP if name != "scores")))


def score_sum(network: AnyNetwork, trace: Trace, asked: Why) -> ScoreSum:
    """The score of a cell as a sum.

    Args:
        network: the network of the run, before its edits.
        trace: the run, which keeps everything.

    Raises:
        UnknownSite, UnknownHead, BadSetting: the run has no such cell.
        NotTakenApart: the network's maps are not known.
        EditedCell: an edit changed the scores of this head.
        NotRecorded: the run did not keep what is needed.
    """
    attention = check_cell(trace, asked.site, asked.head, asked.query, asked.key)
    if isinstance(asked.minus, int):
        check_cell(trace, asked.site, asked.head, asked.query, asked.minus)
    site = attention.site
    refuse_changed_scores(trace, str(site), asked.head)
    # First the sublayer that the cell is in, in the order in which the layers ran.
    stream = ResidualStream(trace, ran(network, trace).stacks)
    sublayer = stream.stacks[site.stack].sublayers[stream.stacks[site.stack].index(str(site))]
    assert sublayer.heads is not None
    heads = sublayer.heads()
    with np.errstate(all="ignore"):  # a run that holds NaN or infinite numbers is shown with them
        parts_query, query = _vectors(stream, attention, heads, asked.head, "query", np.array([asked.query]))
        parts_key, key = _vectors(stream, attention, heads, asked.head, "key", np.array([asked.key]))
        others = _others(stream, attention, heads, asked)
        # A score is the product of two sums, so it is the sum of all products of a part of the query and a part of
        # the key. A difference of two scores has the same query: only the keys are subtracted. The sum runs over
        # head_dim.
        matrix = heads.scale * (query[:, 0] @ (key[:, 0] - others).T)  # [part of the query, part of the key]
        # T5 adds a learned number for the distance to each score. It is neither of the query nor of the key, so it is
        # kept apart.
        added = np.zeros(attention.weights.shape[2])  # [key]
        if heads.added is not None:
            added = heads.added(asked.head, asked.query, len(added))
        distance = _apart(added, attention, asked)
        recorded, scored = _recorded(attention, asked, heads.scale, added)
        # The score itself, also where a difference is asked for: its size tells how much rounding there is.
        whole, _scored = _recorded(attention, replace(asked, minus=None), heads.scale, added)
        rounded = np.append(matrix, (whole, whole - recorded))  # a difference of scores keeps the rounding of both
        score = float(matrix.sum()) + distance
    return ScoreSum(
        str(site),
        asked.head,
        asked.query,
        asked.key,
        asked.minus,
        parts_query,
        parts_key,
        matrix,
        distance,
        score,
        recorded,
        scored,
        _closed(trace, attention, asked),
        difference(score, recorded),
        tolerance(trace, rounded, recorded),
    )


def ran(network: AnyNetwork, trace: Trace) -> Anatomy:
    """The anatomy of the network that ran, its layers in the order of the run.

    Raises:
        NotTakenApart: another program ran it, and its maps are not known here.
    """
    if isinstance(network, BuiltNetwork):
        # An edit that swaps layers changes which sublayer wrote before which.
        swaps = [edit for edit in RunRequest.edits_in(trace.request) if isinstance(edit, SwapLayers)]
        return anatomy_of(reordered(network, swaps))
    anatomy = None if isinstance(network, RunsWhole) else library_anatomy(network)
    if anatomy is None:
        raise NotTakenApart
    return anatomy


def refuse_changed_scores(trace: Trace, site: str, head: int) -> None:
    """Refuses a head whose scores are no products of its queries and keys.

    Raises:
        EditedCell: an edit multiplied them.
    """
    for edit in RunRequest.edits_in(trace.request):
        # The stream ends in queries and keys. A score that was multiplied afterwards is no longer their product.
        if isinstance(edit, Sharpen) and edit.covers(site, head):
            raise EditedCell(site=site, head=head, edit=str(edit))


def _vectors(
    stream: ResidualStream, attention: Attention, heads: Heads, head: int, side: Literal["query", "key"], rows: Array
) -> tuple[tuple[Part, ...], Array]:
    """The parts of a head's queries or keys at neighboring positions, and each one's vectors: [part, row, head_dim]."""
    projection: Affine = getattr(heads, side)(head)
    # The stream is followed back; the list is turned round, so that parts stand in the order of the run.
    terms = [(term.part, term.value) for term in stream.read(attention.site, side, projection.weight, rows)][::-1]
    if projection.bias is not None:
        bias = np.broadcast_to(projection.bias, terms[0][1].shape)
        terms.append((Part("projection-bias", str(attention.site), head), bias))
    parts, whole = tuple(part for part, _vectors in terms), np.stack([vectors for _part, vectors in terms])
    # The array holds the same numbers once more, and a long input has many of them.
    del terms
    # Normalized by the spread of the sum of all parts, and rotated by each row's own position.
    return parts, heads.compared(side, whole, whole.sum(axis=0), int(rows[0]))


def _others(stream: ResidualStream, attention: Attention, heads: Heads, asked: Why) -> Array:
    """What is taken away from the parts of the key: those of another key, or their mean: [part, head_dim] or zero."""
    if asked.minus is None:
        return np.zeros(1)
    if isinstance(asked.minus, int):
        return _vectors(stream, attention, heads, asked.head, "key", np.array([asked.minus]))[1][:, 0]
    compared = _compared(attention, asked.query)
    total = np.zeros(1)
    for rows in np.split(compared, range(KEYS_AT_ONCE, len(compared), KEYS_AT_ONCE)):
        # Positions are rotated as neighbors. Keys in between that the mask forbids are computed along and left out
        # of the sum.
        whole = np.arange(rows[0], rows[-1] + 1)
        vectors = _vectors(stream, attention, heads, asked.head, "key", whole)[1]  # [part, row, head_dim]
        total = total + vectors[:, rows - rows[0]].sum(axis=1)
    return total / len(compared)


def _compared(attention: Attention, query: int) -> Array:
    """The keys that the softmax of a row compares: those that are allowed or, where none is, all."""
    # Where no key is allowed, all are equally forbidden, and the softmax compares all of them.
    allowed = np.flatnonzero(attention.mask[query])
    return allowed if len(allowed) else np.arange(attention.mask.shape[1])


def _recorded(attention: Attention, asked: Why, scale: float, added: Array) -> tuple[float, bool]:
    """The recorded score, or difference of scores, and whether the run computed the score.

    A run that keeps no scores, or that never computed this one, has the query and key that it is the product of.

    Args:
        added: [key], what is added to the products by the distance.
    """
    assert attention.q is not None
    assert attention.k is not None
    recorded = None if attention.scores is None else attention.scores[asked.head, asked.query].astype(np.float64)
    products = attention.k[asked.head].astype(np.float64) @ attention.q[asked.head, asked.query].astype(np.float64) * scale + added
    # Only a masked cell is filled in. NaN in a cell that was computed is what the run gave, and is shown.
    scores = products if recorded is None else np.where(np.isnan(recorded) & ~attention.mask[asked.query], products, recorded)
    scored = recorded is None or not (np.isnan(recorded[asked.key]) and not attention.mask[asked.query, asked.key])
    return _apart(scores, attention, asked), scored


def _apart(row: Array, attention: Attention, asked: Why) -> float:
    """The number of the asked key in a row [key], less that of a second key, or their mean, where that is asked for."""
    match asked.minus:
        case None:
            return float(row[asked.key])
        case "mean":
            return float(row[asked.key] - row[_compared(attention, asked.query)].mean())
    return float(row[asked.key] - row[asked.minus])


def _closed(trace: Trace, attention: Attention, asked: Why) -> Closed:
    """Why the mask hides the key; empty: it does not."""
    cell = asked.query, asked.key
    if attention.mask[cell]:
        return ""
    parts: dict[Closed, Array | None] = {"padding": attention.mask_padding, "future": attention.mask_causal}
    # A cell can be masked for several reasons; padding is named before the future, and both before an edit.
    if reason := next((name for name, part in parts.items() if part is not None and not part[cell]), None):
        return reason
    edits = RunRequest.edits_in(trace.request)
    return "edit" if any(isinstance(edit, Forbid | Allow) and edit.at_site(asked.site) for edit in edits) else "mask"


def difference(computed: float, recorded: float) -> float:
    """How far a sum is from what the run recorded, relative where that is above 1."""
    return abs(computed - recorded) / max(1.0, abs(recorded))


def tolerance(trace: Trace, parts: Array, recorded: float) -> float:
    """Largest difference that rounding in the run's number type explains, for a sum of these parts.

    Where large parts cancel, or large scores are subtracted, their rounding does not: it is about the unit roundoff of each.
    """
    dtype = str(trace.model["dtype"])
    return float(max(TOLERANCE[dtype], 4 * ROUNDOFF[dtype] * np.abs(parts).sum() / max(1.0, abs(recorded))))
