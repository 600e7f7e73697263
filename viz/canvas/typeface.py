"""The typeface of the app, Source Sans, which Streamlit brings: for pages of our own, and inside files that ask no server.

It is under the SIL Open Font License, which allows it inside documents. Without the file, pages use the fonts of the system.
"""

import base64
from functools import cache
from pathlib import Path

import streamlit
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from viz.canvas.wire.transport import address, content_hash

_FOLDER = Path(streamlit.__file__).parent / "static" / "static" / "media"
_PATTERN = "SourceSansVF-Upright*.woff2"
_MEDIA = "font/woff2"


@cache
def font() -> bytes:
    """The font file, with all its weights (woff2, 170 kB)."""
    return next((path.read_bytes() for path in sorted(_FOLDER.glob(_PATTERN))), b"")


@cache
def _hash() -> str:
    return content_hash(font())


def font_address() -> str:
    """URL path of the font, which holds the hash of its content."""
    return f"{address()}/font/{_hash()}.woff2"


def served_face() -> str:
    """CSS of a page that the app serves."""
    return _face(font_address())


def carried_face() -> str:
    """CSS of a file that carries the font."""
    return _face(f"data:{_MEDIA};base64,{base64.b64encode(font()).decode('ascii')}")


def _face(source: str) -> str:
    described = f'font-family: "Source Sans"; font-weight: 200 900; font-display: swap; src: url("{source}") format("woff2");'
    return f"@font-face {{ {described} }}\n"


async def _serve(request: Request) -> Response:
    if not font_address().endswith(f"/{request.path_params['name']}"):
        return Response(status_code=404, headers={"Cache-Control": "no-store"})
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Content-Encoding": "identity"}
    return Response(font(), headers=headers, media_type=_MEDIA)


ROUTE = Route(f"{address()}/font/{{name}}", _serve)
"""For `st.App(routes=…)`; must come before the route of parts."""
