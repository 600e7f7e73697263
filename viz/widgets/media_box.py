"""What stands in place of the sentence box where a model reads images or sounds: what it read, and the way to another one."""

import base64
from collections.abc import Callable
from html import escape
from io import BytesIO

import numpy as np
import streamlit as st
from PIL import Image

from model.engine.api import ModelInfo, Receive
from model.errors import HeadlightError
from model.trace.types import Array, Trace, image_facts, source_notes
from viz.i18n.translate import _, error_message, said
from viz.i18n.translate import number as shown_number
from viz.labels import tokens
from viz.labels.images import name_of
from viz.labels.sounds import described
from viz.session import access
from viz.session.state import my_engine, update
from viz.url.view_state import new_sentence
from viz.widgets.cards import say

IMAGES = ["png", "jpg", "jpeg", "webp", "gif", "bmp"]
SOUNDS = ["wav", "flac", "ogg", "oga", "opus"]
"""Endings of the files that can be chosen; others are refused when they are read."""

THUMBNAIL = 56
"""Most pixels along a side of the thumbnail."""

_ROUND, _REFUSED = "media:round", "media:refused"


def place_media(info: ModelInfo) -> Callable[[Trace | None, bool], None]:
    """Reserves the place above the page. Returns what draws the box there, given the run; None: there is none yet."""
    box = st.container(horizontal=True, vertical_alignment="center", key="sentence")

    def draw(trace: Trace | None, _over: bool) -> None:
        with box:
            if trace is not None:
                st.html(f'<p class="image-read">{shown_image(trace) if info.reads == "image" else shown_sound(trace)}</p>')
            if not info.recorded:
                _another(info)
        for note in () if trace is None else source_notes(trace):
            st.caption(tokens.markdown(said(note)))
        if refused := st.session_state.pop(_REFUSED, ""):
            say(refused)

    return draw


def shown_image(trace: Trace) -> str:
    """The image of a run as HTML: its thumbnail, its name, and what it became before it was read."""
    if trace.image is None:
        return escape(_("Random numbers instead of an image: {source}", source=name_of(trace)))
    height, width = trace.image.shape[:2]
    spec = trace.model["spec"]["encoder"]["image"]
    fields = {"width": width, "height": height, "rows": spec["rows"], "columns": spec["columns"], "side": spec["side"]}
    read = _("read as {width} × {height} px, patches: {rows} × {columns}, each {side} × {side} px", **fields)
    sent = image_facts(trace)
    size = "" if sent is None else _("{width} × {height} px", width=sent.width, height=sent.height)
    sizes = " · ".join(filter(None, (size, read)))
    alt = escape(_("The image as the network read it"))
    picture = f'<img src="{_thumbnail(trace.image)}" alt="{alt}">'
    return f"{picture}<span><b>{escape(name_of(trace))}</b> <small>{escape(sizes)}</small></span>"


def shown_sound(trace: Trace) -> str:
    """The sound of a run as HTML: how long it is, and what became of it before it was read."""
    if trace.sound is None or trace.spectrogram is None:
        return escape(described(trace))
    bands, frames = trace.spectrogram.shape
    spec = trace.model["spec"]["encoder"]["sound"]
    fields = {"seconds": shown_number(frames * int(spec["hop"]) / spec["rate"], ".0f"), "frames": frames, "bands": bands}
    read = _("read as {seconds} s, frames: {frames:,}, each with frequency bands: {bands}", **fields)
    return f"<span><b>{escape(described(trace))}</b> <small>{escape(read)}</small></span>"


def _thumbnail(image: Array) -> str:
    """Every nth pixel of an image, so that no side has more than THUMBNAIL, as an address that holds all of them.

    Args:
        image: [row, column, color] of uint8.
    """
    step = -(-max(image.shape[:2]) // THUMBNAIL)
    held = BytesIO()
    Image.fromarray(np.ascontiguousarray(image[::step, ::step])).save(held, "png")
    return f"data:image/png;base64,{base64.b64encode(held.getvalue()).decode('ascii')}"


def _another(info: ModelInfo) -> None:
    """Draws the way to another image or sound. A public server takes no files."""
    sound = info.reads == "sound"
    label, icon = (_("Another sound"), ":material/mic:") if sound else (_("Another image"), ":material/image:")
    with st.popover(label, icon=icon, key="another", on_change="rerun") as part:
        if part.open and not access.is_public():
            key = f"widget:media:{st.session_state.get(_ROUND, 0)}"
            if sound:
                st.audio_input(
                    _("Record a sound"), key=f"{key}:recorded", on_change=_receive, args=(f"{key}:recorded", "recording.wav")
                )
                choose, kinds = _("Choose a sound, or drop one anywhere on the page"), SOUNDS
            else:
                choose, kinds = _("Choose an image, or drop one anywhere on the page"), IMAGES
            st.file_uploader(choose, kinds, key=key, on_change=_receive, args=(key,))
        if part.open:
            for example in info.examples:
                drawn = _("Computed tones") if sound else _("A drawn scene")
                st.button(drawn, key="example", on_click=update, kwargs={"text": example, **new_sentence()}, type="tertiary")


def refuse(reason: str) -> None:
    """Says below the box, once, why a file is not read."""
    st.session_state[_REFUSED] = reason


def _receive(key: str, name: str = "") -> None:
    """Shows what the widget with this key got, under its own name or the given one, or remembers why it is not read."""
    file = st.session_state[key]
    if file is None:
        return
    try:
        update(text=my_engine().ask(Receive(file.getvalue(), name or file.name)), **new_sentence())
    except HeadlightError as error:
        refuse(error_message(error))
    st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1  # other widgets, so that Streamlit drops its copy
