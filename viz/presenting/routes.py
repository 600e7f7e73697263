"""Routes of lectures: the lecturer's page and its data, the pages of students and speakers, and the file to take home.

`LECTURES` opens lectures; each is prepared once, for all who hold it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from cachetools import LRUCache
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from model.engine.scheduling.queue import Session
from model.errors import BadLecture, HeadlightError
from viz.canvas.wire import transport
from viz.classroom import store
from viz.classroom.codes import new_token, read_code
from viz.classroom.feed import Feed
from viz.classroom.registry import Registry
from viz.classroom.routes import KEY, ClassRoutes, EventStream, Refusal, address_of, answered, base, json_of
from viz.classroom.store import Store
from viz.language import speaking
from viz.lectures import library
from viz.page import the_engine
from viz.presenting import handout, packed_views, pages
from viz.presenting.deck import LectureDeck, told
from viz.presenting.packed_views import PackedView, remember
from viz.presenting.pictures import picture
from viz.presenting.resolve import CannotShow
from viz.public import access_limits, is_public
from viz.texts import _, sentence
from viz.waiting import PatientEngine

MOST_LECTURES = 16
"""Most lectures that are kept prepared."""

_NO_STORE = {"Cache-Control": "no-store"}


class Held:
    """A lecture that is open, and the events that say what was prepared. Used on the event loop only.

    Args:
        deck: the lecture.
    """

    def __init__(self, deck: LectureDeck) -> None:
        self.deck, self.feed = deck, Feed()
        self._loop = asyncio.get_running_loop()
        deck.listen(self._prepared)
        self.tell()

    def _prepared(self) -> None:
        """Called in the thread that prepares."""
        self._loop.call_soon_threadsafe(self.tell)

    def tell(self) -> None:
        """Tells what is prepared."""
        self.feed.send("prepared", told(self.deck))


class Lectures:
    """The lectures of this process by name, each opened once while its file stays the same.

    Args:
        engine_for: the engine for a session of this name and address.
    """

    def __init__(self, engine_for: Callable[[str, str], PatientEngine]) -> None:
        self._engine_for = engine_for
        self._decks: LRUCache[tuple[str, int], LectureDeck] = LRUCache(MOST_LECTURES)
        self._held: LRUCache[int, Held] = LRUCache(MOST_LECTURES)

    def deck(self, name: str) -> LectureDeck:
        """The lecture of this name.

        Raises:
            LookupError: there is none, or its file cannot be read.
        """
        path = library.files().get(name)
        if path is None:
            raise LookupError(_("There is no such lecture here."))
        try:
            key = name, path.stat().st_mtime_ns
            if key not in self._decks:
                self._decks[key] = LectureDeck(library.load(name), self._engine_for(f"lecture {name} {new_token()}", ""))
        except (BadLecture, OSError) as error:
            raise LookupError(sentence(error) if isinstance(error, HeadlightError) else str(error)) from error
        return self._decks[key]

    def held(self, deck: LectureDeck) -> Held:
        """The events of a lecture. Called on the event loop."""
        if id(deck) not in self._held or self._held[id(deck)].deck is not deck:
            self._held[id(deck)] = Held(deck)
        return self._held[id(deck)]

    def run(self, deck: LectureDeck, step: int, text: str, address: str) -> PackedView:
        """The picture of a step's view with another sentence. Waits for the run.

        Raises:
            HeadlightError, CannotShow: the run is not possible, or has no picture.
        """
        one = deck.lecture.steps[step]
        view = replace(one.view, text=text, target="", begin="", query=-1, key=-1, step=-1, hypothesis=0)
        engine = self._engine_for(f"off the path {new_token()}", address)
        with speaking(deck.language):
            return PackedView.of(picture(engine, one.page, view).packed())


def _engine_for(name: str, address: str) -> PatientEngine:
    """The engine, for preparing lectures without limits, for visitors of a public server within theirs."""
    limits = access_limits() if is_public() and address else None
    return PatientEngine(the_engine(), Session(name, address), limits)


LECTURES = Lectures(_engine_for)
REGISTRY = Registry(LECTURES.deck, Store(store.folder()))
CLASSES = ClassRoutes(REGISTRY)


def path_of(name: str) -> str:
    """URL path of the lecturer's page of a lecture."""
    return f"{transport.address().removesuffix(transport.PATH)}/hold/{name}"


def _deck_of(request: Request) -> LectureDeck:
    try:
        return LECTURES.deck(request.path_params["name"])
    except LookupError as error:
        raise Refusal(404, str(error)) from None


def _as_page(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of a link: who follows it reads a refusal on a page."""

    async def respond(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refusal as refusal:
            return pages.refused(str(refusal), refusal.status, f"{path_of('').removesuffix('hold/')}lecture")

    return answered(respond)


async def _hold(request: Request) -> Response:
    deck = await run_in_threadpool(_deck_of, request)
    deck.prepare(0)
    return pages.lecturer(deck, path_of(deck.name))


async def _events(request: Request) -> Response:
    return EventStream(LECTURES.held(_deck_of(request)).feed)


async def _view(request: Request) -> Response:
    """Runs another sentence in the view of a step."""
    deck, asked = _deck_of(request), await json_of(request)
    step, text = asked.get("step"), asked.get("text")
    if type(step) is not int or not 0 <= step < len(deck.slides) or not isinstance(text, str) or not text.strip():
        raise Refusal(400, _("This is not a message of the page."))
    try:
        view = await run_in_threadpool(LECTURES.run, deck, step, text, address_of(request))
    except HeadlightError as error:
        raise Refusal(409, sentence(error)) from None
    except CannotShow as error:
        raise Refusal(409, str(error)) from None
    remember(view)
    return JSONResponse({"view": view.name}, headers=_NO_STORE)


async def _file(request: Request) -> Response:
    deck = _deck_of(request)

    def make() -> bytes:
        deck.wait()
        return pages.file(deck)

    name = f'attachment; filename="{deck.name}.html"'
    data = await run_in_threadpool(make)
    return Response(data, headers=_NO_STORE | {"Content-Disposition": name, "Content-Encoding": "identity"}, media_type="text/html")


async def _handout(request: Request) -> Response:
    deck = _deck_of(request)
    data = await run_in_threadpool(handout.pdf, deck)
    name = f'attachment; filename="{deck.name}.pdf"'
    return Response(data, headers=_NO_STORE | {"Content-Disposition": name}, media_type="application/pdf")


async def _join(request: Request) -> Response:
    """Where students type the code; a right one leads to its class."""
    typed = request.query_params.get("code", "")
    code = read_code(typed)
    if code:
        return RedirectResponse(f"{base()}/{code}", 303)
    return pages.join(_("There is no class with this code. Compare it with the one on the screen.") if typed else "")


async def _student(request: Request) -> Response:
    try:
        room = CLASSES.found(request)
    except Refusal as refusal:
        return pages.join(str(refusal), refusal.status)
    if request.path_params["code"] != room.code:  # cookies belong to one spelling of the path
        return RedirectResponse(f"{base()}/{room.code}", 303)
    return pages.student(room.deck)


async def _speaker(request: Request) -> Response:
    try:
        room = CLASSES.found(request)
    except Refusal as refusal:
        return pages.join(str(refusal), refusal.status)
    if not room.admits(request.cookies.get(KEY, "")):
        return pages.join(_("Only the lecturer steers the class."), 403)
    return pages.speaker(room.deck)


ROUTES = [
    packed_views.ROUTE,
    pages.ROUTE,
    *CLASSES.all(),
    Route(base(), answered(_join)),
    Route(f"{base()}/{{code}}", answered(_student)),
    Route(f"{base()}/{{code}}/speaker", answered(_speaker)),
    Route(path_of("{name}"), _as_page(_hold)),
    Route(f"{path_of('{name}')}/events", answered(_events)),
    Route(f"{path_of('{name}')}/view", answered(_view), methods=["POST"]),
    Route(f"{path_of('{name}')}/file", _as_page(_file)),
    Route(f"{path_of('{name}')}/handout", _as_page(_handout)),
]
"""For `st.App(routes=…)`; must come before the route of parts."""
