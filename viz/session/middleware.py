"""What holds for every request and answer of the app, Streamlit's included: the names it answers to, headers, unexpected errors."""

import logging
import os
import re
from collections.abc import Mapping

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from model.engine import log
from model.engine.guards.connections import guard
from model.engine.guards.hosts import KnownHosts
from model.errors import BadSetting

FRAMES = "HEADLIGHT_FRAMES"
_SITE = re.compile(r"(https?://)?(\*\.)?[\w.-]+(:\d{1,5}|:\*)?|\*|https:")


def known_hosts(app: ASGIApp) -> KnownHosts:
    """The middleware for the address that this app listens on."""
    address = str(st.get_option("server.address") or "")
    return KnownHosts(app, address, os.environ, lambda error: PlainTextResponse(str(error), 403))


def guard_connections() -> None:
    """Lets Streamlit's server end connections that ask nothing."""
    guard(AutoHTTPProtocol)  # the class that Streamlit's server has chosen by now


def log_no_messages_of_scripts() -> None:
    """Keeps Streamlit from logging errors of scripts: their messages may quote what was typed. They are logged as incidents."""
    logging.getLogger("streamlit.error_util").addFilter(lambda record: not record.exc_info)


def frame_ancestors(environment: Mapping[str, str]) -> str:
    """The policy on sites that may show the app in a frame: itself, and those in HEADLIGHT_FRAMES, joined by blanks.

    Raises:
        BadSetting: one of them is not the origin of a site, such as https://course.example.org.
    """
    sites = environment.get(FRAMES, "").split()
    for site in sites:
        if not _SITE.fullmatch(site):
            raise BadSetting(name=FRAMES, found=site[:80], allowed="sites such as https://course.example.org, joined by blanks")
    return " ".join(["frame-ancestors 'self'", *sites])


class EveryAnswer:
    """ASGI middleware around everything else.

    Every answer says that its type is not to be guessed, that a browser tells other sites nothing of the address it was followed
    from (it holds the sentence), and who may show it in a frame. An unexpected error is logged as an incident: the server itself
    would log its message, which may quote what somebody typed. A refusal closes the connection where not all that was sent was
    read: the server would read the rest, gigabytes even, to discard it.

    Args:
        app: the wrapped app.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._frames = app, frame_ancestors(os.environ)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request.

        Raises:
            RuntimeError: an unexpected error broke off an answer; it says only the number of the incident.
        """
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        sent, begun = Headers(scope=scope), False
        unread = sent.get("content-length", "0") != "0" or "transfer-encoding" in sent

        async def receiving() -> Message:
            nonlocal unread
            message = await receive()
            unread = unread and message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                if unread and message["status"] >= 400:
                    headers["Connection"] = "close"
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "no-referrer"
                headers.append("Content-Security-Policy", self._frames)
            await send(message)

        try:
            await self._app(scope, receiving, sending)
        except ClientDisconnect:
            pass
        except Exception as error:
            incident = log.incident(error)
            if begun:
                raise RuntimeError(f"incident {incident}") from None
            sentence = f"Something went wrong inside Headlight (incident {incident}; details are in the server log)."
            await PlainTextResponse(sentence, 500)(scope, receive, sending)
