"""Server-sent events from one writer to many followers.

An event of a kind replaces the one before it, so a follower who reads slowly gets the newest event of each kind and nothing piles
up for him: what waits for a follower is at most one event of each kind, and all followers share its bytes.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

KEEP_ALIVE_SECONDS = 15.0
"""Seconds of silence after which a comment is sent: proxies close silent connections, and a dead tab is noticed."""

RETRY_MILLISECONDS = 1000
"""Time after which a browser connects again."""

MOST_FOLLOWERS = 4000
"""Most followers of one feed."""


class Feed:
    """The newest event of each kind, and who follows. Used on the event loop only.

    Args:
        changed: called when somebody comes or goes.

    Attributes:
        followers: number of connected followers.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
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

    async def follow(self) -> AsyncIterator[bytes]:
        """The bytes for one follower: first the newest event of each kind, then each change. Ends when it is closed."""
        event, seen = asyncio.Event(), 0
        self._waiting.add(event)
        self.followers += 1
        self._changed()
        try:
            yield b"retry: %d\n\n" % RETRY_MILLISECONDS
            while True:
                event.clear()
                fresh = sorted(each for each in self._latest.values() if each[0] > seen)
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
