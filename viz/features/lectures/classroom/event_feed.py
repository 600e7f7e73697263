"""Server-sent events from one writer to many followers.

An event of a kind replaces the one before it, so a follower who reads slowly gets the newest event of each kind and nothing piles
up for him: what waits for a follower is at most one event of each kind, and all followers share its bytes.
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any
from weakref import WeakSet

KEEP_ALIVE_SECONDS = 15.0
"""Seconds of silence after which a comment is sent: proxies close silent connections, and a dead tab is noticed."""

RETRY_MILLISECONDS = 1000
"""Time after which a browser connects again."""

MOST_FOLLOWERS = 4000
"""Most followers of one feed."""


_FEEDS: "WeakSet[EventFeed]" = WeakSet()


def end_streams_at_exit() -> None:
    """Lets the server end while somebody follows: it waits for its connections, and a stream never ends by itself.

    Called on the event loop of the main thread; elsewhere it does nothing.
    """
    loop = asyncio.get_running_loop()

    def close_all() -> None:
        for feed in list(_FEEDS):
            feed.close()

    def wrap(number: int) -> None:
        before = signal.getsignal(number)

        def handle(number: int, frame: FrameType | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(close_all)
            if callable(before):
                before(number, frame)

        signal.signal(number, handle)

    with suppress(ValueError):  # not the main thread
        for ending in (signal.SIGINT, signal.SIGTERM):
            wrap(ending)


class EventFeed:
    """The newest event of each kind, and who follows. Used on the event loop only.

    Args:
        changed: called when somebody comes or goes.

    Attributes:
        followers: number of connected followers.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._closed = False
        _FEEDS.add(self)
        self._latest: dict[str, tuple[int, bytes]] = {}
        self._number = 0
        self._waiting: set[asyncio.Event] = set()
        self.followers = 0

    def send(self, kind: str, data: Mapping[str, Any]) -> None:
        """Sends an event to all followers; an equal event of the kind is not sent again."""
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        body = b"event: %s\ndata: %s\n\n" % (kind.encode(), text)
        if kind in self._latest and self._latest[kind][1] == body:
            return
        self._number += 1
        self._latest[kind] = self._number, body
        for event in self._waiting:
            event.set()

    def close(self) -> None:
        """Ends the streams of all followers."""
        self._closed = True
        for event in self._waiting:
            event.set()

    async def follow(self) -> AsyncIterator[bytes]:
        """The bytes for one follower: first the newest event of each kind, then each change. Ends when it is closed."""
        event, seen = asyncio.Event(), 0
        self._waiting.add(event)
        self.followers += 1
        self._changed()
        try:
            yield b"retry: %d\n\n" % RETRY_MILLISECONDS
            while not self._closed:
                event.clear()
                fresh = sorted(latest for latest in self._latest.values() if latest[0] > seen)
                if fresh:
                    seen = fresh[-1][0]
                    yield b"".join(body for _number, body in fresh)
                    continue  # more may have come while this was sent
                try:
                    async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                        await event.wait()
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            self._waiting.discard(event)
            self.followers -= 1
            self._changed()
