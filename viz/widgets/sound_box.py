"""What stands in place of the sentence box where a model reads sounds: what it heard, and the way to another sound."""

from collections.abc import Callable
from html import escape
from typing import Literal

import streamlit as st

from model.engine.api import ModelInfo, Receive
from model.errors import HeadlightError
from model.trace.types import Trace
from viz.i18n.translate import _, error_message
from viz.i18n.translate import number as shown_number
from viz.labels.sounds import described
from viz.session import access
from viz.session.state import my_engine, update
from viz.url.view_state import NEW_SENTENCE
from viz.widgets.cards import say

KINDS = ["wav", "flac", "ogg", "oga", "opus"]
"""Endings of the files that can be chosen; others are refused when they are read."""

_ROUND, _REFUSED = "sound:round", "sound:refused"


def place(info: ModelInfo) -> Callable[[Trace | None, bool], None]:
    """Reserves the place above the page. Returns what draws the box there, given the run; None: there is none yet."""
    there = st.container(horizontal=True, vertical_alignment="center", key="sentence")

    def draw(trace: Trace | None, _over: bool) -> None:
        with there:
            if trace is not None:
                st.html(shown(trace))
            if not info.recorded:
                _another(info)
        if refused := st.session_state.pop(_REFUSED, ""):
            say(refused)

    return draw


def shown(trace: Trace) -> str:
    """The sound of a run as HTML: how long it is, and what became of it before it was read."""
    if trace.sound is None or trace.spectrogram is None:
        return f'<p class="image-read">{escape(described(trace))}</p>'
    bands, frames = trace.spectrogram.shape
    rate = trace.model["spec"]["encoder"]["sound"]["rate"]
    gaps = {"seconds": shown_number(frames * _hop(trace) / rate, ".0f"), "frames": frames, "bands": bands}
    read = _("read as {seconds} s, frames: {frames:,}, each with frequency bands: {bands}", **gaps)
    return f'<p class="image-read"><span><b>{escape(described(trace))}</b> <small>{escape(read)}</small></span></p>'


def _hop(trace: Trace) -> int:
    return int(trace.model["spec"]["encoder"]["sound"]["hop"])


def _another(info: ModelInfo) -> None:
    """Draws the way to another sound. A public server takes none."""
    with st.popover(_("Another sound"), icon=":material/mic:", key="another-sound", on_change="rerun") as part:
        if part.open and not access.is_public():
            number = st.session_state.get(_ROUND, 0)
            recorded, chosen = f"widget:recorded:{number}", f"widget:sound:{number}"
            st.audio_input(_("Record a sound"), key=recorded, on_change=_receive, args=(recorded, "recorded"))
            label = _("Choose a sound, or drop one anywhere on the page")
            st.file_uploader(label, KINDS, key=chosen, on_change=_receive, args=(chosen, "chosen"))
        if part.open:
            for example in info.examples:
                st.button(
                    _("Computed tones"),
                    key="example-sound",
                    on_click=update,
                    kwargs={"text": example, **NEW_SENTENCE},
                    type="tertiary",
                )


def _receive(key: str, how: Literal["recorded", "chosen"]) -> None:
    """Shows the sound of the widget with this key, or remembers why it is not read."""
    file = st.session_state[key]
    if file is None:
        return
    name = "recording.wav" if how == "recorded" else file.name
    try:
        update(text=my_engine().ask(Receive(file.getvalue(), name)), **NEW_SENTENCE)
    except HeadlightError as error:
        st.session_state[_REFUSED] = error_message(error)
    st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1  # other widgets, so that Streamlit drops its copy
