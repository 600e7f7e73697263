"""Timing: alternatives are measured in turns, so that a busy moment hits all of them; medians and ratios are what is told."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isnan


@dataclass(frozen=True)
class Row:
    """One line of the result.

    Attributes:
        case: what was measured.
        milliseconds: median.
        ratio: median of the ratios to the baseline of the same turn; None: this is the baseline, or it has none.
        note: what the line means.
    """

    case: str
    milliseconds: float
    ratio: float | None = None
    note: str = ""


def in_turns(cases: Mapping[str, Callable[[], object]], repeats: int) -> list[Row]:
    """Runs the cases one after the other, `repeats` times, after one turn that does not count. The first case is the baseline."""
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(repeats + 1):
        for name, run in cases.items():
            began = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - began)
    baseline = next(iter(seconds.values()))
    return [
        Row(name, 1000 * statistics.median(own), ratio(own, baseline) if own is not baseline else None)
        for name, own in seconds.items()
    ]


def ratio(own: list[float], baseline: list[float]) -> float:
    """Median of the ratios, turn by turn."""
    return statistics.median(a / b for a, b in zip(own, baseline, strict=True))


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| case | median, ms | ratio | |", "|---|--:|--:|---|"]
    for row in rows:
        milliseconds = "" if isnan(row.milliseconds) else f"{row.milliseconds:.1f}"
        lines.append(f"| {row.case} | {milliseconds} | {'' if row.ratio is None else f'{row.ratio:.2f} ×'} | {row.note} |")
    return "\n".join(lines)
