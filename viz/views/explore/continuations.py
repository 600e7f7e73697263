"""What a language model may write next: its likeliest tokens as bars that move with temperature, top k and top p."""

import streamlit as st

from model.engine.api import Texts
from model.spec.request import Decoding
from viz import canvas
from viz.canvas.scenes import continuations
from viz.canvas.scenes.continuations import Row
from viz.i18n.translate import _
from viz.labels import tokens
from viz.session.state import Page, update
from viz.widgets.cards import card, heading


def predicted(page: Page) -> Row | None:
    """What a language model predicted after its prompt; None: another model, or it wrote nothing."""
    return continuations.after(page.trace, page.info.spec.get("suppressed", ())) if page.info.continues else None


def draw(page: Page, row: Row) -> None:
    """Draws the card of a language model."""
    ids = row.likeliest()
    texts = page.engine.ask(Texts(page.info.name, strip="source", ids=ids, settings=page.view.parsed_settings()))
    samples = page.view.method == "sample"  # then the sidebar has temperature, top k and top p
    asked = page.view.decoding() if samples else Decoding()
    start = asked.temperature, asked.top_k, asked.top_p
    with card("next", "content"):
        last = tokens.word(page.trace.tokens["source"].texts[row.place])
        about = _(
            "The most likely tokens after “{token}”, as this run samples them. Click or tap a token to continue with it.",
            token=last,
        )
        turns = _(
            "The most likely tokens after “{token}”. Move a slider and the bars follow, without another run. Click or tap a "
            "token to continue with it.",
            token=last,
        )
        st.html(heading(_("What comes next"), about if samples else turns))
        names = dict(zip(ids, map(tokens.word, texts), strict=True))
        canvas.draw(
            "next",
            continuations.scene(page.trace, row, names, start, turned=not samples),
            key="next",
            chosen=update,
        )
