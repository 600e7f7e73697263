"""The workshop: runs of many callers on one device, what they ask of a network at the same time computed at once.

Each run has a thread of its own, in which it reads, chooses tokens and records. What it asks of its network it hands to the one
thread that computes. That one waits until every run has asked or ended, answers as many calls as fit together, and goes on: so runs
may begin and end at any time, and a run that is computed alone is only a batch of one.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from model import batching
from model.batching import Ask, Call
from model.engine.line import DEPARTURE, Line, Ticket
from model.errors import EngineAway, OutOfMemory, Superseded, TookTooLong

MOST_WAITING = 256
MOST_RUNNING = 32
DEADLINE = 120.0
"""Seconds that a caller waits."""


@dataclass(eq=False)
class _Pending:
    """A call that waits for its answer."""

    ticket: Ticket
    call: Call
    kind: object
    answered: threading.Event = field(default_factory=threading.Event)
    answer: Tensor | Exception | None = None


class Workshop:
    """Does the work of tickets, several at a time. Safe to be used from many threads.

    Args:
        most_waiting: tickets in the line; one more is refused at once.
        most_running: runs that are on their way at the same time.
        deadline: seconds that a caller waits.
        together: answers calls that are alike.
    """

    def __init__(
        self,
        most_waiting: int = MOST_WAITING,
        most_running: int = MOST_RUNNING,
        deadline: float = DEADLINE,
        together: Callable[[Sequence[Call]], Sequence[Tensor | Exception]] = batching.together,
    ) -> None:
        self._most_running, self._deadline, self._together = most_running, deadline, together
        self._changed = threading.Condition()
        self._line = Line(most_waiting)
        self._pending: list[_Pending] = []
        self._running = self._busy = 0  # runs on their way; those of them that do not wait for an answer
        self._closed = False
        self.batches: Counter[int] = Counter()

    @property
    def waiting(self) -> int:
        """Tickets in the line."""
        with self._changed:
            return len(self._line)

    @property
    def running(self) -> int:
        """Runs on their way."""
        return self._running

    def start(self) -> "Workshop":
        """Begins to compute."""
        threading.Thread(target=self._compute, name="headlight-compute", daemon=True).start()
        return self

    def close(self) -> None:
        """Ends it: who still waits is told that there is no engine any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def do(self, request: Hashable, work: Callable[[Ask], Any], session: str = "") -> Any:
        """What `work` returns; equal requests in flight are worked on once.

        Args:
            work: given what answers its calls.
            session: whose it is: an older request of the same session is given up.

        Raises:
            Busy: the line is full.
            Superseded: a newer request of the session took its place.
            TookTooLong: the deadline is over.
            Left: the caller has gone away.
            Exception: what `work` raised.
        """
        began = time.monotonic()
        with self._changed:
            ticket, waiter = self._line.join(request, work, session)
            self._changed.notify_all()
        if departure := DEPARTURE.get():
            departure.of(waiter)
        told = waiter.told.wait(self._deadline)
        with self._changed:
            self._line.leave(ticket, waiter)
            self._changed.notify_all()
        if not told:
            raise TookTooLong(seconds=round(time.monotonic() - began))
        if isinstance(waiter.outcome, Exception):
            raise waiter.outcome
        return waiter.outcome

    def _compute(self) -> None:
        """The one thread that computes."""
        with torch.inference_mode():
            while group := self._next():
                self.batches[len(group)] += 1
                answers = self._together([pending.call for pending in group])
                with self._changed:
                    self._busy += len(group)
                for pending, answer in zip(group, answers, strict=True):
                    pending.answer = answer
                    pending.answered.set()

    def _next(self) -> list[_Pending]:
        """Waits for the calls to be computed now; none: the workshop is closed."""
        with self._changed:
            while not self._closed:
                self._admit()
                if self._pending and not self._busy:
                    return self._take()
                self._changed.wait()
            away = EngineAway(host="this process", seconds=0)
            while (ticket := self._line.next()) is not None:
                ticket.tell(away)
            for pending in self._pending:
                pending.answer = away
                pending.answered.set()
        return []

    def _admit(self) -> None:
        """Lets those begin whose turn it is."""
        while self._running < self._most_running and (ticket := self._line.next()) is not None:
            self._running += 1
            self._busy += 1
            threading.Thread(target=self._run, args=(ticket,), name="headlight-run", daemon=True).start()

    def _take(self) -> list[_Pending]:
        """The call that waits for longest, and all that can be computed with it."""
        group = [pending for pending in self._pending if pending.kind == self._pending[0].kind]
        group = group[: batching.room([pending.call for pending in group])]
        self._pending = [pending for pending in self._pending if pending not in group]
        return group

    def _run(self, ticket: Ticket) -> None:
        """The thread of one run."""
        try:
            outcome = ticket.work(lambda call: self._ask(ticket, call))
        except Exception as error:
            outcome = OutOfMemory(device="the device", found="all") if batching.is_out_of_memory(error) else error
        if isinstance(outcome, OutOfMemory):
            batching.release()
        with self._changed:
            self._running -= 1
            self._busy -= 1
            self._line.done(ticket)
            ticket.tell(outcome)
            self._changed.notify_all()

    def _ask(self, ticket: Ticket, call: Call) -> Tensor:
        """Hands a call to the thread that computes. A run for which nobody waits any more ends here."""
        pending = _Pending(ticket, call, batching.alike(call))
        with self._changed:
            if ticket.given_up:
                raise Superseded(model=getattr(ticket.request, "model", "?"))
            self._pending.append(pending)
            self._busy -= 1
            self._changed.notify_all()
        pending.answered.wait()
        if isinstance(pending.answer, Tensor):
            return pending.answer
        raise pending.answer or RuntimeError("a call without an answer")
