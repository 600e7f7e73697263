"""What a model costs over texts of 1,000 to 1,000,000 tokens, on paper and measured, beside linear attention."""

import numpy as np
import pandas as pd
import streamlit as st

from model.errors import HeadlightError
from model.features.modern_attention.costs import Sizes, TimeLengths
from viz.features.modern_attention import cost_panels, panels
from viz.features.modern_attention.cost_numbers import LENGTHS, about, byte_lines, bytes_of, length_lines
from viz.figures import costs
from viz.figures.costs import Line
from viz.i18n.translate import _, amount_of_bytes, error_message, number
from viz.panels import NotDrawable
from viz.session.state import Page
from viz.widgets import drawn_panels, numeric_tables
from viz.widgets.cards import chart, panel, say


def draw(page: Page, sizes: Sizes) -> None:
    """Draws the costs over length by formula and measured, and the map of linear attention."""
    with panel("length"):
        _on_paper(page, sizes)
        _measured(page)
        _linear(page)


def _on_paper(page: Page, sizes: Sizes) -> None:
    """Draws operations and bytes by formula."""
    operations, bytes_ = length_lines(sizes), byte_lines(sizes, bytes_of(page.trace))
    attention, others, kept, weights = (line.values for line in (*operations[:2], *bytes_))
    st.markdown(
        _(
            "By formula, for this model, as if its positions were enough. Most products grow with the number of tokens, those of "
            "attention with its square, since each token is compared with all before it."
        )
    )
    st.caption(about(sizes))
    left, right = st.columns(2, gap="medium")
    with left:
        drawn_panels.draw_content(page, cost_panels.operations_over_length(sizes), "length-operations")
    with right:
        drawn_panels.draw_content(page, cost_panels.bytes_over_length(sizes, bytes_of(page.trace)), "length-bytes")
    rows = [0, 4, 8, 12]
    columns = {
        _("operations in attention"): [number(round(attention[row]), ",") for row in rows],
        _("all other operations"): [number(round(others[row]), ",") for row in rows],
        _("cache"): [amount_of_bytes(kept[row]) for row in rows],
        _("all weights, if they were stored"): [amount_of_bytes(weights[row]) for row in rows],
    }
    names = pd.Index([number(LENGTHS[row], ",") for row in rows], name=_("tokens"))
    numeric_tables.draw(pd.DataFrame(columns, index=names), key="length-table")


def _measured(page: Page) -> None:
    """Draws, on request, how long one layer takes on this machine."""
    if not st.toggle(_("Measure one layer of attention on this machine (about two seconds)"), key="length-measured"):
        return
    try:
        timed = page.engine.ask(TimeLengths(page.info.name, page.view.parsed_settings()))
    except HeadlightError as error:
        say(error_message(error))
        return
    st.caption(
        _(
            "Random queries, keys and values of this model’s sizes, all heads of one layer; each the shorter of two runs. Where "
            "the weights would take more than 268 MB, they are not written out."
        )
    )
    written = np.isfinite(timed.written)
    drawn = [
        Line(_("fused kernel"), timed.fused.tolist()),
        Line(_("all weights written out"), np.where(written, timed.written, np.nan).tolist(), "other"),
        Line(_("linear attention instead"), timed.linear.tolist(), "third"),
    ]
    figure = costs.lines(
        timed.tokens.tolist(), drawn, (_("tokens of the text"), _("milliseconds")), page.dark, logarithmic=(True, True)
    )
    fields = {"tokens": int(timed.tokens[-1]), "fused": number(float(timed.fused[-1]), ".0f")}
    words = _("Milliseconds for a text of length {tokens:,}, with a fused kernel: {fused}.", **fields)
    chart(figure, (page.trace, _("Time over length")), key="length-times", alt=words)


def _linear(page: Page) -> None:
    """Draws the map of the chosen head beside the one that linear attention would have for the same queries and keys."""
    attention = page.attention
    if max(attention.mask.shape) > panels.LONGEST:
        return
    st.markdown("**" + _("Linear attention: another map for the same queries and keys") + "**")
    st.caption(
        _(
            "Linear attention replaces exp(score) by a product of features, elu(q) + 1 and elu(k) + 1, so that earlier keys and "
            "values fit into one sum of fixed size. The map is then no longer sharp: this model was not trained for it."
        )
    )
    try:
        maps = list(panels.of_linear(page))
    except NotDrawable:
        return
    except HeadlightError as error:
        say(error_message(error))
        return
    for column, map_ in zip(st.columns(len(maps), gap="medium"), maps, strict=True):
        with column:
            drawn_panels.draw(page, map_, f"length-{map_.name}")
