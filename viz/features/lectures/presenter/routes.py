"""Routes of lectures: the lecturer's page and its data, the pages of students and speakers, and the downloads.

`LECTURES` opens lectures; each is prepared once, for all who hold it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from model.engine.scheduling.queue import Session
from model.errors import HeadlightError, Refused
from viz.canvas.routes import FONT
from viz.canvas.wire import transport
from viz.features.lectures.classroom import store
from viz.features.lectures.classroom.join_codes import read_code
from viz.features.lectures.classroom.registry import Registry
from viz.features.lectures.classroom.routes import KEY, ClassRoutes, EventStream, Refusal, answered, base, json_of
from viz.features.lectures.classroom.store import Store
from viz.features.lectures.presenter import html_pages, view_store
from viz.features.lectures.presenter.deck import LectureDeck
from viz.features.lectures.presenter.downloads import KINDS, Downloads
from viz.features.lectures.presenter.open_lectures import Lectures
from viz.features.lectures.presenter.view_store import remember
from viz.i18n.translate import _, error_message
from viz.panels import NotDrawable
from viz.session.access import access_limits, address_of, charge, is_fetched_by_another_site, is_public
from viz.session.patient_engine import NonBlockingEngine
from viz.session.state import the_engine

_OFF_THE_PATH = ThreadPoolExecutor(4, "headlight-off-the-path")
"""Waits for runs of other sentences: in the threads of Starlette they would keep the parts of drawings waiting."""

_NO_STORE = {"Cache-Control": "no-store"}


def _engine_for(name: str, address: str) -> NonBlockingEngine:
    """The engine, for preparing lectures without limits, for visitors of a public server within theirs."""
    limits = access_limits() if is_public() and address else None
    return NonBlockingEngine(the_engine(), Session(name, address), limits)


LECTURES = Lectures(_engine_for)
DOWNLOADS = Downloads()
REGISTRY = Registry(LECTURES.deck, Store(store.folder()))
CLASSES = ClassRoutes(REGISTRY)


def _lectures() -> str:
    """URL path of the list of lectures."""
    return f"{transport.address().removesuffix(transport.PATH)}/lecture"


def path_of(name: str) -> str:
    """URL path of the lecturer's page of a lecture."""
    return f"{transport.address().removesuffix(transport.PATH)}/hold/{name}"


async def _deck_of(request: Request) -> LectureDeck:
    """The lecture of a request.

    Raises:
        Refusal: there is none, or a page of another site makes the browser ask.
    """
    if is_fetched_by_another_site(request):
        raise Refusal(403, _("Only pages of this app can request this."))
    try:
        return await run_in_threadpool(LECTURES.deck, request.path_params["name"])
    except LookupError as error:
        raise Refusal(404, str(error)) from None


def _asks_for_json(request: Request) -> bool:
    return "application/json" in request.headers.get("accept", "")


def _as_page(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of a link: who follows it reads a refusal on a page."""

    async def respond(request: Request) -> Response:
        if _asks_for_json(request):
            return await endpoint(request)
        try:
            return await endpoint(request)
        except Refusal as refusal:
            problem, status = str(refusal), refusal.status
        except Refused as error:  # the pace
            problem, status = error_message(error), 429
        return html_pages.refused(problem, status, _lectures())

    return answered(respond)


async def _hold(request: Request) -> Response:
    charge(request, 1)
    deck = await _deck_of(request)
    if not deck.is_begun:
        charge(request, len(deck.slides))  # a run for each step; all who come later have them, too
    deck.prepare(0)
    return html_pages.lecturer(deck, path_of(deck.name))


async def _events(request: Request) -> Response:
    return EventStream(LECTURES.held(await _deck_of(request)).feed)


async def _view(request: Request) -> Response:
    """Runs another sentence in the view of a step."""
    deck, asked = await _deck_of(request), await json_of(request)
    step, text = asked.get("step"), asked.get("text")
    if type(step) is not int or not 0 <= step < len(deck.slides) or not isinstance(text, str) or not text.strip():
        raise Refusal(400, _("This message does not come from the page."))
    try:
        running = asyncio.get_running_loop().run_in_executor(_OFF_THE_PATH, LECTURES.run, deck, step, text, address_of(request))
        view = await running
    except HeadlightError as error:
        raise Refusal(409, error_message(error)) from None
    except NotDrawable as error:
        raise Refusal(409, str(error)) from None
    remember(view)
    return JSONResponse({"view": view.name}, headers=_NO_STORE)


async def _download(kind: str, request: Request) -> Response:
    """The file to take home or the handout; while it is made, 202 and a page that shows how far it is, or JSON for that page."""
    deck = await _deck_of(request)
    made = DOWNLOADS.get(deck, kind, lambda cost: charge(request, cost))
    if made is not None and not made.data:
        raise Refusal(500, _("This file could not be made; the server’s log says why."))
    if _asks_for_json(request):
        how_far = {"prepared": deck.prepared, "steps": len(deck.slides)}
        return JSONResponse(how_far, 202 if made is None else 200, headers=_NO_STORE)
    if made is None:
        return html_pages.making(deck, _lectures())
    charge(request, 1)
    named = {"Content-Disposition": f'attachment; filename="{deck.name}.{KINDS[kind].ending}"', "Content-Encoding": "identity"}
    return Response(made.data, headers=_NO_STORE | named, media_type=KINDS[kind].media)


async def _join(request: Request) -> Response:
    """Where students type the code; a right one leads to its class."""
    typed = request.query_params.get("code", "")
    code = read_code(typed)
    if code:
        return RedirectResponse(f"{base()}/{code}", 303)
    return html_pages.join(_("There is no class with this code. Compare it with the one on the screen.") if typed else "")


async def _student(request: Request) -> Response:
    try:
        room = await CLASSES.found(request)
    except Refusal as refusal:
        return html_pages.join(str(refusal), refusal.status)
    if request.path_params["code"] != room.code:  # cookies belong to one spelling of the path
        return RedirectResponse(f"{base()}/{room.code}", 303)
    return html_pages.student(room.deck)


async def _speaker(request: Request) -> Response:
    try:
        room = await CLASSES.found(request)
    except Refusal as refusal:
        return html_pages.join(str(refusal), refusal.status)
    if not room.admits(request.cookies.get(KEY, "")):
        return html_pages.join(_("Only the lecturer can control the class."), 403)
    return html_pages.speaker(room.deck)


ROUTES = [
    view_store.ROUTE,
    FONT,
    html_pages.ROUTE,
    *CLASSES.all(),
    Route(base(), answered(_join)),
    Route(f"{base()}/{{code}}", answered(_student)),
    Route(f"{base()}/{{code}}/speaker", answered(_speaker)),
    Route(path_of("{name}"), _as_page(_hold)),
    Route(f"{path_of('{name}')}/events", answered(_events)),
    Route(f"{path_of('{name}')}/view", answered(_view), methods=["POST"]),
    *(Route(f"{path_of('{name}')}/{kind}", _as_page(partial(_download, kind))) for kind in KINDS),
]
"""For `st.App(routes=…)`; must come before the route of parts."""
