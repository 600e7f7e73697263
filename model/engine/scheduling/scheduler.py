"""Scheduler: runs of many callers on one device; calls that they make at the same time are computed as one batch.

A worker thread does one run at a time: it reads, chooses tokens and records. It hands calls of its network to the compute thread.
That one computes the oldest pending call, with all that can be batched with it, as soon as the device is free. A call that can be
batched stays up to GATHER_SECONDS for runs that began, or were answered, just before (call_queue.py): a run that is slow in its own
thread delays the others once, by that time.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from model.engine.call_queue import GATHER_SECONDS, CallQueue, PendingCall
from model.engine.scheduling.queue import DEPARTURE, Queue, Ticket
from model.errors import Busy, EngineAway, OutOfMemory, RunFailed, Superseded, TookTooLong
from model.inference import batching
from model.inference.batching import Ask, Call

MOST_WAITING = 256
MOST_RUNNING = 32
DEADLINE = 120.0
"""Seconds that a caller waits."""

IDLE_SECONDS = 10.0
"""A worker thread that had nothing to do for so long ends."""

_log = logging.getLogger("headlight.engine")


class Scheduler:
    """Schedules runs and their calls. Safe to be used from many threads.

    Args:
        most_waiting: tickets in the queue; one more is refused at once.
        most_running: runs that are on their way at the same time: so many worker threads there are at most.
        deadline: seconds that a caller waits.
        together: answers calls of one batch.
        gather: seconds that a call waits at most for others to be batched with it.
    """

    def __init__(
        self,
        most_waiting: int = MOST_WAITING,
        most_running: int = MOST_RUNNING,
        deadline: float = DEADLINE,
        together: Callable[[Sequence[Call]], Sequence[Tensor | Exception]] = batching.together,
        gather: float = GATHER_SECONDS,
    ) -> None:
        self._most_running, self._deadline, self._together = most_running, deadline, together
        self._lock = threading.Lock()
        self._called = threading.Condition(self._lock)  # the compute thread waits for it
        self._joined = threading.Condition(self._lock)  # idle worker threads wait for it
        self._line = Queue(most_waiting)
        self._calls = CallQueue(gather)
        self._running = self._workers = self._idle = 0
        self._compute: threading.Thread | None = None
        self._started = self._closed = False
        self.batches: Counter[int] = Counter()

    @property
    def waiting(self) -> int:
        """Tickets in the queue."""
        with self._lock:
            return len(self._line)

    @property
    def running(self) -> int:
        """Runs on their way."""
        return self._running

    def start(self) -> "Scheduler":
        """Begins to work."""
        with self._lock, suppress(Busy):
            self._started = True
            self._begin_to_compute()
            for _ in range(min(len(self._line), self._most_running)):
                self._hire()
        return self

    def alive(self) -> bool:
        """Whether the compute thread lives. Where it does not, another one is started, so that the next answer is yes."""
        with self._lock:
            found = self._compute is not None and self._compute.is_alive() and not self._closed
            if not found and self._started and not self._closed:
                _log.error({"event": "the compute thread had ended"})
                with suppress(Busy):
                    self._begin_to_compute()
        return found

    def close(self) -> None:
        """Ends it: who still waits is told that there is no engine any more."""
        away = EngineAway(host="this process", seconds=0)
        with self._lock:
            self._closed = True
            while (ticket := self._line.next()) is not None:
                ticket.tell(away)
            self._calls.refuse(away)
            self._called.notify_all()
            self._joined.notify_all()

    def do(self, request: Hashable, work: Callable[[Ask], Any], session: str = "") -> Any:
        """What `work` returns; equal requests in flight are worked on once.

        Args:
            work: given what answers its calls.
            session: whose it is: an older request of the same session is given up.

        Raises:
            Busy: the queue is full, or the system starts no thread.
            Superseded: a newer request of the session took its place.
            TookTooLong: the deadline is over.
            EngineAway: it was closed.
            RunFailed: the run ended by what is no Exception.
            Left: the caller has gone away.
            Exception: what `work` raised.
        """
        began = time.monotonic()
        with self._lock:
            if self._closed:
                raise EngineAway(host="this process", seconds=0)
            ticket, waiter = self._line.join(request, work, session)
            try:
                self._see_to_threads()
            except Busy:
                self._line.leave(ticket, waiter)
                raise
        if departure := DEPARTURE.get():
            departure.of(waiter)
        told = waiter.told.wait(self._deadline)
        with self._lock:
            self._line.leave(ticket, waiter)
        if not told:
            raise TookTooLong(seconds=round(time.monotonic() - began))
        if isinstance(waiter.outcome, Exception):
            raise waiter.outcome
        return waiter.outcome

    def _see_to_threads(self) -> None:
        """A compute thread, and a worker for each ticket as far as they go; with none at all, the caller is refused."""
        if not self._started:
            return
        self._begin_to_compute()
        if len(self._line) > self._idle and self._workers < self._most_running:
            try:
                self._hire()
            except Busy:
                if not self._workers:
                    raise
        self._joined.notify()

    def _begin_to_compute(self) -> None:
        """Starts the compute thread, unless it lives."""
        if self._compute is None or not self._compute.is_alive():
            self._compute = self._thread(self._compute_calls, "headlight-compute")

    def _hire(self) -> None:
        """Starts a worker thread."""
        self._thread(self._work, "headlight-run")
        self._workers += 1

    def _thread(self, target: Callable[[], None], name: str) -> threading.Thread:
        """A thread that has started.

        Raises:
            Busy: the system starts no more threads.
        """
        thread = threading.Thread(target=target, name=name, daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            raise Busy(ahead=self._running) from error
        return thread

    def _compute_calls(self) -> None:
        """The compute thread. What it cannot survive ends it: who waits for it is told, and the next caller starts another one."""
        try:
            with torch.inference_mode():
                while group := self._next_calls():
                    self._answer(group)
        except BaseException as error:
            _log.exception({"event": "the compute thread ends"})
            with self._lock:
                self._compute = None
                self._calls.refuse(_as_exception(error))

    def _next_calls(self) -> list[PendingCall]:
        """Waits for the calls to be computed now; none: it was closed."""
        with self._lock:
            while not self._closed:
                patience = self._calls.patience() if len(self._calls) else None
                if patience is not None and patience <= 0:
                    return self._calls.take()
                self._called.wait(patience)
        return []

    def _answer(self, group: list[PendingCall]) -> None:
        self.batches[len(group)] += 1
        answers: Sequence[Tensor | Exception]
        try:
            answers = self._together([pending.call for pending in group])
        except BaseException as error:
            answers = [_as_exception(error)] * len(group)
        with self._lock:
            for pending in group:
                self._calls.expect(pending.ticket)
        for pending, answer in zip(group, answers, strict=True):
            pending.tell(answer)

    def _work(self) -> None:
        """A worker thread: one run after the other."""
        while (ticket := self._next_ticket()) is not None:
            self._run(ticket)
            del ticket  # or its trace would be kept until the next one

    def _next_ticket(self) -> Ticket | None:
        """Waits for a ticket; None: it was closed, or none came for a while."""
        with self._lock:
            self._idle += 1
            while (ticket := self._line.next()) is None:
                if self._closed or not (self._joined.wait(IDLE_SECONDS) or len(self._line)):
                    break
            self._idle -= 1
            if ticket is None:
                self._workers -= 1
            else:
                self._running += 1
                self._calls.expect(ticket)
        return ticket

    def _run(self, ticket: Ticket) -> None:
        try:
            outcome = ticket.work(lambda call: self._ask(ticket, call))
        except BaseException as error:
            outcome = _as_exception(error)
        if isinstance(outcome, OutOfMemory):
            batching.release()
        with self._lock:
            self._running -= 1
            self._calls.end(ticket)
            self._line.done(ticket)
            ticket.tell(outcome)
            self._called.notify()

    def _ask(self, ticket: Ticket, call: Call) -> Tensor:
        """Hands a call to the compute thread. A run for which nobody waits any more ends here."""
        with self._lock:
            if ticket.given_up:
                raise Superseded(model=getattr(ticket.request, "model", "?"))
            if self._closed:
                raise EngineAway(host="this process", seconds=0)
            self._begin_to_compute()
            pending = self._calls.add(ticket, call)
            self._called.notify()
        pending.answered.wait()
        if isinstance(pending.answer, Tensor):
            return pending.answer
        raise pending.answer or RuntimeError("a call without an answer")


def _as_exception(error: BaseException) -> Exception:
    """What a caller is told of an error: a library that is no Python may raise what is no Exception."""
    if isinstance(error, Exception):
        return OutOfMemory(device="the device", found="all") if batching.is_out_of_memory(error) else error
    _log.error({"event": "a run ended by what is no Exception"}, exc_info=error)
    told = RunFailed(error=type(error).__name__)
    told.__cause__ = error
    return told
