"""Measures of each head at each snapshot of a training, in float64, and the step at which it specialized.

Notation as in head_statistics.py: w[i, j] is the weight of row i on key j of m keys, p(i) the row's own place. All means are over
the rows that head_statistics.py counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from model.trace.types import Array, Attention, Site, Tokens, Trace
from viz.i18n.translate import _
from viz.labels import tokens
from viz.metrics import head_statistics as heads
from viz.metrics.head_statistics import Explanation
from viz.url.parsers import MEASURES


@dataclass(frozen=True, eq=False)
class Frame:
    """One snapshot and its runs.

    Attributes:
        step: training step.
        fed: its run on the source and on the target that all snapshots are fed.
        own: its run on the source alone; None if the network generates nothing.
    """

    step: int
    fed: Trace
    own: Trace | None


@dataclass(frozen=True, eq=False)
class Course:
    """The measures of every head at every snapshot.

    Attributes:
        steps: of the snapshots.
        heads: site and head of each column.
        values: by measure: [snapshot, column]; NaN if a head has no row to measure.
        losses: [snapshot], loss of the forced tokens in nats per token; NaN without an output layer.
    """

    steps: tuple[int, ...]
    heads: tuple[tuple[Site, int], ...]
    values: Mapping[str, Array]
    losses: Array


def explanations() -> Mapping[str, Explanation]:
    """Title and meaning of each of MEASURES: the formula, and what it is not."""
    return {
        "entropy": Explanation(
            _("Entropy (nats)"),
            _(
                "Mean over rows of −Σ w ln w. 0 means that a row attends to one key; ln m, to all m keys equally. Low "
                "entropy does not mean that the key is useful."
            ),
        ),
        "diagonality": Explanation(
            _("Weight near the diagonal"),
            _(
                "Mean over rows of the weight on keys j with |p − j| ≤ 1, where p is the row’s own position (in "
                "cross-attention, rows are spread evenly over the keys). It does not mean that those words belong "
                "together."
            ),
        ),
        "antidiagonality": Explanation(
            _("Weight near the anti-diagonal"),
            _(
                "Mean over rows of the weight on keys j with |p − (m − 1 − j)| ≤ 1, the diagonal of the keys read "
                "backwards. A head that reverses its input scores 1, but one that rests in the middle also scores "
                "above 0."
            ),
        ),
        "alignment": Explanation(
            _("Similarity to the final head"),
            _(
                "Mean over rows of Σ min(w, w at the last snapshot): how much of the attention is already where this "
                "head will put it in the end (1 at the end, by definition). It does not measure word alignment: the "
                "model was never told which word translates which."
            ),
        ),
    }


def course(frames: Sequence[Frame], ids: Sequence[int]) -> Course:
    """Measures of every head at every snapshot, from runs forced to the tokens `ids`."""
    last = frames[-1].fed
    columns = tuple((site, head) for site, one in last.attention.items() for head in range(one.heads))
    by_frame = [_measured(frame.fed, last) for frame in frames]
    values = {name: np.array([measured[name] for measured in by_frame]) for name in MEASURES}
    lost = [surprise(frame.fed, ids) for frame in frames]
    losses = np.array([one.mean() if len(one) else np.nan for one in lost])
    return Course(tuple(frame.step for frame in frames), columns, values, losses)


def _measured(trace: Trace, last: Trace) -> dict[str, Array]:
    """Each measure of every head: [head of all sites]."""
    table = heads.all_heads(trace)
    return {
        "entropy": table["entropy"].to_numpy(),
        "diagonality": table["diagonality"].to_numpy(),
        "antidiagonality": np.concatenate([antidiagonality(one) for one in trace.attention.values()]),
        "alignment": np.concatenate([overlap(one, last.at(site)) for site, one in trace.attention.items()]),
    }


def antidiagonality(attention: Attention) -> Array:
    """Mean over rows of Σj w over keys with |p(i) - (m - 1 - j)| ≤ 1, for each head: [head], from 0 to 1."""
    _heads, queries, keys = attention.weights.shape
    backwards = heads.distances(queries, keys, rescaled=attention.site.kind == "cross")[:, ::-1]
    weights = attention.weights.astype(np.float64)
    return _mean(np.where(backwards <= 1, weights, 0.0).sum(axis=-1), heads.counted_rows(attention))


def overlap(one: Attention, other: Attention) -> Array:
    """Mean over rows of Σj min(w, w'), for each head of one site in two runs on the same tokens: [head], from 0 to 1.

    It equals 1 minus the total variation distance of the rows.
    """
    least = np.minimum(one.weights.astype(np.float64), other.weights.astype(np.float64)).sum(axis=-1)
    return _mean(least, heads.counted_rows(one) & heads.counted_rows(other))


def _mean(by_row: Array, counted: Array) -> Array:
    """Mean of [head, query] over the counted rows; NaN where there is none."""
    rows = counted.sum(axis=-1)
    sums = np.where(counted, by_row, 0.0).sum(axis=-1)
    means: Array = np.divide(sums, rows, out=np.full(len(rows), np.nan), where=rows > 0)
    return means


def fed(whole: Trace) -> Tokens:
    """The strip that is forced at all snapshots: the target, or the only strip."""
    return whole.tokens[tokens.written_strip(whole)]


def surprise(trace: Trace, ids: Sequence[int]) -> Array:
    """Surprisal -ln p of each forced token but the first, in nats: [token].

    Args:
        trace: a run that keeps its logits, [position, vocab].
        ids: the forced tokens, followed by the expected last token if there is one.
    """
    if trace.logits is None:
        return np.empty(0)
    wanted = np.asarray(ids[1 : 1 + len(trace.logits)], np.int64)
    logits = trace.logits[: len(wanted)].astype(np.float64)
    highest = logits.max(axis=-1)
    total = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=-1))
    lost: Array = total - logits[np.arange(len(wanted)), wanted]
    return lost


def specialised(steps: Sequence[int], values: Array) -> int | None:
    """The step of the first snapshot from which a measure stays past half of its total change.

    Args:
        steps: of the snapshots.
        values: [snapshot].

    Returns:
        None: the measure has no numbers, or ends where it began.
    """
    change = values[-1] - values[0]
    if not np.isfinite(values).all() or change == 0:
        return None
    past = (values - (values[0] + values[-1]) / 2) * np.sign(change) >= 0
    before = np.flatnonzero(~past)
    return int(steps[before[-1] + 1])


def moments(measured: Course, measure: str) -> pd.DataFrame:
    """Table of when each head specialized by one measure; the head that changed most first.

    Returns:
        As `heads.table_of_heads`, with the columns `start`, `end`, `change` and `moment` (a step, or none).
    """
    values = measured.values[measure]
    rows = {
        at: {
            "start": values[0, column],
            "end": values[-1, column],
            "change": values[-1, column] - values[0, column],
            "moment": specialised(measured.steps, values[:, column]),
        }
        for column, at in enumerate(measured.heads)
    }
    table = heads.table_of_heads(rows).astype({"moment": "Int64"})
    return table.sort_values("change", key=lambda change: -change.abs(), kind="stable")


def numbers(measured: Course, measure: str) -> pd.DataFrame:
    """One measure as a table, a row for each head and a column for each snapshot's step."""
    names = pd.Index([tokens.site(site, head) for site, head in measured.heads], name=_("head"))
    columns = pd.Index([f"{step:,}" for step in measured.steps], name=_("step"))
    return pd.DataFrame(measured.values[measure].T, index=names, columns=columns)
