"""Time to draw all heads: from a run in memory to the painted picture in a new tab, for our component and for other libraries.

For our component the server is already running and holds the trace, as for a visitor; the time is that of the whole tab, with the
start of Streamlit and the server's work. For other libraries, and for our standalone page, it is the time to make the page plus the
time of the tab that opens it.
"""

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks import alternatives, peers
from benchmarks.alternatives import BARE, EMPTY, OURS, PAGE, SUBPLOTS, Case, Shown, Turn
from benchmarks.browsers import Browser, browsing
from benchmarks.servers import HERE, serving, serving_atlas, serving_files
from benchmarks.timing import Row, ratio
from benchmarks.visiting import ATLAS, visit

CASES = (Case(12, 12, 128), Case(12, 12, 512), Case(32, 32, 256), Case(6, 8, 1000, 890), Case(1, 1, 4096))

COLD, LESS, TIMES = "ours, the first visit of a server", "ours less the empty app", "times our page"

ONCE = 5.0
"""Turns that take more seconds than this are not repeated."""

HOPELESS = 2 * peers.SECONDS
"""A library is not tried if it would take more seconds than this, assuming that time grows with the number of cells."""

Turns = dict[str, list[Shown] | str]
"""The measurements of each alternative, turn by turn, or why it failed."""


@dataclass(frozen=True)
class Known:
    """What is known of a library from earlier cases.

    Attributes:
        seconds: seconds per cell in the last case that it finished.
        failed: the case that it failed at.
    """

    seconds: float = 0.0
    failed: Case | None = None

    def why_not(self, case: Case) -> str:
        """Why the library is not tried at a case; empty: it is tried."""
        if self.failed and case.cells >= self.failed.cells:
            return f"not tried: it could not do {self.failed}"
        expected = self.seconds * case.cells
        return f"not tried: about {expected / 60:,.0f} min, if time grew like the cells" if expected > HOPELESS else ""


def measure(repeats: int) -> Iterator[Row]:
    """Measures every alternative on every case, in turns; slow ones once. The first alternative, ours, is the baseline of ratios.

    Raises:
        NoBrowser: there is no Chromium here.
        NoPeers: the peers cannot be installed here.
    """
    peers.install()
    with tempfile.TemporaryDirectory() as room, browsing() as browser, serving_files(Path(room)) as files:
        with serving_atlas(alternatives.recorded(CASES[:1])) as (_, addresses):
            yield _cold(addresses[CASES[0], OURS], browser)
        known: dict[str, Known] = {}
        with serving_atlas(alternatives.recorded(CASES)) as (_, addresses), serving(HERE / "empty_app.py") as empty:
            for address, there in ((empty.address, "p"), *((address, ATLAS) for address in addresses.values())):
                with suppress(peers.TooMuch):  # if the server is not warm now, the measurements will say so
                    visit(browser, address, there)
            for case in CASES:
                own = alternatives.ours(addresses, case)
                nothing: dict[str, Turn] = {EMPTY: partial(alternatives.streamlit, empty.address, "p")}
                turns = own | nothing | alternatives.others(case, Path(room), files)
                yield from _measured(case, turns, known, browser, repeats)


def _cold(address: str, browser: Browser) -> Row:
    """The first visit to a server: it imports modules and reads the trace from disk."""
    return Row(f"{CASES[0]}: {COLD}", 1000 * visit(browser, address, ATLAS).seconds, note="imports, reads the file; once")


def _measured(case: Case, turns: dict[str, Turn], known: dict[str, Known], browser: Browser, repeats: int) -> Iterator[Row]:
    """The rows of a case. `known` holds what is known of the libraries and is updated."""
    given_up = {name: why for name in turns if (why := known.get(name, Known()).why_not(case))}
    shown = _in_turns({name: turn for name, turn in turns.items() if name not in given_up}, browser, repeats)
    for name in shown.keys() & peers.NAMES.values():
        found, before = shown[name], known.get(name, Known())
        if isinstance(found, str):
            known[name] = replace(before, failed=case)
        else:
            known[name] = replace(before, seconds=statistics.median(turn.seconds for turn in found) / case.cells)
    yield from _rows(str(case), {**shown, **given_up})


def _in_turns(turns: dict[str, Turn], browser: Browser, repeats: int) -> Turns:
    shown: Turns = {name: [] for name in turns}
    for turn in range(repeats):
        for name, once in turns.items():
            before = shown[name]
            if isinstance(before, str) or (turn and before[0].seconds > ONCE):
                continue
            try:
                before.append(once(browser))
            except peers.TooMuch as error:
                shown[name] = str(error)
    return shown


def _rows(case: str, shown: Turns) -> Iterator[Row]:
    ours = shown.get(OURS, [])
    for name, turns in shown.items():
        if isinstance(turns, str):
            yield _could_not(f"{case}: {name}", turns, ours)
            continue
        milliseconds = 1000 * statistics.median(turn.seconds for turn in turns)
        python, megabytes = statistics.median(t.python for t in turns), statistics.median(t.megabytes for t in turns)
        note = f"{megabytes:.1f} MB" + (f", {1000 * python:.0f} ms of it in Python" if python else "")
        yield Row(f"{case}: {name}", milliseconds, _ratio(turns, ours) if turns is not ours else None, note, megabytes=megabytes)
        if name == EMPTY and not isinstance(ours, str):
            less = [one.seconds - other.seconds for one, other in zip(ours, turns, strict=True)]
            yield Row(f"{case}: {LESS}", 1000 * statistics.median(less), note="in the same turn")

    yield from _beside_our_page(case, shown)


def _beside_our_page(case: str, shown: Turns) -> Iterator[Row]:
    """The time of other libraries' pages as a multiple of our standalone page's. All of them are made and then opened."""
    ours = shown.get(PAGE, [])
    for name in (BARE, SUBPLOTS, *peers.NAMES.values()):
        turns = shown.get(name, "")
        if isinstance(turns, str):
            row = _could_not(f"{case}: {name}: {TIMES}", turns, ours)
        else:
            row = Row(f"{case}: {name}: {TIMES}", float("nan"), _ratio(turns, ours))
        if row.ratio is not None:
            yield row


def _could_not(name: str, why: str, ours: list[Shown] | str) -> Row:
    """The row of a library that was stopped: lower bounds of its seconds and of its ratio to ours."""
    if why != f"> {peers.SECONDS} s" or isinstance(ours, str) or not ours:
        return Row(name, float("nan"), note=why)
    seconds = peers.SECONDS / statistics.median(turn.seconds for turn in ours)
    return Row(name, 1000.0 * peers.SECONDS, seconds, "cut", least=True)


def _ratio(turns: list[Shown], ours: list[Shown] | str) -> float | None:
    """The ratio to ours: the median over turns, or the ratio of medians where it was measured once."""
    if isinstance(ours, str) or not ours:
        return None
    own, baseline = [turn.seconds for turn in turns], [turn.seconds for turn in ours]
    return ratio(own, baseline) if len(own) == len(baseline) else statistics.median(own) / statistics.median(baseline)
