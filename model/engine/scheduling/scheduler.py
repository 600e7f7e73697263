"""Scheduler: runs requests of many callers on one device; simultaneous network calls are computed as one batch.

A worker thread executes one run at a time: it tokenizes, hands network calls to the compute thread, and makes the trace.
The compute thread takes the oldest pending call, with all calls that can be batched with it, as soon as the device is free. Where
the next call of a run follows from the answer (`Call.then`: steps of a decode), it is made there, and the worker waits on. A call
that can be batched waits up to GATHER_SECONDS for runs that began, or got an answer, just before (call_queue.py): a run that is
slow in its own thread delays the others once, by that time.
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

from model.engine.scheduling.call_queue import GATHER_SECONDS, CallQueue, PendingCall
from model.engine.scheduling.queue import SESSION, CallerGone, Queue, Ticket, on_cancel
from model.errors import Busy, EngineStopped, NoMemoryLeft, OutOfMemory, RunFailed, Superseded, TookTooLong
from model.inference import batching
from model.inference.calls import Ask, Call
from model.sharing import system_memory
from model.trace.progress import Report

MOST_WAITING = 256
"""Most requests in the queue; more are refused at once."""

MOST_RUNNING = 32
"""Most simultaneous runs, each with a thread of its own."""

DEADLINE = 120.0
"""Longest time that a caller waits without any report of progress. A caller who hears reports goes on waiting: they can see how far
the work is, and stop it."""

IDLE_SECONDS = 10.0
"""A worker thread that is idle for so long ends."""

ALONE_SECONDS = 30.0
"""Longest time that a run without enough memory waits for the runs beside it to end, before it begins again."""

_log = logging.getLogger("headlight.engine")


class Scheduler:
    """Schedules runs and their network calls. Thread-safe.

    Args:
        most_waiting: most tickets in the queue; more are refused at once.
        most_running: most simultaneous runs, and so most worker threads.
        deadline: most seconds that a caller waits without hearing of progress.
        together: computes the calls of one batch.
        gather: most seconds that a call waits for others to be batched with it.
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
        # One lock guards everything below. It is held for bookkeeping alone, never while a run thinks or the device computes, so
        # that nobody waits long for it. Callers, who may wait for minutes, and runs wait on an Event of their ticket or call.
        self._lock = threading.Lock()
        self._called = threading.Condition(self._lock)  # the compute thread waits for it
        self._joined = threading.Condition(self._lock)  # idle worker threads wait for it
        self._ended = threading.Condition(self._lock)  # runs that had too little memory wait for it
        self._one_by_one = threading.Lock()  # of those runs
        self._failed = 0  # how many there are
        # Requests wait in `_queue` for a worker thread; network calls of those that run wait in `_calls` for the
        # device.
        self._queue = Queue(most_waiting)
        self._calls = CallQueue(gather)
        # Runs that are executed, worker threads, and those of them that wait for a request.
        self._running = self._workers = self._idle = 0
        self._compute: threading.Thread | None = None
        self._started = self._closed = False
        # How many batches there were of each size, for the metrics. Only the compute thread writes it.
        self.batches: Counter[int] = Counter()

    @property
    def waiting(self) -> int:
        """Number of tickets in the queue."""
        with self._lock:
            return len(self._queue)

    @property
    def running(self) -> int:
        """Number of runs being executed."""
        return self._running

    def start(self) -> "Scheduler":
        """Starts the threads."""
        # Where the system has no thread left, the first caller tries again, and is told if that fails, too.
        with self._lock, suppress(Busy):
            self._started = True
            self._ensure_compute_thread()
            for _ in range(min(len(self._queue), self._most_running)):
                self._start_worker()
        return self

    def alive(self) -> bool:
        """Whether the compute thread is alive. If not, another one is started, so that the next answer is yes."""
        with self._lock:
            alive = self._compute is not None and self._compute.is_alive() and not self._closed
            if not alive and self._started and not self._closed:
                _log.error({"event": "the compute thread had ended"})
                with suppress(Busy):
                    self._ensure_compute_thread()
        return alive

    def close(self) -> None:
        """Stops the threads; waiting callers get EngineAway."""
        away = EngineStopped()
        with self._lock:
            # The order: no new request gets in from here on; those that wait are refused; calls of running runs are
            # refused, so the runs end; and the threads that sleep are woken, to see that it is over.
            self._closed = True
            while (ticket := self._queue.next()) is not None:
                ticket.finish(away)
            self._calls.refuse(away)
            self._called.notify_all()
            self._joined.notify_all()

    def do(self, request: Hashable, work: Callable[[Ask, Report], Any]) -> Any:
        """The result of `work`; equal requests in flight are computed once. An older request of this session is superseded.

        Args:
            work: computes the result; its arguments answer its network calls and report its progress.

        Raises:
            Busy: the queue is full, or the system cannot start a thread.
            Superseded: a newer request of the session replaced it.
            TookTooLong: the deadline passed.
            EngineAway: the scheduler was closed.
            RunFailed: the run raised a BaseException that is not an Exception.
            CallerGone: the caller has disconnected.
            Exception: whatever `work` raised.
        """
        # The caller's own thread: it joins the queue, sleeps until its outcome is there, and raises or returns it.
        began, heard = time.monotonic(), 0
        with self._lock:
            if self._closed:
                raise EngineStopped()
            # Joining and waking a worker happen under one lock, so no worker can go to sleep in between and miss
            # the ticket.
            ticket, waiter = self._queue.join(request, work, SESSION.get().id)
            try:
                self._ensure_threads()
            except Busy:
                self._queue.leave(ticket, waiter)
                raise
        # The deadline counts from the last report that somebody heard: a long decode whose tokens are watched goes
        # on. Where a whole deadline brought no report, this caller gives up.
        with on_cancel(lambda: waiter.finish(CallerGone())):
            while not (finished := waiter.finished.wait(self._deadline)) and ticket.heard > heard:
                heard = ticket.heard
        # Whatever happened, this caller waits no more. If it was the last one, the run ends at its next call.
        with self._lock:
            self._queue.leave(ticket, waiter)
        if not finished:
            raise TookTooLong(seconds=round(time.monotonic() - began))
        if isinstance(waiter.outcome, Exception):
            raise waiter.outcome
        return waiter.outcome

    def _ensure_threads(self) -> None:
        """Makes sure that the compute thread and enough workers run. Raises Busy if there is no worker at all. Holds the lock."""
        if not self._started:
            return
        self._ensure_compute_thread()
        # Workers are started only where requests wait that no idle worker will take, and end when they were idle
        # for a while: an app that nobody uses has none. An idle worker that was just woken counts as idle until it
        # has the lock and takes a ticket out, so both numbers still hold its request.
        if len(self._queue) > self._idle and self._workers < self._most_running:
            try:
                self._start_worker()
            except Busy:
                if not self._workers:  # else the workers that there are do it, one run after the other
                    raise
        self._joined.notify()

    def _ensure_compute_thread(self) -> None:
        # It should live as long as the scheduler. If an error has ended it all the same, this caller starts another
        # one.
        if self._compute is None or not self._compute.is_alive():
            self._compute = self._thread(self._compute_calls, "headlight-compute")

    def _start_worker(self) -> None:
        self._thread(self._work, "headlight-run")
        self._workers += 1

    def _thread(self, target: Callable[[], None], name: str) -> threading.Thread:
        """Starts a thread. Raises Busy if the system cannot start another one."""
        # Daemon: the process may end without waiting for a run that is in the middle of its work.
        thread = threading.Thread(target=target, name=name, daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            raise Busy(ahead=self._running) from error
        return thread

    def _compute_calls(self) -> None:
        """The compute thread's loop. A fatal error ends it: pending calls get the error, and the next caller starts a new one."""
        try:
            # Inference mode belongs to a thread, so the one that computes has to enter it by itself.
            with torch.inference_mode():
                while group := self._next_calls():
                    self._answer(group)
                    del group  # else what these runs computed stays in memory until the next call
        except BaseException as error:
            _log.exception({"event": "the compute thread ends"})
            with self._lock:
                # Taken away under the same lock that refuses its calls: a call that comes later starts a new
                # thread, none is lost.
                self._compute = None
                self._calls.refuse(_as_exception(error))

    def _next_calls(self) -> list[PendingCall]:
        """Waits for the next batch of calls; empty: the scheduler was closed. It wakes when a call arrives, when a run ends (nobody
        has to wait for that run's next call any more), and when the oldest call has waited long enough for others."""
        with self._lock:
            while not self._closed:
                # Without any call it sleeps until somebody wakes it; with one, at most until that call is due. A
                # wake-up does not mean that something is due: the loop asks again each time.
                patience = self._calls.patience() if len(self._calls) else None
                if patience is not None and patience <= 0:
                    return self._calls.take()
                self._called.wait(patience)
        return []

    def _answer(self, group: list[PendingCall]) -> None:
        """Computes a batch. Runs whose next call follows from the answer make it; the threads of the others get the answer."""
        # No lock here: the device may compute for seconds. Only this thread takes calls, so the group belongs to it
        # alone.
        self.batches[len(group)] += 1
        try:
            answers = self._together([pending.call for pending in group])
        except BaseException as error:
            # An error of the batch as a whole, such as one of the device, is that of each of its runs. An error of
            # one run alone comes as its answer, beside the results of the others.
            answers = [_as_exception(error)] * len(group)
        # The next step of a decode is made here, without the lock: the run's own thread would only call again, once per token.
        outcomes = [_outcome(pending.call, answer) for pending, answer in zip(group, answers, strict=True)]
        with self._lock:
            # Three cases for each run. Its thread gets an answer: it will call again soon, so others may wait for
            # it. It wants another step, but its callers have left or the engine stops: its thread gets that error.
            # Else the step is queued.
            for index, (pending, outcome) in enumerate(zip(group, outcomes, strict=True)):
                if not isinstance(outcome, Call):
                    self._calls.expect(pending.ticket)
                elif (refusal := self._refusal(pending.ticket)) is not None:
                    outcomes[index] = refusal
                else:
                    self._calls.follow(pending, outcome)
        # Threads are woken after the lock was released: each of them needs it for its next call.
        for pending, outcome in zip(group, outcomes, strict=True):
            if not isinstance(outcome, Call):
                pending.finish(outcome)

    def _work(self) -> None:
        """A worker thread's loop: one run after the other."""
        while (ticket := self._next_ticket()) is not None:
            self._run(ticket)
            del ticket  # else its trace stays in memory until the next one
        # What a run computed is freed with it, but the allocator keeps it: the caches ask for it where they free something, and of
        # a run that was stopped they never held anything.
        system_memory.give_back()

    def _next_ticket(self) -> Ticket | None:
        """Waits for a ticket; None: the scheduler was closed, or none came for a while."""
        with self._lock:
            # Counted before it waits and no more after it: `_ensure_threads` starts another thread only where this
            # is too small.
            self._idle += 1
            while (ticket := self._queue.next()) is None:
                # The wait ends by a wake-up, or by time. A ticket may arrive at the very end of that time, hence
                # the second look.
                if self._closed or not (self._joined.wait(IDLE_SECONDS) or len(self._queue)):
                    break
            self._idle -= 1
            # Still under the lock: whoever joins next sees the right number of threads.
            if ticket is None:
                self._workers -= 1
            else:
                self._running += 1
                self._calls.expect(ticket)  # batches of the next 20 ms wait for its first call
        return ticket

    def _run(self, ticket: Ticket) -> None:
        # A run whose memory was taken by its neighbors gets a second try, alone; a run that is too large by itself
        # fails again.
        outcome, tries = self._tried(ticket), 1
        if isinstance(outcome, OutOfMemory):
            del outcome  # it holds what the try recorded
            outcome, tries = self._tried_alone(ticket), 2
        with self._lock:
            # All of it at once, under the lock: an equal request that comes before this finds a ticket that still
            # gets its outcome, and one that comes after it makes a ticket of its own.
            self._running -= 1
            self._failed -= tries - 1
            self._calls.end(ticket)
            self._queue.done(ticket)
            ticket.finish(outcome)
            # The compute thread may be waiting for this run's next call, which will not come, and runs without
            # memory for its end.
            self._called.notify()
            self._ended.notify_all()

    def _tried(self, ticket: Ticket) -> Any:
        try:
            return ticket.work(lambda call: self._ask(ticket, call), ticket.report)
        except BaseException as error:
            return _as_exception(error)

    def _tried_alone(self, ticket: Ticket) -> Any:
        """The outcome of a second try of a run that had too little memory, made when those beside it have ended, or failed like it.

        The runs beside it may have held what it needed. Without this, a device with room for one run would refuse several runs
        that came at the same time, although it can do them one after the other.
        """
        with self._lock:
            # All failed runs wait for the same moment: when every run that still goes is one of those that failed.
            # Then nobody is left whose end could free memory, and they go one after the other.
            self._failed += 1
            self._calls.end(ticket)  # else the first of them to begin again waits for calls of those that wait for it
            self._called.notify()
            self._ended.notify_all()
            self._ended.wait_for(lambda: self._running == self._failed, ALONE_SECONDS)
        batching.release()
        with self._one_by_one:
            outcome = self._tried(ticket)
        if isinstance(outcome, OutOfMemory):
            batching.release()
        return outcome

    def _ask(self, ticket: Ticket, call: Call) -> Tensor:
        """The compute thread's answer to a call, or to the last call that follows it. A run whose callers all left ends here."""
        with self._lock:
            # A run notices here that nobody wants it any more: between two calls is the only place where it can be
            # stopped.
            if (refusal := self._refusal(ticket)) is not None:
                raise refusal
            self._ensure_compute_thread()
            pending = self._calls.add(ticket, call)
            self._called.notify()
        # Outside the lock, and without a time limit: the compute thread answers every call that it takes, and
        # `refuse` those that nobody will take any more.
        pending.answered.wait()
        if isinstance(pending.answer, Tensor):
            return pending.answer
        raise pending.answer or RuntimeError("a call without an answer")

    def _refusal(self, ticket: Ticket) -> Exception | None:
        """Why a run may make no more calls; None: it may."""
        if not ticket.waiters:
            return Superseded(model=getattr(ticket.request, "model", "?"))
        return EngineStopped() if self._closed else None


def _outcome(call: Call, answer: Tensor | Exception) -> Call | Tensor | Exception:
    """The call that follows an answered one; if none does, what the run's thread gets."""
    if call.then is None or isinstance(answer, Exception):
        return answer
    try:
        # `then` is code of the run, for example the choice of the next token; an error in it is that of this run
        # alone.
        return call.then(answer) or answer
    except BaseException as error:
        return _as_exception(error)


def _as_exception(error: BaseException) -> Exception:
    """The Exception to raise for an error: native libraries may raise BaseExceptions that are not Exceptions."""
    if isinstance(error, Exception):
        return NoMemoryLeft() if batching.is_out_of_memory(error) else error
    _log.error({"event": "a run ended by what is no Exception"}, exc_info=error)
    failed = RunFailed(error=type(error).__name__)
    failed.__cause__ = error
    return failed
