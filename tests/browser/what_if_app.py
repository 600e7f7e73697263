"""The app with all bundled models and a folder of the transformers library, whose network has random weights."""

import os
import tempfile
from pathlib import Path

import streamlit as st

from app import ROUTES
from model.engine.local import CHECKPOINTS
from tests import folders
from viz import page

MAIN = Path(__file__).parents[2] / "viz" / "main.py"
FOLDER = Path(tempfile.mkdtemp())
for bundled in CHECKPOINTS.iterdir():
    (FOLDER / bundled.name).symlink_to(bundled)
folders.save(FOLDER / "tiny-gpt2", "gpt2")
os.environ["HEADLIGHT_CHECKPOINTS"] = str(FOLDER)
page.start()

app = st.App(MAIN, routes=ROUTES, on_script_error=page.show_failure)
