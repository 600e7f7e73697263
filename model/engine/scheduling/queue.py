"""The line of requests that wait for a device: bounded, each piece of work done once, and one place for each session.

A newer request of a session takes the place of its older one, so nobody can fill the line: whoever came first goes first.
"""

import threading
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from model.errors import Busy, Superseded


class Left(Exception):
    """A caller has gone away: the outcome is for nobody."""


class Departure:
    """Whether a caller has gone away. Whoever sees that says so here, and what the caller waits for ends."""

    def __init__(self) -> None:
        self._gone = False
        self._waiters: list[Waiter] = []
        self._lock = threading.Lock()

    def of(self, waiter: "Waiter") -> None:
        """`waiter` waits for this caller."""
        with self._lock:
            self._waiters.append(waiter)
            gone = self._gone
        if gone:
            waiter.tell(Left())

    def go(self) -> None:
        """The caller has gone away."""
        with self._lock:
            self._gone = True
        for waiter in self._waiters:
            waiter.tell(Left())


DEPARTURE: ContextVar[Departure | None] = ContextVar("departure", default=None)
"""Of the caller for whom this thread asks. A context and no argument: only a host with callers that can go away knows of it."""


@dataclass(eq=False)
class Waiter:
    """One caller that waits for a ticket.

    Attributes:
        session: whose it is; "": nobody's.
        told: set when there is an outcome.
        outcome: the result, or the exception to be raised.
    """

    session: str
    told: threading.Event = field(default_factory=threading.Event)
    outcome: Any = None

    def tell(self, outcome: Any) -> None:
        """Ends the waiting."""
        self.outcome = outcome
        self.told.set()


@dataclass(eq=False)
class Ticket:
    """One piece of work.

    Attributes:
        request: what is asked; equal requests in flight share a ticket.
        work: does it, given what answers the calls that it makes on the way.
        waiters: who waits for it. Nobody any more: it is given up.
    """

    request: Hashable
    work: Callable[..., Any]
    waiters: list[Waiter] = field(default_factory=list)

    @property
    def given_up(self) -> bool:
        """Whether nobody waits for it any more."""
        return not self.waiters

    def tell(self, outcome: Any) -> None:
        """Hands the outcome to all who wait."""
        for waiter in self.waiters:
            waiter.tell(outcome)


class Queue:
    """Tickets that wait, the first that came in front. Callers hold a lock.

    Args:
        most: tickets that may wait.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: list[Ticket] = []
        self._in_flight: dict[Hashable, Ticket] = {}
        self._newest: dict[str, tuple[Ticket, Waiter]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, request: Hashable, work: Callable[..., Any], session: str) -> tuple[Ticket, Waiter]:
        """A place in the line; an older request of the same session gives its own up.

        Raises:
            Busy: the line is full. Nothing has changed then.
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
            older[1].tell(Superseded(model=getattr(older[0].request, "model", "?")))
            self.leave(*older)
        return ticket, waiter

    def next(self) -> Ticket | None:
        """The ticket whose turn it is, out of the line; None: nobody waits."""
        return self._waiting.pop(0) if self._waiting else None

    def leave(self, ticket: Ticket, waiter: Waiter) -> None:
        """A caller goes away, with an outcome or without; the ticket is given up where it was the last."""
        if waiter in ticket.waiters:
            ticket.waiters.remove(waiter)
        if self._newest.get(waiter.session) == (ticket, waiter):
            del self._newest[waiter.session]
        if ticket.given_up:
            self.done(ticket)
            self._waiting = [other for other in self._waiting if other is not ticket]

    def done(self, ticket: Ticket) -> None:
        """The ticket's work has ended: the next equal request is a new one."""
        if self._in_flight.get(ticket.request) is ticket:
            del self._in_flight[ticket.request]
