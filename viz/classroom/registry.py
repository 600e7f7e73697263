"""The classes of this process. Used on the event loop only; files are written in other threads."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import TTLCache

from viz.classroom import store
from viz.classroom.classroom import Classroom
from viz.classroom.codes import hashed, new_code, new_token
from viz.classroom.deck import Deck
from viz.classroom.open_files import allow_many_connections
from viz.classroom.store import Store

MOST_CLASSES = 100
IDLE_SECONDS = 12 * 3600
"""Time after which a class without followers and changes makes room for another."""

SAVE_SECONDS = 0.5
"""Time in which changes are collected before they are written."""

WRONG_CODES, WRONG_SECONDS = 60, 60.0
"""Most wrong codes that one address may send within so many seconds; after that it cannot join for as long."""


class TooManyClasses(Exception):
    """As many classes are open as this process holds."""


@dataclass
class _Open:
    """A class, and what its registry knows of it.

    Attributes:
        used: time on the monotonic clock at which it was last used.
        listener: what its deck calls when a view was prepared.
        dirty: whether its file is older than it.
        closed: whether it has ended; its file must not be written again.
        writing: writes its file.
    """

    room: Classroom
    used: float
    listener: Callable[[], None]
    dirty: bool = False
    closed: bool = False
    writing: "asyncio.Task[None] | None" = None


class Registry:
    """Opens, finds and keeps classes.

    Args:
        open_deck: opens a lecture by its name; raises LookupError if there is none.
        files: where classes are kept.
    """

    def __init__(self, open_deck: Callable[[str], Deck], files: Store) -> None:
        self._open_deck, self._files = open_deck, files
        self._rooms: dict[str, _Open] = {}
        self._wrong: TTLCache[str, int] = TTLCache(10_000, WRONG_SECONDS)

    def open(self, lecture: str) -> tuple[Classroom, str]:
        """Opens a class; returns it and the lecturer's key, which is stored nowhere.

        Raises:
            LookupError: there is no such lecture.
            TooManyClasses: there is no room for another class.
        """
        self._make_room()
        allow_many_connections()
        key = new_token()
        room = self._keep(Classroom(new_code(), hashed(key), self._open_deck(lecture), time.time()))
        self._changed(room)
        return room, key

    def find(self, code: str) -> Classroom | None:
        """The class with this code, also one from before a restart."""
        if (found := self._rooms.get(code)) is not None:
            found.used = time.monotonic()
            return found.room
        if len(self._rooms) >= MOST_CLASSES or not code:
            return None
        try:
            room = self._files.load(code, self._open_deck)
        except LookupError:
            return None
        return None if room is None else self._keep(room)

    def close(self, room: Classroom) -> None:
        """Ends a class and deletes its file."""
        found = self._rooms.pop(room.code, None)
        if found is not None:
            found.closed = True
            room.deck.forget(found.listener)
        room.students.send("over", {"over": True})
        self._files.delete(room.code)

    def may_try(self, address: str) -> bool:
        """Whether an address may try another code."""
        return int(self._wrong.get(address, 0)) < WRONG_CODES

    def tried_wrong(self, address: str) -> None:
        """Counts a wrong code of an address."""
        self._wrong[address] = self._wrong.get(address, 0) + 1

    def _keep(self, room: Classroom) -> Classroom:
        loop = asyncio.get_running_loop()

        def listener() -> None:
            loop.call_soon_threadsafe(room.refresh)

        self._rooms[room.code] = _Open(room, time.monotonic(), listener)
        room.saved = self._changed
        room.deck.listen(listener)
        return room

    def _changed(self, room: Classroom) -> None:
        """Writes the class soon, once for many changes."""
        if (found := self._rooms.get(room.code)) is None:
            return
        found.dirty, found.used = True, time.monotonic()
        if found.writing is None or found.writing.done():
            found.writing = asyncio.get_running_loop().create_task(self._write(found))

    async def _write(self, found: _Open) -> None:
        while found.dirty:
            await asyncio.sleep(SAVE_SECONDS)
            found.dirty = False
            if not found.closed:
                content, wanted = store.written(found.room), lambda: not found.closed
                await asyncio.to_thread(self._files.save, found.room.code, content, wanted)

    def _make_room(self) -> None:
        """Forgets unused classes.

        Raises:
            TooManyClasses: all are in use.
        """
        now = time.monotonic()
        idle = [one for one in self._rooms.values() if now - one.used > IDLE_SECONDS and not one.room.students.followers]
        for one in idle:
            self.close(one.room)
        self._files.clean()
        if len(self._rooms) >= MOST_CLASSES:
            raise TooManyClasses
