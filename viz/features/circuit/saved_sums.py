"""Sums that an archive of a run keeps: why a cell has its score, and why a token was written."""

from collections.abc import Mapping
from typing import Any

from model.features.circuit.saved_sums import cell_to_save, sums_to_save
from model.features.circuit.sums import LogitSum, ScoreSum, Why, Writes
from viz.features.circuit import why_panels as why
from viz.features.circuit import write_panels as writes
from viz.session.state import Page


def sums(page: Page) -> Mapping[str, Mapping[str, Any]]:
    """Why the selected cell has its score, and why the selected token was written, for an archive; without what is not known.

    Where no cell is selected, it is the strongest one of the selected row, or of the last row.
    """
    view, attention = page.view, page.attention
    query, key = cell_to_save(attention, page.head, view.query, view.key)
    asked: list[Why | Writes] = [Why(view.request(), str(attention.site), page.head, query, key, why.compared(page))]
    asked += [Writes(view.request(), writes.token(page), writes.rival(page))] if page.trace.steps else []

    def answer(question: Why | Writes) -> ScoreSum | LogitSum:
        match question:
            case Why():
                return page.engine.ask(question)
            case Writes():
                return page.engine.ask(question)

    return sums_to_save(asked, answer)
