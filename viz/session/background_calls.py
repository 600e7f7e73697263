"""Slow engine calls of one session. Each runs in its own thread, so that a script run can stop waiting for it."""

import secrets
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property
from typing import Any
from weakref import WeakValueDictionary

from model.engine.scheduling.queue import CANCEL_TOKEN, CancelToken
from model.errors import HeadlightError, Superseded
from model.trace.progress import LISTENER, PARTIAL, Progress, ProgressFeed
from model.trace.types import Trace

PATIENCE_S = 0.25
"""Seconds a script run waits for a call. A usual run takes a tenth of that, so its page is drawn at once."""

LEAST_SHARE = 0.5
"""Part of `PATIENCE_S` that a call gets even if it begins when the script run no longer waits: to draw a page can take longer than
that, and its lower half would be lost, with what was chosen there, for an answer that takes a millisecond."""

MOST_TRIES = 3
"""How often a call is started that ends as superseded. A call that this session has replaced may reach the engine after the call
that replaced it, for each has a thread of its own: then the engine takes the late one for the newest and ends the right one. Each
try meets at most one late call. Where all three were superseded, two pages of this session ask at once, and the page says so."""


class Pending(Exception):
    """A call has no answer yet. Not an error: the page shows that it waits and is redrawn when the answer arrives.

    Attributes:
        call: the pending call.
    """

    def __init__(self, call: "Call") -> None:
        super().__init__(call.key)
        self.call = call


class Stopped(Exception):
    """The visitor stopped this call.

    Attributes:
        progress: how far it had come; None: nothing was written.
    """

    def __init__(self, progress: Progress | None) -> None:
        super().__init__()
        self.progress = progress

    @property
    def trace(self) -> Trace | None:
        """What it had recorded until then, made when it is asked for; None: nothing that can be shown."""
        return self.progress.so_far() if self.progress is not None and self.progress.so_far is not None else None


class NotCached(Exception):
    """An earlier answer was requested but is no longer cached."""


class Call:
    """One call in its own thread.

    Attributes:
        key: identifies the question.
        runs: whether it is a run.
        token: name of this call in the URL that a browser polls; most calls have an answer before anybody asks for it.
        began: start time on the monotonic clock.
        feed: the tokens written so far; it ends with the call.
        done: resolves to None once there is an answer or an error.
    """

    def __init__(self, key: Hashable, compute: Callable[[], Any], runs: bool) -> None:
        self.key, self.runs, self.began = key, runs, time.monotonic()
        self.done: Future[None] = Future()
        self.feed = ProgressFeed()
        self._compute, self._cancel_token = compute, CancelToken()
        self._value: Any = None
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="headlight-call", daemon=True).start()

    @cached_property
    def token(self) -> str:
        """Under which `BY_TOKEN` has this call from now on."""
        token = secrets.token_hex(12)
        BY_TOKEN[token] = self
        return token

    def give_up(self) -> None:
        """Cancels the call: the engine ends the run unless somebody else waits for it, too."""
        self._cancel_token.cancel()

    def wait(self, seconds: float) -> bool:
        """Waits for the answer, at most `seconds`; returns whether it has arrived."""
        try:
            self.done.result(max(0.0, seconds))
        except TimeoutError:
            return False
        return True

    def answer(self) -> Any:
        """The result of the finished call.

        Raises:
            BaseException: the call's error.
        """
        if self._error is not None:
            raise self._error
        return self._value

    def _run(self) -> None:
        CANCEL_TOKEN.set(self._cancel_token)
        LISTENER.set(self.feed.put)
        PARTIAL.set(self.runs)
        try:
            self._value = self._compute()
        except BaseException as error:
            self._error = error
        self.done.set_result(None)
        self.feed.end()


BY_TOKEN: WeakValueDictionary[str, Call] = WeakValueDictionary()
"""Calls of all sessions by token, for the route that browsers poll."""


class Calls:
    """Calls of one session.

    A new run replaces a pending one. A page may need several answers, one after the other: those that have arrived are held until
    the page is complete, because an engine with a small cache would compute them again each time. After that, traces are referenced
    weakly, as long as the engine keeps them.

    The script runs of a session, its live route and its Stop button come in different threads: `_lock` guards every field. It is
    never held while a call is waited for, so Stop always gets through.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[Hashable, Call] = {}
        self._stopped: tuple[Hashable, Progress | None] | None = None
        """The request that the visitor stopped, and how far it had come."""
        self._live: Call | None = None
        self._answers: dict[Hashable, Any] = {}
        self._seen: WeakValueDictionary[Hashable, Trace] = WeakValueDictionary()

    def ask(self, key: Hashable, compute: Callable[[], Any], until: float, runs: bool = True) -> Any:
        """The answer of a call. Starts the call unless an equal one is pending.

        Args:
            until: time on the monotonic clock at which this script run stops waiting.
            runs: whether it is a run, which replaces a pending one.

        Raises:
            Pending: there is no answer yet.
            Stopped: the visitor stopped an equal call.
            BaseException: an error of `compute`.
        """
        with self._lock:
            held = self._answers.get(key)
        if isinstance(held, HeadlightError):
            raise held
        if held is not None:
            return held
        for _ in range(MOST_TRIES):
            call = self._begin(key, compute, runs)
            least, most = call.began + LEAST_SHARE * PATIENCE_S, call.began + PATIENCE_S
            if not call.wait(max(least, min(until, most)) - time.monotonic()):
                raise Pending(call)
            with suppress(Superseded):  # by an older, canceled call of this session that reached the engine late
                return self._take(key, call)
        return call.answer()

    def start_live(self, key: Hashable, compute: Callable[[], Any]) -> Call:
        """Starts a call that follows what is typed (viz/features/live). It replaces the older one of this kind, and no other."""
        with self._lock:
            older, self._live = self._live, Call(key, compute, runs=True)
            if older is not None:
                older.give_up()
            return self._live

    def stop_following(self) -> None:
        """Cancels the call that follows what is typed. As after `stop`, an equal request is not started again until `resume`."""
        with self._lock:
            if self._live is not None and not self._live.done.done():
                self._note_stopped(self._live)
                for call in (self._live, self._pending.pop(self._live.key, None)):
                    if call is not None:
                        call.give_up()

    def again(self, key: Hashable) -> Trace:
        """The trace of an earlier equal call.

        Raises:
            NotCached: it is no longer cached.
        """
        with self._lock:
            trace = self._seen.get(key)
        if trace is None:
            raise NotCached
        return trace

    def stop(self) -> None:
        """Cancels pending calls. The last request is not started again until `resume`."""
        with self._lock:
            for call in self._pending.values():
                self._note_stopped(call)
                call.give_up()
            self._pending.clear()
            if self._live is not None:
                self._live.give_up()

    def stop_one(self, call: Call) -> None:
        """Cancels one call. An equal one starts again when it is asked for."""
        with self._lock:
            self._pending.pop(call.key, None)
            call.give_up()

    def _note_stopped(self, call: Call) -> None:
        """Notes how far a call came. Its trace is made once, when a page shows it: here others would wait for it."""
        progress = call.feed.newest
        if progress is not None and progress.so_far is not None:
            progress = replace(progress, so_far=cache(progress.so_far))
        self._stopped = call.key, progress

    def resume(self) -> None:
        """Allows the stopped call to start again."""
        with self._lock:
            self._stopped = None

    def clear_if_idle(self) -> None:
        """Called when a page, or a part of it, has been drawn. If no call is pending, the page has all its answers."""
        with self._lock:
            if not self._pending:
                self._answers.clear()

    def _begin(self, key: Hashable, compute: Callable[[], Any], runs: bool) -> Call:
        with self._lock:
            if self._stopped is not None and self._stopped[0] == key:
                raise Stopped(self._stopped[1])
            if (call := self._pending.get(key)) is None:
                for other, old in list(self._pending.items()):
                    if old.done.done() or (runs and old.runs):  # no page needs it any more
                        del self._pending[other]
                        old.give_up()
                if runs:
                    self._stopped = None
                call = self._pending[key] = Call(key, compute, runs)
            return call

    def _take(self, key: Hashable, call: Call) -> Any:
        """Keeps the answer of a call that has ended, or its error: the page may request something else instead."""
        with self._lock:
            self._pending.pop(key, None)
            try:
                self._answers[key] = value = call.answer()
            except Superseded:
                raise
            except HeadlightError as error:
                self._answers[key] = error
                raise
            if isinstance(value, Trace):
                self._seen[key] = value
            return value
