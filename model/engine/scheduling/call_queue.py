"""Call queue: pending network calls of the running runs. The compute thread takes them batch by batch.

It guards the one decision that batching depends on: compute now, or wait a moment for runs that are likely to call, too? Waiting
for each other, runs of many visitors stay in step and cost hardly more than one; waiting too long, one slow run delays them all.

A measurement (`Call.gives_way`), which makes hundreds of long calls, gives way to runs: it is taken where no run calls or is
about to call, and else once in MEASURED_EVERY seconds, so that many visitors do not stop it for good.
"""

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from torch import Tensor

from model.engine.scheduling.queue import Ticket
from model.inference import batching
from model.inference.calls import Call

GATHER_SECONDS = 0.02
"""Longest time that a call waits for others to be batched with it."""

MEASURED_EVERY = 2.0
"""Seconds after which a measurement that waits comes before the runs."""


@dataclass(eq=False)
class PendingCall:
    """A network call waiting for its answer.

    Attributes:
        ticket: the run that made the call.
        key: its batch key.
        since: time of the call, on the clock of the queue.
        answered: set when the answer is there.
        answer: a tensor, or an exception to raise.
    """

    ticket: Ticket
    call: Call
    key: Hashable | None
    since: float = 0.0
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
        clock: the time in seconds.
    """

    def __init__(self, gather: float = GATHER_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._gather, self._clock = gather, clock
        self._measured = clock()  # when a measurement was taken last
        self._pending: list[PendingCall] = []
        # Runs that have begun or got an answer and have not called since, with the time of that. While a run is in
        # here, its next call is probably a moment away, so others may wait for it.
        self._expected: dict[Ticket, float] = {}

    def __len__(self) -> int:
        """Number of calls that no batch has taken yet."""
        return len(self._pending)

    def add(self, ticket: Ticket, call: Call) -> PendingCall:
        """Appends a call of a run."""
        # The run has done what was expected of it: no other call has to wait for this one any more.
        self._expected.pop(ticket, None)
        self._pending.append(PendingCall(ticket, call, batching.batch_key(call), self._clock()))
        return self._pending[-1]

    def follow(self, pending: PendingCall, call: Call) -> None:
        """Appends the next call of a run whose last one has just been answered."""
        # The same object is queued again with another call, because the run's thread still waits for its `answered`
        # event: a decode of 100 tokens wakes that thread once, not 100 times. It joins at the end, as every new
        # call does.
        pending.call, pending.key, pending.since = call, batching.batch_key(call), self._clock()
        self._pending.append(pending)

    def expect(self, ticket: Ticket) -> None:
        """Notes that a run has begun or got an answer: it will call again or end."""
        self._expected[ticket] = self._clock()

    def end(self, ticket: Ticket) -> None:
        """Notes that a run has ended."""
        self._expected.pop(ticket, None)

    def patience(self) -> float:
        """Seconds that the next call still waits for others; 0 or less: it is due.

        It waits for runs that began or got an answer less than `gather` seconds ago, since these usually call next, and never
        longer than `gather`. A call of a run that cannot be batched does not wait; a measurement does, since it gives way.

        Example, with `gather` of 20 ms: A called at 0, B got an answer at −5 and has not called again. A waits until 15, when B has
        had its time, or until B calls. Had B been answered at +10, A would wait until 20: its own time counts, too.
        """
        # With no run on its way there is nobody to wait for, and a call without a batch key gains nothing from
        # company.
        first = self._first()
        if not self._expected or (first.key is None and not first.call.gives_way):
            return 0.0
        # Two limits, of which the earlier one counts: the call itself has waited `gather` seconds, or the run that
        # was answered last has had `gather` seconds to call. The second ends the wait for a run that is busy with
        # something slow.
        return min(first.since, max(self._expected.values())) + self._gather - self._clock()

    def take(self) -> list[PendingCall]:
        """Removes and returns the next call and all that can be batched with it."""
        first = self._first()
        # Calls with equal keys can be computed in one batch: the same network, and tensors whose shapes go
        # together. What a batch has no room for keeps its position in the queue.
        group = [first] if first.key is None else [pending for pending in self._pending if pending.key == first.key]
        group = group[: batching.room([pending.call for pending in group])]
        self._pending = [pending for pending in self._pending if pending not in group]
        # From now on a measurement has to wait again, before it may come ahead of the runs.
        if first.call.gives_way:
            self._measured = self._clock()
        return group

    def _first(self) -> PendingCall:
        """The call whose turn it is: the oldest one of a run, or the oldest of all."""
        # The list is in the order of the calls, so the first match of each kind is its oldest.
        run = next((pending for pending in self._pending if not pending.call.gives_way), None)
        measurement = next((pending for pending in self._pending if pending.call.gives_way), None)
        if run is None or measurement is None:
            return self._pending[0]
        # A measurement has waited since its own call or since a measurement was taken last, whichever is later. So
        # the runs lose at most one turn in MEASURED_EVERY seconds, even if many measurements wait.
        waits = self._clock() - max(measurement.since, self._measured)
        return measurement if waits >= MEASURED_EVERY else run

    def refuse(self, error: Exception) -> None:
        """Answers all pending calls with an error."""
        # Each of these calls has a thread that sleeps until its event is set. Without an answer it would sleep
        # forever.
        for pending in self._pending:
            pending.finish(error)
        self._pending = []
