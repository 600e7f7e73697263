"""What a model costs over texts of 1,000 to 1,000,000 tokens, on paper and measured, beside linear attention."""

import numpy as np
import pandas as pd
import streamlit as st

from model.attribution.costs import Sizes, TimeLengths
from model.engine.api import Run
from model.errors import HeadlightError
from viz.features.modern_attention import linear_attention
from viz.features.modern_attention.cache import bytes_of
from viz.figures import costs
from viz.figures.costs import Line
from viz.figures.heatmap import Cells, cells
from viz.i18n.translate import _, amount_of_bytes, error_message, number
from viz.labels import alt_text, tokens
from viz.session.state import Page
from viz.widgets import numeric_tables
from viz.widgets.cards import chart, panel, say

LENGTHS = tuple(round(1000 * 10 ** (place / 4)) for place in range(13))
"""1,000 to 1,000,000, four for each power of ten."""

LONGEST = 64
"""Most queries and keys of a head whose linear map is drawn."""


def draw(page: Page, sizes: Sizes) -> None:
    """Draws the costs over length by formula and measured, and the map of linear attention."""
    with panel("length"):
        _on_paper(page, sizes)
        _measured(page)
        _linear(page)


def equal_at(sizes: Sizes) -> int | None:
    """The length at which the attention of a text costs as much as all other products; None: it never does up to 1,000,000."""
    others = 2 * (sizes.maps + sizes.output + sizes.latent_maps)
    low, high = 1, LENGTHS[-1]
    if sum(own.reading(high) for own in sizes.layers) < others * high:
        return None
    while low < high:
        middle = (low + high) // 2
        enough = sum(own.reading(middle) for own in sizes.layers) >= others * middle
        low, high = (low, middle) if enough else (middle + 1, high)
    return low


def operation_lines(sizes: Sizes) -> list[Line]:
    """Operations to read texts of all LENGTHS: in attention, elsewhere, and with linear attention instead."""
    others = [2 * count * (sizes.maps + sizes.output + sizes.latent_maps) for count in LENGTHS]
    attention = [sum(own.reading(count) for own in sizes.layers) for count in LENGTHS]
    linear = [
        sum(linear_attention.operations(count, own.heads, own.key_width, own.value_width) for own in sizes.layers)
        for count in LENGTHS
    ]
    return [
        Line(_("scores and weighted values"), attention),
        Line(_("all other products"), others, "other"),
        Line(_("linear attention instead"), linear, "third"),
    ]


def byte_lines(sizes: Sizes, size: int) -> list[Line]:
    """Bytes for texts of all LENGTHS, with `size` bytes for a number: the cache, and all weights."""
    kept = [size * sizes.kept(count, way="window") for count in LENGTHS]
    weights = [size * sum(own.heads for own in sizes.layers) * count**2 for count in LENGTHS]
    return [Line(_("cache"), kept), Line(_("all weights, if they were stored"), weights, "other")]


def about(sizes: Sizes) -> str:
    """From which length on attention costs more than everything else, in words."""
    even = equal_at(sizes)
    if even is None:
        return _("Up to 1,000,000 tokens attention costs less than everything else.")
    return _("From token {tokens:,} on, attention costs more than everything else.", tokens=even)


def _on_paper(page: Page, sizes: Sizes) -> None:
    """Draws operations and bytes by formula."""
    operations, bytes_ = operation_lines(sizes), byte_lines(sizes, bytes_of(page.trace))
    attention, others, kept, weights = (line.values for line in (*operations[:2], *bytes_))
    st.markdown(
        _(
            "By formula, for this model, as if its positions were enough. Most products grow with the number of tokens, those of "
            "attention with its square, since each token is compared with all before it."
        )
    )
    st.caption(about(sizes))
    left, right = st.columns(2, gap="medium")
    axes = _("tokens of the text")
    with left:
        figure = costs.lines(LENGTHS, operations, (axes, _("operations to read it")), page.dark, logarithmic=(True, True))
        gaps = {"attention": tokens.power_of_ten(attention[-1]), "others": tokens.power_of_ten(others[-1])}
        words = _("Operations at a length of 1,000,000: {attention} in attention, {others} elsewhere.", **gaps)
        chart(figure, (page.trace, _("Operations over length")), key="length-operations", alt=words)
    with right:
        figure = costs.lines(LENGTHS, bytes_, (axes, _("bytes")), page.dark, logarithmic=(True, True))
        words = _("1,000,000 tokens: a cache of {bytes}.", bytes=amount_of_bytes(kept[-1]))
        chart(figure, (page.trace, _("Bytes over length")), key="length-bytes", alt=words)
    shown = [0, 4, 8, 12]
    columns = {
        _("operations in attention"): [number(round(attention[place]), ",") for place in shown],
        _("all other operations"): [number(round(others[place]), ",") for place in shown],
        _("cache"): [amount_of_bytes(kept[place]) for place in shown],
        _("all weights, if they were stored"): [amount_of_bytes(weights[place]) for place in shown],
    }
    names = pd.Index([number(LENGTHS[place], ",") for place in shown], name=_("tokens"))
    numeric_tables.draw(pd.DataFrame(columns, index=names), key="length-table")


def _measured(page: Page) -> None:
    """Draws, on request, how long one layer takes on this machine."""
    if not st.toggle(_("Measure one layer of attention on this machine (about two seconds)"), key="length-measured"):
        return
    try:
        found = page.engine.ask(TimeLengths(page.info.name, page.view.parsed_settings()))
    except HeadlightError as error:
        say(error_message(error))
        return
    st.caption(
        _(
            "Random queries, keys and values of this model’s sizes, all heads of one layer; each the shorter of two runs. Where "
            "the weights would take more than 268 MB, they are not written out."
        )
    )
    written = np.isfinite(found.written)
    drawn = [
        Line(_("fused kernel"), found.fused.tolist()),
        Line(_("all weights written out"), np.where(written, found.written, np.nan).tolist(), "other"),
        Line(_("linear attention instead"), found.linear.tolist(), "third"),
    ]
    figure = costs.lines(
        found.tokens.tolist(), drawn, (_("tokens of the text"), _("milliseconds")), page.dark, logarithmic=(True, True)
    )
    gaps = {"tokens": int(found.tokens[-1]), "fused": number(float(found.fused[-1]), ".0f")}
    words = _("Milliseconds for a text of length {tokens:,}, with a fused kernel: {fused}.", **gaps)
    chart(figure, (page.trace, _("Time over length")), key="length-times", alt=words)


def _linear(page: Page) -> None:
    """Draws the map of the chosen head beside the one that linear attention would have for the same queries and keys."""
    own = page.attention
    if max(own.mask.shape) > LONGEST:
        return
    st.markdown("**" + _("Linear attention: another map for the same queries and keys") + "**")
    st.caption(
        _(
            "Linear attention replaces exp(score) by a product of features, elu(q) + 1 and elu(k) + 1, so that earlier keys and "
            "values fit into one sum of fixed size. The map is then no longer sharp: this model was not trained for it."
        )
    )
    try:
        trace = page.engine.ask(Run(page.view.request(keep=("qkv",))))
    except HeadlightError as error:
        say(error_message(error))
        return
    own = trace.at(own.site)
    if own.q is None or own.k is None:
        return
    instead = linear_attention.weights(own.q[page.head], own.k[page.head], own.mask)
    left, right = st.columns(2, gap="medium")
    name = tokens.head_name(trace, own.site, page.head)
    for column, key, title, table in (
        (left, "softmax", _("{head}: softmax, as in this run", head=name), own.weights[page.head]),
        (right, "linear", _("{head}: linear attention", head=name), instead),
    ):
        with column:
            st.caption(tokens.markdown(title))
            figure = cells(trace, own, Cells(table, _("weight")), page.dark)
            words = alt_text.table(table, tokens.key_axis(trace, own.site))
            chart(figure, (trace, title), key=f"length-{key}", alt=words)
