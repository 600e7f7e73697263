"""Questions to the live route, for its tests: a session of any engine, and the frames of an answer."""

import asyncio
from contextvars import copy_context
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.routing import Route

from model.engine.api import Engine, Models
from model.engine.scheduling.queue import Session
from viz.canvas.wire.transport import unpack
from viz.features.live import route
from viz.features.live.sessions import LiveSession, PageContext
from viz.session.background_calls import Calls
from viz.session.patient_engine import NonBlockingEngine
from viz.url.view_state import ViewState

HERE = {"sec-fetch-site": "same-origin", "content-type": "application/json"}


def live_session(engine: Engine, name: str = "me", text: str = "w4", **view: Any) -> LiveSession:
    """A live session whose page shows the sentence `text` and the engine's first usable model."""
    found, info = LiveSession(Calls()), next(info for info in engine.ask(Models()).models if not info.problem)
    patient = NonBlockingEngine(engine, Session(name).typing)
    found.page = PageContext(info, ViewState(model=info.name, text=text, **view), patient, copy_context())
    return found


def asking(*routes: Route) -> httpx.AsyncClient:
    """A client of an app with these routes, the live one by default."""
    transport = httpx.ASGITransport(Starlette(routes=list(routes) or [route.ROUTE]))
    return httpx.AsyncClient(transport=transport, base_url="http://here")


def answered(live: LiveSession, text: str) -> list[tuple[dict[str, Any], dict[str, bytes]]]:
    """The frames of the answer to what a box holds."""

    async def asked() -> bytes:
        return (await asking().post(f"{route.PATH}/{live.token}", json={"text": text}, headers=HERE)).content

    return framed(asyncio.run(asked()))


def framed(data: bytes) -> list[tuple[dict[str, Any], dict[str, bytes]]]:
    """The frames of an answer: headers, and scenes by name."""
    found = []
    while data:
        length = int.from_bytes(data[:4], "little")
        header, blobs = unpack(data[4 : 4 + length])
        found.append((header, {name: blob.tobytes() for name, blob in blobs.items()}))
        data = data[4 + length :]
    return found
