"""The classes of this process. Used on the event loop only; files are read and written in other threads."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import TTLCache

from viz.features.lectures.classroom import store
from viz.features.lectures.classroom.classroom import Classroom
from viz.features.lectures.classroom.deck import Deck
from viz.features.lectures.classroom.file_limit import allow_many_connections
from viz.features.lectures.classroom.join_codes import hashed, new_code, new_token, process
from viz.features.lectures.classroom.store import Store

MOST_CLASSES = 100
"""Most classes at once in this process."""

MOST_EACH = 20
"""Most classes that one address may have open, where addresses are counted. A university may have one address for all its rooms."""

IDLE_SECONDS = 60.0
"""Time after which a class that nobody follows or uses may make room for another. Its file stays: its code opens it again."""

SAVE_SECONDS = 0.5
"""Time in which changes are collected before they are written."""

RETRY_SECONDS = 60.0
"""Longest time after which a file that could not be written is written again: 1, 2, 4 … times SAVE_SECONDS."""

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


class HeldElsewhere(Exception):
    """Another process of the pages holds this class, or will hold it when it has started again."""


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
        self._files.claim(room.code)
        self._openers[room.code] = opener
        self._changed(room)
        return room, key

    def find(self, code: str) -> Classroom | None:
        """The class with this code, if it is held."""
        if (held := self._rooms.get(code)) is None:
            return None
        held.used = time.monotonic()
        return held.room

    async def fetch(self, code: str) -> Classroom | None:
        """The class with this code, also one from before a restart, or one that made room for another.

        Raises:
            TooManyClasses: there is no room for it.
            HeldElsewhere: another process holds it.
        """
        if (room := self.find(code)) is not None:
            return room
        try:
            read = await asyncio.to_thread(self._files.load, code, self._open_deck) if code else None
        except LookupError:
            return None
        if (room := self.find(code)) is not None or read is None or code in self._ended:
            return room  # somebody else fetched it, or closed it, meanwhile
        if not code.startswith(process()) or not self._files.claim(code):  # its code begins with the name of its process
            raise HeldElsewhere
        try:
            self._make_room(self._openers.get(code, ""))
        except TooManyClasses:
            self._files.release(code)
            raise
        return self._keep(read)

    def close(self, room: Classroom) -> None:
        """Ends a class and deletes its file."""
        held = self._rooms.pop(room.code, None)
        if held is not None:
            held.closed = True
            room.deck.forget(held.listener)
        self._ended[room.code] = True
        room.students.send("over", {"over": True})
        self._files.delete(room.code)

    def end(self) -> None:
        """Writes what was not written yet, and lets other processes have the classes: this one ends."""
        for code, held in list(self._rooms.items()):
            if held.dirty:
                self._files.save(code, store.written(held.room))
            self._files.release(code)

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
        if (held := self._rooms.get(room.code)) is None:
            return
        held.dirty, held.used = True, time.monotonic()
        if held.writing is None or held.writing.done():
            held.writing = asyncio.get_running_loop().create_task(self._write(held))

    async def _write(self, held: _Open) -> None:
        pause = SAVE_SECONDS
        while held.dirty:
            await asyncio.sleep(pause)
            if held.closed or not held.dirty:  # written meanwhile, when the class made room: now another process may own its file
                return
            held.dirty = False
            content = store.written(held.room)
            if await asyncio.to_thread(self._files.save, held.room.code, content, lambda: not held.closed):
                pause = SAVE_SECONDS
            else:  # a full disk may have room again
                held.dirty, pause = True, min(2 * pause, RETRY_SECONDS)

    def _make_room(self, opener: str) -> None:
        """Puts one class away where there are too many, of an address or of all.

        Where all places are taken, an address that took several gives one back, even if somebody follows it: else a few addresses
        could take them all. Otherwise only a class that nobody follows or uses makes room.

        Raises:
            TooManyClasses: all are in use.
        """
        if opener and len(self._of(opener)) >= MOST_EACH:
            self._put_away(self._idle(self._of(opener)), of_address=True)
        if len(self._rooms) >= MOST_CLASSES:
            counts = Counter(address for code in self._rooms if (address := self._openers.get(code)))
            greedy, most = next(iter(counts.most_common(1)), ("", 0))
            self._put_away(self._of(greedy) if most > 1 else self._idle(list(self._rooms.values())), of_address=False)

    def _of(self, opener: str) -> list[_Open]:
        """The classes that an address has open."""
        return [held for code, held in self._rooms.items() if self._openers.get(code) == opener]

    def _idle(self, crowd: list[_Open]) -> list[_Open]:
        since = time.monotonic() - IDLE_SECONDS
        return [held for held in crowd if held.used < since and not _followers(held)]

    def _put_away(self, crowd: list[_Open], of_address: bool) -> None:
        if not crowd:
            raise TooManyClasses(of_address)
        least = min(crowd, key=lambda held: (_followers(held), held.used))
        del self._rooms[least.room.code]
        least.room.deck.forget(least.listener)
        least.room.students.close()
        least.room.lecturers.close()
        if least.dirty:
            least.dirty = False
            self._files.save(least.room.code, store.written(least.room))
        self._files.release(least.room.code)


def _followers(held: _Open) -> int:
    return held.room.students.followers + held.room.lecturers.followers
