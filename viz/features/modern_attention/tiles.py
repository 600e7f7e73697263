"""The weights of a head as FlashAttention computes them: tile by tile, with the scores of this run."""

import numpy as np
import pandas as pd
import streamlit as st

from model.trace.types import Attention, Trace
from viz.features.modern_attention import flash_attention
from viz.features.modern_attention import tiles_figure as figures
from viz.i18n.translate import _, _n
from viz.labels import alt_text, tokens
from viz.session.state import Page
from viz.widgets import numeric_tables
from viz.widgets.cards import chart, expander_state, panel
from viz.widgets.offers import TILED, offer

SIZES = (2, 4, 8, 16)
"""Queries and keys of a tile. Real kernels take 64 to 128, which would hold a whole sentence."""

LONGEST = 64
"""Most queries and keys of a head that is shown in tiles."""


def draw(page: Page, trace: Trace) -> None:
    """Draws the head in tiles, if its scores, values and contexts were recorded; otherwise it offers a model that has them."""
    attention = trace.at(page.attention.site)
    if attention.scores is None or attention.v is None or attention.context is None:
        view = {"clock": "computation", "stage": "decoder.0.0.self/weights", "site": "decoder.0.0.self", "opened": "tiles"}
        offer(page, "tiles", _("Open a model that shows its scores in tiles, as FlashAttention computes them"), TILED, **view)
        return
    if max(attention.mask.shape) > LONGEST:
        return
    title, state = _("In tiles, as FlashAttention computes it"), expander_state("tiles", page.view.opened)
    with st.expander(title, icon=":material/grid_on:", **state) as part, panel("tiles"):
        if not part.open:
            return
        st.markdown(
            _(
                "A fused kernel never stores all weights. It takes one tile of queries and keys at a time, keeps for "
                "each row the largest score so far and the sum of the exponentials, and corrects the sum when a "
                "later tile has a larger score. Except for rounding, the result is that of the whole row."
            )
        )
        _tiled(page, trace, attention)


def _tiled(page: Page, trace: Trace, attention: Attention) -> None:
    """Draws one step of the tiled computation, its numbers, and the comparison with the run."""
    assert attention.scores is not None
    assert attention.v is not None
    assert attention.context is not None
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    size = int(left.segmented_control(_("Size of a tile"), SIZES, default=4, required=True, key="tile-size") or 4)
    tiled = flash_attention.attend(attention.scores[page.head], attention.mask, attention.v[page.head], size)
    steps = len(tiled.tiles)
    if not steps:
        st.info(_("Every cell of this head is masked, so there is no tile to compute."))
        return
    step = int(right.slider(_("Tile"), 1, steps, min(2, steps), key=f"tile-{size}-{steps}")) if steps > 1 else 1
    tile = tiled.tiles[step - 1]
    met = np.zeros(attention.mask.shape, bool)
    for earlier in tiled.tiles[:step]:
        met[earlier.queries.start : earlier.queries.stop, earlier.keys.start : earlier.keys.stop] = True
    rows, columns = tokens.queries(trace, attention), tokens.keys(trace, attention)
    table = np.where(attention.mask, attention.scores[page.head], np.nan)
    axes = (tokens.query_axis(trace, attention.site), tokens.key_axis(trace, attention.site))
    figure = figures.scores(table, met, (tile.queries, tile.keys), (rows, columns), page.dark, axes)
    title = _("Scores in tiles")
    chart(figure, (trace, title), key="tiles-chart", alt=alt_text.table(np.where(met, table, np.nan), axes[1]))
    names = pd.Index([rows[query] for query in tile.queries], name=_("query"))
    state = {_("largest so far"): tile.largest, _("factor on the earlier sum"): tile.factor, _("sum of exponentials"): tile.total}
    numeric_tables.draw(pd.DataFrame(state, index=names), key="tiles-table")
    _compared(page, attention, tiled, size)


def _compared(page: Page, attention: Attention, result: flash_attention.Tiled, size: int) -> None:
    """Says how far the tiled context is from the recorded one, and how many numbers each way moves."""
    assert attention.context is not None
    assert attention.v is not None
    ran = attention.context[page.head].astype(np.float64)
    rows = attention.mask.any(axis=1)
    difference = float(np.abs(result.context[rows] - ran[rows]).max(initial=0.0))
    st.caption(
        _(
            "Largest difference between these contexts and those of the run: {difference}.",
            difference=tokens.power_of_ten(difference),
        )
    )
    if result.skipped:
        st.caption(
            _n(
                "{count} tile was skipped: all of it is masked.",
                "{count} tiles were skipped: all of them are masked.",
                result.skipped,
                count=result.skipped,
            )
        )
    queries, keys = attention.mask.shape
    plain, tiled = flash_attention.numbers_moved(queries, keys, attention.v.shape[-1], size, len(result.tiles))
    long_plain, long_tiled = flash_attention.numbers_moved(4096, 4096, attention.v.shape[-1], 64, 64 * 65 // 2)
    st.caption(
        _(
            "Numbers that this head reads from and writes to the main memory of a GPU: {plain:,} if all weights "
            "are stored, {tiled:,} if computed tile by tile. For a causal head of this width over 4,096 tokens, "
            "in tiles of 64: {long_plain:,} and {long_tiled:,}.",
            plain=plain,
            tiled=tiled,
            long_plain=long_plain,
            long_tiled=long_tiled,
        )
    )
