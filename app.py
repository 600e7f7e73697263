"""Headlight shows what every attention head computes. Start it with `streamlit run app.py`; pages: viz/, networks: model/."""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from threadpoolctl import threadpool_limits

from viz.canvas.routes import PARTS
from viz.feature import features
from viz.session import cell_route, memory_metrics, patient_engine
from viz.session.access import ClosedPaths, Pace
from viz.session.appearing import AppearsWhenStill
from viz.session.message_cache import refer_to_recent_messages
from viz.session.middleware import EveryAnswer, guard_connections, known_hosts
from viz.session.state import show_failure, start
from viz.session.widget_values import ignore_forged_values
from viz.widgets import panel_help


@asynccontextmanager
async def warm_up(app: st.App) -> AsyncIterator[None]:
    """Loads the networks before the first visitor comes, then excludes all loaded objects from garbage collection.

    Streamlit collects garbage after every script run: with torch, pandas and plotly imported that takes 139 ms each time.
    The matrix products of numpy are those of single heads. With more than one thread each takes as long as with one, and the
    threads wait for each other on processors that others could use.
    """
    threadpool_limits(1, "blas")
    start(*(read for feature in features() for read in feature.settings))
    memory_metrics.register()
    ignore_forged_values()
    refer_to_recent_messages()
    for begin in (begin for feature in features() for begin in feature.starts):
        begin()
    guard_connections()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # what runs leave is freed without it; 700 would take a twelfth of the time of a run
    yield
    for end in (end for feature in features() for end in feature.ends):
        end()


async def not_here(request: Request) -> Response:
    """Tells a browser that opens a page by its link to look for the server one level up.

    The browser first asks below the page's own path. Streamlit's 404 would work, too, but leaves two errors in the console.
    """
    return Response("null", media_type="application/json")


async def first_page(request: Request) -> Response:
    """Redirects `/explore` to the first page, which Streamlit serves only at `/`, and keeps the query string."""
    return RedirectResponse(f"./?{request.url.query}")


ROUTES = [
    patient_engine.ROUTE,
    cell_route.ROUTE,
    *(route for feature in features() for route in feature.routes),
    panel_help.ROUTE,  # before the parts of drawings, whose route takes every address of two names
    PARTS,
    Route("/explore", first_page),
    *(Route(f"/{{page}}/_stcore/{what}", not_here) for what in ("health", "host-config")),
]

BEFORE = [Middleware(EveryAnswer), Middleware(known_hosts), Middleware(ClosedPaths), Middleware(Pace), Middleware(AppearsWhenStill)]

app = st.App("viz/main.py", lifespan=warm_up, routes=ROUTES, middleware=BEFORE, on_script_error=show_failure)
