"""What stands in place of the sentence box where a model reads images: the image that it read, and the way to another one."""

import base64
from collections.abc import Callable
from html import escape
from io import BytesIO

import numpy as np
import streamlit as st
from PIL import Image

from model.engine.api import ModelInfo, Receive
from model.errors import HeadlightError
from model.trace.types import Array, Trace, image_facts
from viz.i18n.translate import _, error_message
from viz.labels.images import name_of
from viz.session import access
from viz.session.state import my_engine, update
from viz.url.view_state import NEW_SENTENCE
from viz.widgets.cards import say

KINDS = ["png", "jpg", "jpeg", "webp", "gif", "bmp"]
"""Endings of the files that can be chosen; others are refused when they are read."""

THUMBNAIL = 56
"""Most pixels along a side of the thumbnail."""

_ROUND, _REFUSED = "image:round", "image:refused"


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
    """The image of a run as HTML: its thumbnail, its name, and what it became before it was read."""
    if trace.image is None:
        instead = _("Random numbers instead of an image: {source}", source=name_of(trace))
        return f'<p class="image-read">{escape(instead)}</p>'
    height, width = trace.image.shape[:2]
    spec = trace.model["spec"]["encoder"]["image"]
    gaps = {"width": width, "height": height, "rows": spec["rows"], "columns": spec["columns"], "side": spec["side"]}
    read = _("read as {width} × {height} px, patches: {rows} × {columns}, each {side} × {side} px", **gaps)
    sent = image_facts(trace)
    size = "" if sent is None else _("{width} × {height} px", width=sent.width, height=sent.height)
    said = " · ".join(filter(None, (size, read)))
    alt = escape(_("The image as the network read it"))
    picture = f'<img src="{address_of(thumbnail(trace.image))}" alt="{alt}">'
    return f'<p class="image-read">{picture}<span><b>{escape(name_of(trace))}</b> <small>{escape(said)}</small></span></p>'


def thumbnail(image: Array) -> Array:
    """[row, column, color] of uint8: every nth pixel of an image, so that no side has more than THUMBNAIL."""
    step = -(-max(image.shape[:2]) // THUMBNAIL)
    return image[::step, ::step]


def address_of(image: Array) -> str:
    """An image, [row, column, color] of uint8, as an address that holds all of it."""
    held = BytesIO()
    Image.fromarray(np.ascontiguousarray(image)).save(held, "png")
    return f"data:image/png;base64,{base64.b64encode(held.getvalue()).decode('ascii')}"


def _another(info: ModelInfo) -> None:
    """Draws the way to another image. A public server takes no files."""
    with st.popover(_("Another image"), icon=":material/image:", key="another-image", on_change="rerun") as part:
        if part.open and not access.is_public():
            key = f"widget:image:{st.session_state.get(_ROUND, 0)}"
            st.file_uploader(
                _("Choose an image, or drop one anywhere on the page"), KINDS, key=key, on_change=_receive, args=(key,)
            )
        if part.open:
            for example in info.examples:
                chosen = {"text": example, **NEW_SENTENCE}
                st.button(_("A drawn scene"), key="example-image", on_click=update, kwargs=chosen, type="tertiary")


def _receive(key: str) -> None:
    """Shows the image of the uploader with this key, or remembers why it is not read."""
    file = st.session_state[key]
    if file is None:
        return
    try:
        update(text=my_engine().ask(Receive(file.getvalue(), file.name)), **NEW_SENTENCE)
    except HeadlightError as error:
        st.session_state[_REFUSED] = error_message(error)
    st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1  # another uploader, so that Streamlit drops its copy
