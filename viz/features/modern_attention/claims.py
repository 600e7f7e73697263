"""Claims about attention as it is built today: sums of rows, caches, costs, tiles, reach (docs/today.md)."""

from collections.abc import Callable, Mapping

import numpy as np

from model.errors import BadClaim
from model.features.modern_attention.costs import Measures, Sizes
from model.trace.types import Attention
from viz.claims.kinds import ClaimKind, alone, cell, head, one_of
from viz.claims.kinds import row as row_of_head
from viz.claims.line_parser import Parts
from viz.claims.runs import StepRuns, column, row
from viz.claims.subjects import Scope, Subject
from viz.features.modern_attention import flash_attention, linear_attention
from viz.features.modern_attention import kinds_of_masks as mask_kinds
from viz.features.modern_attention.cost_numbers import bytes_of, equal_at, ways
from viz.i18n.translate import _

TILE = 4
"""Queries and keys of a tile, as the step draws them."""

MOVED = ("plain", "tiles")
"""Ways to compute a head, whose moved numbers are counted."""

KEPT = ("model", "heads", "multi-query", "latent")
"""Ways to keep a token."""


def _sum(_runs: StepRuns, attention: Attention, head: int, at: tuple[int, int], _subject: Subject) -> float:
    return float(attention.head(head)[at[0]].astype(np.float64).sum())


def _linear(_runs: StepRuns, attention: Attention, head: int, at: tuple[int, int], _subject: Subject) -> float:
    if attention.q is None or attention.k is None:
        raise BadClaim(reason=_("the run recorded no values"))
    return float(linear_attention.weights(attention.q[head], attention.k[head], attention.mask)[at])


def _moved(_runs: StepRuns, attention: Attention, head: int, _at: tuple[int, int], subject: Subject) -> float:
    if attention.scores is None or attention.v is None:
        raise BadClaim(reason=_("the run recorded no scores"))
    tiles = len(flash_attention.attend(attention.scores[head], attention.mask, attention.v[head], TILE).tiles)
    queries, keys = attention.mask.shape
    return flash_attention.numbers_moved(queries, keys, attention.v.shape[-1], TILE, tiles)[MOVED.index(subject.name)]


def _tile(_runs: StepRuns, attention: Attention, head: int, _at: tuple[int, int], _subject: Subject) -> float:
    """The largest difference between the context computed in tiles and the values weighted by the recorded weights."""
    if attention.scores is None or attention.v is None:
        raise BadClaim(reason=_("the run recorded no scores"))
    tiled = flash_attention.attend(attention.scores[head], attention.mask, attention.v[head], TILE)
    return float(np.abs(tiled.context - attention.head(head).astype(np.float64) @ attention.v[head].astype(np.float64)).max())


def _reach(_runs: StepRuns, attention: Attention, _head: int, _at: tuple[int, int], subject: Subject) -> float:
    """On how many of the newest tokens the last one depends through so many layers of this mask."""
    return float(mask_kinds.farthest([attention.mask] * subject.number))


_OF_A_HEAD: Mapping[str, Callable[[StepRuns, Attention, int, tuple[int, int], Subject], float]] = {
    "sum": _sum,
    "linear": _linear,
    "moved": _moved,
    "tiled": _tile,
    "reach": _reach,
}


def _kept(runs: StepRuns, sizes: Sizes, subject: Subject) -> float:
    counts = dict(zip(KEPT, (count for _name, count in ways(sizes.layers[0])), strict=False))
    if subject.name not in counts:
        raise BadClaim(reason=_("this model keeps a latent already"))
    kept = sizes.kept(subject.number) if subject.name == "model" else len(sizes.layers) * subject.number * counts[subject.name]
    return float(kept * bytes_of(runs.run()))


def _equal(_runs: StepRuns, sizes: Sizes, _subject: Subject) -> float:
    return float(equal_at(sizes) or np.inf)


def _operations(runs: StepRuns, sizes: Sizes, subject: Subject) -> float:
    """Operations of the whole decode, in millions."""
    trace = runs.run()
    total, source = trace.of("decoder", "self")[0].mask.shape[0], len(trace.tokens["source"]) if sizes.cross else 0
    cached, whole = sizes.decode(list(range(min(trace.steps[0].computed[1], total), total + 1)), source)
    return sum(cached if subject.name == "cached" else whole) / 1e6


_OF_A_MODEL: Mapping[str, Callable[[StepRuns, Sizes, Subject], float]] = {
    "kept": _kept,
    "equal-at": _equal,
    "operations": _operations,
}


def _number(runs: StepRuns, subject: Subject, scope: Scope) -> float:
    if scope.change:
        raise BadClaim(reason=_("change needs two runs; this is a number of one: use two claims"))
    if subject.kind in _OF_A_MODEL:
        sizes = runs.engine.ask(Measures(runs.view.model, runs.view.parsed_settings()))
        return _OF_A_MODEL[subject.kind](runs, sizes, subject)
    trace = runs.run(scope)
    attention, head = runs.attention(trace, subject.head)
    at = (
        0 if subject.query is None else row(trace, attention, subject.query),
        0 if subject.key is None else column(trace, attention, subject.key),
    )
    return _OF_A_HEAD[subject.kind](runs, attention, head, at, subject)


def _read_moved(kind: str, parts: Parts) -> Subject:
    return Subject(kind, name=one_of(parts, _("way"), MOVED), head=parts.head())


def _read_kept(kind: str, parts: Parts) -> Subject:
    return Subject(kind, number=parts.whole(_("tokens")), name=parts.take("") if parts.next in KEPT else "model")


def _read_operations(kind: str, parts: Parts) -> Subject:
    return Subject(kind, name=one_of(parts, _("way"), ("cached", "whole")))


def _read_reach(kind: str, parts: Parts) -> Subject:
    return Subject(kind, head=parts.head(), number=parts.whole(_("layers")))


CLAIMS = {
    "sum": ClaimKind(row_of_head, _number),
    "linear": ClaimKind(cell, _number),
    "moved": ClaimKind(_read_moved, _number),
    "tiled": ClaimKind(head, _number),
    "reach": ClaimKind(_read_reach, _number),
    "kept": ClaimKind(_read_kept, _number),
    "equal-at": ClaimKind(alone, _number),
    "operations": ClaimKind(_read_operations, _number),
}
"""As `viz.feature.Feature.claims`."""
