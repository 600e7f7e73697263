"""Aims: the limits that measured numbers should keep, and a table of both. Nothing is measured here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, isnan
from typing import Literal

from benchmarks import alternatives as other
from benchmarks import (
    app_resources,
    drawing,
    giving_way,
    handling,
    images,
    known,
    live,
    memory,
    peers,
    recording,
    sound,
    survey,
    whatif,
    why,
)
from benchmarks.load import CACHED_RATIO, CACHED_SECONDS
from benchmarks.timing import Row


@dataclass(frozen=True)
class Aim:
    """An aim: a bound on one measured number.

    Attributes:
        case: name of the aim in the table.
        row: case of the measured row; where it ends in …, the beginning of that case.
        of: number of that row; `slower` is 1 / ratio: our time as a multiple of the alternative's.
        bound: upper bound of the number; None: the number is shown without an aim.
        unit: unit of the number.
        least: whether `bound` is a lower bound.
        aim: in words, where bound and unit do not say it.
    """

    case: str
    row: str
    of: Literal["milliseconds", "ratio", "slower", "megabytes"]
    bound: float | None
    unit: str = "×"
    least: bool = False
    aim: str = ""

    def line(self, rows: Sequence[Row]) -> tuple[str, str, str, str]:
        """One line of the table: case, aim, measured number, and whether the aim is met (yes, no, or empty: not known)."""
        aim = self.aim or ("" if self.bound is None else f"{'≥' if self.least else '≤'} {self.bound:g} {self.unit}")
        row = next((row for row in rows if row.case == self.row or row.case.startswith(self._beginning)), None)
        if row is None:
            return self.case, aim, "not measured", ""
        number = self._number(row)
        if number is None:  # the alternative failed: ours is better by any measure
            return self.case, aim, row.note, "yes" if row.note.startswith(">") else ""
        sign = "" if not row.least else "< " if self.of == "slower" else "> "
        return self.case, aim, f"{sign}{_written(number)} {self.unit}", self._met(number)

    @property
    def _beginning(self) -> str | tuple[str, ...]:
        return self.row[:-1] if self.row.endswith("…") else ()

    def _number(self, row: Row) -> float | None:
        number = 1 / row.ratio if self.of == "slower" and row.ratio else None if self.of == "slower" else getattr(row, self.of)
        return None if number is None or isnan(number) else number

    def _met(self, number: float) -> str:
        if self.bound is None:
            return ""
        return "yes" if (number >= self.bound if self.least else number <= self.bound) else "**no**"


def _written(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def table(rows: Sequence[Row]) -> str:
    """The aims as a Markdown table."""
    lines = ["| case | aim | measured | met |", "|---|--:|--:|---|"]
    return "\n".join(lines + [f"| {' | '.join(aim.line(rows))} |" for aim in AIMS])


# --- The aims -----------------------------------------------------------------------------------------------------------

SMALL, MEDIUM, HEADS, PADDED, LARGE = map(str, drawing.CASES)


def _small() -> Iterator[Aim]:
    yield from _opening(SMALL, 500, 2.6, less=100)
    for name, times in ((peers.NAMES["bertviz-model-view"], 60), (peers.NAMES["inspectus"], 3), (other.SUBPLOTS, 6)):
        yield Aim(f"{SMALL}: {name}, times our page", f"{SMALL}: {name}: {drawing.TIMES}", "ratio", times, least=True)
        yield Aim(f"{SMALL}: {name}, times our whole Streamlit tab", f"{SMALL}: {name}", "ratio", times, least=True)
    bare = f"{SMALL}: {other.BARE}"
    yield Aim(f"{SMALL}: our page, times {other.BARE} (stretch)", f"{bare}: {drawing.TIMES}", "slower", 1.5)
    yield Aim(f"{SMALL}: our whole Streamlit tab, times {other.BARE} (stretch)", bare, "slower", 1.5)
    for name in handling.SWITCH:
        row = f"{handling.KINDS}: a click on another {name}"
        yield Aim(f"another {name}, in the browser", row, "milliseconds", 50, "ms")
        yield Aim(f"another {name}, weights fetched", row, "megabytes", 0, "MB")


def _large() -> Iterator[Aim]:
    yield from _opening(MEDIUM, 700, 3, less=200)
    yield Aim(f"{MEDIUM}: any head exact, from the click", f"{MEDIUM}: a head exact, from the click", "milliseconds", 300, "ms")
    yield from _opening(HEADS, 1000, 8)
    yield Aim(f"{HEADS}: another head, in the browser", handling.ANOTHER, "milliseconds", 50, "ms")
    yield from _opening(PADDED, 800)
    yield Aim(
        f"{PADDED}: share of padding in a tile, of the true share",
        f"{PADDED}: padding in a tile",
        "ratio",
        0.8,
        least=True,
        aim="seen",
    )
    yield Aim(f"{PADDED}: exact head moved", f"{PADDED}: moving", "ratio", 30, "frames/s", least=True)
    yield from _opening(LARGE, 1500)
    yield Aim(f"{LARGE}: opened large, from the click", f"{LARGE}: opened large", "milliseconds", 1500, "ms")
    yield Aim(f"{LARGE}: zoomed", f"{LARGE}: zooming", "ratio", 30, "frames/s", least=True)
    yield Aim(f"{LARGE}: moved", f"{LARGE}: moving", "ratio", 30, "frames/s", least=True)
    yield Aim(f"{LARGE}: hover, until exact", f"{LARGE}: hover, until exact", "milliseconds", inf, "ms", aim="exact")
    yield Aim(
        f"{LARGE}: memory of the server after 6 heads, of that after 3", f"{handling.MANY}: memory after 6 heads", "ratio", 1.1
    )


def _opening(case: str, ms: float, megabytes: float | None = None, less: float | None = None) -> Iterator[Aim]:
    """From the trace to the painted atlas in a fresh tab: our component as a page of its own, made and opened as the peers'
    pages are; and the whole tab of the app, also without the time of Streamlit's own start.

    Args:
        less: most milliseconds of the tab besides Streamlit's own start.
    """
    yield Aim(f"{case}: page of its own, from the trace to the picture", f"{case}: {other.PAGE}", "milliseconds", ms, "ms")
    yield Aim(f"{case}: whole Streamlit tab", f"{case}: {other.OURS}", "milliseconds", ms, "ms")
    yield Aim(f"{case}: the same less an empty Streamlit app", f"{case}: {drawing.LESS}", "milliseconds", less, "ms")
    if megabytes is not None:
        yield Aim(f"{case}: page of its own, bytes", f"{case}: {other.PAGE}", "megabytes", megabytes, "MB")
        yield Aim(f"{case}: transferred in the Streamlit tab", f"{case}: {other.OURS}", "megabytes", megabytes, "MB")


def _process() -> Iterator[Aim]:
    for title in recording.SPECS:
        for length, bound in zip(recording.LENGTHS, (1.1, 1.3, 1.1), strict=True):
            row = f"{title}, {length} tokens, as the app records"
            yield Aim(f"recording, {title}, {length:,} tokens", row, "ratio", bound)
    yield Aim("memory that recordings take, of the bytes recorded", "memory that recordings take", "ratio", 1.1)
    yield Aim(
        "decoding by reading the whole prefix again, times cached", "30 tokens, the beginning read anew", "ratio", 3, least=True
    )
    yield Aim("Enter → painted, less the model, of an app of one line", "Enter → painted, less the model", "ratio", 1.3)
    for words, bound in zip(live.WORDS, (100, 200), strict=True):
        yield Aim(
            f"key → painted at a pause, {words} words, p95",
            f"key → painted at a pause, {words} words, p95",
            "milliseconds",
            bound,
            "ms",
        )
    yield Aim("server CPU of a pause, times the model alone", "server CPU of a pause", "ratio", 1.2)
    yield Aim(
        f"{live.PEOPLE} people who type at once, p95, times one alone", f"{live.PEOPLE} people who type at once, p95", "ratio", 3
    )
    yield Aim(f"{live.PEOPLE} people who type at once, two processes, times one alone", live.PROCESSES, "ratio", 8)
    yield Aim(
        "first token painted, times one step plus a page of one line", "first of 60 tokens painted, GPT-2's size", "ratio", 1.5
    )
    yield Aim("longest frame while tokens come", "longest time between two frames while 60 tokens come", "milliseconds", 50, "ms")
    yield Aim("server CPU of a click that selects a head", "server CPU of a click that selects a head…", "milliseconds", 10, "ms")
    few, many = app_resources.FEW, app_resources.MANY
    yield Aim(f"memory after {many} sentences, of that after {few}", f"memory after {many} sentences", "ratio", 1.15)
    yield Aim(f"memory of {memory.SENTENCES} sentences of {memory.TOKENS} tokens, of the budget", memory.LAST, "ratio", 1.5)
    yield Aim("what each of 72 heads mattered, times one forced run", whatif.WITHOUT, "ratio", 8)
    yield Aim("prune until it breaks, times one forced run", whatif.PRUNE, "ratio", 100)
    yield Aim("a run beside another visitor’s long measurement, p95", f"{giving_way.BESIDE_WORDS}, p95", "milliseconds", 500, "ms")


def _known() -> Iterator[Aim]:
    """SmolLM2 beside the transformers library in the same process."""
    yield Aim("SmolLM2: opening, times the library", known.OPENING, "ratio", 1.3)
    for length in known.LENGTHS:
        yield Aim(f"SmolLM2: {known.feeding(length)}, times the library with its maps", known.feeding(length), "ratio", 1.1)
    for length in known.HELD:
        yield Aim(f"SmolLM2: {known.memory(length)}, times the library with its maps", known.memory(length), "ratio", 0.5)
    yield Aim(f"SmolLM2: {known.DECODING}, times the library", known.DECODING, "ratio", 1.15)
    yield Aim(f"SmolLM2: {known.PICTURE}, times the library’s forward pass", known.PICTURE, "ratio", 2)


def _images() -> Iterator[Aim]:
    """Networks that read images beside the transformers library in the same process."""
    for case in (case for size in images.SIZES for case in size.cases):
        yield Aim(f"{case}, times the library", case, "ratio", 1.2)


def _survey() -> Iterator[Aim]:
    """Surveys, beside the same runs without a measure."""
    yield Aim("survey: 72 heads of captions, times the same batches alone", survey.CAPTIONS, "ratio", 1.5)
    yield Aim("survey: 12 × 12 heads, 128 tokens, times the run alone", survey.LARGE, "ratio", 1.5)
    yield Aim("survey: memory after 10,000 texts, times that after 1,000", survey.MEMORY, "ratio", 1.1)
    yield Aim("survey: a stored one is read", survey.STORED, "milliseconds", 300, "ms")
    yield Aim("survey: a visitor's cached run beside one, p95, times alone", f"{survey.BESIDE}, p95", "ratio", CACHED_RATIO)
    yield Aim("survey: the longest of these", f"{survey.BESIDE}, longest", "milliseconds", 1000 * CACHED_SECONDS, "ms")
    yield Aim("survey: 20,000 queries and keys moved", survey.MOVED, "ratio", 30, "frames/s", least=True)
    yield Aim("survey: the same, drawn by plotly in each frame", survey.DRAWN, "ratio", None, "frames/s")


def _why() -> Iterator[Aim]:
    """Sums, beside the run that they take apart."""
    yield Aim("why: the score of one cell, 12 words", why.CELL, "milliseconds", 50, "ms")
    yield Aim("what wrote it: all heads of one token, times the run", why.TOKEN, "ratio", 3)


def _sound() -> Iterator[Aim]:
    yield Aim("Whisper, 30 s and tokens fed, times the library", sound.FEEDING, "ratio", 1.2)
    yield Aim("Whisper, 30 s, tokens written, times the library", sound.WRITING, "ratio", 1.2)


AIMS = (*_small(), *_large(), *_process(), *_known(), *_images(), *_survey(), *_why(), *_sound())
"""All aims, in the order in which they were set."""
