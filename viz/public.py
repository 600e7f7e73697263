"""The app before strangers: HEADLIGHT_PUBLIC=1 takes no files, no long inputs and no haste, and ends what it refuses."""

import os
from functools import cache
from urllib.parse import urlsplit

import streamlit as st
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.engine.api import Engine
from model.engine.client_address import FORWARDED_HEADER, client_address
from model.engine.guarded import LimitedEngine
from model.engine.http.access import AccessLimits, is_loopback
from model.engine.session import SharedEngine

PASSED_ON = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
"""Headers by which proxies say that a visitor is somebody else."""

UPLOADS = "/_stcore/upload_file"
"""Streamlit takes files here whether or not a page asks for one."""


def is_public() -> bool:
    """Whether this is a server for strangers."""
    return os.environ.get("HEADLIGHT_PUBLIC") == "1"


def is_owner() -> bool:
    """Whether whoever looks at the page sits at the machine that serves it, so that its files are theirs.

    The server listens on an address of this machine alone, the visitor comes from one, and no proxy passed the visitor on.
    """
    headers = st.context.headers
    asked = urlsplit(f"//{headers.get('host', '')}").hostname or ""
    return (
        not is_public()
        and is_loopback(str(st.get_option("server.address") or ""))
        and st.context.ip_address is None  # what Streamlit says of 127.0.0.1 and ::1
        and is_loopback(asked)
        and not any(name in headers for name in PASSED_ON)
    )


def engine_of(engine: SharedEngine, session: str) -> Engine:
    """The engine as one session may use it: of its runs the newest counts, and a stranger's are counted and looked at first."""
    return LimitedEngine(engine, session, access_limits(), _visitor() or session) if is_public() else engine.for_session(session)


@cache
def access_limits() -> AccessLimits:
    """Access limits of this process, shared by all sessions."""
    return AccessLimits.from_environment(os.environ)


def _visitor() -> str:
    """The address that a visitor comes from; empty on the server's own machine, where Streamlit does not tell it."""
    return client_address(st.context.ip_address or "", st.context.headers.get_all(FORWARDED_HEADER), access_limits().proxies)


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
