"""The live route where the engine is on another host, and below a path of a proxy."""

import asyncio
import runpy
import threading
from contextlib import closing
from typing import Any

import pytest
import streamlit as st

from model.engine.guards.access import AccessLimits
from model.features.serving.http.client import RemoteEngine
from model.features.serving.http.server import application
from tests.held import HeldEngine
from tests.hosts import listening
from tests.live import HERE, answered, asking, framed, live_session
from tests.networks import save_checkpoint
from viz.canvas.wire.transport import unpack
from viz.features.live import route


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> HeldEngine:
    folder = tmp_path_factory.mktemp("places")
    save_checkpoint(folder / "tiny")
    return HeldEngine(folder)


def test_a_run_on_another_host_is_drawn_while_it_writes_and_ends_as_it_would_here(engine: HeldEngine) -> None:
    here = answered(live_session(engine), "w4 w5 w6")[-1]
    with listening(application(engine, AccessLimits())) as port, closing(RemoteEngine(f"http://127.0.0.1:{port}")) as remote:
        live = live_session(remote)
        assert answered(live, "w4 w5 w6") == [here]
        engine.left = 3  # the encoder, and two tokens
        engine.go.clear()
        threading.Timer(1.5, engine.go.set).start()
        *partial, (last, scenes) = answered(live, "w7 w8")
        written = [header["progress"]["written"] for header, _scenes in partial]
        assert {1, 2} & set(written), "it is drawn while it writes, be the maps of the encoder drawn first or not"
        assert written == sorted(set(written))
        assert last["final"]
        assert {unpack(scene)[0]["live"]["text"] for scene in scenes.values()} == {"w7 w8"}


def test_below_a_path_of_a_proxy_the_route_and_its_parts_are_there(engine: HeldEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    known, live = st.get_option, live_session(engine)

    def option(name: str) -> Any:
        return "/deep/er/" if name == "server.baseUrlPath" else known(name)

    monkeypatch.setattr(st, "get_option", option)
    below = runpy.run_path(str(route.__file__))  # the path is read when the server starts

    async def asked(path: str) -> tuple[int, bytes]:
        answer = await asking(below["ROUTE"]).post(f"{path}/{live.token}", json={"text": "w4 w5"}, headers=HERE)
        return answer.status_code, answer.content

    assert asyncio.run(asked(route.PATH))[0] == 404
    status, data = asyncio.run(asked("/deep/er/headlight/live"))
    assert status == 200
    _header, scenes = framed(data)[-1]
    assert unpack(scenes["atlas"])[0]["partsAddress"] == "/deep/er/headlight"
    assert below["PATH"] == "/deep/er/headlight/live", "what the page's script is told"
