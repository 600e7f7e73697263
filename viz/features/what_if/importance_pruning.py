"""Prune until it breaks: heads silenced one after the other, and what the target's log-probability becomes."""

import streamlit as st

from model.features.what_if.questions import Prune
from model.requests.edits import silences
from viz.features.what_if.edit_list import EditList
from viz.features.what_if.importance_run import request
from viz.features.what_if.panels import about_pruning, of_pruning
from viz.features.what_if.remembered import forget_what_is_gone
from viz.features.what_if.undo import change_edits
from viz.i18n.translate import _, join_sentences
from viz.labels import tokens
from viz.session.state import Page
from viz.widgets import drawn_panels

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
    st.caption(tokens.markdown(about_pruning(found, at)))
    drawn_panels.draw_content(page, of_pruning({titles["least"]: least, titles["most"]: most}, at), "matters-prune")
    greedy = _("Greedy: after each head, the others are ranked again. (Michel, Levy and Neubig 2019 rank the heads only once.)")
    st.caption(join_sentences([_("A silenced head gives zeros."), greedy]))


def _prune(heads: tuple[tuple[str, int], ...]) -> None:
    """Silences the first heads of an order; they take the place of all edits."""
    silenced = EditList(silences(heads[: st.session_state[_AT]]))
    change_edits(lambda _edits: silenced)
