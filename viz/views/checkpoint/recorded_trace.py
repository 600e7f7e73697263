"""Card of the page Checkpoint for an opened trace: what was recorded, site by site, and the way to its heads."""

import pandas as pd
import streamlit as st
from streamlit.navigation.page import StreamlitPage

from model.engine.api import Engine, ModelInfo, Run
from model.errors import HeadlightError
from model.requests.request import RunRequest
from model.trace.types import Trace
from viz.i18n.translate import _, error_message, problem, said
from viz.labels import tokens
from viz.session.state import update
from viz.url.view_state import another_model
from viz.widgets import numeric_tables, recorded_run
from viz.widgets.cards import card, say


def show(engine: Engine, info: ModelInfo, explore: StreamlitPage) -> None:
    """Draws the card, or says why the trace cannot be shown.

    Args:
        info: the opened trace.
        explore: the page that shows its heads.
    """
    if info.problem:
        say(problem(info))
        return
    try:
        trace = engine.ask(Run(RunRequest(info.name, "")))
    except HeadlightError as error:
        say(error_message(error))
        return
    with card("recorded-run", "content"):
        st.markdown(f"**{tokens.markdown(recorded_run.about(trace))}**")
        st.caption(_("A trace holds one finished run and no model, so nothing can be typed, changed or recomputed."))
        if badge := recorded_run.badge(trace):
            st.caption(tokens.markdown(badge))
        if st.button(_("Open in Explore"), icon=":material/grid_view:", key="open-in-explore"):
            update(**another_model() | {"model": info.name})
            st.switch_page(explore)
        numeric_tables.draw(sites(trace), hide_index=True, key="recorded-sites")
        for note in trace.model.get("notes", ()) if trace.of_program else ():
            st.caption(tokens.markdown(said(note)))
        for lack in recorded_run.not_recorded(trace):
            st.caption(tokens.markdown(lack))


def sites(trace: Trace) -> pd.DataFrame:
    """Table of the sites of a trace in the order in which they ran."""
    rows = []
    for site, attention in trace.attention.items():
        heads, queries, keys = attention.weights.shape
        row = {_("attention"): tokens.site(site), _("heads"): heads, _("queries"): queries, _("keys"): keys}
        if trace.recorded is not None:
            own = trace.recorded.sites[str(site)]
            origin = _("computed by the program") if own.origin == "computed" else _("recomputed from queries and keys")
            row |= {_("module"): own.module, _("weights"): origin, _("largest difference"): own.difference}
        rows.append(row)
    return pd.DataFrame(rows)
