"""Request queue: bounded, first in first out, one place per session; equal requests share one ticket.

A newer request of a session replaces its older one, so no session can fill the queue. Two context variables say who makes an
engine call: SESSION the visitor, CANCEL_TOKEN whether they still wait. They are set where a request enters the process: for each
engine call of a page (viz/session/patient_engine.py) and for each HTTP request (http/server.py). No torch.
"""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from model.errors import Busy, Superseded
from model.trace.progress import LISTENER, Listener, Progress

# Added to the id of a page's session. What is typed runs beside the page's own runs, so it needs an id of its own.
_TYPING = "/live"


@dataclass(frozen=True)
class Session:
    """One visitor.

    Attributes:
        id: session id; a newer run of a session supersedes its older one. "": none, so nothing is superseded.
        client: the visitor's address, or the session id if the address is unknown; rate limits count for it. "": this process.
    """

    id: str = ""
    client: str = ""

    @property
    def typing(self) -> "Session":
        """The session of runs that follow what is typed on this page. The page's own runs and these never supersede each other."""
        return replace(self, id=f"{self.id}{_TYPING}")

    @property
    def page(self) -> str:
        """The id of the page's session, of either of the two."""
        return self.id.removesuffix(_TYPING)


NOBODY = Session()
"""Calls of the process itself."""

SESSION: ContextVar[Session] = ContextVar("session", default=NOBODY)
"""The session of this thread's engine call."""


@contextmanager
def in_session(session: Session) -> Iterator[None]:
    """Context in which engine calls of this thread are for `session`. Threads are reused, so it is always reset."""
    before = SESSION.set(session)
    try:
        yield
    finally:
        SESSION.reset(before)


class CallerGone(Exception):
    """The caller has disconnected and does not need the outcome."""


class CancelToken:
    """Cancels everything that one caller waits for, once the caller has disconnected or does not want it any more."""

    def __init__(self) -> None:
        # `cancel` is called in another thread than `calling`: by the server that saw the connection close, or by
        # the page. The lock makes sure that an action is called even if the caller leaves while it is being added.
        self._cancelled = False
        self._actions: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    @property
    def cancelled(self) -> bool:
        """Whether the caller has left."""
        return self._cancelled

    @contextmanager
    def calling(self, action: Callable[[], None]) -> Iterator[None]:
        """Context in which `cancel` calls `action`; at once, if the caller has left already. `action` must return at once."""
        with self._lock:
            # First the action is added, then the flag is read, both under the lock: `cancel` either finds the
            # action in the list, or has set the flag before.
            self._actions.append(action)
            if self._cancelled:
                action()
        try:
            yield
        finally:
            with self._lock:  # after this, `action` is never called: what it would close may belong to another caller then
                self._actions.remove(action)

    def cancel(self) -> None:
        """Ends everything that this caller waits for, now and later."""
        with self._lock:
            # Actions run under the lock: none may take long, and none may enter `calling` itself, which would wait
            # forever.
            self._cancelled = True
            for action in self._actions:
                action()


CANCEL_TOKEN: ContextVar[CancelToken | None] = ContextVar("cancel_token", default=None)
"""Token of this thread's caller; None: the caller cannot leave. A context variable, since only servers and pages have such
callers."""


@contextmanager
def on_cancel(action: Callable[[], None]) -> Iterator[None]:
    """Context in which `action` is called when this thread's caller leaves."""
    if (cancel_token := CANCEL_TOKEN.get()) is None:
        yield
    else:
        with cancel_token.calling(action):
            yield


@dataclass(eq=False)
class Waiter:
    """One caller waiting for a ticket.

    Attributes:
        session: the caller's session id; "": none.
        finished: set when the outcome is there.
        outcome: the result, or an exception to raise.
        listener: is called with the progress; None: no listener.
    """

    session: str
    finished: threading.Event = field(default_factory=threading.Event)
    outcome: Any = None
    listener: Listener | None = field(default_factory=LISTENER.get)

    def finish(self, outcome: Any) -> None:
        """Sets the outcome and wakes the caller. The first outcome counts."""
        # Two threads may finish a waiter: the worker with the result, and whoever cancels. The caller raises or
        # returns what is in `outcome` when it wakes, so the outcome is set before the event.
        if not self.finished.is_set():
            self.outcome = outcome
            self.finished.set()


@dataclass(eq=False)
class Ticket:
    """One unit of work.

    Attributes:
        request: equal requests in flight share a ticket.
        work: computes the result; its arguments answer its network calls and report its progress.
        waiters: the callers waiting for it. If none is left, the ticket is given up.
        newest: the newest progress that anybody heard; None: none yet.
        heard: number of reports that anybody heard.
    """

    request: Hashable
    work: Callable[..., Any]
    waiters: list[Waiter] = field(default_factory=list)
    newest: Progress | None = None
    heard: int = 0

    def report(self, make: Callable[[], Progress]) -> None:
        """A Report to all waiters that listen."""
        # The run's thread reports while callers come and go in theirs, so it walks over a copy of the list. Where
        # nobody listens, no progress is made at all: it would cost time at every step.
        if listeners := [waiter.listener for waiter in tuple(self.waiters) if waiter.listener]:
            self.newest = progress = make()
            self.heard += 1
            for listener in listeners:
                listener(progress)

    def finish(self, outcome: Any) -> None:
        """Sets the outcome for all waiters, and lets go of the progress."""
        # The progress refers to the run, and the run to this ticket: a cycle, whose tensors would stay in memory
        # until Python looks for such cycles.
        self.newest = None
        for waiter in self.waiters:
            waiter.finish(outcome)


class Queue:
    """Waiting tickets, first in first out. Not thread-safe: callers hold a lock.

    Args:
        most: most tickets that may wait.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        # Three views of the same tickets: those that wait, in order; those that wait or run, by request, so that an
        # equal request can join; and the newest of each session, which its next request replaces.
        self._waiting: list[Ticket] = []
        self._in_flight: dict[Hashable, Ticket] = {}
        self._newest: dict[str, tuple[Ticket, Waiter]] = {}

    def __len__(self) -> int:
        """Number of requests that wait; those that run are not counted."""
        return len(self._waiting)

    def join(self, request: Hashable, work: Callable[..., Any], session: str) -> tuple[Ticket, Waiter]:
        """Adds a request; an older request of the same session is superseded.

        Raises:
            Busy: the queue is full. It is unchanged then.
        """
        # An equal request may be waiting or running already, perhaps of another visitor: then this caller waits for
        # it, too.
        ticket, older, waiter = self._in_flight.get(request), self._newest.get(session), Waiter(session)
        if ticket is None:
            # The older request of this session leaves the queue below, unless another caller shares it or it runs
            # already. Its place counts as free, so a visitor who asks once more is not refused by their own
            # request.
            leaving = older is not None and older[0] in self._waiting and len(older[0].waiters) == 1
            if len(self._waiting) - leaving >= self._most:
                raise Busy(ahead=len(self._in_flight))
            ticket = self._in_flight[request] = Ticket(request, work)
            self._waiting.append(ticket)
        ticket.waiters.append(waiter)
        if waiter.listener is not None and ticket.newest is not None:  # it hears at once how far the work has come
            waiter.listener(ticket.newest)
        # Without a session (a script, the command line) nothing is remembered, so such calls never replace each
        # other.
        if session:
            self._newest[session] = ticket, waiter
        # Last of all, when nothing can fail any more: a request that is refused as Busy must not end the older one.
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
        # A newer request of the session may have taken this entry meanwhile; it must stay then.
        if self._newest.get(waiter.session) == (ticket, waiter):
            del self._newest[waiter.session]
        # Nobody wants the result. A ticket that waits is taken out; one that runs ends at its next call, when the
        # scheduler sees that it has no waiters (`Scheduler._refusal`).
        if not ticket.waiters:
            self.done(ticket)
            self._waiting = [other for other in self._waiting if other is not ticket]

    def done(self, ticket: Ticket) -> None:
        """Marks a ticket's work as done: the next equal request gets a new ticket."""
        # A ticket that was given up may still run when an equal request comes, which gets a ticket of its own. When
        # the older one ends, it must not take away the newer one's entry.
        if self._in_flight.get(ticket.request) is ticket:
            del self._in_flight[ticket.request]
