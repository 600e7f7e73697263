"""Checkpoint: what a file of weights is and why, what matched, what must be told; then its heads can be seen."""

import os

import pandas as pd
import streamlit as st
from streamlit.navigation.page import StreamlitPage

from model.engine.base import Engine
from model.errors import HeadlightError, SeveralLayouts
from model.inspection import Inspection
from viz import labels
from viz.links import View
from viz.page import say, update
from viz.sidebar import ANOTHER_MODEL
from viz.texts import _, sentence
from viz.views import checkpoint_questions

ENDINGS = ["pt", "pth", "safetensors", "bin", "ckpt"]
_CHOSEN, _SENT, _REFUSED = "widget:checkpoint", "widget:upload", "checkpoint:refused"


def show(engine: Engine, view: View, explore: StreamlitPage) -> None:
    """Draws the page.

    Args:
        engine: where networks run.
        view: the state.
        explore: the page that shows the heads.
    """
    with st.container(border=True, key="card-choose"):
        model = _choose(engine, view)
    if refused := st.session_state.get(_REFUSED):
        say(refused)
        return
    if not model:
        return
    try:
        found = engine.inspect(model, view.told())
    except HeadlightError as error:
        _say_why_not(error, view)
        return
    with st.container(border=True, key="card-diagnosis"):
        _diagnose(found)
        _open(engine, model, found, view, explore)
    if found.ask:
        with st.container(border=True, key="card-questions"):
            checkpoint_questions.show(engine, model, view, found.ask)
    with st.container(border=True, key="card-tensors"):
        _tensors(found)


def _choose(engine: Engine, view: View) -> str:
    """The controls that choose a model or take a file, and the name of the model; empty: there is none."""
    titles = {info.name: info.title for info in engine.models()}
    if view.model and view.model not in titles:
        titles[view.model] = _title(engine, view)
    there, sent = st.columns(2, gap="large")
    with there:
        model = view.model or next(iter(titles), "")
        if titles:
            st.session_state[_CHOSEN] = model
            st.selectbox(
                _("A checkpoint of this server, or the last file sent"),
                list(titles),
                format_func=lambda name: " ".join(map(labels.plain, titles[name].split(" "))),
                key=_CHOSEN,
                on_change=_take_chosen,
            )
    with sent:
        _uploader(engine)
    return model


def _title(engine: Engine, view: View) -> str:
    """What a model that is not listed is called."""
    try:
        return engine.describe(view.model, view.told()).title
    except HeadlightError:
        return view.model


def _take_chosen() -> None:
    st.session_state.pop(_REFUSED, None)
    update(**ANOTHER_MODEL | {"model": st.session_state[_CHOSEN]})


def _uploader(engine: Engine) -> None:
    if os.environ.get("HEADLIGHT_PUBLIC") == "1":
        st.caption(
            _("This server is open to the public, so it takes no files: run Headlight on your own machine to look into yours.")
        )
        return
    st.file_uploader(
        _("Or a file that torch.save or safetensors wrote: the weights alone, at most {size} MB", size=_most_megabytes()),
        type=ENDINGS,
        key=_SENT,
        on_change=_receive,
        args=(engine,),
    )
    st.caption(_("Nothing in the file is executed. It stays in this server's memory for a while; whoever has the link can see it."))


def _most_megabytes() -> int:
    return int(st.get_option("server.maxUploadSize"))


def _receive(engine: Engine) -> None:
    """Opens the file that was sent and makes it the model, or remembers why not."""
    st.session_state.pop(_REFUSED, None)
    if (file := st.session_state[_SENT]) is None:
        return
    try:
        model = engine.receive(file.getvalue(), file.name)
    except HeadlightError as error:
        st.session_state[_REFUSED] = sentence(error)
    else:
        update(**ANOTHER_MODEL | {"model": model})


def _say_why_not(error: HeadlightError, view: View) -> None:
    """Why there is no diagnosis, and what can be chosen to get one."""
    say(sentence(error))
    if isinstance(error, SeveralLayouts):
        checkpoint_questions.choose_reading(error, view)
    if view.settings:
        st.button(_("Forget the answers"), on_click=update, kwargs={"settings": ""}, key="forget")


def _diagnose(found: Inspection) -> None:
    """What it is, why, and what to know of it."""
    st.markdown(f"**{labels.markdown(found.what)}**")
    if found.in_favour:
        st.caption(labels.markdown(_("In favour of this reading: {evidence}.", evidence="; ".join(found.in_favour))))
        against = "; ".join(found.against)
        st.caption(labels.markdown(_("Against it: {evidence}.", evidence=against)) if against else _("Nothing speaks against it."))
    if found.prefix:
        st.caption(labels.markdown(_("A wrapper put “{prefix}” before each name; it was taken off.", prefix=found.prefix)))
    if found.candidate:
        st.caption(labels.markdown(_("The weights stand in the file under “{keys}”.", keys=found.candidate)))
    for note in found.notes:
        st.caption(labels.markdown(note))
    _counts(found)


def _counts(found: Inspection) -> None:
    statuses = [tensor.status for tensor in found.tensors]
    known = bool(found.spec)
    unknown = _("open")
    values = {
        _("learned numbers"): f"{found.parameters:,}" if known else unknown,
        _("tensors matched"): f"{statuses.count('matched'):,}",
        _("missing"): f"{len(found.missing):,}" if known else unknown,
        _("unexpected"): f"{statuses.count('unexpected'):,}",
        _("of another shape"): f"{statuses.count('misshapen'):,}" if known else unknown,
    }
    with st.container(horizontal=True, gap="large"):
        for label, value in values.items():
            st.metric(label, value, width="content")


def _open(engine: Engine, model: str, found: Inspection, view: View, explore: StreamlitPage) -> None:
    """The button that shows the model's heads, or why there is none yet."""
    if any(map(checkpoint_questions.is_open, found.ask)):
        st.info(_("Answer below what is needed: then its heads can be seen."), icon=":material/help:")
        return
    info = engine.describe(model, view.told())
    if info.problem:
        say(info.problem)
        return
    if info.reads == "ids":
        st.caption(
            _("The file holds no vocabulary: this model reads token ids, typed as numbers, and shows its tokens as numbers.")
        )
    if info.reads == "features":
        st.caption(_("This model has no embedding: it reads random vectors, drawn from a seed."))
    if st.button(_("Open in Explore"), icon=":material/grid_view:", key="open-in-explore"):
        update(model=model)
        st.switch_page(explore)


def _tensors(found: Inspection) -> None:
    """Every tensor of the file, and those that it lacks; what is wrong comes first."""
    st.markdown(f"**{_('Tensors')}**")
    st.caption(
        _("The sign of the magnifying glass on the table searches it. Deviation: standard; norm: the root of the sum of squares.")
    )
    words = _statuses()
    rows = [
        (
            labels.plain(tensor.name),
            tensor.status,
            " × ".join(map(str, tensor.shape)),
            tensor.dtype,
            tensor.mean,
            tensor.deviation,
            tensor.norm,
        )
        for tensor in found.tensors
    ]
    rows += [(labels.plain(name), "missing", "", "", None, None, None) for name in found.missing]
    rows.sort(key=lambda row: list(words).index(row[1]))
    table = pd.DataFrame(
        [(name, words[status], *others) for name, status, *others in rows],
        columns=[_("tensor"), _("status"), _("shape"), _("type"), _("mean"), _("deviation"), _("norm")],
    )
    st.dataframe(table, hide_index=True, width="stretch", key="tensors")


def _statuses() -> dict[str, str]:
    return {
        "missing": _("missing"),
        "misshapen": _("of another shape"),
        "unexpected": _("unexpected"),
        "matched": _("matched"),
        "unneeded": _("known, not needed"),
    }
