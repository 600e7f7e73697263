"""Public mode, HEADLIGHT_PUBLIC=1: no uploads, a limit on input length, and a rate limit per visitor, over all routes."""

import os
from functools import cache

import streamlit as st
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from model.engine.client_address import FORWARDED_HEADER, client_address
from model.engine.guards.access import AccessLimits, is_loopback
from model.engine.scheduling.queue import Session
from model.errors import Refused
from model.requests.sent_text import split_address
from viz.i18n.translate import error_message, of_request, speaking

PASSED_ON = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
"""Headers with which proxies name the real visitor."""

HUB = "HEADLIGHT_HUB"
"""What names of the Hub may do: off, cache or ask."""

UPLOADS, METRICS = "/_stcore/upload_file", "/_stcore/metrics"
"""Paths at which Streamlit accepts files, even if no page has an uploader, and tells about its sessions and caches."""


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


def hub_mode() -> str:
    """What this visitor may do with names of the Hub: what HEADLIGHT_HUB says; else the owner may download, others nothing."""
    return os.environ.get(HUB) or ("ask" if is_owner() else "off")


def opens_models() -> bool:
    """Whether this visitor can open models that are not in the list: uploads, paths or names of the Hub."""
    return not is_public() or hub_mode() != "off"


def keep_the_hub_to_its_owner() -> None:
    """Where others reach this server, the cache of its Hub is nobody's by a link, unless HEADLIGHT_HUB says otherwise."""
    if not os.environ.get(HUB) and not is_loopback(str(st.get_option("server.address") or "")):
        os.environ[HUB] = "off"


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


def address_of(connection: HTTPConnection) -> str:
    """The address of whoever sent a request, also behind trusted proxies."""
    peer = connection.client.host if connection.client else ""
    return client_address(peer, connection.headers.getlist(FORWARDED_HEADER), access_limits().proxies)


def charge(connection: HTTPConnection, cost: float) -> None:
    """In public mode, counts work for a visitor's address before it is done.

    Args:
        cost: as how many requests it counts; one is a run, about 50 ms of a processor.

    Raises:
        Refused: the visitor asks too fast.
    """
    if is_public():
        access_limits().limit.admit(address_of(connection), cost=cost)


ANY_REQUEST, NEW_SESSION = 0.01, 1.0
"""As how many runs any request counts, and a connection that begins a session: the first page of the app, a run for each step of a
class and each tile of a drawing are requests, too, so a classroom behind one address can send a thousand a second."""


class Pace:
    """ASGI middleware that counts every request of a visitor in public mode; a route adds what it costs beyond that.

    Args:
        app: the wrapped app.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; those of a visitor who asks too fast with 429, before anything is done for them."""
        try:
            if scope["type"] != "lifespan":
                charge(HTTPConnection(scope), ANY_REQUEST if scope["type"] == "http" else NEW_SESSION)
        except Refused as error:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1013})
                return
            with speaking(of_request(HTTPConnection(scope).headers.get("accept-language", ""))):
                refusal = PlainTextResponse(error_message(error), 429, {"Retry-After": "1"})
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def is_fetched_by_another_site(connection: HTTPConnection) -> bool:
    """Whether a page of another site makes a visitor's browser ask, say for a picture. Following a link is no such request."""
    headers = connection.headers
    return headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and headers.get("sec-fetch-mode") != "navigate"


class ClosedPaths:
    """ASGI middleware that closes Streamlit's paths for files and metrics in public mode.

    Args:
        app: the wrapped app.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request. In public mode, refuses metrics, and uploads before a byte is read."""
        path = scope["path"] if scope["type"] == "http" and is_public() else ""
        if METRICS in path:
            await PlainTextResponse("This server shows nobody its metrics.", 403)(scope, receive, send)
        elif UPLOADS in path:
            await PlainTextResponse("This server takes no files.", 403)(scope, receive, send)
        else:
            await self._app(scope, receive, send)
