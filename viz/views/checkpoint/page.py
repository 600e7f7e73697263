"""The page Checkpoint: diagnosis of a weight file, its open questions, and the way to its heads."""

from pathlib import PurePath

import pandas as pd
import streamlit as st
from streamlit.navigation.page import StreamlitPage

from model.engine.api import Describe, Engine, Export, Inspect, ModelInfo, Run
from model.errors import BadLayoutFile, HeadlightError, SeveralLayouts, UnknownLayout
from model.inspection.report import Inspection
from model.requests.request import RunRequest
from model.trace.types import Trace
from viz.i18n.translate import _, error_message, problem, said
from viz.labels import tokens
from viz.session.state import get_view_state, update
from viz.url.view_state import ViewState, another_model
from viz.views.checkpoint import diagnosis, opener, questions, tensor_roles, uploads, weights
from viz.widgets import numeric_tables, recorded_run
from viz.widgets.cards import card, choose_picture, heading, one_screen, say

_UNKNOWN = "checkpoint:unknown"
"""The model that no layout fits, its settings and the error: the file is not opened again for each role that is chosen."""


def show(engine: Engine, view: ViewState, explore: StreamlitPage) -> None:
    """Draws the page.

    Args:
        engine: runs the networks.
        view: the state.
        explore: the page that shows the heads.
    """
    if not view.big or opener.is_busy() or not opener.current(engine):
        with card("choose", "content"):
            opener.draw(engine)
    if refused := uploads.refused():
        say(refused)
    model = "" if opener.is_busy() else opener.current(engine)
    if not model:
        return
    view = get_view_state()[0]
    if (info := _described(engine, model, view)) is not None and info.recorded:
        _recorded_trace(engine, info, explore)
        return
    if (unknown := st.session_state.get(_UNKNOWN)) and unknown[:2] == (model, view.settings):
        _say_what_is_what(engine, model, view, unknown[2])
        return
    try:
        inspection = engine.ask(Inspect(model, view.parsed_settings()))
    except HeadlightError as error:
        if isinstance(error, UnknownLayout | BadLayoutFile):
            st.session_state[_UNKNOWN] = (model, view.settings, error)
            _say_what_is_what(engine, model, view, error)
        else:
            _say_why_not(error, view)
        return
    if view.big and inspection.sites and not inspection.ask:
        _one_picture(engine, model, inspection, view)
        return
    with card("diagnosis", "content"):
        diagnosis.summary(inspection)
        _open(engine, model, inspection, view, explore)
        diagnosis.evidence_of(inspection)
    if inspection.ask:
        with card("questions", "content"):
            questions.show(engine, model, view, inspection.ask, explore)
    with card("numbers", "content"):
        diagnosis.numbers(inspection)
    if inspection.sites and not engine.ask(Describe(model, view.parsed_settings())).problem:
        weights.show(engine, model, inspection, view)
    with card("tensors", "content"):
        diagnosis.tensors(inspection)


def _one_picture(engine: Engine, model: str, inspection: Inspection, view: ViewState) -> None:
    """Draws the picture that fills the screen in big mode, and the choice among them."""
    names = {"heads": _("All heads")} if inspection.heads_seen else {}
    if not engine.ask(Describe(model, view.parsed_settings())).problem:
        names["weights"] = _("Weights of a head")
    with one_screen():
        st.html(heading(diagnosis.what(inspection)))
        if names and choose_picture(names) == "weights":
            weights.draw_one(engine, model, inspection, view)
        elif names:
            st.html(diagnosis.head_grid(inspection))


def _described(engine: Engine, model: str, view: ViewState) -> ModelInfo | None:
    """Facts about a model; None: there are none."""
    try:
        return engine.ask(Describe(model, view.parsed_settings()))
    except HeadlightError:
        return None


def _say_why_not(error: HeadlightError, view: ViewState) -> None:
    """Says why there is no diagnosis, and offers the choices that lead to one."""
    say(error_message(error))
    if isinstance(error, SeveralLayouts):
        questions.choose_reading(error, view)
    if view.settings:
        st.button(_("Clear the answers"), on_click=update, kwargs={"settings": ""}, key="forget")


def _say_what_is_what(engine: Engine, model: str, view: ViewState, error: HeadlightError) -> None:
    _say_why_not(error, view)
    with card("roles", "content"):
        tensor_roles.show(engine, model, view)


def _open(engine: Engine, model: str, inspection: Inspection, view: ViewState, explore: StreamlitPage) -> None:
    """Draws the button that shows the model's heads, or says why there is none yet."""
    if any(map(questions.is_open, inspection.ask)):
        st.info(_("Answer the questions below to see its heads."), icon=":material/help:")
        return
    info = engine.ask(Describe(model, view.parsed_settings()))
    if info.problem:
        say(problem(info))
        return
    if info.reads == "ids":
        st.caption(_("The file has no vocabulary, so this model reads and shows token ids instead of words."))
    if info.reads == "features":
        st.caption(_("This model has no embedding, so it is fed random vectors drawn from a seed."))
    with st.container(horizontal=True):
        opened = st.button(_("Show its attention"), icon=":material/grid_view:", key="open-in-explore")
        if inspection.layout and not any(tensor.nan or tensor.infinite for tensor in inspection.tensors):
            _export(engine, model, info, view)
    if opened:
        update(model=model)
        st.switch_page(explore)


def _export(engine: Engine, model: str, info: ModelInfo, view: ViewState) -> None:
    """Draws the button that saves the model with its answers; the folder is made when it is pressed."""
    st.download_button(
        _("Download as a folder with these answers"),
        lambda: engine.ask(Export(model, view.parsed_settings())),
        file_name=f"{PurePath(info.title).stem}.zip",
        mime="application/zip",
        icon=":material/download:",
        help=_(
            "A zip with spec.json, tokenizer.json and model.safetensors. Unpack it into checkpoints/ and no questions "
            "will be asked again."
        ),
        on_click="ignore",
        key="export",
    )


def _recorded_trace(engine: Engine, info: ModelInfo, explore: StreamlitPage) -> None:
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
