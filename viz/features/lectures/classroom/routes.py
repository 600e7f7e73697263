"""Routes of a class: events, answers, steering, the QR picture and the counts. JSON and server-sent events, no pages.

A student's device gets a random name in a cookie, so that it answers a question once; the lecturer's browser has the key in one.
Both cookies are readable by the server alone and are sent to this class only.
"""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pandas as pd
import segno
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from model.errors import HeadlightError
from model.requests.sent_text import split_address
from viz.canvas.wire import transport
from viz.export import tables
from viz.features.lectures.classroom.addresses import reachable_hosts
from viz.features.lectures.classroom.classroom import Classroom, InvalidCommand
from viz.features.lectures.classroom.event_feed import MOST_FOLLOWERS, EventFeed
from viz.features.lectures.classroom.join_codes import hashed, new_token, read_code, shown
from viz.features.lectures.classroom.poll import MOST_DEVICES
from viz.features.lectures.classroom.registry import HeldElsewhere, Registry, TooManyClasses
from viz.i18n.translate import _, error_message, of_request, speaking
from viz.session.access import address_of, charge, is_public

DEVICE, KEY = "headlight-device", "headlight-key"
COOKIE_SECONDS = 24 * 3600
MOST_BYTES = 8192
"""Most bytes of an answer or an order."""

SEND_SECONDS = 20.0
"""Time after which a follower who takes no bytes is dropped."""

_NO_STORE = {"Cache-Control": "no-store"}


class Refusal(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def base() -> str:
    """Path below which the classes are: `/class`, below the base path of the server."""
    return f"{transport.address().removesuffix(transport.PATH)}/class"


class EventStream(StreamingResponse):
    """Server-sent events; a connection that takes no bytes for SEND_SECONDS is dropped."""

    def __init__(self, feed: EventFeed) -> None:
        headers = _NO_STORE | {"X-Accel-Buffering": "no"}  # nginx would collect the events otherwise
        super().__init__(feed.follow(), media_type="text/event-stream", headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the events until the follower has gone."""

        async def sending(message: Any) -> None:
            async with asyncio.timeout(SEND_SECONDS):
                await send(message)

        try:
            await super().__call__(scope, receive, sending)
        except TimeoutError:
            return


class ClassRoutes:
    """The routes, for one registry of classes.

    Args:
        registry: the classes.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def all(self) -> list[Route]:
        """The routes, for `st.App(routes=…)`."""
        one = f"{base()}/{{code}}"
        return [
            Route(base(), answered(self._open), methods=["POST"]),
            Route(f"{one}/events", answered(self._events)),
            Route(f"{one}/lecturer", answered(self._lecturer)),
            Route(f"{one}/answer", answered(self._answer), methods=["POST"]),
            Route(f"{one}/steer", answered(self._steer), methods=["POST"]),
            Route(f"{one}/key", answered(self._take_key), methods=["POST"]),
            Route(f"{one}/close", answered(self._close), methods=["POST"]),
            Route(f"{one}/answers.csv", answered(self._csv)),
            Route(f"{one}/qr.svg", answered(self._qr)),
            Route(f"{one}/addresses", answered(self._addresses)),
        ]

    async def found(self, request: Request, key: str = "") -> Classroom:
        """The class of a request. Wrong codes of others in the same network never stop its lecturer or a device that joined.

        Args:
            key: the lecturer's key, where it was sent otherwise than in the cookie.

        Raises:
            Refusal: there is no such class, another process holds it, too many are open, or this address sent too many wrong codes.
        """
        address, key, device = address_of(request), key or request.cookies.get(KEY, ""), request.cookies.get(DEVICE, "")
        may_try = self._registry.may_try(address)
        try:
            room = await self._registry.fetch(read_code(request.path_params["code"])) if may_try or key or device else None
        except TooManyClasses:
            raise _too_many() from None
        except HeldElsewhere:
            raise Refusal(503, _("Another process of this server holds the class. Try again in a few seconds.")) from None
        if room is not None and (may_try or room.admits(key) or hashed(device) in room.devices):
            return room
        if not may_try:
            raise Refusal(429, _("Too many wrong codes from your network. Wait a minute, then try again."))
        self._registry.tried_wrong(address)
        raise Refusal(404, _("There is no class with this code. Compare it with the one on the screen."))

    async def _steered(self, request: Request) -> Classroom:
        """The class of a request of its lecturer.

        Raises:
            Refusal: without the key.
        """
        room = await self.found(request)
        if not room.admits(request.cookies.get(KEY, "")):
            raise Refusal(403, _("Only the lecturer can control the class."))
        return room

    async def _open(self, request: Request) -> Response:
        order, opener = await json_of(request), address_of(request) if is_public() else ""
        charge(request, 1)
        try:
            room, key = await self._registry.open(str(order.get("lecture", ""))[:200], opener)
        except LookupError:
            raise Refusal(404, _("There is no such lecture here.")) from None
        except TooManyClasses as error:
            raise _too_many(error.of_address) from None
        if type(order.get("step")) is int and 0 <= order["step"] < len(room.deck.slides):
            room.go(order["step"])
        response = JSONResponse({"code": room.code, "shown": shown(room.code), "key": key}, headers=_NO_STORE)
        _set_cookie(response, request, room, KEY, key)
        return response

    async def _events(self, request: Request) -> Response:
        room = await self.found(request)
        if room.students.followers >= MOST_FOLLOWERS:
            raise Refusal(503, _("The class is full."))
        response = EventStream(room.students)
        if hashed(request.cookies.get(DEVICE, "")) not in room.devices and len(room.devices) < MOST_DEVICES:
            name = new_token()
            room.devices.add(hashed(name))
            _set_cookie(response, request, room, DEVICE, name)
        return response

    async def _lecturer(self, request: Request) -> Response:
        return EventStream((await self._steered(request)).lecturers)

    async def _answer(self, request: Request) -> Response:
        room, sent = await self.found(request), await json_of(request)
        device = request.cookies.get(DEVICE, "")
        if hashed(device) not in room.devices:
            raise Refusal(403, _("This device has not joined the class. Reload the page."))
        outcome = room.answer(device, sent.get("step"), sent.get("value"))
        status = {"counted": 200, "again": 409, "late": 409, "malformed": 400, "full": 503}[outcome]
        return JSONResponse({"outcome": outcome, "value": room.counted(device, sent.get("step"))}, status, headers=_NO_STORE)

    async def _steer(self, request: Request) -> Response:
        room, order = await self._steered(request), await json_of(request)
        try:
            room.apply_command(order)
        except InvalidCommand as error:
            raise Refusal(400, _("The class does not accept this: {what}.", what=error)) from None
        return JSONResponse({"orders": room.orders}, headers=_NO_STORE)

    async def _take_key(self, request: Request) -> Response:
        """Gives the lecturer's second device the key, which it sends once."""
        key = str((await json_of(request)).get("key", ""))
        room = await self.found(request, key)
        if not room.admits(key):
            self._registry.tried_wrong(address_of(request))
            raise Refusal(403, _("This is not the key of the class."))
        response = Response(status_code=204, headers=_NO_STORE)
        _set_cookie(response, request, room, KEY, key)
        return response

    async def _close(self, request: Request) -> Response:
        self._registry.close(await self._steered(request))
        return Response(status_code=204, headers=_NO_STORE)

    async def _csv(self, request: Request) -> Response:
        room = await self._steered(request)
        name = f'attachment; filename="class-{room.code}.csv"'
        return Response(tables.csv(counts(room)), media_type="text/csv", headers=_NO_STORE | {"Content-Disposition": name})

    async def _addresses(self, request: Request) -> Response:
        """The hosts by which phones in this machine's networks reach it."""
        await self._steered(request)
        return JSONResponse({"addresses": await asyncio.to_thread(reachable_hosts, address_of(request))}, headers=_NO_STORE)

    async def _qr(self, request: Request) -> Response:
        """QR picture of the class's address; the browser knows under which host and scheme the page was reached."""
        room, origin = await self._steered(request), split_address(request.query_params.get("origin", "")[:200])
        if origin is None or origin.scheme not in ("http", "https") or not origin.hostname:
            raise Refusal(400, _("The class does not accept this: {what}.", what="origin"))
        picture = io.BytesIO()
        code = segno.make(f"{origin.scheme}://{origin.netloc}{base()}/{room.code}", error="m")
        code.save(picture, kind="svg", border=4, scale=8, dark="#000000", light="#ffffff", xmldecl=False, omitsize=True)
        return Response(picture.getvalue(), media_type="image/svg+xml", headers=_NO_STORE)


def _too_many(of_address: bool = False) -> Refusal:
    if of_address:
        return Refusal(429, _("Too many classes are open from your network. Close one that is no longer needed."))
    return Refusal(503, _("Too many classes are open on this server."))


def counts(room: Classroom) -> pd.DataFrame:
    """The answers of a class: a row for each option or bar, with its count; nothing about devices."""
    rows: list[tuple[int, str, str, int]] = []
    for step, poll in sorted(room.polls.items()):
        found, title = poll.counts(), room.deck.slides[step].title
        if poll.question.layout == "number":
            rows += [(step + 1, title, f"{bar['from']:g} – {bar['to']:g}", int(bar["count"])) for bar in found["bars"]]
        else:
            rows += [(step + 1, title, text, n) for text, n in zip(poll.question.options, found["counts"], strict=True)]
    table = pd.DataFrame(rows, columns=["step", "title", "answer", "count"])
    return table.set_index("step")


async def json_of(request: Request) -> dict[str, Any]:
    """The body of a request, a JSON object. Another site's form cannot send this type.

    Raises:
        Refusal: it is another type, too long, or no object.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refusal(415, _("This message does not come from the page."))
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            raise Refusal(413, _("This message is too long."))
    try:
        found = json.loads(bytes(body))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refusal(400, _("This message does not come from the page."))
    return found


def _set_cookie(response: Response, request: Request, room: Classroom, name: str, value: str) -> None:
    secure = request.url.scheme == "https"
    path = f"{base()}/{room.code}"
    response.set_cookie(name, value, COOKIE_SECONDS, path=path, secure=secure, httponly=True, samesite="strict")


def answered(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint with refusals as responses: a status, and a sentence as JSON."""

    async def respond(request: Request) -> Response:
        with speaking(of_request(request.headers.get("accept-language", ""))):
            try:
                return await endpoint(request)
            except Refusal as refusal:
                return JSONResponse({"sentence": str(refusal)}, refusal.status, headers=_NO_STORE)
            except HeadlightError as error:  # the pace
                return JSONResponse({"sentence": error_message(error)}, 429, headers=_NO_STORE)

    return respond
