"""The panels of a run that has read a sound: its spectrogram with a head's attention over it, and the times of its words."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.canvas.scenes import sound
from viz.figures.layout import axis, picture, scale
from viz.figures.theme import scheme
from viz.i18n.translate import _, join_list
from viz.labels import tokens
from viz.labels.sounds import hearing
from viz.panels import OfRun, Panel, Plot, Scene, Table
from viz.session.state import Page


def timed_words(page: Page) -> sound.Timed:
    """The words of the page's run with their times, by the heads that tell them."""
    heard = hearing(page.trace)
    assert heard is not None
    site = sound.over_sound(page.trace, page.attention.site)
    return sound.timed(page.trace, heard, site.site, min(page.head, site.heads - 1))


def of_sound(page: Page, head_on_paper: OfRun) -> Panel:
    """The sound that a run has read, with the words at their times.

    Args:
        head_on_paper: the selected head, which paper draws below the spectrogram.
    """
    data = sound.scene(page.trace, page.attention.site, page.head, page.view.query)
    plot = Plot(lambda dark: _spectrogram(page, dark), name="spectrogram", title=_("The sound"))
    about = _about_heads(page, timed_words(page))
    return Panel("sound", _("The sound"), Scene("Sound", data), about=about, paper=lambda: (plot, head_on_paper))


def _about_heads(page: Page, timed: sound.Timed) -> str:
    """Which heads told the times."""
    crosses = page.trace.of("decoder", "cross")
    heads = join_list([tokens.site(crosses[layer].site, head) for layer, head in timed.heads])
    marks = _("The mark below a word: where the mean weight of all heads is largest.")
    if not timed.words:
        return _("Only a head that attends from words to the sound can give times to the words: choose a cross-attention head.")
    if timed.named:
        by_folder = _("Times of words by the heads that the model’s folder names for this: {heads}.", heads=heads)
        return f"{by_folder} {marks}"
    by_selected = _(
        "The model’s folder names no heads that align words with the sound, so the selected one does: {heads}. Another head gives "
        "other times.",
        heads=heads,
    )
    return f"{by_selected} {marks}"


def of_times(timed: sound.Timed) -> Panel:
    """The times of the words as a table."""
    words = _(
        "Begin and end: the path of dynamic time warping. Largest: the moment with the largest mean weight of all heads. "
        "Even: as if all tokens were equally long. All in seconds."
    )
    titles = {"text": _("word"), "start": _("begin"), "end": _("end"), "largest": _("largest"), "even": _("even")}
    rows = [(tokens.word(word.text), word.start, word.end, word.largest, word.even) for word in timed.words]
    table = Table(pd.DataFrame(rows, columns=list(titles)), decimals=2, titles=titles, named=False)
    return Panel("times", _("Times of the words"), table, words)


def _spectrogram(page: Page, dark: bool) -> go.Figure:
    """The spectrogram of the sound, for print."""
    heard = hearing(page.trace)
    assert heard is not None
    colours, codes = scheme(dark), sound.shades(page.trace, heard)
    words = sound.timed(page.trace, heard, page.attention.site, page.head).words
    cells = {
        "type": "heatmap",
        "x": [(column + 0.5) * heard.read.step for column in range(codes.shape[1])],
        "y": list(range(1, len(codes) + 1)),
        "z": codes.astype(np.float64),
        "zmin": 0,
        "zmax": 255,
        "colorscale": scale((colours.card, colours.second, colours.text)),
        "showscale": False,
    }
    named = {"tickvals": [(word.start + word.end) / 2 for word in words], "ticktext": [tokens.word(word.text) for word in words]}
    layout = {
        "xaxis": axis(colours, _("Words")) | named if words else axis(colours, _("Time in seconds")),
        "yaxis": axis(colours, _("Spectrogram")),
    }
    return picture(dark, 220, [cells], layout)
