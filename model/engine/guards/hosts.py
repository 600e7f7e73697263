"""The names under which a server answers.

A page of another site can give its own name the address 127.0.0.1 (DNS rebinding). To a browser that page and a server on this
machine are then one site, so the page could read and send whatever the server's own pages can. It cannot choose what the browser
sends as `Host`, the name: a server answers to this machine's own names and to those that are listed alone. An IP address is no
name that somebody could give another address.
"""

import re
import socket
from collections.abc import Callable, Mapping
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from model.engine.guards.access import is_loopback
from model.errors import BadSetting, Refused, UnknownHost, phrase
from model.requests.sent_text import split_address

VARIABLE = "HEADLIGHT_HOSTS"
POLICY = 1008
"""Code with which a WebSocket is closed that is not allowed; the browser gets the status 403."""

_NAME = re.compile(r"\*|(\*\.)?[\w.-]+|\[[0-9a-fA-F:.]+\]")


def more_hosts(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names in HEADLIGHT_HOSTS, joined by commas: `app.example.org`, `*.example.org`, `[2001:db8::1]`, or `*` for any name.

    Raises:
        BadSetting: one of them is not of this form, for example because it has a port.
    """
    names = tuple(name.strip().lower() for name in environment.get(VARIABLE, "").split(",") if name.strip())
    for name in names:
        if not _NAME.fullmatch(name):
            raise BadSetting(name=VARIABLE, found=name[:80], allowed=phrase("names without a port, separated by commas, or *"))
    return names


class KnownHosts:
    """ASGI middleware that answers only to this machine's own names and those in HEADLIGHT_HOSTS, also where a WebSocket is opened.

    A server that other machines can reach answers to IP addresses, too: nobody knows by which one a phone in the room finds it.

    Args:
        app: the wrapped app.
        address: the address that the server listens on; empty: all addresses of the machine.
        environment: the environment variables.
        refusal: makes the answer to another name; its text is for whoever runs the server.
    """

    def __init__(self, app: ASGIApp, address: str, environment: Mapping[str, str], refusal: Callable[[Refused], Response]) -> None:
        self._app, self._refusal = app, refusal
        self._more = more_hosts(environment)
        self._any = "*" in self._more
        # A server that only this machine can reach answers to loopback names and those of HEADLIGHT_HOSTS: the
        # machine's other names mean something only on a network.
        self._reachable = not is_loopback(address)
        self._names = frozenset({address.lower(), *own_names()} - {""}) if self._reachable else frozenset[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        # The third type is the start and the end of the server itself, which nobody asks for from outside.
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        sent = Headers(scope=scope)
        known = self._any or self.knows(sent.get("host", ""))
        # Streamlit fails on a malformed origin.
        if scope["type"] == "websocket" and not (known and split_address(sent.get("origin", ""))):
            return await send({"type": "websocket.close", "code": POLICY})
        if not known:
            return await self._refusal(UnknownHost(found=sent.get("host", "")[:80]))(scope, receive, send)
        return await self._app(scope, receive, send)

    def knows(self, host: str) -> bool:
        """Whether the server answers to a `Host` header."""
        # Whatever is not just a name with a port (a path, a user, nonsense) is refused: software behind this could
        # read another name in it than we do.
        parts = split_address(f"//{host}")
        if parts is None or parts.netloc != host or "@" in host:
            return False
        name = (parts.hostname or "").rstrip(".")
        is_ours = is_loopback(name) or name in self._names or (self._reachable and _is_address(name))
        return is_ours or any(_is(name, site) for site in self._more)


def own_names() -> set[str]:
    """The names of this machine, as others on its network call it: `laptop`, `laptop.example.org`, `laptop.local`."""
    full = socket.gethostname().lower().rstrip(".")
    short = full.partition(".")[0]
    return {full, short, f"{short}.local"} - {"", ".local"}


def _is_address(name: str) -> bool:
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


def _is(name: str, allowed: str) -> bool:
    return name.endswith(allowed[1:]) if allowed.startswith("*.") else name == allowed.strip("[].")
