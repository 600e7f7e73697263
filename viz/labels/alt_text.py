"""Pictures in words, for people who do not see them: a pure function for each kind of picture, with the numbers of the trace."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from model.measures.of_run import of_site
from model.trace.beam_tree import Node, hypotheses, path
from model.trace.types import Array, Attention, Site, Trace
from viz.i18n.translate import _, _n, current, join_clauses, join_list, join_sentences
from viz.i18n.translate import number as number_of
from viz.labels import tokens

MOST_ROWS = 24
"""Most rows that a description goes through; the table beside the picture has all."""

LARGE = 512**2
"""Most cells of a head whose weights the description of all heads reads: maps of long inputs are computed where they are seen."""

WORTH_NAMING = 0.01
"""Smallest weight that is named as a row's second."""


def head(trace: Trace, attention: Attention, index: int) -> str:
    """The weights of one head, row by row: "Row “dogs”: 93 % on “hunde”, then “spielen” 4 %."

    Raises:
        UnknownHead: the site has no such head.
    """
    sentences, key = _HEADS.setdefault(trace, {}), (current(), attention, index)
    if key not in sentences:
        rows, keys = tokens.queries(trace, attention, longest=None), tokens.keys(trace, attention, longest=None)
        count = min(len(rows), MOST_ROWS)
        weights = np.where(attention.mask[:count], attention.head(index)[:count], 0.0)
        sentences[key] = _joined(_rows(rows[:count], keys, weights), len(rows))
    return sentences[key]


_HEADS: WeakKeyDictionary[Trace, dict[tuple[str, Attention, int], str]] = WeakKeyDictionary()
"""What was said of the heads of a run: a page says it of the map, the lines and the card."""


def kept(trace: Trace, attention: Attention, values: Array, places: Sequence[int]) -> str:
    """A head's map without some of its keys, row by row.

    Args:
        values: [query, key shown]; an empty row is NaN.
        places: [key shown], the site's keys that are shown.
    """
    rows, keys = tokens.queries(trace, attention, longest=None), tokens.keys(trace, attention, longest=None)
    count = min(len(rows), MOST_ROWS)
    return _joined(_rows(rows[:count], [keys[key] for key in places], values[:count]), len(rows))


def row(name: str, keys: Sequence[str], weights: Array) -> str:
    """One row of weights: its largest, and its second where that is worth naming.

    Args:
        name: label of the query.
        keys: labels of the keys.
        weights: [key], not negative.
    """
    return _rows([name], keys, weights[None])[0]


def _rows(names: Sequence[str], keys: Sequence[str], weights: Array) -> list[str]:
    """As `row`, for weights [query, key]: all rows are sorted at once."""
    finite = np.asarray(np.isfinite(weights).all(axis=1)).tolist()
    order = np.argsort(-weights, axis=1, kind="stable")[:, :2]
    largest = np.take_along_axis(weights, order, axis=1)
    sentences = []
    for name, whole, places, shares in zip(names, finite, order.tolist(), largest.tolist(), strict=True):
        if not (whole and shares and shares[0] > 0):
            sentences.append(_("Row “{row}”: no weights.", row=name))
            continue
        fields = {"row": name, "key": keys[places[0]], "share": percent(shares[0])}
        if len(shares) > 1 and shares[1] >= WORTH_NAMING:
            fields |= {"next": keys[places[1]], "second": percent(shares[1])}
            sentences.append(_("Row “{row}”: {share} on “{key}”, then {second} on “{next}”.", **fields))
        else:
            sentences.append(_("Row “{row}”: {share} on “{key}”.", **fields))
    return sentences


def overview(trace: Trace, known: Mapping[Site, Sequence[float]] | None = None) -> str:
    """All heads: for each layer the number of heads, and the head whose rows have the largest weights on average.

    Args:
        known: the measure `largest` of the heads of sites, if the caller has read their weights: those of a long run are
                computed each time.
    """
    sentences = []
    for site, attention in trace.attention.items():
        fields: dict[str, Any] = {"site": tokens.site(site), "count": attention.heads}
        small = attention.mask.size <= LARGE
        largest = np.array((known or {}).get(site) or of_site(trace, attention, ("largest",))[:, 0]) if small else np.zeros(0)
        if not np.isfinite(largest).any():
            sentences.append(_n("{site}: {count} head.", "{site}: {count} heads.", attention.heads, **fields))
            continue
        sharpest = int(np.nan_to_num(largest).argmax())
        fields |= {"head": sharpest + 1, "share": percent(largest[sharpest])}
        sentences.append(
            _n(
                "{site}: {count} head, whose largest weight per row is {share} on average.",
                "{site}: {count} heads; head {head} is the sharpest: its largest weight per row is {share} on average.",
                attention.heads,
                **fields,
            )
        )
    shared = {tokens.heads_of_a_key(trace, site) for site in trace.attention} - {1}
    sentences += [
        _("Heads share their keys and values in groups of {count}: 1 to {count}, and so on.", count=size) for size in sorted(shared)
    ]
    return join_sentences(sentences)


def left_out(trace: Trace, shares: Array) -> str:
    """What the reading without the first token leaves out, and what it does with the rest.

    Args:
        shares: [head], the share of the first token, of all heads of the run.
    """
    return _(
        "Without the first token, “{token}”: {share} of the weight of other rows that see more than one token goes to it, and in "
        "{heads} of the heads more than half. The rest of each row is rescaled to sum to 1.",
        **first_token(trace, shares),
    )


def first_token(trace: Trace, shares: Array) -> dict[str, str]:
    """The gaps of sentences about the first token: `token` of all sites, the `share` of weight that goes to it in other
    rows that see more than one token, and the share of `heads` that have more than half of theirs there.
    """
    firsts = dict.fromkeys(tokens.token(trace.tokens[attention.key_tokens], 0) for attention in trace.attention.values())
    known = shares[np.isfinite(shares)]
    share, heads = (float(known.mean()), float((known > 0.5).mean())) if len(known) else (0.0, 0.0)
    return {"token": join_list(firsts), "share": percent(share), "heads": percent(heads)}


def mask(trace: Trace, attention: Attention, allowed: Array) -> str:
    """A mask, row by row: which keys are allowed.

    Args:
        allowed: bool [query, key].
    """
    rows, keys = tokens.queries(trace, attention, longest=None), tokens.keys(trace, attention, longest=None)
    if allowed.all():
        return _("Every row may attend to every key.")
    count = min(len(rows), MOST_ROWS)
    return _joined([_mask_row(rows[i], keys, np.flatnonzero(allowed[i])) for i in range(count)], len(rows))


def _mask_row(name: str, keys: Sequence[str], allowed: Array) -> str:
    if not len(allowed):
        return _("Row “{row}”: no key is allowed.", row=name)
    fields = {"row": name, "count": len(allowed), "all": len(keys), "first": keys[allowed[0]], "last": keys[allowed[-1]]}
    if len(allowed) == 1:
        return _("Row “{row}”: only “{first}” is allowed.", **fields)
    if allowed[-1] - allowed[0] + 1 == len(allowed):
        return _("Row “{row}”: allowed from “{first}” to “{last}”, {count} of {all}.", **fields)
    return _("Row “{row}”: allowed {count} of {all}.", **fields)


def table(values: Array, across: str) -> str:
    """A table of numbers, such as positions × dimensions: its size, its range, and where the largest and smallest number are.

    Args:
        values: [row, column].
        across: what a column is called.
    """
    finite = np.isfinite(values)
    if not finite.any():
        return _("No finite numbers.")
    high = np.unravel_index(np.argmax(np.where(finite, values, -np.inf)), values.shape)
    low = np.unravel_index(np.argmin(np.where(finite, values, np.inf)), values.shape)
    fields = {"rows": values.shape[0], "columns": values.shape[1], "across": across}
    fields |= {"largest": number(values[high]), "high_row": int(high[0]) + 1, "high_column": int(high[1]) + 1}
    fields |= {"smallest": number(values[low]), "low_row": int(low[0]) + 1, "low_column": int(low[1]) + 1}
    return _(
        "{rows} × {columns} ({across}). Largest: {largest} in row {high_row}, column {high_column}. "
        "Smallest: {smallest} in row {low_row}, column {low_column}.",
        **fields,
    )


def vectors(rows: Sequence[str], values: Array) -> str:
    """Numbers of a stage: for each row its largest and smallest number, and their dimensions.

    Args:
        values: [row, dimension].
    """
    sentences = []
    for name, row_values in list(zip(rows, values, strict=False))[:MOST_ROWS]:
        if not np.isfinite(row_values).all():
            sentences.append(_("Row “{row}” contains NaN or infinite values.", row=name))
            continue
        high, low = int(np.argmax(row_values)), int(np.argmin(row_values))
        fields = {
            "row": name,
            "largest": number(float(row_values[high])),
            "high": high + 1,
            "smallest": number(float(row_values[low])),
            "low": low + 1,
        }
        sentences.append(_("Row “{row}”: from {smallest} (dimension {low}) to {largest} (dimension {high}).", **fields))
    return _joined(sentences, len(values))


def bars(names: Sequence[str], values: Sequence[float]) -> str:
    """Tokens with one number each, in their order."""
    return (
        join_clauses(_("{name}: {value}", name=name, value=number(value)) for name, value in zip(names, values, strict=True)) + "."
    )


def changes(rows: Sequence[str], keys: Sequence[str], apart: Array, most: int = 5) -> str:
    """The cells that changed most between two runs.

    Args:
        apart: [query, key], B − A; NaN where nothing is compared.
        most: number of cells.
    """
    known = np.nan_to_num(apart)
    order = np.argsort(-np.abs(known), axis=None, kind="stable")[:most]
    sentences = []
    for cell in order:
        query, key = np.unravel_index(cell, apart.shape)
        if known[query, key]:
            fields = {"row": rows[query], "key": keys[key], "change": number(float(known[query, key]), sign=True)}
            sentences.append(_("Row “{row}” on “{key}”: {change}.", **fields))
    return join_sentences(sentences) or _("No weight changed.")


def all_changes(moved: Mapping[Site, Array]) -> str:
    """All heads of two runs: for each site the head that changed most.

    Args:
        moved: by site [head, row], the share of its weight that each row moved; NaN where nothing is compared.
    """
    sentences = []
    for site, by_row in moved.items():
        known = ~np.isnan(by_row)
        means = np.where(known.any(axis=1), np.nan_to_num(by_row).sum(axis=1) / np.maximum(known.sum(axis=1), 1), -1.0)
        if means.max(initial=-1.0) < 0:
            continue
        most = int(np.argmax(means))
        if not means[most]:
            sentences.append(_("{site}: no head changed.", site=tokens.site(site)))
            continue
        fields = {"site": tokens.site(site), "head": most + 1, "share": percent(float(means[most]))}
        sentences.append(_("{site}: head {head} changed most: on average, {share} of each row’s weight moved.", **fields))
    return join_sentences(sentences)


def curves(names: Sequence[str], steps: Sequence[Sequence[int]], values: Sequence[Array]) -> str:
    """Curves over a training, each by its first and last number and their steps. A curve without a finite number is left out."""
    sentences = []
    for name, places, curve in zip(names, steps, values, strict=True):
        finite = np.flatnonzero(np.isfinite(np.asarray(curve, np.float64)))
        if len(finite):
            first, last = int(finite[0]), int(finite[-1])
            fields = {"name": name, "begin": number(float(curve[first])), "end": number(float(curve[last]))}
            fields |= {"first": number_of(places[first], ","), "last": number_of(places[last], ",")}
            sentences.append(_("{name}: {begin} at step {first}, {end} at step {last}.", **fields))
    return join_sentences(sentences)


def lens(rows: Sequence[str], layers: Sequence[str], words: Array, probabilities: Array) -> str:
    """A logit lens, row by row: the likeliest token after the last layer, and the layer from which on it was the likeliest.

    Args:
        words, probabilities: [layer, position, candidate], the likeliest first.
    """
    sentences = []
    for position, name in list(enumerate(rows))[:MOST_ROWS]:
        best = words[:, position, 0]
        others = np.flatnonzero(best != best[-1])
        since = int(others[-1]) + 1 if len(others) else 0
        fields = {"row": name, "word": best[-1], "share": percent(float(probabilities[-1, position, 0])), "layer": layers[since]}
        sentences.append(_("Row “{row}”: “{word}” {share}, the most likely since layer {layer}.", **fields))
    return _joined(sentences, len(rows))


def film(steps: Sequence[int], losses: Sequence[float | None]) -> str:
    """A training film: how many snapshots, and the loss on this sentence at the first and the last one."""
    fields = {"count": len(steps), "first": number_of(steps[0], ","), "last": number_of(steps[-1], ",")}
    begin, end = losses[0], losses[-1]
    if begin is None or end is None:
        return _("{count} snapshots, from step {first} to step {last}.", **fields)
    fields |= {"begin": number(begin), "end": number(end)}
    return _("{count} snapshots, from step {first} (loss {begin}) to step {last} (loss {end}).", **fields)


def tree(nodes: tuple[Node, ...]) -> str:
    """A beam search: its finished hypotheses, the best one first, with their log-probabilities."""
    sentences = []
    for rank, end in enumerate(hypotheses(nodes)):
        text = tokens.line(nodes[node].text for node in path(nodes, end))
        fields = {"rank": rank + 1, "text": text, "total": number(nodes[end].total), "mean": number(nodes[end].mean)}
        sentences.append(_("Hypothesis {rank}: {text}; log-probability {total}, {mean} per token.", **fields))
    return join_sentences(sentences)


def percent(share: float) -> str:
    """A share in whole percent: "93 %"."""
    return _percent(current(), "" if 0 < share < 0.005 else f"{100 * share:.0f}")


@lru_cache(maxsize=1024)
def _percent(_language: str, number: str) -> str:
    return _("{number}%", number=number_of(float(number), ".0f")) if number else _("less than 1%")


def number(value: float, sign: bool = False) -> str:
    """A number with three decimals and a true minus sign."""
    if not math.isfinite(value):
        return str(value)
    return number_of(value, "+.3f" if sign else ".3f")


def _joined(sentences: list[str], count: int) -> str:
    left = count - len(sentences)
    if left <= 0:
        return join_sentences(sentences)
    more = _n("{count} further row is in the table.", "{count} further rows are in the table.", left, count=left)
    return join_sentences([*sentences, more])
