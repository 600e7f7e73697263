"""Libraries of other authors for drawings: a drawing loads one from the app when it is drawn for the first time.

The files lie in `frontend/vendor` as their authors publish them, with their licenses; docs/dependencies.md says why they are there.
"""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from viz.canvas.wire.transport import address

FOLDER = Path(__file__).parent / "frontend" / "vendor"
GRAPHS = "cytoscape-3.34.4.esm.min.mjs"
"""Cytoscape, which draws graphs; its version is part of the name, so that browsers keep it for good."""

_HEADERS = {"Cache-Control": "public, max-age=31536000, immutable"}


def where(name: str) -> str:
    """The path of a library's address."""
    return f"{address()}/library/{name}"


def _serve(request: Request) -> Response:
    return FileResponse(FOLDER / GRAPHS, media_type="text/javascript", headers=_HEADERS)


ROUTE = Route(where(GRAPHS), _serve)
"""For `st.App(routes=…)`."""
