"""Calculation of one weight, on any page: how it was calculated and what it contributes, recomputed and compared with the run."""

import math

import pandas as pd
import streamlit as st

from model.errors import HeadlightError
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Trace
from viz import export, labels, waiting
from viz.figures import arithmetic as figures
from viz.figures.frame import CONFIG
from viz.page import Page, card, chart, rounded, say, update
from viz.texts import _, localized, sentence
from viz.texts import number as shown


def dialog(page: Page) -> None:
    """Draws the calculation of the state's open cell as a dialog; closing it clears the cell."""
    if page.view.query < 0 or page.view.key < 0:
        return

    @st.dialog(labels.markdown(labels.site(page.attention.site, page.head)), width="large", on_dismiss=lambda: update(key=-1))
    def opened() -> None:
        with waiting.shown():
            draw(page, page.view.query, page.view.key, printed=False)  # a dialog opens no other dialog

    opened()


def draw(page: Page, query: int, key: int, printed: bool = True) -> None:
    """Draws the calculation of a cell of the page's site and head, or says why there is none.

    Args:
        query, key: counted from 0.
        printed: whether its figures can be saved for print.
    """
    try:
        found = page.engine.explain(page.view.request(), str(page.attention.site), page.head, query, key)
    except HeadlightError as error:
        say(sentence(error))
        return
    reads = labels.queries(page.trace, page.attention)[query]
    keys = labels.keys(page.trace, page.attention, longest=None)
    with card("arithmetic", "content"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            title = _("How this weight was calculated: “{query}” attends to “{key}”", query=reads, key=keys[key])
            st.markdown(f"**{labels.markdown(title)}**", width="content")
            badge(found)
        _score(found, page.dark, (page.trace, title) if printed else None)
        _weight(found)
        _moves(found, keys, page.dark, (page.trace, title) if printed else None)
        _table(page, found, keys)


def badge(found: Explanation) -> None:
    """Draws whether the calculation, repeated in float64, matches the run: in words, with an icon and a color."""
    gaps = {"difference": labels.power_of_ten(found.largest_difference), "tolerance": labels.power_of_ten(found.tolerance)}
    if found.agrees:
        st.badge(
            _("matches the run: recomputed in float64, largest difference {difference}", **gaps),
            icon=":material/check:",
            color="green",
        )
    elif math.isfinite(found.largest_difference):
        text = _("does not match the run: recomputed in float64, largest difference {difference}, tolerance {tolerance}", **gaps)
        st.badge(text, icon=":material/error:", color="red")
    else:
        st.badge(_("cannot be checked: the row contains NaN or infinite values"), icon=":material/error:", color="red")


def number(value: float) -> str:
    """A number for a formula, with four decimals; NaN and infinities by name."""
    if math.isnan(value):
        return r"\mathrm{NaN}"
    return localized(f"{value:.4f}").replace(",", "{,}") if math.isfinite(value) else (r"\infty" if value > 0 else r"-\infty")


def _score(found: Explanation, dark: bool, printed: tuple[Trace, str] | None) -> None:
    st.caption(_("The query and key vectors of this head, dimension by dimension, and their products:"))
    chart(figures.products(found.q, found.k, dark), printed, config=CONFIG, key="cell-products")
    dot, scale, score = number(found.dot), number(found.scale), number(found.score)
    st.latex(rf"q \cdot k = \sum_d q_d\,k_d = {dot}")
    if not found.scored:
        st.caption(
            _(
                "The run itself never computed this product, because the key lies in the future. It is computed here for "
                "illustration."
            )
        )
    usual = math.isclose(found.scale, len(found.q) ** -0.5, rel_tol=1e-6)
    st.caption(_("Multiplied by 1/√head_dim:").replace("_", "\\_") if usual else _("Multiplied by the scale of this model:"))
    st.latex(rf"{dot} \times {scale} = \mathbf{{{score}}}")
    if found.allowed[found.key]:
        st.caption(_("The mask allows this key, so 0 is added:"))
        st.latex(rf"{score} + 0 = {score}")
    else:
        st.caption(_("This key is masked for this query, so −∞ is added:"))
        st.latex(rf"{score} + (-\infty) = -\infty")


def _weight(found: Explanation) -> None:
    if not found.allowed.any():
        weight = shown(found.weight, ".4f")
        st.caption(_("No key of this row is allowed; in that case this network gives this key the weight {weight}.", weight=weight))
        return
    st.caption(
        _("Softmax: the exponential of the score (after subtracting the row’s largest score), divided by the sum over the row:")
    )
    score, largest = number(found.scores[found.key]), number(found.scores.max())
    above, below, weight = number(found.exponentials[found.key]), number(found.total), number(found.weight)
    softmax = rf"\frac{{\exp({score} - ({largest}))}}{{\sum_k \exp(S'_k - ({largest}))}}"
    st.latex(rf"{softmax} = \frac{{{above}}}{{{below}}} = \mathbf{{{weight}}}")
    st.caption(_("The run recorded {weight}.", weight=shown(found.ran, ".7f")))


def _moves(found: Explanation, keys: list[str], dark: bool, printed: tuple[Trace, str] | None) -> None:
    st.markdown(f"**{_('What this weight contributes')}**")
    if found.silenced:
        st.caption(_("This head is silenced: its output was replaced by zeros, so nothing is moved."))
    st.caption(
        _(
            "The key’s contribution to the residual stream is weight · v, projected by this head’s part of W_O. "
            "Compare its length with the weight: a large weight on a short value moves almost nothing."
        )
    )
    figure = figures.row(found.weights, found.moved, keys, found.key, dark)
    chart(figure, printed, config=CONFIG, key="cell-row")
    if math.isfinite(found.share):
        gaps = {"share": shown(100 * found.share, ".1f"), "length": shown(found.moved[found.key], ".4f")}
        text = _(
            "This cell supplies {share} % of the head’s context vector (the component in that vector’s direction; a "
            "row adds up to 100 %) and moves the residual stream by a vector of length {length}.",
            **gaps,
        )
        st.caption(text)


def _table(page: Page, found: Explanation, keys: list[str]) -> None:
    table = pd.DataFrame(
        {
            _("allowed"): found.allowed,
            _("score + mask"): found.scores,
            _("exponential"): found.exponentials,
            _("weight"): found.weights,
            _("recorded weight"): page.attention.weights[found.head, found.query],
            _("contribution length"): found.moved,
        },
        index=pd.Index([f"{place} {key}" for place, key in enumerate(keys, start=1)], name=_("key")),
    )
    with st.expander(_("The whole row as numbers"), icon=":material/table:"):
        st.dataframe(rounded(table), width="stretch")
        name = export.file_name(page.trace, found.site, f"head-{found.head + 1}", f"query-{found.query + 1}", ending="csv")
        st.download_button(
            _("Download this row as CSV"),
            export.csv(table),
            name,
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
            key="cell-csv",
        )
