"""Session: the visitor that an engine call is for, in one context variable.

It is set where a request enters the process: for each engine call of a page (viz/waiting.py) and for each HTTP request
(http/server.py). The queue, the rate limit and the client of an engine server read it. No torch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Session:
    """One visitor.

    Attributes:
        id: session id; a newer run of a session supersedes its older one. "": none, so nothing is superseded.
        client: the visitor's address, or the session id if the address is unknown; rate limits count for it. "": this process.
    """

    id: str = ""
    client: str = ""


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
