"""Our component alone on a page: the atlas of a trace file. `python -m streamlit run benchmarks/atlas_app.py -- FILE [FILE …]`.

`?file=1` shows the second file; `?run=7` makes of it a run that nobody has drawn here before, whose overview is made anew.
"""

import sys
from dataclasses import replace
from pathlib import Path

import streamlit as st

from model import wire
from model.trace import Site, Trace
from viz import canvas


@st.cache_resource(show_spinner=False)
def opened(path: str) -> Trace:
    """The trace in a file, read once."""
    return wire.from_bytes(Path(path).read_bytes())


st.set_page_config(layout="wide")
ask = st.query_params
trace = opened(sys.argv[1:][int(ask.get("file", "0"))])
if "run" in ask:
    trace = replace(trace, request={**trace.request, "run": ask["run"]})
chosen = st.session_state.get("chosen", (str(next(iter(trace.attention))), 0))
selection = canvas.atlas(trace, Site.parse(chosen[0]), chosen[1], -1, key="atlas")
if selection.site is not None and selection.head is not None:
    st.session_state.chosen = (selection.site, selection.head)
    st.rerun()
