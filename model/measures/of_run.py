"""The measures of heads: of weights, of a site, of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.measures.catalogue import MEASURES, Pattern, on_keys
from model.measures.maps import Map, map_of
from model.measures.rows import choosing, mean
from model.measures.word_alignment import Gold, error_rate
from model.trace.types import Array, Attention, Trace


@dataclass(frozen=True, eq=False)
class Cells:
    """A pattern on one map, as the few cells that it looks at.

    Attributes:
        indices: [cell], their places in the map read row by row.
        factors: [cell], how much the weight of each counts.
        rows: [query] of bool, the rows that count.
    """

    indices: Array
    factors: Array
    rows: Array

    def mean(self, weights: Array, finite: Array) -> Array:
        """[head], the mean over rows that count and are finite [head, query]; weights [head, query, key] are 0 in the others."""
        # einsum starts no threads as a matrix product may, for which so few numbers would wait on a busy machine
        sums = np.einsum("hc,c->h", weights.reshape(len(weights), -1)[:, self.indices], self.factors)
        counts = np.count_nonzero(finite & self.rows, axis=1)
        return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))


def cells(site: Map, pattern: Pattern) -> Cells:
    """The cells of a pattern on a map, made once."""
    if pattern not in site.made:
        keys, rows = pattern(site)
        indices = np.flatnonzero((keys != 0) & site.allowed & rows[:, None])
        site.made[pattern] = Cells(indices, keys.ravel()[indices].astype(np.float64), rows)
    made: Cells = site.made[pattern]
    return made


def of_weights(weights: Array, site: Map, names: Sequence[str]) -> Array:
    """[head, measure], measures of weights [head, query, key]; NaN where one has no meaning or needs more than weights."""
    # All measures of these weights share the float64 copy, and the knowledge which rows are finite.
    known, finite = _known(weights)
    values = np.full((len(known), len(names)), np.nan)
    for column, name in enumerate(names):
        measure = MEASURES[name]
        if measure.exists_in(site.kind) and measure.pattern is not None:
            values[:, column] = cells(site, measure.pattern).mean(known, finite)
        elif measure.exists_in(site.kind) and measure.computed is not None:
            values[:, column] = measure.computed(known, finite & site.choice)
    return values


def _known(weights: Array) -> tuple[Array, Array]:
    """Weights in float64, 0 in rows that are not finite; and which rows are, [head, query]."""
    finite: Array = np.asarray(np.isfinite(weights).all(axis=2))
    known: Array = np.asarray(weights, np.float64)
    return known if finite.all() else np.where(finite[..., None], known, 0.0), finite


def of_site(trace: Trace, attention: Attention, names: Sequence[str] = tuple(MEASURES)) -> Array:
    """[head, measure] of one site of a run."""
    return _of_sites([attention], map_of(attention, trace), names, [None])


MOST_AT_ONCE = 2**18
"""Weights that are measured in one go. More would be copied for nothing: on large maps the calls of numpy do not count."""


def _of_sites(attentions: Sequence[Attention], site: Map, names: Sequence[str], orders: Sequence[Array | None]) -> Array:
    """[head, measure] of the heads of sites that share a map, one site after the other.

    Small maps are measured together, since each call of numpy costs more than their numbers do; a map that is computed where it is
    read (a long one) is measured one head at a time.

    Args:
        orders: by site [query, key], for each place the key whose weight it gets; None: weights stay where they are.
    """
    small = sum(attention.heads for attention in attentions) * site.allowed.size <= MOST_AT_ONCE
    if small and all(isinstance(attention.weights, np.ndarray) for attention in attentions):
        pairs = zip(attentions, orders, strict=True)
        values = of_weights(np.concatenate([_ordered(attention.weights, order) for attention, order in pairs]), site, names)
    else:
        parts = [
            of_weights(_ordered(attention.weights[heads], order), site, names)
            for attention, order in zip(attentions, orders, strict=True)
            for heads in _parts(attention)
        ]
        values = np.concatenate(parts)
    if "norm" in names:
        values[:, list(names).index("norm")] = np.concatenate([_lengths(*pair) for pair in zip(attentions, orders, strict=True)])
    return values


def _parts(attention: Attention) -> list[slice]:
    """The heads whose weights are read at once."""
    whole = isinstance(attention.weights, np.ndarray)
    return [slice(0, attention.heads)] if whole else [slice(head, head + 1) for head in range(attention.heads)]


def _lengths(attention: Attention, order: Array | None) -> Array:
    """[head], the mean length of the context vectors; NaN in another order of the weights, which did not make them."""
    if attention.context is None or order is not None:
        return np.full(attention.heads, np.nan)
    return mean(np.linalg.norm(attention.context.astype(np.float64), axis=2), choosing(attention))


def _ordered(weights: Array, order: Array | None) -> Array:
    return np.asarray(weights) if order is None else np.take_along_axis(np.asarray(weights), order[None], axis=2)


def weight_on(trace: Trace, attention: Attention, keys: Sequence[int]) -> Array:
    """[head], the mean weight on some keys, the row's own token excepted, over rows that may attend to one of them and to another.

    Of the first key it is the measure `first`.
    """
    site = map_of(attention, trace)
    pattern = cells(site, lambda site: on_keys(site, np.isin(np.arange(site.allowed.shape[1]), keys)))
    return np.concatenate([pattern.mean(*_known(attention.weights[head : head + 1])) for head in range(attention.heads)])


def measured(trace: Trace, shuffled: int | None = None, gold: Gold | None = None) -> Array:
    """[head, measure], the measures of all heads of a run, in the order in which they ran; NaN where one has no meaning.

    Args:
        gold: the alignment of the text's words, for `alignment_error`; None: nobody typed one.
        shuffled: the seed of a random order of the keys that each row may attend to, in which its weights are dealt out again: what
            is left of a measure does not come from where the weights were. None: they stay where they are.
    """
    chance = None if shuffled is None else np.random.default_rng(shuffled)
    attentions, names = list(trace.attention.values()), tuple(MEASURES)
    maps, sharing = dict[object, Map](), dict[object, list[int]]()  # layers of one stack mostly share their map
    orders: list[Array | None] = []
    # Two layers share a map where kind, tokens and mask are equal: what a pattern makes of it is then made once for both.
    for number, attention in enumerate(attentions):
        key = attention.site.kind, attention.query_tokens, attention.key_tokens, attention.mask.shape, attention.mask.tobytes()
        site = maps.get(key) or maps.setdefault(key, map_of(attention, trace))
        sharing.setdefault(key, []).append(number)
        orders.append(None if chance is None else _dealt(site.allowed, chance))
    values: list[Array] = [np.empty(0)] * len(attentions)
    # Measured by map, put back in the order of the run.
    for group, numbers in sharing.items():
        of_all = _of_sites([attentions[number] for number in numbers], maps[group], names, [orders[number] for number in numbers])
        ends = np.cumsum([attentions[number].heads for number in numbers])[:-1]
        for number, of_one in zip(numbers, np.split(of_all, ends), strict=True):
            values[number] = of_one
    for attention, order, of_one in zip(attentions, orders, values, strict=True):
        if gold is not None and MEASURES["alignment_error"].exists_in(attention.site.kind):
            strips = trace.tokens[attention.query_tokens], trace.tokens[attention.key_tokens]
            of_one[:, names.index("alignment_error")] = error_rate(_ordered(attention.weights[:], order), *strips, gold)
    return np.concatenate(values)


def _dealt(allowed: Array, chance: np.random.Generator) -> Array:
    """[query, key], for each place the key whose weight it gets: a random order of the keys that a row may attend to."""
    # Sorting random numbers is a random order. Forbidden keys get numbers above all others, so they stay behind the allowed ones.
    places = np.argsort(~allowed, axis=1, kind="stable")  # those that are allowed come first
    drawn = np.argsort(np.where(allowed, chance.random(allowed.shape), 2.0 + np.arange(allowed.shape[1])), axis=1)
    drawn = np.where(np.arange(allowed.shape[1]) < allowed.sum(axis=1, keepdims=True), drawn, places)
    order = np.empty_like(places)
    np.put_along_axis(order, places, drawn, axis=1)
    return order
