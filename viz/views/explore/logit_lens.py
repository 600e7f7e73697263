"""The logit lens of the run: the likeliest tokens after each decoder layer, computed when it is opened."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st

from model.engine.api import Engine, Run, Tensors, Texts
from model.errors import HeadlightError
from model.spec.request import RunRequest
from model.trace.types import Array
from viz.export import tables
from viz.figures import lens as figure
from viz.i18n.translate import _, error_message, titled
from viz.labels import alt_text, tokens
from viz.metrics import logit_lens
from viz.session.state import Page, decimals
from viz.widgets import download, recorded_run
from viz.widgets.cards import chart, say


def draw(page: Page) -> None:
    """Draws the lens, or says why this model has none."""
    if reason := reason_against(page):
        st.caption(reason)
        return
    with st.popover(_("What is this?"), type="tertiary", key="about-lens"):
        _explain(page)
    try:
        request, fingerprint = page.view.request(keep=("hidden",)), str(page.trace.model["fingerprint"])
        found, words = _found(request, fingerprint, page.engine, page.info.spec)
    except HeadlightError as error:
        say(error_message(error))
        return
    _picture(page, found, words)


def reason_against(page: Page) -> str:
    """Why this model has no lens; empty: it has one."""
    spec = page.info.spec
    if page.info.recorded:
        return recorded_run.needs_network()
    if not spec.get("decoder") or not spec.get("output"):
        return _("This model has no output layer that could turn its states into words.")
    if spec.get("program"):
        return _(
            "This network is run by an external library whose final normalization and output layer are not accessible, "
            "so there is no logit lens."
        )
    if spec["output"].get("softmax") == "batch":
        return _(
            "This model applies its softmax across the batch, not across words, so every probability of a single sentence is 1."
        )
    return ""


@st.cache_resource(max_entries=8, show_spinner=False)
def _found(request: RunRequest, fingerprint: str, _engine: Engine, _spec: Mapping[str, Any]) -> tuple[logit_lens.Lens, Array]:
    """The lens of a run and its words, cached by request and model."""
    return computed(request, _engine, _spec)


def computed(request: RunRequest, engine: Engine, spec: Mapping[str, Any]) -> tuple[logit_lens.Lens, Array]:
    """The lens of a run and its words, [layer, position, candidate] of texts.

    Args:
        request: of a run that keeps the hidden states.

    Raises:
        HeadlightError: the run is not possible.
    """
    trace = engine.ask(Run(request))
    found = logit_lens.lens(
        trace, spec, engine.ask(Tensors(request.model, names=logit_lens.output_names(spec), settings=request.settings))
    )
    ids, places = np.unique(found.ids, return_inverse=True)
    strip = "target" if "target" in trace.tokens else "source"
    texts = engine.ask(Texts(request.model, strip=strip, ids=tuple(ids.tolist()), settings=request.settings))
    return found, np.array([tokens.word(text) for text in texts], object)[places].reshape(found.ids.shape)


def axes(page: Page, found: logit_lens.Lens) -> tuple[list[str], list[str], str]:
    """Labels of the positions, names of the layers, and the title of the axis of positions."""
    last = [a for site, a in page.trace.attention.items() if site.stack == "decoder"][-1]
    positions = tokens.queries(page.trace, last, longest=None)[: found.ids.shape[1]]
    return positions, [_layer(name, found.layers) for name in found.layers], tokens.query_axis(page.trace, last.site)


def _picture(page: Page, found: logit_lens.Lens, words: Array) -> None:
    positions, layers, title = axes(page, found)
    drawn = figure.lens(positions, layers, words, found.probabilities, page.dark, title, page.view.query, decimals(4))
    alt = _("Logit lens: the most likely next token after each layer")
    told = alt_text.lens(positions, layers, words, found.probabilities)
    chart(drawn, (page.trace, alt), key="lens", alt=titled(alt, told))
    table = tables.lens_table(positions, layers, words, found.probabilities, title)
    download.csv(table, page.trace, "logit-lens")


def _layer(name: str, names: tuple[str, ...]) -> str:
    """The name of a column, counted from 1: "3", or "2.3" if the stack runs more than once."""
    pass_, layer = (int(part) + 1 for part in name.split("."))
    return f"{pass_}.{layer}" if any(not other.startswith("0.") for other in names) else str(layer)


def _explain(page: Page) -> None:
    normed = page.info.spec["decoder"]["final_norm"]
    st.latex(
        r"\operatorname{softmax}\left(\operatorname{LayerNorm}(h_\ell)\, W_{out}^\top + b_{out}\right)"
        if normed
        else r"\operatorname{softmax}\left(h_\ell\, W_{out}^\top + b_{out}\right)"
    )
    meaning = _("What the model would predict if its output layer read the state after this layer.")
    caution = _(
        "Only the last layer’s prediction is the model’s real output. Earlier layers were never trained to feed the "
        "output layer directly, and a word that does not show up may still be encoded in the state."
    )
    for text in (meaning, caution):
        st.markdown(f":small[{tokens.markdown(text)}]")
