"""Queue of the calls that runs make of their networks, from which the compute thread takes one batch after the other."""

import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass, field

from torch import Tensor

from model.engine.scheduling.queue import Ticket
from model.inference import batching
from model.inference.batching import Call

GATHER_SECONDS = 0.02
"""How long a call waits at most for others to be batched with it."""


@dataclass(eq=False)
class PendingCall:
    """A call that waits for its answer.

    Attributes:
        ticket: of the run that called.
        key: its batch key.
        since: when it was made, in seconds of `time.monotonic`.
        answered: set when there is an answer.
        answer: a tensor, or the exception to be raised.
    """

    ticket: Ticket
    call: Call
    key: Hashable | None
    since: float = field(default_factory=time.monotonic)
    answered: threading.Event = field(default_factory=threading.Event)
    answer: Tensor | Exception | None = None

    def tell(self, answer: Tensor | Exception) -> None:
        """Hands the answer to the run."""
        self.answer = answer
        self.answered.set()


class CallQueue:
    """Pending calls, the oldest first, and the runs that may call next. Callers hold a lock.

    Args:
        gather: seconds that a call waits at most for others to be batched with it.
    """

    def __init__(self, gather: float = GATHER_SECONDS) -> None:
        self._gather = gather
        self._pending: list[PendingCall] = []
        self._thinking: dict[Ticket, float] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, ticket: Ticket, call: Call) -> PendingCall:
        """A call of a run, at the end of the queue."""
        self._thinking.pop(ticket, None)
        self._pending.append(PendingCall(ticket, call, batching.batch_key(call)))
        return self._pending[-1]

    def expect(self, ticket: Ticket) -> None:
        """A run begins, or is answered: it will call, or end."""
        self._thinking[ticket] = time.monotonic()

    def end(self, ticket: Ticket) -> None:
        """A run has ended."""
        self._thinking.pop(ticket, None)

    def patience(self) -> float:
        """Seconds that the oldest call still waits for others; at most 0: it is its turn.

        It waits for runs that began or were answered less than `gather` seconds ago, since they usually call next, and in all no
        longer than that. What cannot be batched waits for nobody.
        """
        oldest = self._pending[0]
        if oldest.key is None or not self._thinking:
            return 0.0
        return min(oldest.since, max(self._thinking.values())) + self._gather - time.monotonic()

    def take(self) -> list[PendingCall]:
        """The oldest call, and all that can be batched with it."""
        oldest = self._pending[0]
        group = [oldest] if oldest.key is None else [pending for pending in self._pending if pending.key == oldest.key]
        group = group[: batching.room([pending.call for pending in group])]
        self._pending = [pending for pending in self._pending if pending not in group]
        return group

    def refuse(self, error: Exception) -> None:
        """Answers all pending calls with an error."""
        for pending in self._pending:
            pending.tell(error)
        self._pending = []
