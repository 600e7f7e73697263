"""How far a slow command has come, on standard error: the cost first, then a bar, or a line every few seconds in a log."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from tqdm import tqdm

from model.inspection.tensor_stats import TENSORS_READ
from model.trace.progress import OnCount

QUIET = 2.0
"""Seconds that a command may take without saying for how long."""

EVERY = 5.0
"""Seconds between two lines where standard error is no terminal."""


@contextmanager
def still_working(doing: str) -> Iterator[Callable[[], None]]:
    """Says every few seconds that a command still works, and of how many tensors it has read the numbers; nothing if it is quick.

    Args:
        doing: what it does, as a sentence begins: "Opening smollm2".

    Yields:
        a function that ends it, which any thread may call.
    """
    read, ended, began = (0, 0), threading.Event(), time.monotonic()

    def note(done: int, of: int) -> None:
        nonlocal read
        read = done, of

    def say() -> None:
        wait = QUIET
        while not ended.wait(wait):
            tensors = f", {read[0]:,} of {read[1]:,} tensors read" if read[1] else ""
            click.echo(f"{doing}: {time.monotonic() - began:.0f} s{tensors}.", err=True)
            wait = EVERY

    before = TENSORS_READ.set(note)
    thread = threading.Thread(target=say, daemon=True, name="still working")
    thread.start()
    try:
        yield ended.set
    finally:
        ended.set()
        thread.join()
        TENSORS_READ.reset(before)


@contextmanager
def progress_of(what: str) -> Iterator[OnCount]:
    """Tells how much of a measurement is done.

    Args:
        what: the things that are counted, in the plural: "edited copies of the run".

    Yields:
        a function that is called with the number done and the number of all, as far as it is known; with 0 first where the cost is
        to be told whatever it is.
    """
    counter = _Counter(what)
    try:
        yield counter.count
    except KeyboardInterrupt:
        counter.ended = True
        counter.bar.close()
        if counter.of:
            click.echo(f"Stopped after {counter.done:,} of {counter.of:,} {what}: there is no result.", err=True)
        raise
    finally:
        counter.bar.close()


class _Counter:
    """Counts, and prints how far it is."""

    def __init__(self, what: str) -> None:
        self.what, self.done, self.of, self.ended = what, 0, 0, False
        self.bar = tqdm(disable=None, leave=False, delay=QUIET)  # None: only a terminal shows it
        self._began = self._last_line = time.monotonic()
        self._start = 0

    def count(self, done: int, of: int) -> None:
        """Notes how many of all are done, and says it where it is time to.

        Where nobody counts from 0, time begins with the first: the first token of a run waits for what is only done once.
        """
        if self.ended:
            return  # stopped by Ctrl+C: the thread that measures may go on until the program ends
        if not done:
            click.echo(f"To measure: {of:,} {self.what}.", err=True)
        if not done or not self.of:
            self._began, self._last_line, self._start = (now := time.monotonic()), now, done
        was, self.done, self.of = self.done, done, of
        seconds, made = time.monotonic() - self._began, done - self._start
        left = seconds / made * (of - done) if made else 0.0
        if made and was <= self._start and left > QUIET:
            self._print(f"Estimate after {done:,} of {of:,} {self.what}: about {_span(seconds + left)} in all.")
        elif made and self.bar.disable and left and time.monotonic() - self._last_line >= EVERY:
            self._print(f"{done:,} of {of:,}, {made / seconds:.1f} a second, about {_span(left)} left.")
        self.bar.total = of
        self.bar.update(done - self.bar.n)

    def _print(self, line: str) -> None:
        self._last_line = time.monotonic()
        with tqdm.external_write_mode(file=sys.stderr):
            click.echo(line, err=True)


def _span(seconds: float) -> str:
    return f"{seconds:,.0f} seconds" if seconds < 120 else f"{seconds / 60:,.0f} minutes"
