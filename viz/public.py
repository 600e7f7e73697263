"""The app before strangers: HEADLIGHT_PUBLIC=1 takes no files and no long inputs, and what is refused is not read to its end."""

import os

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.engine.base import Engine
from model.engine.door import Door, Guarded
from model.engine.sitting import SharedEngine

UPLOADS = "/_stcore/upload_file"
"""Streamlit takes files here whether or not a page asks for one."""


def is_public() -> bool:
    """Whether this is a server for strangers."""
    return os.environ.get("HEADLIGHT_PUBLIC") == "1"


def engine_of(engine: SharedEngine, session: str) -> Engine:
    """The engine as one session may use it: of its runs the newest counts, and a stranger's are looked at first."""
    return Guarded(engine, session, Door.from_environment(os.environ)) if is_public() else engine.of(session)


class Uploads:
    """Ends the connection of a file that is refused: uvicorn would read what is left of it, gigabytes perhaps, to throw it away.

    Args:
        app: what answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request. A server for strangers refuses files before a byte is read."""

        async def ending(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        if scope["type"] != "http" or UPLOADS not in scope["path"]:
            await self._app(scope, receive, send)
        elif is_public():
            await PlainTextResponse("This server takes no files.", 403)(scope, receive, ending)
        else:
            await self._app(scope, receive, ending)
