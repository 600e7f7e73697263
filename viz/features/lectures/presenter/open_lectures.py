"""Open lectures of this process: each is read once while its file stays the same, and prepared once for all who hold it."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from weakref import WeakValueDictionary

from model.errors import HeadlightError
from model.sharing.caches import BUDGET, Budget, ComputedOnce, LruCache
from viz.features.lectures.classroom.event_feed import EventFeed
from viz.features.lectures.classroom.join_codes import new_token
from viz.features.lectures.presenter.deck import LectureDeck, deck_event
from viz.features.lectures.presenter.pictures import picture
from viz.features.lectures.presenter.view_store import PackedView
from viz.features.lectures.script import library
from viz.i18n.translate import _, error_message, speaking
from viz.session.patient_engine import NonBlockingEngine

MOST_LECTURES = 16
"""Most lectures that are kept prepared."""


class OpenLecture:
    """The events that say what of a lecture was prepared; it listens to the lecture while somebody follows. Used on the event loop.

    Args:
        deck: the lecture.
    """

    def __init__(self, deck: LectureDeck) -> None:
        self._deck, self._listens = deck, False
        self._loop = asyncio.get_running_loop()
        self.feed = EventFeed(self._somebody_came_or_left)

    def _somebody_came_or_left(self) -> None:
        wanted = self.feed.followers > 0
        if wanted and not self._listens:
            self._deck.listen(self._prepared)
            self._tell()
        elif not wanted:
            self._deck.forget(self._prepared)
        self._listens = wanted

    def _prepared(self) -> None:
        """Called in the thread that prepares."""
        self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        self.feed.send("prepared", deck_event(self._deck))


class Lectures:
    """The lectures of this process by name. Safe to be used from many threads.

    A lecture that was dropped goes on for those who hold it, and is prepared again for whoever opens it next.

    Args:
        engine_for: the engine for a session of this name and address.
        budget: bounds their pictures and all other caches together.
    """

    def __init__(self, engine_for: Callable[[str, str], NonBlockingEngine], budget: Budget = BUDGET) -> None:
        self._engine_for = engine_for
        self._kept: LruCache[tuple[str, int], LectureDeck] = LruCache(
            math.inf, attrgetter("nbytes"), MOST_LECTURES, budget, "lectures"
        )
        self._decks = ComputedOnce(self._kept)
        self._held: WeakValueDictionary[int, OpenLecture] = WeakValueDictionary()

    def deck(self, name: str) -> LectureDeck:
        """The lecture of this name. Reads files: never call it on the event loop.

        Raises:
            LookupError: there is none, its file cannot be read, or the engine does not say which models are here.
        """
        path = library.files().get(name)
        if path is None:
            raise LookupError(_("There is no such lecture here."))
        try:
            key = name, path.stat().st_mtime_ns
            return self._decks.get(key, lambda: self._opened(key))
        except (HeadlightError, OSError) as error:
            raise LookupError(error_message(error) if isinstance(error, HeadlightError) else str(error)) from error

    def _opened(self, key: tuple[str, int]) -> LectureDeck:
        name, _changed = key
        lecture, engine = library.load(name), self._engine_for(f"lecture {name} {new_token()}", "")
        deck = LectureDeck(lecture.shown_with(library.models_here(lecture, engine)), engine)
        deck.listen(lambda: self._kept.keep(key, deck))  # with each picture it takes more bytes
        return deck

    def held(self, deck: LectureDeck) -> OpenLecture:
        """The events of a lecture, kept as long as somebody follows them. Called on the event loop."""
        lecture = self._held.get(id(deck))  # while it lives, so does its deck
        if lecture is None:
            lecture = self._held[id(deck)] = OpenLecture(deck)
        return lecture

    def run(self, deck: LectureDeck, step: int, text: str, address: str) -> PackedView:
        """The picture of a step's view with another sentence. Waits for the run.

        Raises:
            HeadlightError, NotDrawable: the run is not possible, or has no picture.
        """
        step_ = deck.lecture.steps[step]
        view = replace(step_.view, text=text, target="", begin="", query=-1, key=-1, step=-1, hypothesis=0)
        engine = self._engine_for(f"off the path {new_token()}", address)
        with speaking(deck.language):
            return PackedView.of(picture(engine, step_.page, view).packed())
