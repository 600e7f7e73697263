"""Weights of a usable network: the matrices of a head, the singular values of its products, and nearest tokens by embedding."""

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from model.engine.api import Engine, Tensors, Texts
from model.errors import HeadlightError
from model.inspection.report import Inspection
from model.trace.types import Array, Site
from viz.figures import weights
from viz.i18n.translate import _, error_message
from viz.labels import tokens
from viz.url.view_state import ViewState
from viz.widgets import numeric_tables
from viz.widgets.cards import card, chart, say


def show(engine: Engine, model: str, inspection: Inspection, view: ViewState) -> None:
    """Draws both cards, or a sentence if the weights cannot be split by head."""
    try:
        with card("weights", "content"):
            _heads(engine, model, inspection, view)
        with card("neighbours", "content"):
            _neighbours(engine, model, inspection, view)
    except HeadlightError as error:
        say(error_message(error))


def _heads(engine: Engine, model: str, inspection: Inspection, view: ViewState) -> None:
    st.markdown("**" + _("Weights of a head") + "**")
    st.caption(
        _(
            "W_Q W_Kᵀ determines what a head attends to and W_V W_O what it moves. A singular value shows how strongly "
            "one direction is passed on."
        ).replace("_", "\\_")
    )
    where, which, what = st.columns([2, 1, 2])
    sites = list(inspection.sites)
    first = sites.index(view.site) if view.site in sites else 0
    site = where.selectbox(
        _("Attention"), sites, first, format_func=lambda text: tokens.site(Site.parse(text)), key=_key(model, "site")
    )
    head = which.selectbox(
        _("Head"), range(inspection.sites[site]), format_func=lambda index: str(index + 1), key=_key(model, f"head:{site}")
    )
    parts = {"query": "W_Q", "key": "W_K", "value": "W_V", "output": "W_O"}
    with what:
        part = st.segmented_control(
            _("Matrix"), list(parts), format_func=parts.__getitem__, default="query", required=True, key=_key(model, "part")
        )
    names = f"heads/{site}/{part}", *(f"singular/{site}/{product}" for product in ("query-key", "value-output"))
    maps, queries, values = (engine.ask(Tensors(model, names=names, settings=view.parsed_settings()))[name] for name in names)
    dark = st.context.theme.type == "dark"
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _matrix(maps[head], part == "output", dark)
    with right:
        _chart(weights.singular(queries, head, "W_Q W_Kᵀ", dark), "singular-query-key")
        _chart(weights.singular(values, head, "W_V W_O", dark), "singular-value-output")


def draw_one(engine: Engine, model: str, inspection: Inspection, view: ViewState) -> None:
    """Draws the query matrix of the selected head, which fills the screen in big mode, or says why there is none."""
    site = view.site if view.site in inspection.sites else next(iter(inspection.sites))
    head = view.head if view.head < inspection.sites[site] else 0
    name = f"heads/{site}/query"
    try:
        maps = engine.ask(Tensors(model, names=(name,), settings=view.parsed_settings()))[name]
    except HeadlightError as error:
        say(error_message(error))
        return
    st.markdown(f"**W_Q: {tokens.markdown(tokens.site(Site.parse(site), head))}**".replace("_", "\\_"))
    _matrix(maps[head], False, st.context.theme.type == "dark", fills=True)


def _key(model: str, what: str) -> str:
    return f"weights:{model}:{what}"


def _matrix(values: Array, output: bool, dark: bool, *, fills: bool = False) -> None:
    """Draws one matrix of one head: dimensions of the head from top to bottom, of the residual stream from left to right."""
    cells = values.T if output else values
    _chart(
        weights.matrix(cells, _("dimension of the head"), _("dimension of the residual stream"), dark, height=560),
        "matrix",
        fills=fills,
    )
    _small, (rows, columns) = weights.pooled(cells)
    if rows * columns > 1:
        fields = {"rows": rows, "columns": columns}
        st.caption(_("Each cell shows the largest (by magnitude) of {rows} × {columns} weights, with its sign.", **fields))


def _chart(figure: go.Figure, key: str, *, fills: bool = False) -> None:
    chart(figure, fills=fills, key=key)


def _neighbours(engine: Engine, model: str, inspection: Inspection, view: ViewState) -> None:
    """Draws the tokens whose embeddings have the largest cosine with that of one token."""
    st.markdown("**" + _("Nearest neighbors of a token") + "**")
    stacks = [stack for stack in (inspection.spec["encoder"], inspection.spec["decoder"]) if stack is not None]
    sizes = {strip: stack["vocab"] for strip, stack in zip(("source", "target"), stacks, strict=False) if stack["vocab"]}
    if not sizes:
        st.caption(_("This network has no embedding: it is fed vectors."))
        return
    st.caption(_("By cosine similarity of the stored embeddings, independent of any sentence."))
    which, number = st.columns(2)
    names = {"source": _("Source"), "target": _("Target")}
    strip = which.selectbox(_("Vocabulary"), list(sizes), format_func=names.__getitem__, key=_key(model, "strip"))
    id_ = int(number.number_input(_("Token id"), 0, sizes[strip] - 1, min(4, sizes[strip] - 1), key=_key(model, f"id:{strip}")))
    near = engine.ask(Tensors(model, names=(f"near/{strip}/{id_}",), settings=view.parsed_settings()))[f"near/{strip}/{id_}"]
    ids = tuple(int(index) for index in near[:, 0])
    word, *texts = (
        tokens.word(text) for text in engine.ask(Texts(model, strip=strip, ids=(id_, *ids), settings=view.parsed_settings()))
    )
    st.markdown(tokens.markdown(_("Nearest neighbors of “{token}”:", token=word)))
    table = pd.DataFrame({"token": texts, "id": ids, "cosine": near[:, 1]})
    step = 10.0 ** -numeric_tables.usual(3)
    columns = {
        "token": st.column_config.TextColumn(_("token")),
        "id": st.column_config.NumberColumn(_("id")),
        "cosine": st.column_config.ProgressColumn(_("cosine"), format="localized", min_value=0, max_value=1, step=step),
    }
    numeric_tables.draw(table, columns=columns, hide_index=True, height="content", key="neighbours")
