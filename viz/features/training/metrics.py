"""Measures of each head at each snapshot of a training, and the step at which it specialized."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from model.measures.of_run import of_site
from model.trace.types import Array, Site, Trace
from viz.features.training.view import MEASURES
from viz.i18n.translate import _
from viz.labels import tokens
from viz.metrics.heads import table_of_heads
from viz.metrics.teacher_forcing import similarity, surprise


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


def course(frames: Sequence[Frame], ids: Sequence[int]) -> Course:
    """Measures of every head at every snapshot, from runs forced to the tokens `ids`."""
    last = frames[-1].fed
    columns = tuple((site, head) for site, losses_of_tokens in last.attention.items() for head in range(losses_of_tokens.heads))
    by_frame = [_measured(frame.fed, last) for frame in frames]
    values = {name: np.array([measured[name] for measured in by_frame]) for name in MEASURES}
    lost = [surprise(frame.fed, ids) for frame in frames]
    losses = np.array([losses_of_tokens.mean() if len(losses_of_tokens) else np.nan for losses_of_tokens in lost])
    return Course(tuple(frame.step for frame in frames), columns, values, losses)


def _measured(trace: Trace, last: Trace) -> dict[str, Array]:
    """Each measure of every head: [head of all sites]."""
    names = tuple(name for name in MEASURES if name != "similarity")
    table = np.concatenate([of_site(trace, attention, names) for attention in trace.attention.values()])
    similar = np.concatenate([similarity(attention, last.at(site)) for site, attention in trace.attention.items()])
    return dict(zip(names, table.T, strict=True)) | {"similarity": similar}


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
    """Table of when each head that has a measure specialized by it, of all heads if none has it; those that changed most first.

    Returns:
        As `table_of_heads`, with the columns `start`, `end`, `change` and `moment` (a step, or none).
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
        if np.isfinite(values[:, column]).any() or not np.isfinite(values).any()
    }
    table = table_of_heads(rows).astype({"moment": "Int64"})
    return table.sort_values("change", key=lambda change: -change.abs(), kind="stable")


def numbers(measured: Course, measure: str) -> pd.DataFrame:
    """One measure as a table, a row for each head and a column for each snapshot's step."""
    names = pd.Index([tokens.site(site, head) for site, head in measured.heads], name=_("head"))
    columns = pd.Index([f"{step:,}" for step in measured.steps], name=_("step"))
    return pd.DataFrame(measured.values[measure].T, index=names, columns=columns)
