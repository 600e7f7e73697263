"""The numbers of a stage as a table that can be read, sorted and downloaded."""

from typing import Any

import numpy as np
import pandas as pd

from model.trace import stages
from model.trace.stages import AXES, Stage
from model.trace.types import Array, Trace
from viz.i18n.translate import _
from viz.labels import titles, tokens

LISTED = 12
"""Tokens of the vocabulary listed for a row of logits."""


def table(trace: Trace, stage: Stage, head: int) -> pd.DataFrame | None:
    """The recorded tensor of a stage with labeled rows; ids and texts for the stage of tokens; None if nothing was recorded.

    Rows are labeled by position, counted from 1, and token; columns by token or dimension. Logits are transposed, one row per id:
    thousands of columns are slow to send and cannot be sorted.
    """
    if stage.name in ("tokens", "ids"):
        return _tokens(trace, stage)
    if stage.name in ("probabilities", "chosen"):
        return steps(trace)
    array = stages.tensor(trace, stage, head)
    if array is None:
        return None
    down, across = map(titles.axis, AXES[stage.name])
    index = pd.Index(_numbered(row_labels(trace, stage, len(array))), name=down)
    if stage.name == "logits":
        return pd.DataFrame(array.T, index=pd.RangeIndex(array.shape[1], name=_("id")), columns=index)
    return pd.DataFrame(array, index=index, columns=pd.Index(_columns(trace, stage, array), name=across))


def row_labels(trace: Trace, stage: Stage, count: int) -> list[str]:
    """The labels of a stage's rows, not cut; in a decoder with the token that each row generates."""
    if stage.site is not None and AXES[stage.name][0] == "query":
        return tokens.queries(trace, trace.at(stage.site), longest=None)[:count]
    return titles.rows(trace, stages.strip(trace, stage), count, longest=None)


def _columns(trace: Trace, stage: Stage, array: Array) -> list[str]:
    if AXES[stage.name][1] == "key" and stage.site is not None:
        return _numbered(tokens.keys(trace, trace.at(stage.site), longest=None))
    return [f"{number}" for number in range(1, array.shape[1] + 1)]


def _numbered(texts: list[str]) -> list[str]:
    return [f"{number} {text}" for number, text in enumerate(texts, start=1)]


def _tokens(trace: Trace, stage: Stage) -> pd.DataFrame:
    strip = trace.tokens[stages.strip(trace, stage)]
    columns: dict[str, list[Any]] = {_("token"): [tokens.word(text) for text in strip.texts]}
    if stage.name == "ids":
        columns |= {_("id"): list(strip.ids)}
    columns |= {_("special"): list(strip.special), _("unknown"): list(strip.unknown)}
    return pd.DataFrame(columns, index=pd.RangeIndex(1, len(strip) + 1, name=_("position")))


def steps(trace: Trace) -> pd.DataFrame:
    """Table of decoding steps: the token read, the token chosen, its probability, and how many candidates were likelier."""
    strip = trace.tokens[stages.strip(trace, Stage("output", "chosen"))]
    rows = [
        {
            _("token read"): tokens.word(strip.texts[step.computed[1] - 1]),
            _("token chosen"): tokens.word(step.chosen.text),
            _("probability"): float(np.exp(step.chosen.log_probability)),
            _("log-probability"): step.chosen.log_probability,
            _("more likely tokens"): sum(c.log_probability > step.chosen.log_probability for c in step.candidates),
        }
        for step in trace.steps
    ]
    return pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1, name=_("step")))


def likeliest(trace: Trace, row: int) -> list[int]:
    """The ids of the largest logits of a row, largest first."""
    assert trace.logits is not None
    order: list[int] = np.argsort(-trace.logits[row], kind="stable")[:LISTED].tolist()
    return order


def text_of(trace: Trace, id_: int) -> str:
    """The text of an id if the run has it, else the id itself."""
    candidates = (c for step in trace.steps for c in (step.chosen, *step.candidates))
    text = next((c.text for c in candidates if c.id == id_), None)
    return f"#{id_}" if text is None else tokens.word(text)
