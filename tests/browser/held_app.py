"""The app with an engine that waits: `/hold` makes it wait, `/hold?after=3` after three batches, `/release` lets it go on, `/asked`
lists what it was asked to run."""

from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from model.engine.api import Models
from model.engine.local import CHECKPOINTS
from tests.held import HeldEngine
from viz.canvas.routes import PARTS
from viz.features.live import route
from viz.session import patient_engine, state

MAIN = Path(__file__).parents[2] / "viz" / "main.py"

ENGINE = HeldEngine(CHECKPOINTS)
ENGINE.ask(Models())  # loaded before the first visitor comes
state.the_engine = lambda: ENGINE  # type: ignore[assignment]


def hold(request: Request) -> Response:
    """Nothing is computed from now on, but so many batches."""
    ENGINE.left = int(request.query_params.get("after", "0"))
    ENGINE.go.clear()
    return Response("held")


def release(request: Request) -> Response:
    """Everything is computed."""
    ENGINE.go.set()
    return Response("released")


def asked(request: Request) -> Response:
    """The texts of all runs so far, and how many are on their way."""
    return JSONResponse({"asked": ENGINE.asked, "running": ENGINE.scheduler.running})


OWN = [Route("/hold", hold), Route("/release", release), Route("/asked", asked)]
app = st.App(MAIN, routes=[*OWN, patient_engine.ROUTE, route.ROUTE, PARTS], on_script_error=state.show_failure)
