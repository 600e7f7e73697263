"""The live route: who may ask, what is answered, and that nothing wrong is ever drawn."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.applications import Starlette

from model.engine.progress import LISTENER
from model.engine.scheduling.queue import CANCEL_TOKEN, CallerGone, CancelToken
from model.engine.session import SESSION, Session
from model.errors import TooManyCharacters
from model.spec.request import RunRequest
from model.trace.progress import Progress
from model.trace.types import Trace
from tests import traces
from tests.pages import MadeUpEngine
from viz.calls import Calls
from viz.canvas.wire.packing import unpack
from viz.links import View
from viz.live import route
from viz.live.sessions import LiveSession, Situation
from viz.waiting import PatientEngine

HERE = {"sec-fetch-site": "same-origin", "content-type": "application/json"}
WHOLE = traces.translation(layers=2, heads=2)


@dataclass
class Typed(MadeUpEngine):
    """Runs each text at once; the trace says which text it is of. `hold` texts wait until `go` is set."""

    trace: Trace = field(default_factory=lambda: WHOLE)
    go: threading.Event = field(default_factory=threading.Event)
    hold: tuple[str, ...] = ()
    sessions: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    def run(self, request: RunRequest) -> Trace:
        self.asked.append(request)
        self.sessions.append(SESSION.get().id)
        text = str(request.source)
        if len(text) > 500:
            raise TooManyCharacters(what="source text", found="501", allowed="500")
        trace = replace(self.trace, request={**self.trace.request, "source": text})
        if text in self.hold:
            self._decode(text, trace)
        return trace

    def _decode(self, text: str, trace: Trace) -> None:
        """Reports the trace as one so far, then waits."""
        listener, token = LISTENER.get(), CANCEL_TOKEN.get()
        assert listener is not None
        assert isinstance(token, CancelToken)
        for count in (1, 2):
            part = replace(trace, steps=trace.steps[:count])
            listener(Progress((4,) * count, ("w",) * count, 9, 0.5, so_far=partial(lambda part: part, part)))
            time.sleep(0.05)
        while not self.go.wait(0.01):
            if token.cancelled:
                self.cancelled.append(text)
                raise CallerGone


def session(engine: MadeUpEngine, name: str = "me", **view: Any) -> LiveSession:
    """A live session whose page shows the sentence “w4”."""
    found = LiveSession(Calls())
    patient = PatientEngine(engine, Session(f"{name}/live"))
    found.situation = Situation(engine.models()[0], View(model="made-up", text="w4", **view), patient, copy_context())
    return found


@pytest.fixture
def client() -> httpx.AsyncClient:
    transport = httpx.ASGITransport(Starlette(routes=[route.ROUTE]))
    return httpx.AsyncClient(transport=transport, base_url="http://here")


def post(client: httpx.AsyncClient, live: LiveSession | None, body: object, headers: Any = None) -> httpx.Response:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    token = live.token if live else "none"

    async def asked() -> httpx.Response:
        return await client.post(f"{route.PATH}/{token}", content=data, headers=HERE if headers is None else headers)

    return asyncio.run(asked())


def framed(data: bytes) -> list[tuple[dict[str, Any], dict[str, bytes]]]:
    """The frames of an answer: headers, and scenes by name."""
    found = []
    while data:
        length = int.from_bytes(data[:4], "little")
        header, blobs = unpack(data[4 : 4 + length])
        found.append((header, {name: blob.tobytes() for name, blob in blobs.items()}))
        data = data[4 + length :]
    return found


def test_an_answer_holds_the_scenes_that_the_page_itself_would_draw(client: httpx.AsyncClient) -> None:
    answer = post(client, session(Typed()), {"text": "w5 w6"})
    assert answer.status_code == 200
    ((header, scenes),) = framed(answer.content)
    assert (header["text"], header["final"]) == ("w5 w6", True)
    assert set(scenes) == {"strips", "atlas", "cells", "lines"}
    assert {unpack(scene)[0]["live"]["text"] for scene in scenes.values()} == {"w5 w6"}
    exact = unpack(scenes["cells"])[1]["exact"]
    np.testing.assert_array_equal(exact, WHOLE.at("decoder.0.1.cross").head(0).astype(np.float32))
