"""Pictures of this process by the hash of their content, and the route that serves them.

A picture is kept as long as a lecture that is held shows it, or as it is among the most recent ones that were shown off the path.
"""

import gzip
import math
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from model.sharing.caches import BUDGET, LruCache
from viz.canvas.wire import transport
from viz.canvas.wire.transport import content_hash

_HEADERS = {"Cache-Control": "private, max-age=31536000, immutable", "Content-Encoding": "gzip"}


@dataclass(frozen=True, eq=False)
class PackedView:
    """A picture, compressed once for all who fetch it.

    Attributes:
        data: its bytes as gzip.
        name: hash of its content.
    """

    data: bytes
    name: str = field(default="")

    @classmethod
    def of(cls, picture: bytes) -> "PackedView":
        """The picture in compressed form; the same object for equal pictures that are still held."""
        name = content_hash(picture)
        view = _VIEWS.get(name)
        if view is None:
            view = _VIEWS[name] = cls(gzip.compress(picture, 6, mtime=0), name)
        return view


_VIEWS: WeakValueDictionary[str, PackedView] = WeakValueDictionary()
_RECENT: LruCache[str, PackedView] = LruCache(math.inf, lambda view: len(view.data), budget=BUDGET, kind="pictures")


def remember(view: PackedView) -> None:
    """Keeps a picture that no lecture holds, while it is among the most recent ones. Call it on the event loop."""
    _RECENT.keep(view.name, view)


def address() -> str:
    """Path below which the pictures are served."""
    return f"{transport.address()}/view"


async def _serve(request: Request) -> Response:
    view = _VIEWS.get(request.path_params["name"])
    if view is None:
        return Response(status_code=404, headers={"Cache-Control": "no-store"})
    return Response(view.data, headers=_HEADERS, media_type="application/octet-stream")


ROUTE = Route(f"{address()}/{{name}}", _serve)
"""For `st.App(routes=…)`; must come before the route of parts."""
