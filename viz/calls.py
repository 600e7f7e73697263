"""Slow calls of one session: each in a thread of its own, so that a script run waits for one only as long as it likes."""

import secrets
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any
from weakref import WeakValueDictionary

from model.engine.scheduling.queue import CANCEL_TOKEN, CancelToken
from model.errors import HeadlightError, Superseded
from model.trace.types import Trace

PATIENCE_S = 0.25
"""How long a script run waits for a call. A usual run takes a tenth of that, so its page is painted at once."""

MOST_TRIES = 3


class NotYet(Exception):
    """A call has no answer yet. Not an error: the page shows that it waits, and is drawn again when the answer is there.

    Attributes:
        call: the call that is waited for.
    """

    def __init__(self, call: "Call") -> None:
        super().__init__(call.key)
        self.call = call


class Stopped(Exception):
    """The visitor has stopped this call."""


class NotKept(Exception):
    """An earlier answer is asked for, and is not kept any more."""


class Call:
    """One call in a thread of its own.

    Attributes:
        key: says what is asked.
        runs: whether it is a run.
        token: names this call in the address that a browser asks.
        began: when, on the monotonic clock.
        done: has a result, None, once there is an answer or an error.
    """

    def __init__(self, key: Hashable, compute: Callable[[], Any], runs: bool) -> None:
        self.key, self.runs, self.token, self.began = key, runs, secrets.token_hex(12), time.monotonic()
        self.done: Future[None] = Future()
        self._compute, self._cancel_token = compute, CancelToken()
        self._value: Any = None
        self._error: BaseException | None = None
        BY_TOKEN[self.token] = self
        threading.Thread(target=self._run, name="headlight-call", daemon=True).start()

    def give_up(self) -> None:
        """Nobody wants the answer any more: the engine ends the run unless somebody else waits for it too."""
        self._cancel_token.cancel()

    def wait(self, seconds: float) -> bool:
        """Waits for the answer, at most so long; whether it is there."""
        try:
            self.done.result(max(0.0, seconds))
        except TimeoutError:
            return False
        return True

    def answer(self) -> Any:
        """What was computed, once it is done.

        Raises:
            BaseException: what was raised instead.
        """
        if self._error is not None:
            raise self._error
        return self._value

    def _run(self) -> None:
        CANCEL_TOKEN.set(self._cancel_token)
        try:
            self._value = self._compute()
        except BaseException as error:
            self._error = error
        self.done.set_result(None)


BY_TOKEN: WeakValueDictionary[str, Call] = WeakValueDictionary()
"""The calls of all sessions, for the route that browsers ask."""


class Calls:
    """The calls of one session.

    Of runs the newest counts: it takes the place of one that is on its way. A page may need several answers, one after the other.
    Those that it has got already are held until it is complete: an engine whose cache is small would else compute them again each
    time. Later, traces are known weakly, as long as the engine keeps them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._on_their_way: dict[Hashable, Call] = {}
        self._stopped: Hashable = None
        self._answers: dict[Hashable, Any] = {}
        self._seen: WeakValueDictionary[Hashable, Trace] = WeakValueDictionary()

    def ask(self, key: Hashable, compute: Callable[[], Any], until: float, runs: bool = True) -> Any:
        """The answer of a call, which begins unless an equal one is on its way.

        Args:
            until: when, on the monotonic clock, this script run wants to go on.
            runs: whether it is a run, of which the newest counts.

        Raises:
            NotYet: it is not there yet.
            Stopped: the visitor has stopped an equal call.
            BaseException: what `compute` raised.
        """
        if isinstance(held := self._answers.get(key), HeadlightError):
            raise held
        if held is not None:
            return held
        for _ in range(MOST_TRIES):
            call = self._begin(key, compute, runs)
            if not call.wait(min(until, call.began + PATIENCE_S) - time.monotonic()):
                raise NotYet(call)
            with self._lock:
                self._on_their_way.pop(key, None)
            try:
                self._answers[key] = value = call.answer()
            except Superseded:  # by an older call of this session that was given up, and came to the engine late
                continue
            except HeadlightError as error:  # the page may ask for something else instead
                self._answers[key] = error
                raise
            if isinstance(value, Trace):
                self._seen[key] = value
            return value
        return call.answer()

    def again(self, key: Hashable) -> Trace:
        """The trace that an equal call gave before.

        Raises:
            NotKept: nobody keeps it any more.
        """
        if (found := self._seen.get(key)) is None:
            raise NotKept
        return found

    def stop(self) -> None:
        """Gives up what is on its way. What was asked for last is not begun again until `resume`."""
        with self._lock:
            for key, call in self._on_their_way.items():
                self._stopped = key
                call.give_up()
            self._on_their_way.clear()

    def resume(self) -> None:
        """Lets what was stopped begin again."""
        self._stopped = None

    def completed(self) -> None:
        """A page, or a part of it, has been drawn. Where nothing is on its way, it has all its answers."""
        with self._lock:
            if not self._on_their_way:
                self._answers.clear()

    def _begin(self, key: Hashable, compute: Callable[[], Any], runs: bool) -> Call:
        with self._lock:
            if key == self._stopped:
                raise Stopped
            if (call := self._on_their_way.get(key)) is None:
                self._leave(runs)
                call = self._on_their_way[key] = Call(key, compute, runs)
            return call

    def _leave(self, runs: bool) -> None:
        """Lets go of calls that no page asks for any more: those that have ended, and where a run begins, other runs."""
        for key, call in list(self._on_their_way.items()):
            if call.done.done() or (runs and call.runs):
                del self._on_their_way[key]
                call.give_up()
        if runs:
            self._stopped = None
