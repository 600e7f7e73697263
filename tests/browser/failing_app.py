"""The app's answer to an error that nobody foresaw, end to end: a page that fails unless its link says `?well=yes`."""

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from viz.session.state import show_failure

if get_script_run_ctx() is None:
    app = st.App(__file__, on_script_error=show_failure)
else:
    st.text("before")
    if st.query_params.get("well") != "yes":
        raise RuntimeError("a secret of the server")
    st.text("all is well")
