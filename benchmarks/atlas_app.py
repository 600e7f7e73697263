"""The app around `atlas_page.py`: Streamlit, and the route that large parts of scenes come by. Nothing else of ours."""

from pathlib import Path

import streamlit as st

from viz.canvas.wire.part_cache import ROUTE

app = st.App(Path(__file__).with_name("atlas_page.py"), routes=[ROUTE])
