"""What a network heard: spectrogram, words with their times, and a head's attention over the sound, which plays."""

import pandas as pd
import streamlit as st

from viz import canvas
from viz.canvas.scenes import sound
from viz.i18n.translate import _, join_list
from viz.labels import tokens
from viz.labels.sounds import hearing
from viz.session.state import Page, update
from viz.widgets import numeric_tables
from viz.widgets.cards import card, expander_state, heading


def draw(page: Page) -> None:
    """Draws the card of a run that has read a sound; nothing for other runs."""
    if (heard := hearing(page.trace)) is None:
        return
    shown = sound.over_sound(page.trace, page.attention.site)
    head = min(page.head, shown.heads - 1)
    with card("sound", "content", helped=False):
        about = _("The line moves with the sound. Colors: the attention of {head}.", head=tokens.site(shown.site, head))
        st.html(heading(_("The sound"), about, help_of="sound"))
        canvas.draw("sound", sound.scene(page.trace, page.attention.site, page.head, page.view.query), key="sound", chosen=update)
        found = sound.timed(page.trace, heard, shown.site, head)
        st.caption(_said(page, found))
        if found.words:
            with st.expander(_("Times of the words"), icon=":material/timer:", **expander_state("word-times")) as part:
                if part.open:
                    _table(found)


def _said(page: Page, found: sound.Timed) -> str:
    """Which heads told the times."""
    crosses = page.trace.of("decoder", "cross")
    named = join_list([tokens.site(crosses[layer].site, head) for layer, head in found.heads])
    marks = _("The mark below a word: where the mean weight of all heads is largest.")
    if not found.words:
        return _("Only a head that attends from words to the sound can give times to the words: choose a cross-attention head.")
    if found.named:
        told = _("Times of words by the heads that the model’s folder names for this: {heads}.", heads=named)
        return f"{told} {marks}"
    said = _(
        "The model’s folder names no heads that align words with the sound, so the selected one does: {heads}. Another head gives "
        "other times.",
        heads=named,
    )
    return f"{said} {marks}"


def _table(found: sound.Timed) -> None:
    st.caption(
        _(
            "Begin and end: the path of dynamic time warping. Largest: the moment with the largest mean weight of all heads. "
            "Even: as if all tokens were equally long. All in seconds."
        )
    )
    table = pd.DataFrame(
        [(tokens.word(one.text), one.start, one.end, one.largest, one.even) for one in found.words],
        columns=["word", "start", "end", "largest", "even"],
    )
    titles = {"word": _("word"), "start": _("begin"), "end": _("end"), "largest": _("largest"), "even": _("even")}
    numeric_tables.draw(table, titles=titles, decimals=2, hide_index=True)
