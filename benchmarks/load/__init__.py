"""Load tests: a class at one app process, played by clients that speak like browsers; and the processes that more people need."""

import asyncio
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from statistics import median, quantiles

import click

from benchmarks.load import badly_behaved, classroom, runs, soak
from benchmarks.load.classroom import Class
from benchmarks.servers import ROOT, serving
from benchmarks.timing import Row

JOIN_SECONDS, CLICK_SECONDS = 0.5, 0.15
"""Aims for the 95th percentile of joins and clicks, for 300 people who join within 10 s and click 30 times a second in all."""

RUNS_RATIO, SOAK_RATIO = 1.6, 1.05
"""Aims for the 95th percentile of runs relative to the same work alone, and for memory after 20 minutes relative to before."""

CACHED_SECONDS, CACHED_RATIO = 1.5, 6.0
"""Aims for cached runs beside badly behaved clients: for the longest one, and for the 95th percentile relative to without them."""

PACE, SLOWER, FASTER = 30.0, (20.0, 15.0, 10.0, 5.0, 2.0), (40.0, 50.0, 60.0, 80.0, 100.0)
"""Clicks per second: the aim, and further paces that are tried to find the most that one process can serve."""

VIEWERS, BETWEEN_CLICKS = 10_000, 20.0
"""Number of people for whom the number of processes is computed, and seconds between two clicks of one person."""


def measure(repeats: int) -> Iterator[Row]:
    """Runs all load tests once: each of them has hundreds of turns in itself. About ten minutes on two idle cores."""
    tests = {
        "300 people join and click, about two minutes": of_a_class,
        "30 runs at once, half a minute": of_runs,
        "cached runs beside badly behaved visitors, two minutes": of_the_badly_behaved,
        f"{soak.MINUTES} minutes of {soak.PEOPLE} people without their pauses, about five minutes": of_a_soak,
    }
    for what, test in tests.items():
        click.echo(f"load: {what}", err=True)
        yield from test()


def of_a_class() -> Iterator[Row]:
    """300 people join within 10 s and click at the pace of the aim; then at faster or slower paces, until the limit is found."""
    with serving(ROOT / "app.py") as app:
        found = asyncio.run(classroom.attend(app, Class(pace=next_pace)))
    people, clicks = max(1, len(found.joins)), found.clicks[PACE]
    yield Row("300 people join within 10 s, p95", 1000 * p95(found.joins), note=_told(found.joins, JOIN_SECONDS, found.errors))
    yield Row(f"{PACE:.0f} clicks a second, p95", 1000 * p95(clicks), note=_told(clicks, CLICK_SECONDS, found.errors))
    yield Row("CPU of the app for a join", 1000 * found.cpu_of_joins / people)
    yield Row("CPU of the app for a click", 1000 * found.cpu_of_clicks / max(1, sum(map(len, found.clicks.values()))))
    a_session = f"{(found.bytes_after - found.bytes_before) / people / 1e6:.2f} MB"
    yield Row("memory of a session", math.nan, note=f"{a_session} beside {found.bytes_before / 1e6:.0f} MB of the process")
    carried = carries(found.clicks)
    yield Row("clicks a second that one process carries", math.nan, note=f"{carried:.0f}, with p95 ≤ {1000 * CLICK_SECONDS:.0f} ms")
    needed = f"{processes(VIEWERS, BETWEEN_CLICKS, carried):,}" if carried else "unknown"
    yield Row(f"app processes for {VIEWERS:,} viewers", math.nan, note=f"{needed}, a click in {BETWEEN_CLICKS:.0f} s of each")


def of_runs() -> Iterator[Row]:
    """30 people press Run on different sentences at once, on two models."""
    found = runs.measure()
    aim = f"p95 aim ≤ {RUNS_RATIO} × of the same work alone, {found.alone:.1f} s; {len(found.errors)} errors"
    yield Row(f"{len(found.together)} runs at once, p95", 1000 * p95(found.together), p95(found.together) / found.alone, aim)


def of_the_badly_behaved() -> Iterator[Row]:
    """Cached runs of a few people for a minute, with one badly behaved request in each second."""
    found = badly_behaved.measure()
    longest, ratio = max(found.beside, default=math.inf), p95(found.beside) / p95(found.idle)
    answers = sum(map(Counter.total, found.replies.values()))
    note = (
        f"{len(found.beside)} runs beside {answers} bad requests; p95 aim ≤ {CACHED_RATIO:.0f} × alone; {len(found.errors)} errors"
    )
    yield Row("cached runs alone, p95", 1000 * p95(found.idle), note=f"{len(found.idle)} runs")
    yield Row("cached runs beside badly behaved visitors, p95", 1000 * p95(found.beside), ratio, note)
    yield Row("cached runs beside badly behaved visitors, longest", 1000 * longest, note=f"aim ≤ {CACHED_SECONDS} s")


def of_a_soak() -> Iterator[Row]:
    """Memory before and after 20 minutes of a class of 30, after a warm-up."""
    with serving(ROOT / "app.py") as app:
        found = asyncio.run(soak.endure(app))
    sizes = f"{found.bytes_before / 1e6:.0f} MB, then {found.bytes_after / 1e6:.0f} MB; aim ≤ {SOAK_RATIO} ×"
    note = f"{found.asked:,} script runs; {sizes}; {len(found.errors)} errors"
    yield Row(f"memory over {soak.MINUTES} minutes of {soak.PEOPLE} people", math.nan, found.bytes_after / found.bytes_before, note)


def next_pace(before: Mapping[float, list[float]]) -> float | None:
    """The next pace to try: the aim, then faster ones while clicks stay quick, or slower ones until they are."""
    if not before:
        return PACE
    quick = [_is_quick(clicks) for clicks in before.values()]
    if any(quick) != all(quick):
        return None
    return next((pace for pace in (FASTER if all(quick) else SLOWER) if pace not in before), None)


def carries(clicks: Mapping[float, list[float]]) -> float:
    """The fastest pace at which clicks stay quick; 0: none."""
    return max((pace for pace, seconds in clicks.items() if _is_quick(seconds)), default=0.0)


def processes(viewers: int, between_clicks: float, carried: float) -> int:
    """The number of app processes that serve `viewers` people.

    Args:
        between_clicks: seconds between two clicks of one person.
        carried: clicks per second that one process can serve.
    """
    return math.ceil(viewers / between_clicks / carried)


def p95(seconds: list[float]) -> float:
    """The 95th percentile; infinite where there are fewer than two numbers."""
    return quantiles(seconds, n=20)[-1] if len(seconds) > 1 else math.inf


def _is_quick(seconds: list[float]) -> bool:
    return p95(seconds) <= CLICK_SECONDS


def _told(seconds: list[float], aim: float, errors: list[str]) -> str:
    middle = 1000 * median(seconds) if seconds else math.inf
    return f"median {middle:.0f} ms; aim p95 ≤ {1000 * aim:.0f} ms; {len(errors)} errors"
