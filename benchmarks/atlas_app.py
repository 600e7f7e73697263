"""The app around `atlas_page.py`: Streamlit, and our route for large parts of scenes; nothing else of Headlight."""

from pathlib import Path

import streamlit as st

from viz.canvas.wire.transport import ROUTE

app = st.App(Path(__file__).with_name("atlas_page.py"), routes=[ROUTE])
