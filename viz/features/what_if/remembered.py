"""Widgets whose options follow the run: what was chosen of an earlier run and is no longer there is forgotten."""

from collections.abc import Collection

import streamlit as st


def forget_what_is_gone(key: str, options: Collection[object]) -> None:
    """Drops a remembered choice that is not among `options`; of several, those that are not."""
    if key not in st.session_state:
        return
    chosen = st.session_state[key]
    if isinstance(chosen, list):
        st.session_state[key] = [name for name in chosen if name in options]
    elif chosen not in options:
        del st.session_state[key]
