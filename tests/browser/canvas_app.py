"""The page of drawings as an app, with the route that large parts of scenes come by; `/forget` empties the part cache."""

from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from viz.canvas.routes import PARTS
from viz.canvas.wire.transport import PART_CACHE
from viz.session.state import show_failure


def forget(request: Request) -> Response:
    """Puts away everything that the server keeps for browsers."""
    PART_CACHE.clear()
    return Response("forgotten")


app = st.App(Path(__file__).with_name("canvas_harness.py"), routes=[PARTS, Route("/forget", forget)], on_script_error=show_failure)
