"""Request queue: bounded, first in first out, one place per session; equal requests share one ticket.

A newer request of a session replaces its older one, so no session can fill the queue.
"""

import threading
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from model.errors import Busy, Superseded


class CallerGone(Exception):
    """The caller has disconnected: nobody needs the outcome."""


class CancelToken:
    """Cancels everything that one caller waits for, once the caller has disconnected."""

    def __init__(self) -> None:
        self._cancelled = False
        self._waiters: list[Waiter] = []
        self._lock = threading.Lock()

    def add(self, waiter: "Waiter") -> None:
        """Registers a waiter of this caller."""
        with self._lock:
            self._waiters.append(waiter)
            cancelled = self._cancelled
        if cancelled:
            waiter.finish(CallerGone())

    def cancel(self) -> None:
        """Cancels all waiters of this caller, present and future."""
        with self._lock:
            self._cancelled = True
        for waiter in self._waiters:
            waiter.finish(CallerGone())


CANCEL_TOKEN: ContextVar[CancelToken | None] = ContextVar("cancel_token", default=None)
"""Token of this thread's caller. A context variable, since only servers have callers that can disconnect."""


@dataclass(eq=False)
class Waiter:
    """One caller waiting for a ticket.

    Attributes:
        session: the caller's session id; "": none.
        finished: set when the outcome is there.
        outcome: the result, or an exception to raise.
    """

    session: str
    finished: threading.Event = field(default_factory=threading.Event)
    outcome: Any = None

    def finish(self, outcome: Any) -> None:
        """Sets the outcome and wakes the caller."""
        self.outcome = outcome
        self.finished.set()


@dataclass(eq=False)
class Ticket:
    """One unit of work.

    Attributes:
        request: equal requests in flight share a ticket.
        work: computes the result; its argument answers its network calls.
        waiters: the callers waiting for it. If none is left, the ticket is given up.
    """

    request: Hashable
    work: Callable[..., Any]
    waiters: list[Waiter] = field(default_factory=list)

    @property
    def given_up(self) -> bool:
        """Whether no caller is left."""
        return not self.waiters

    def finish(self, outcome: Any) -> None:
        """Sets the outcome for all waiters."""
        for waiter in self.waiters:
            waiter.finish(outcome)


class Queue:
    """Waiting tickets, first in first out. Not thread-safe: callers hold a lock.

    Args:
        most: most tickets that may wait.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: list[Ticket] = []
        self._in_flight: dict[Hashable, Ticket] = {}
        self._newest: dict[str, tuple[Ticket, Waiter]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, request: Hashable, work: Callable[..., Any], session: str) -> tuple[Ticket, Waiter]:
        """Adds a request; an older request of the same session is superseded.

        Raises:
            Busy: the queue is full. It is unchanged then.
        """
        ticket, older, waiter = self._in_flight.get(request), self._newest.get(session), Waiter(session)
        if ticket is None:
            leaving = older is not None and older[0] in self._waiting and len(older[0].waiters) == 1
            if len(self._waiting) - leaving >= self._most:
                raise Busy(ahead=len(self._in_flight))
            ticket = self._in_flight[request] = Ticket(request, work)
            self._waiting.append(ticket)
        ticket.waiters.append(waiter)
        if session:
            self._newest[session] = ticket, waiter
        if older is not None and older[0] is not ticket:
            older[1].finish(Superseded(model=getattr(older[0].request, "model", "?")))
            self.leave(*older)
        return ticket, waiter

    def next(self) -> Ticket | None:
        """Removes and returns the first ticket; None: the queue is empty."""
        return self._waiting.pop(0) if self._waiting else None

    def leave(self, ticket: Ticket, waiter: Waiter) -> None:
        """Removes a caller from a ticket. Without callers, the ticket leaves the queue."""
        if waiter in ticket.waiters:
            ticket.waiters.remove(waiter)
        if self._newest.get(waiter.session) == (ticket, waiter):
            del self._newest[waiter.session]
        if ticket.given_up:
            self.done(ticket)
            self._waiting = [other for other in self._waiting if other is not ticket]

    def done(self, ticket: Ticket) -> None:
        """Marks a ticket's work as done: the next equal request gets a new ticket."""
        if self._in_flight.get(ticket.request) is ticket:
            del self._in_flight[ticket.request]
