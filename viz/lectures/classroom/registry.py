"""The classes of this process. Used on the event loop only; files are read and written in other threads."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import TTLCache

from viz.lectures.classroom import store
from viz.lectures.classroom.classroom import Classroom
from viz.lectures.classroom.deck import Deck
from viz.lectures.classroom.file_limit import allow_many_connections
from viz.lectures.classroom.join_codes import hashed, new_code, new_token
from viz.lectures.classroom.store import Store

MOST_CLASSES = 100
"""Most classes at once in this process."""

MOST_EACH = 20
"""Most classes that one address may have open, where addresses are counted. A university may have one address for all its rooms."""

IDLE_SECONDS = 60.0
"""Time after which a class that nobody follows or uses may make room for another. Its file stays: its code opens it again."""

SAVE_SECONDS = 0.5
"""Time in which changes are collected before they are written."""

WRONG_CODES, WRONG_SECONDS = 1000, 60.0
"""Most wrong codes that one address may send within so many seconds. A university may have one address for all its students; of
2^40 codes nobody finds one of a hundred at this rate."""


READ_SECONDS = 60.0
"""Time for which it is known that a class was closed: its file may just be read for somebody who came before."""


class TooManyClasses(Exception):
    """No room for another class: somebody follows each of those that are open.

    Attributes:
        of_address: whether those of one address are meant, not all that this process holds.
    """

    def __init__(self, of_address: bool) -> None:
        super().__init__()
        self.of_address = of_address


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
        self._wrong: TTLCache[str, list[int]] = TTLCache(10_000, WRONG_SECONDS)
        self._openers: TTLCache[str, str] = TTLCache(10_000, store.LIFE_SECONDS)
        """Addresses that opened classes, by code, also of those that made room; in no file."""
        self._ended: TTLCache[str, bool] = TTLCache(10_000, READ_SECONDS)

    async def open(self, lecture: str, opener: str = "") -> tuple[Classroom, str]:
        """Opens a class; returns it and the lecturer's key, which is stored nowhere.

        Args:
            opener: the address that asks for it; empty: addresses are not counted.

        Raises:
            LookupError: there is no such lecture.
            TooManyClasses: there is no room for another class.
        """
        await asyncio.to_thread(self._files.clean)
        deck = await asyncio.to_thread(self._open_deck, lecture)
        self._make_room(opener)
        allow_many_connections()
        key = new_token()
        room = self._keep(Classroom(new_code(), hashed(key), deck, time.time()))
        self._openers[room.code] = opener
        self._changed(room)
        return room, key

    def find(self, code: str) -> Classroom | None:
        """The class with this code, if it is held."""
        if (found := self._rooms.get(code)) is None:
            return None
        found.used = time.monotonic()
        return found.room

    async def fetch(self, code: str) -> Classroom | None:
        """The class with this code, also one from before a restart, or one that made room for another.

        Raises:
            TooManyClasses: there is no room for it.
        """
        if (found := self.find(code)) is not None:
            return found
        try:
            read = await asyncio.to_thread(self._files.load, code, self._open_deck) if code else None
        except LookupError:
            return None
        if (found := self.find(code)) is not None or read is None or code in self._ended:
            return found  # somebody else fetched it, or closed it, meanwhile
        self._make_room(self._openers.get(code, ""))
        return self._keep(read)

    def close(self, room: Classroom) -> None:
        """Ends a class and deletes its file."""
        found = self._rooms.pop(room.code, None)
        if found is not None:
            found.closed = True
            room.deck.forget(found.listener)
        self._ended[room.code] = True
        room.students.send("over", {"over": True})
        self._files.delete(room.code)

    def may_try(self, address: str) -> bool:
        """Whether an address may try another code."""
        return sum(self._wrong.get(address, ())) < WRONG_CODES

    def tried_wrong(self, address: str) -> None:
        """Counts a wrong code of an address; the time runs from the first."""
        self._wrong.setdefault(address, [0])[0] += 1

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

    def _make_room(self, opener: str) -> None:
        """Puts the class that was not used for longest away where there are too many, of an address or of all.

        Raises:
            TooManyClasses: all are in use.
        """
        for address, most in ([(opener, MOST_EACH)] if opener else []) + [("", MOST_CLASSES)]:
            crowd = [one for code, one in self._rooms.items() if address in ("", self._openers.get(code))]
            if len(crowd) < most:
                continue
            since = time.monotonic() - IDLE_SECONDS
            idle = [one for one in crowd if one.used < since and not (one.room.students.followers or one.room.lecturers.followers)]
            if not idle:
                raise TooManyClasses(of_address=bool(address))
            oldest = min(idle, key=lambda one: one.used)
            del self._rooms[oldest.room.code]
            oldest.room.deck.forget(oldest.listener)
