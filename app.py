"""Headlight: see what every attention head sees. Started with `streamlit run app.py`; the pages are in viz/, the networks in model/."""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st

from viz.page import show_failure, the_engine


@asynccontextmanager
async def warm_up(app: st.App) -> AsyncIterator[None]:
    """Loads the networks before the first visitor comes, then spares what was loaded from garbage collection for good.

    Streamlit collects garbage after every run of the script: with torch, pandas and plotly imported that costs 139 ms each time.
    """
    the_engine().models()
    gc.collect()
    gc.freeze()
    yield


app = st.App("viz/main.py", lifespan=warm_up, on_script_error=show_failure)
