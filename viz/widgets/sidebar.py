"""The sidebar: model, decoding, precision and device."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from model.engine.api import ModelInfo
from model.requests.request import MOST_CANDIDATES, MOST_TOKENS
from model.trace.types import UNWRITTEN, Trace
from viz.i18n import translate
from viz.i18n.translate import _, in_millions, join_list, join_sentences, said
from viz.labels import tokens
from viz.session import access
from viz.session.state import bind, update
from viz.url.links import NO_TURNS
from viz.url.parsers import PLAIN
from viz.url.view_state import LARGEST_SEED, PRECISIONS, ViewState, another_model, new_sentence

ICON = Path(__file__).parent / "icon.svg"
WORDMARK = Path(__file__).parent / "wordmark.svg"


OPEN = " "
"""The last entry of the list of models; no model is called so."""

ASKS = "asks-for-a-model"
"""Whether this session asked to open another model."""


def shows(view: ViewState) -> tuple[object, ...]:
    """The fields of a view that the sidebar shows: if one changes elsewhere, the sidebar must be redrawn."""
    return (view.model, view.settings, view.target, view.precision, replace(view.decoding(), hypothesis=0), view.chats)


def draw(info: ModelInfo, usable: Sequence[ModelInfo], view: ViewState) -> None:
    """Draws the controls of model and decoding, bound to the state."""
    models(distinct_titles(usable))
    if info.recorded:
        st.sidebar.caption(tokens.markdown(_("A recorded run, opened from a trace file.")))
        return
    with st.sidebar:
        st.caption(tokens.markdown(join_sentences((said(info.summary), _size(info)))))
        _input(info, view)
        decoding(info, view, lambda field: bind(field, **new_sentence()))
        precision(bind("precision"))
        if info.translates:
            st.text_input(
                _("Forced target ({language})", language=info.languages.get("target", info.title)),
                placeholder=_("leave empty to let the model decide") if info.writes else _("the target that the model reads"),
                help=_(
                    "Teacher forcing: the model reads these words instead of its own output. Each word shows the "
                    "probability that the model gave it."
                ),
                **bind("target", **new_sentence()),
            )


def _input(info: ModelInfo, view: ViewState) -> None:
    """Draws whether a model with a chat template converses or continues a text, and how its authors have it sample."""
    if info.chats:
        key = "widget:converses"
        st.session_state[key] = view.chats

        def change() -> None:
            update(chat=NO_TURNS if st.session_state[key] is True else PLAIN, raw=0, **new_sentence())

        help_ = _("On: the model answers the turns of a conversation. Off: it continues a text.")
        st.toggle(_("Conversation"), key=key, on_change=change, help=help_)
    if not info.continues:
        return
    if (own := info.sampling) is None:
        if info.chats:
            st.caption(_("The file sets no sampling, so the most likely token is taken."))
        return
    gaps = {"temperature": own.temperature, "k": own.top_k, "p": own.top_p}
    st.caption(_("Sampling set by the file: temperature {temperature:.2f}, top k {k}, top p {p:.2f}.", **gaps))
    own_ = {name: getattr(own, name) for name in ("method", "temperature", "top_k", "top_p")}
    if view.method == "sample":
        st.button(_("Greedy"), key="greedy", on_click=update, kwargs={"method": "greedy", **new_sentence()})
    else:
        st.button(_("Sample as the file sets it"), key="as-set", on_click=update, kwargs=own_ | new_sentence())


def distinct_titles(infos: Sequence[ModelInfo]) -> dict[str, str]:
    """Titles by name; models with the same title also have their names, because Streamlit tells entries apart by their text."""
    count = Counter(info.title for info in infos)
    return {info.name: info.title if count[info.title] == 1 else f"{info.title} ({info.name})" for info in infos}


def models(titles: Mapping[str, str]) -> None:
    """Draws the logo and the list of models, which ends with the way to open another one. `titles`: by model name."""
    logo()
    names = {**titles, OPEN: _("Open a model…")} if access.opens_models() else dict(titles)
    bound = bind("model", **another_model())

    def change() -> None:
        if st.session_state[bound["key"]] == OPEN:
            st.session_state[ASKS] = True  # the list goes on showing the model in use
        else:
            bound["on_change"]()

    with st.sidebar:
        st.selectbox(_("Model"), list(names), format_func=names.__getitem__, key=bound["key"], on_change=change)


def logo() -> None:
    """Draws the logo above every page."""
    st.logo(WORDMARK, size="large", icon_image=ICON)


def languages() -> None:
    """Draws the choice of the page's language."""
    bound = bind("language")
    st.session_state[bound["key"]] = translate.current()
    st.sidebar.selectbox(
        ":material/language: " + _("Language"),
        list(translate.LANGUAGES),
        format_func=translate.LANGUAGES.__getitem__,
        **bound,
    )


def status(trace: Trace) -> None:
    """Draws the run's device and duration."""
    gaps = {"device": said(trace.model["device"]), "milliseconds": trace.model["milliseconds"]}
    st.caption(tokens.markdown(_("{device} · {milliseconds:.0f} ms", **gaps)))
    if drafted := trace.model.get("drafted"):
        gaps = {"drafted": drafted, "written": len(trace.steps)}
        st.caption(
            _("Speculative decoding: {drafted} of {written} tokens were guessed from the previous text and confirmed.", **gaps)
        )
    if UNWRITTEN in trace.missing:
        text = _(
            "Long input: the weights were not stored during the run. They are recomputed from the queries and keys of the run."
        )
        st.caption(text)
    if differs := _from_float32(trace):
        st.caption(differs)


def waiting(others: Sequence[ModelInfo]) -> None:
    """Lists the models whose questions must be answered before use, those that cannot be used, and those still being opened."""
    by_error: dict[str, list[str]] = {}
    for info in others:
        by_error.setdefault(str(info.problem.get("error")), []).append(info.name)
    names, opening = by_error.pop("OpenQuestions", []), by_error.pop("StillOpening", [])
    damaged = [info.name for info in others if info.name not in names + opening]
    if names:
        gaps = {"names": join_list(names)}
        st.sidebar.caption(
            tokens.markdown(_("Not ready, answer the questions about them on the Checkpoint page: {names}.", **gaps))
        )
    if damaged:
        gaps = {"names": join_list(damaged)}
        st.sidebar.caption(tokens.markdown(_("Cannot be used; the Checkpoint page says why: {names}.", **gaps)))
    if opening:
        gaps = {"names": join_list(opening)}
        st.sidebar.caption(tokens.markdown(_("Still being opened: {names}. Reload the page in a minute.", **gaps)))


def decoding(info: ModelInfo, view: ViewState, tied: Callable[[str], dict[str, Any]]) -> None:
    """Draws the decoding method and its options. A slider's range widens to include a link's value.

    Args:
        info: the model. One that generates nothing has no method.
        view: the state, or side B of a comparison.
        tied: returns the keyword arguments that bind a widget to a field.
    """
    if not info.writes:
        st.caption(_("This model has no output layer over a vocabulary: it reads but does not generate."))
        return
    methods = {
        "greedy": _("Greedy: most likely token"),
        "sample": _("Sampling: draw at random"),
        "beam": _("Beam search"),
    }
    forced = bool(view.target)
    st.selectbox(_("Decoding"), list(methods), format_func=methods.__getitem__, disabled=forced, **tied("method"))
    if view.method == "beam":
        st.slider(_("Beam width"), 1, max(10, view.beam_size), **tied("beam_size"))
    if view.method == "sample":
        lowest, highest = min(0.1, view.temperature), max(3.0, view.temperature)
        st.slider(_("Temperature"), lowest, highest, step=0.1, format="localized", **tied("temperature"))
        st.number_input(_("Top k (0 = all)"), 0, MOST_CANDIDATES, **tied("top_k"))
        st.slider(_("Top p"), min(0.05, view.top_p), 1.0, step=0.05, format="localized", **tied("top_p"))
        st.number_input(_("Seed"), 0, LARGEST_SEED, **tied("seed"))
    st.number_input(_("Maximum new tokens"), 0, MOST_TOKENS, disabled=forced, **tied("max_length"))


def precision(tied: dict[str, Any]) -> None:
    """Draws the choice of precision.

    Args:
        tied: keyword arguments that bind the widget to the state.
    """
    names = {"": _("Engine default")} | {name: name for name in PRECISIONS}
    help_ = _(
        "The precision of weights and calculations. At lower precision the run is repeated in float32 and the difference "
        "is reported. A model of the transformers library runs in the precision of its weights or in float32, and is not repeated."
    )
    st.selectbox(_("Precision"), list(names), format_func=names.__getitem__, help=help_, **tied)


def _from_float32(trace: Trace) -> str:
    """How far a run in lower precision is from float32; empty for float32."""
    dtype = trace.model["dtype"]
    if dtype == "float32":
        return ""
    differences = trace.model.get("from_float32", {})
    fields = {name: tokens.power_of_ten(value) for name, value in differences.items() if value is not None} | {"dtype": dtype}
    match "weights" in fields, "probabilities" in fields:
        case True, True:
            return _(
                "{dtype} · weights differ from float32 by at most {weights}, probabilities by at most {probabilities}", **fields
            )
        case True, False:
            return _("{dtype} · weights differ from float32 by at most {weights}", **fields)
        case False, True:
            return _("{dtype} · probabilities differ from float32 by at most {probabilities}; weights were not stored", **fields)
    return _("{dtype} · not compared with float32", **fields)


def _size(info: ModelInfo) -> str:
    layers = {name: info.spec[name]["layers"] for name in ("encoder", "decoder") if info.spec[name] is not None}
    writer = info.spec["decoder"] or info.spec["encoder"]
    counts = {"layers": sum(layers.values()), "heads": writer["attention"]["heads"], "millions": in_millions(info.parameters)}
    if len(layers) == 1:
        return _("Layers: {layers}; heads per layer: {heads}; {millions} million parameters.", **counts)
    return _(
        "Layers: {encoder} in the encoder, {decoder} in the decoder; heads per layer: {heads}; {millions} million parameters.",
        **counts,
        **layers,
    )
