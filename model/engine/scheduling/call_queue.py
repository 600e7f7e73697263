"""Call queue: pending network calls of the running runs. The compute thread takes them batch by batch.

It guards the one decision that batching depends on: compute now, or wait a moment for runs that are likely to call, too? Waiting
for each other, runs of many visitors stay in step and cost hardly more than one; waiting too long, one slow run delays them all.
"""

import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass, field

from torch import Tensor

from model.engine.scheduling.queue import Ticket
from model.inference import batching
from model.inference.calls import Call

GATHER_SECONDS = 0.02
"""Longest time that a call waits for others to be batched with it."""


@dataclass(eq=False)
class PendingCall:
    """A network call waiting for its answer.

    Attributes:
        ticket: the run that made the call.
        key: its batch key.
        since: time of the call on `time.monotonic`.
        answered: set when the answer is there.
        answer: a tensor, or an exception to raise.
    """

    ticket: Ticket
    call: Call
    key: Hashable | None
    since: float = field(default_factory=time.monotonic)
    answered: threading.Event = field(default_factory=threading.Event)
    answer: Tensor | Exception | None = None

    def finish(self, answer: Tensor | Exception) -> None:
        """Hands the answer to the run."""
        self.answer = answer
        self.answered.set()


class CallQueue:
    """Pending calls, oldest first, and the runs that may call next. Not thread-safe: callers hold the scheduler's lock.

    Args:
        gather: most seconds that a call waits for others to be batched with it.
    """

    def __init__(self, gather: float = GATHER_SECONDS) -> None:
        self._gather = gather
        self._pending: list[PendingCall] = []
        self._expected: dict[Ticket, float] = {}

    def __len__(self) -> int:
        """Number of calls that no batch has taken yet."""
        return len(self._pending)

    def add(self, ticket: Ticket, call: Call) -> PendingCall:
        """Appends a call of a run."""
        self._expected.pop(ticket, None)
        self._pending.append(PendingCall(ticket, call, batching.batch_key(call)))
        return self._pending[-1]

    def follow(self, pending: PendingCall, call: Call) -> None:
        """Appends the next call of a run whose last one has just been answered."""
        pending.call, pending.key, pending.since = call, batching.batch_key(call), time.monotonic()
        self._pending.append(pending)

    def expect(self, ticket: Ticket) -> None:
        """Notes that a run has begun or got an answer: it will call again or end."""
        self._expected[ticket] = time.monotonic()

    def end(self, ticket: Ticket) -> None:
        """Notes that a run has ended."""
        self._expected.pop(ticket, None)

    def patience(self) -> float:
        """Seconds that the oldest call still waits for others; 0 or less: it is due.

        It waits for runs that began or got an answer less than `gather` seconds ago, since these usually call next, and never
        longer than `gather`. A call that cannot be batched does not wait.

        Example, with `gather` of 20 ms: A called at 0, B got an answer at −5 and has not called again. A waits until 15, when B has
        had its time, or until B calls. Had B been answered at +10, A would wait until 20: its own time counts, too.
        """
        oldest = self._pending[0]
        if oldest.key is None or not self._expected:
            return 0.0
        return min(oldest.since, max(self._expected.values())) + self._gather - time.monotonic()

    def take(self) -> list[PendingCall]:
        """Removes and returns the oldest call and all that can be batched with it."""
        oldest = self._pending[0]
        group = [oldest] if oldest.key is None else [pending for pending in self._pending if pending.key == oldest.key]
        group = group[: batching.room([pending.call for pending in group])]
        self._pending = [pending for pending in self._pending if pending not in group]
        return group

    def refuse(self, error: Exception) -> None:
        """Answers all pending calls with an error."""
        for pending in self._pending:
            pending.finish(error)
        self._pending = []
