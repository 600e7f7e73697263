"""Our component alone on a page: the atlas of a trace file. `python -m streamlit run benchmarks/atlas_app.py -- FILE [FILE …]`.

`?file=1` shows the second file; `?run=7` makes of it a run that nobody has drawn here before, whose overview is made anew.
"""

import sys
from dataclasses import replace
from pathlib import Path

import streamlit as st

from model.trace import serialization
from model.trace.types import Site, Trace
from viz import canvas
from viz.canvas.scenes import attention as scenes


@st.cache_resource(show_spinner=False)
def opened(path: str) -> Trace:
    """The trace in a file, read once."""
    return serialization.from_bytes(Path(path).read_bytes())


st.set_page_config(layout="wide")
ask = st.query_params
trace = opened(sys.argv[1:][int(ask.get("file", "0"))])
if "run" in ask:
    trace = replace(trace, request={**trace.request, "run": ask["run"]})
place = {"site": str(next(iter(trace.attention))), "head": 0} | st.session_state.get("chosen", {})


def choose(**fields: str | int) -> None:
    """The head that is drawn large."""
    st.session_state.chosen = fields


scene = scenes.atlas(trace, Site.parse(str(place["site"])), int(place["head"]), -1)
canvas.draw("atlas", scene, key="atlas", chosen=choose)
