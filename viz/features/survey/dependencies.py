"""How well heads follow the dependencies between words, where the texts have parses."""

import pandas as pd
import streamlit as st

from model.features.survey.relations import accuracies
from model.features.survey.survey import Survey
from viz.features.survey import labels
from viz.i18n.translate import _
from viz.session.state import update
from viz.widgets import numeric_tables
from viz.widgets.cards import card, heading

ROWS = "survey-relations-rows"


def draw(survey: Survey, names: list[str], selected: int) -> None:
    """Draws a table of the relations with the best head of each, the selected head and the best fixed offset."""
    if survey.relations is None:
        return
    best, sites = accuracies(survey.relations, survey.statistics.sites), survey.statistics.sites
    by_relation = {
        (accuracy.relation, accuracy.direction): accuracy.right for accuracy in accuracies(survey.relations, sites, selected)
    }
    titles = labels.directions()
    rows = [
        (
            accuracy.relation,
            accuracy.right,
            accuracy.baseline,
            by_relation.get((accuracy.relation, accuracy.direction), float("nan")),
            accuracy.words,
            names[accuracy.head],
            accuracy.offset,
            titles[accuracy.direction],
        )
        for accuracy in best
    ]
    columns = ["relation", "right", "baseline", "own", "words", "head", "offset", "direction"]  # a phone shows the first ones

    def choose() -> None:
        for row in st.session_state[ROWS].selection.rows:
            site, head = survey.statistics.heads[best[row].head]
            update(site=site, head=head)

    with card("survey-relations"):
        st.html(heading(_("Dependencies"), _("How often the word with the most weight is the one that a word depends on")))
        numeric_tables.draw(
            pd.DataFrame(rows, columns=columns),
            titles={
                "relation": _("relation"),
                "direction": _("direction"),
                "words": _("words"),
                "head": _("best head"),
                "right": _("share correct"),
                "own": _("share correct, selected head"),
                "offset": _("best fixed offset"),
                "baseline": _("share correct, fixed offset"),
            },
            widths={"relation": 84},
            decimals=3,
            hide_index=True,
            key=ROWS,
            selection_mode="single-row",
            on_select=choose,
        )
