"""A page that is opened appears whole: Streamlit builds it piece by piece, and what comes later pushes away what was there."""

import gzip
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

STYLE = b"html[data-headlight-moves] [data-testid=stApp] * { visibility: hidden !important; }"
"""Of what is hidden, browsers do not count shifts, since nobody sees them; it is laid out and measured as ever."""

SCRIPT = Path(__file__).with_suffix(".js").read_bytes()
_HEAD = b"<style>%s</style><script type=module>%s</script></head>" % (STYLE, SCRIPT)
_ROOT = b'<div id="root">'


class AppearsWhenStill:
    """ASGI middleware that adds a style and a script to Streamlit's page, before anything of it is loaded.

    Args:
        app: the wrapped app.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            return await self._app(scope, receive, send)
        start: Message = {}
        body = bytearray()

        async def sending(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_page(message):
                start = message  # its length is known when all of it is
            elif not start:
                await send(message)
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    await _send_page(start, bytes(body), send)

        return await self._app(scope, receive, sending)


def _is_page(start: Message) -> bool:
    headers = MutableHeaders(scope=start)
    kind = headers.get("content-type", "")
    return start["status"] == 200 and kind.startswith("text/html")


async def _send_page(start: Message, body: bytes, send: Send) -> None:
    """Sends a page, with the style and the script if it is Streamlit's; its version is then no longer that of the file."""
    headers = MutableHeaders(scope=start)
    page = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
    if _ROOT in page:
        body = page.replace(b"</head>", _HEAD, 1)
        for name in ("etag", "last-modified", "accept-ranges", "content-encoding"):
            del headers[name]
    headers["content-length"] = str(len(body))
    await send(start)
    await send({"type": "http.response.body", "body": body})
