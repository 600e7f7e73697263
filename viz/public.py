"""Public mode, HEADLIGHT_PUBLIC=1: no uploads, a limit on input length, and a rate limit per visitor."""

import os
from functools import cache

import streamlit as st
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.engine.client_address import FORWARDED_HEADER, client_address
from model.engine.http.access import AccessLimits, is_loopback
from model.engine.scheduling.queue import Session
from model.spec.sent_text import split_address

PASSED_ON = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
"""Headers with which proxies name the real visitor."""

UPLOADS = "/_stcore/upload_file"
"""Path at which Streamlit accepts files, even if no page has an uploader."""


def is_public() -> bool:
    """Whether this server runs in public mode."""
    return os.environ.get("HEADLIGHT_PUBLIC") == "1"


def is_owner() -> bool:
    """Whether the visitor sits at the machine that serves the page and so may open its files.

    True if the server listens only on loopback, the visitor comes from loopback, and no proxy forwarded the request.
    """
    headers = st.context.headers
    asked = split_address(f"//{headers.get('host', '')}")
    return (
        not is_public()
        and is_loopback(str(st.get_option("server.address") or ""))
        and st.context.ip_address is None  # Streamlit's value for 127.0.0.1 and ::1
        and asked is not None
        and is_loopback(asked.hostname or "")
        and not any(name in headers for name in PASSED_ON)
    )


def session(session_id: str) -> Session:
    """The session of this script run; in public mode with the visitor's address, for which rate limits count."""
    return Session(session_id, (_visitor() or session_id) if is_public() else "")


@cache
def access_limits() -> AccessLimits:
    """Access limits of this process, shared by all sessions."""
    return AccessLimits.from_environment(os.environ)


def _visitor() -> str:
    """The visitor's address; empty on the server's own machine, where Streamlit does not report it."""
    return client_address(st.context.ip_address or "", st.context.headers.get_all(FORWARDED_HEADER), access_limits().proxies)


class Uploads:
    """ASGI middleware that closes the connection of a refused upload: uvicorn would read the rest, gigabytes even, to discard it.

    Args:
        app: the wrapped app.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request. In public mode, refuses uploads before a byte is read."""

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
