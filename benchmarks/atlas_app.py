"""The app around `atlas_page.py`: Streamlit, and our route for large parts of scenes; nothing else of Headlight."""

from pathlib import Path

import streamlit as st
from threadpoolctl import threadpool_limits

from viz.canvas.wire.transport import ROUTE

threadpool_limits(1, "blas")  # as app.py does

app = st.App(Path(__file__).with_name("atlas_page.py"), routes=[ROUTE])
