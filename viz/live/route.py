"""The route of live pictures: `POST /headlight/live/TOKEN` with `{"text": …, "change": {…}}`; the answer is a stream of frames.
`DELETE` stops the run, and keeps what it has written.

Only the app's own pages may ask: the token is known to them alone, and the browser must say that the request comes from the same
origin. The limits of the app hold: length and pace are checked by the engine call itself, as for a script run.
"""

import json
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from model.spec.inputs import CHARACTERS_PER_POSITION, POSITIONS
from viz.canvas.wire import part_cache
from viz.live.changes import Question, fields_of
from viz.live.frames import frames
from viz.live.sessions import BY_TOKEN

PATH = f"{part_cache.address()}/live"
MEDIA = "application/x-headlight-frames"

BODY = 8 * CHARACTERS_PER_POSITION * POSITIONS
"""Most bytes of a question: the longest text that any model accepts, in JSON."""


def same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that a page of this app asks. `Sec-Fetch-Site` also holds behind a proxy that changes the host."""
    if site := headers.get("sec-fetch-site"):
        return site == "same-origin"
    origin = urlsplit(headers.get("origin", "")).netloc
    return bool(origin) and origin == headers.get("host")


async def _serve(request: Request) -> Response:
    """Answers one question of a sentence box, or stops the run that the last one asked for."""
    if not same_origin(request.headers):
        return _refused(403, "Only pages of this app may ask.")
    live = BY_TOKEN.get(request.path_params["token"])
    if live is None or live.situation is None:
        return _refused(404, "This session has ended: reload the page.")
    if request.method == "DELETE":
        live.calls.stop_following()
        return Response(status_code=204)
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return _refused(415, "The question must be JSON.")
    try:
        question = _question(await _body(request))
    except OverflowError:
        return _refused(413, "The question is too long.")
    except (ValueError, RecursionError, ClientDisconnect):
        return _refused(400, 'The question must be {"text": "…"}, perhaps with a "change".')
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "Content-Encoding": "identity"}
    return StreamingResponse(frames(live, live.situation, question, _gone(request)), headers=headers, media_type=MEDIA)


async def _body(request: Request) -> bytes:
    """The body of a request.

    Raises:
        OverflowError: it is longer than BODY.
    """
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > BODY:
            raise OverflowError
    return bytes(found)


async def _gone(request: Request) -> None:
    """Returns when the browser has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _question(body: bytes) -> Question:
    """The question in a body.

    Raises:
        ValueError: it is of another form.
    """
    asked = json.loads(body)
    if (
        not isinstance(asked, dict)
        or not {"text"} <= asked.keys() <= {"text", "change"}
        or not isinstance(asked["text"], str | None)
    ):
        raise ValueError
    return Question(asked["text"], fields_of(asked.get("change", {})))


def _refused(status: int, why: str) -> Response:
    return PlainTextResponse(why, status, headers={"Cache-Control": "no-store"})


ROUTE = Route(f"{PATH}/{{token}}", _serve, methods=["POST", "DELETE"])
"""For `st.App(routes=…)`; must come before the route of parts."""
