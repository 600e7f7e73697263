"""Saved sums: why a score and a token of a run are what they are, as its trace file and its archive hold them. No torch.

They are the results of `Why` and `Writes` as JSON values, `why` and `writes` of `Trace.sums`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from typing import Any, TypeAlias, TypeVar, get_type_hints

import numpy as np

from model.errors import BadSetting, HeadlightError, WireError
from model.feature import TraceAnswers
from model.features.circuit.sums import LogitSum, Part, ScoreSum, Why, Writes
from model.features.what_if.results import Arrays
from model.requests.validation import read
from model.trace.types import Array, Attention, Trace

MOST_BYTES = 4 * 2**20
"""Most bytes of the sums of one run; one that does not fit is left out. Those of 30 layers of 9 heads take 2 MB."""

Answer: TypeAlias = Callable[[Why | Writes], ScoreSum | LogitSum]


def cell_to_save(attention: Attention, head: int, query: int = -1, key: int = -1) -> tuple[int, int]:
    """The chosen cell (query, key); without one, the strongest cell of the chosen row, or of the last one.

    Raises:
        UnknownHead: there is no such head.
    """
    weights = attention.head(head)
    row = query if 0 <= query < len(weights) else len(weights) - 1
    chosen = row == query and 0 <= key < weights.shape[1]
    # `argmax` takes NaN for the largest number; as 0 it is never chosen before a real weight.
    return row, key if chosen else int(np.nan_to_num(weights[row]).argmax())


def sums_to_save(asked: Iterable[Why | Writes], answer: Answer) -> dict[str, dict[str, Any]]:
    """The answers as JSON values by name, without those that are not known or do not fit into MOST_BYTES."""
    sums, left = dict[str, dict[str, Any]](), MOST_BYTES
    for question in asked:
        # A sum that cannot be made must not keep anybody from saving the run.
        with suppress(HeadlightError):
            entry = answer(question).to_json()
            if (size := len(json.dumps(entry, ensure_ascii=False).encode())) <= left:
                sums["why" if isinstance(question, Why) else "writes"] = entry
                left -= size
    return sums


def saved_sum(trace: Trace, question: Why | Writes) -> ScoreSum | LogitSum | None:
    """The answer that a trace holds; None: it holds none to this question."""
    if isinstance(question, Why):
        score = score_of(trace.sums["why"]) if "why" in trace.sums else None
        same = score is not None and all(
            getattr(score, name) == getattr(question, name) for name in ("site", "head", "query", "key", "minus")
        )
        return score if same else None
    logit = logit_of(trace.sums["writes"]) if "writes" in trace.sums else None
    if logit is None or logit.token != question.token or question.token >= len(trace.steps):
        return None
    step = trace.steps[question.token]
    # A question may say "the runner-up", but the saved answer has an id: the candidates of the step tell whether it
    # is that one.
    others = sorted(step.candidates, key=lambda candidate: -candidate.log_probability)
    runner_up = next((candidate.id for candidate in others if candidate.id != step.chosen.id), None)
    return logit if logit.minus == (runner_up if question.minus == "runner-up" else question.minus) else None


def check(trace: Trace) -> None:
    """Reads all sums of a trace once.

    Raises:
        WireError: one of them is none.
    """
    for name, entry in trace.sums.items():
        if name not in ("why", "writes"):
            raise WireError(detail=f"sums: {name!r}")
        # Reading is the check; what was read is thrown away, and read again when somebody asks.
        score_of(entry) if name == "why" else logit_of(entry)


def score_of(entry: Mapping[str, Any]) -> ScoreSum:
    """The sum of a score in JSON values, as `ScoreSum.to_json` gives them.

    Raises:
        WireError: they are none.
    """
    return _read(ScoreSum, entry, lambda: {"matrix": _array(entry["matrix"], len(entry["parts_query"]), len(entry["parts_key"]))})


def logit_of(entry: Mapping[str, Any]) -> LogitSum:
    """The sum of a logit in JSON values, as `LogitSum.to_json` gives them.

    Raises:
        WireError: they are none.
    """

    def of_parts() -> dict[str, Any]:
        parts = entry["parts"]
        rows = [part.get("keys", []) for part in parts]
        width = max(map(len, rows), default=0)
        # In JSON a head's row ends with its last key. All rows are filled up to one length; None becomes NaN.
        keys = [[*row, *[None] * (width - len(row))] for row in rows]
        strips = read(tuple[str, ...], [part.get("strip", "") for part in parts], "strips")
        return {
            "values": _array([part["value"] for part in parts], len(parts)),
            "keys": _array(keys, len(parts), width),
            "strips": strips,
        }

    return _read(LogitSum, entry, of_parts)


Kind = TypeVar("Kind", bound=Arrays)


def _read(kind: type[Kind], entry: Mapping[str, Any], others: Callable[[], dict[str, Any]]) -> Kind:
    """A sum of JSON values: `others` makes the fields that are no plain values or lists of parts."""
    try:
        made, hints = others(), get_type_hints(kind)
        for name in (field.name for field in fields(kind) if field.name not in made):
            value, hint = entry[name], hints[name]
            # In JSON a part also has its text and its sum, which people want to read and which the other fields give.
            if hint == tuple[Part, ...]:
                value = [{field_name: part[field_name] for field_name in ("kind", "place", "head")} for part in value]
            # JSON has no NaN, so `null` stands for it where the field is a number.
            made[name] = (np.nan if hint is float else None) if value is None else read(hint, value, name)
        return kind(**made)
    except (BadSetting, KeyError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise WireError(detail=f"sums: {type(error).__name__}: {error}") from error


def _array(values: Any, *shape: int) -> Array:
    # A list without cells cannot tell its shape: [] may be an array [0, 5].
    array = np.array(values, np.float64).reshape(shape) if 0 in shape else np.array(values, np.float64)
    if array.shape != shape:
        raise ValueError(f"{array.shape} instead of {shape}")
    return array


ANSWERS: TraceAnswers = {Why: saved_sum, Writes: saved_sum}
"""What an opened trace can be asked for."""

SAVED = {"why": score_of, "writes": logit_of}
"""What reads the values of each of them, by its name in a trace; a WireError if they are none."""
