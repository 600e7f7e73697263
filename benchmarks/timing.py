"""Timing in turns: each turn runs every alternative once, so that a busy moment affects all of them. Reports medians and ratios."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isnan


@dataclass(frozen=True)
class Row:
    """One row of the result.

    Attributes:
        case: name of the measured case.
        milliseconds: median time.
        ratio: median of the ratios to the baseline in the same turn; None: this is the baseline, or there is none.
        note: explanation.
        megabytes: bytes transferred, where measured.
        least: whether time and ratio are lower bounds, since the case was stopped.
    """

    case: str
    milliseconds: float
    ratio: float | None = None
    note: str = ""
    megabytes: float | None = None
    least: bool = False


def in_turns(
    cases: Mapping[str, Callable[[], object]],
    repeats: int,
    seconds: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Row]:
    """Runs all cases in turns, at least `repeats` turns and `seconds` seconds, after one turn that does not count.

    The first case is the baseline.

    Args:
        clock: what measures seconds.
    """
    spans: dict[str, list[float]] = {name: [] for name in cases}
    turn = 0
    while turn <= repeats or sum(map(sum, spans.values())) < seconds:
        for name, run in cases.items():
            began = clock()
            run()
            if turn:
                spans[name].append(clock() - began)
        turn += 1
    baseline = next(iter(spans.values()))
    return [
        Row(name, 1000 * statistics.median(own), ratio(own, baseline) if own is not baseline else None)
        for name, own in spans.items()
    ]


def ratio(own: list[float], baseline: list[float]) -> float:
    """Median over turns of the ratio to the baseline in the same turn."""
    return statistics.median(a / b for a, b in zip(own, baseline, strict=True))


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    return "\n".join(["| case | median, ms | ratio | |", "|---|--:|--:|---|", *map(line, rows)])


def line(row: Row) -> str:
    """A row as a line of that table."""
    return f"| {row.case} | {_told(row, row.milliseconds, '.1f')} | {_times(row)} | {row.note} |"


def _told(row: Row, number: float, form: str) -> str:
    return "" if isnan(number) else f"{'> ' if row.least else ''}{number:,{form}}"


def _times(row: Row) -> str:
    return "" if row.ratio is None else f"{_told(row, row.ratio, '.2f')} ×"
