"""Routes of the app that drawings fetch from: parts of scenes (viz/canvas/wire/transport.py) and the typeface.

Apart from these, so that pages that no server serves are made where no server is installed.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from viz.canvas.typeface import MEDIA, font, font_address
from viz.canvas.wire.transport import PART_CACHE, address

_AS_IT_IS = {"Content-Encoding": "identity"}  # otherwise Streamlit compresses each response, which takes longer than sending it


def _serve_part(request: Request) -> Response:
    """Serves one piece. Content behind a hash never changes, so a matching ETag gets a 304 even after eviction."""
    name, path = request.path_params["name"], request.path_params["path"]
    tag = f'"{name}/{path}"'
    headers = {"Cache-Control": "private, max-age=31536000, immutable", **_AS_IT_IS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    body = PART_CACHE.piece(name, path)
    if body is None:
        return Response(status_code=404, headers={"Cache-Control": "no-store"})
    return Response(body, headers=headers, media_type="application/octet-stream")


async def _serve_font(request: Request) -> Response:
    if not font_address().endswith(f"/{request.path_params['name']}"):
        return Response(status_code=404, headers={"Cache-Control": "no-store"})
    return Response(font(), headers={"Cache-Control": "public, max-age=31536000, immutable", **_AS_IT_IS}, media_type=MEDIA)


PARTS = Route(f"{address()}/{{name}}/{{path:path}}", _serve_part)
"""For `st.App(routes=…)`. Starlette runs it in a thread, not on the event loop."""

FONT = Route(f"{address()}/font/{{name}}", _serve_font)
"""For `st.App(routes=…)`; must come before PARTS, which takes every address of two names."""
