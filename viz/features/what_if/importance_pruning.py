"""Prune until it breaks: heads silenced one after the other, and what the target's log-probability becomes."""

import numpy as np
import streamlit as st

from model.features.what_if.questions import Prune
from model.features.what_if.results import PruneCurve
from model.requests.edits import silences
from model.trace.types import Site
from viz.features.what_if.edit_list import EditList
from viz.features.what_if.importance_run import request
from viz.features.what_if.remembered import forget_what_is_gone
from viz.features.what_if.undo import change_edits
from viz.figures.importance import curves
from viz.i18n.translate import _, _n, join_sentences, number
from viz.labels import tokens
from viz.session.state import Page
from viz.widgets.cards import chart

_AT = "matters:prune:at"


def draw(page: Page) -> None:
    """Draws the curves of both orders, and a slider that makes the run with so many heads silenced."""
    least, most = (page.engine.ask(Prune(request(page), order)) for order in ("least", "most"))
    titles = {"least": _("least needed first"), "most": _("most needed first")}
    order = st.segmented_control(
        _("Order"), list(titles), format_func=titles.__getitem__, default="least", required=True, key="matters:prune:order"
    )
    found = least if order == "least" else most
    heads = tuple((head.site, head.head) for head in found.order)
    forget_what_is_gone(_AT, range(len(heads) + 1))
    at = st.slider(
        _("Heads silenced"),
        0,
        len(heads),
        key=_AT,
        on_change=_prune,
        args=(heads,),
        help=_("In the run above, these heads are silenced."),
    )
    st.caption(tokens.markdown(_said(found, at)))
    totals = {titles["least"]: least.curve.sum(axis=1), titles["most"]: most.curve.sum(axis=1)}
    alt = _("Log-probability of the target against the number of silenced heads, for both orders")
    chart(curves(totals, at, page.dark), printed=(page.trace, alt), key="matters-prune", alt=alt)
    greedy = _("Greedy: after each head, the others are ranked again. (Michel, Levy and Neubig 2019 rank the heads only once.)")
    st.caption(join_sentences([_("A silenced head gives zeros."), greedy]))


def _prune(heads: tuple[tuple[str, int], ...]) -> None:
    """Silences the first heads of an order; they take the place of all edits."""
    silenced = EditList(silences(heads[: st.session_state[_AT]]))
    change_edits(lambda _edits: silenced)


def _said(found: PruneCurve, at: int) -> str:
    """A sentence on the effect of so many silenced heads."""
    broken = found.breaks_at
    gaps = {"count": at, "total": number(found.curve[at].sum(), ".2f"), "all": len(found.order)}
    gaps["kept"] = int((found.likeliest[at] == np.array(found.ids)).sum())
    gaps["tokens"] = len(found.ids)
    said = [
        _(
            "Heads silenced: {count} of {all}. Log-probability of the target: {total}. Target tokens that are still the "
            "most likely: {kept} of {tokens}.",
            **gaps,
        )
    ]
    if at:
        last = found.order[at - 1]
        said.append(_("Silenced last: {head}.", head=tokens.site(Site.parse(last.site), last.head)))
    if broken is None:
        return join_sentences([*said, _("Every target token remains the most likely one.")])
    breaks = _n(
        "It breaks when {broken} head is silenced: a target token is then no longer the most likely.",
        "It breaks when {broken} heads are silenced: a target token is then no longer the most likely.",
        broken,
        broken=broken,
    )
    return join_sentences([*said, breaks])
