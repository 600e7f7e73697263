"""The sidebar: which model, how it decodes, where it runs."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from model.engine.base import ModelInfo
from model.trace import Trace
from viz import labels
from viz.links import LARGEST_SEED, MOST_CANDIDATES, View
from viz.page import bind
from viz.sentence import FRESH
from viz.texts import _

ICON = Path(__file__).parent / "icon.svg"
WORDMARK = Path(__file__).parent / "wordmark.svg"

ANOTHER_MODEL = {"settings": "", "text": None, "target": "", "site": "", "head": 0, "stage": "", "silence": "", **FRESH}
"""What another model starts without: everything that speaks of the old one's tokens and heads."""


def draw(info: ModelInfo, usable: Sequence[ModelInfo], view: View) -> None:
    """The controls of model and decoding, tied to the state."""
    logo()
    titles = {i.name: i.title for i in usable}
    methods = {"greedy": _("Greedy: the likeliest token"), "sample": _("Sampling: a draw"), "beam": _("Beam search")}
    with st.sidebar:
        st.selectbox(_("Model"), list(titles), format_func=titles.__getitem__, **bind("model", **ANOTHER_MODEL))
        st.caption(labels.markdown(f"{info.summary} {_size(info)}"))
        forced = bool(view.target)
        st.selectbox(_("Decoding"), list(methods), format_func=methods.__getitem__, disabled=forced, **bind("method", **FRESH))
        _method_settings(view)
        if "target" in info.languages:
            st.text_input(
                _("Target to feed ({language})", language=info.languages["target"]),
                placeholder=_("empty: the model decides"),
                help=_("Teacher forcing: the model reads these words instead of its own, and each shows the probability it had."),
                **bind("target", **FRESH),
            )


def logo() -> None:
    """The mark on top of every page."""
    st.logo(WORDMARK, size="large", icon_image=ICON)


def status(trace: Trace) -> None:
    """Where the run was computed, and how long it took."""
    gaps = {"device": trace.model["device"], "milliseconds": trace.model["milliseconds"]}
    st.sidebar.caption(labels.markdown(_("{device} · {milliseconds:.0f} ms", **gaps)))


def _method_settings(view: View) -> None:
    """What the method needs to be told. A slider's usual range widens to a link's value outside of it."""
    if view.method == "beam":
        st.slider(_("Beginnings followed"), 1, max(10, view.beam_size), **bind("beam_size", **FRESH))
    if view.method == "sample":
        lowest, highest = min(0.1, view.temperature), max(3.0, view.temperature)
        st.slider(_("Temperature"), lowest, highest, step=0.1, **bind("temperature", **FRESH))
        st.number_input(_("Top k (0: all)"), 0, MOST_CANDIDATES, **bind("top_k", **FRESH))
        st.slider(_("Top p"), min(0.05, view.top_p), 1.0, step=0.05, **bind("top_p", **FRESH))
        st.number_input(_("Seed"), 0, LARGEST_SEED, **bind("seed", **FRESH))


def _size(info: ModelInfo) -> str:
    layers = {name: info.spec[name]["layers"] for name in ("encoder", "decoder") if info.spec[name] is not None}
    writer = info.spec["decoder"] or info.spec["encoder"]
    gaps = {"layers": sum(layers.values()), "heads": writer["attention"]["heads"], "millions": info.parameters / 1e6}
    if len(layers) == 1:
        return _("{layers} layers, {heads} heads, {millions:.1f} million parameters.", **gaps)
    return _("{encoder} + {decoder} layers, {heads} heads, {millions:.1f} million parameters.", **gaps, **layers)
