"""What is taken home of a lecture: the file and the handout.

Each is made once per content, one after the other in a thread of their own: typesetting takes seconds of a processor and much
memory. A request never waits for it; it is told how far it is.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from model.engine import log
from model.sharing.caches import BUDGET, LruCache, SingleFlight
from viz.features.lectures.presenter import handout, html_pages
from viz.features.lectures.presenter.deck import LectureDeck

MOST_BYTES = 64 * 2**20
"""Most bytes of all files together that are kept."""

MOST_FILES = 64

_log = logging.getLogger(log.NAME)


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        ending: of its name.
        media: its media type.
        make: makes it from a lecture whose steps are all prepared.
        cost: as how many requests making it counts: one is about 50 ms of a processor.
    """

    ending: str
    media: str
    make: Callable[[LectureDeck], bytes]
    cost: int


KINDS: Mapping[str, Kind] = {
    "file": Kind("html", "text/html", html_pages.file, 2),
    "handout": Kind("pdf", "application/pdf", handout.pdf, 40),
}
"""Kinds of files by the last part of their address."""


@dataclass(frozen=True)
class Download:
    """A file that was made.

    Attributes:
        data: its bytes; empty: it could not be made, and the log says why.
    """

    data: bytes


class Downloads:
    """The files that were made of lectures, and those that are being made. Safe to be used from many threads.

    Args:
        kinds: what can be made.
    """

    def __init__(self, kinds: Mapping[str, Kind] = KINDS) -> None:
        self._kinds = kinds
        self._made: LruCache[tuple[str, str], Download] = LruCache(
            MOST_BYTES, lambda download: len(download.data), MOST_FILES, BUDGET, "downloads"
        )
        self._flight: SingleFlight[tuple[str, str], None] = SingleFlight()
        self._maker = ThreadPoolExecutor(1, "headlight-download")

    def get(self, deck: LectureDeck, kind: str, admit: Callable[[int], None]) -> Download | None:
        """The file; None: it is being made, or its lecture is being prepared. Never waits.

        Args:
            deck: the lecture.
            kind: a key of the kinds.
            admit: called before work begins, with its cost; what it raises ends the call, and nothing begins.
        """
        if not deck.is_prepared:
            if not deck.is_begun:
                admit(len(deck.slides))
            deck.prepare(0)
            return None
        key = deck.content, kind
        if (made := self._made.get(key)) is None and key not in self._flight:
            admit(self._kinds[kind].cost)
            self._flight.begin(key, lambda: self._make(deck, kind), self._maker.submit)
        return made

    def _make(self, deck: LectureDeck, kind: str) -> None:
        key = deck.content, kind
        if self._made.get(key) is not None:
            return
        try:
            made = Download(self._kinds[kind].make(deck))
        except Exception:
            _log.exception("The %s of the lecture %s could not be made.", kind, deck.name)
            made = Download(b"")
        self._made.keep(key, made)
