"""The app around `atlas_page.py`: Streamlit, and our route for large parts of scenes; nothing else of Headlight."""

import gc
from pathlib import Path

import streamlit as st
from threadpoolctl import threadpool_limits

from viz.canvas.routes import PARTS

threadpool_limits(1, "blas")  # this and the next as app.py does
gc.collect()
gc.freeze()
gc.set_threshold(50_000, 20, 20)

app = st.App(Path(__file__).with_name("atlas_page.py"), routes=[PARTS])
