"""Heads: what each is for, as a map, a table and a scatter against how sharp it looks."""

from dataclasses import replace
from functools import partial
from typing import Literal

import streamlit as st

from model.features.what_if.questions import Heads, Measure
from model.requests.edits import Silence
from model.trace.types import Array, Site
from viz.features.what_if import head_panels as panels
from viz.features.what_if.importance_run import of_token, request, token_choice
from viz.features.what_if.undo import change_edits
from viz.figures.head_map import sites_of
from viz.i18n.translate import _
from viz.labels import tokens
from viz.session.state import Page
from viz.widgets import download, drawn_panels
from viz.widgets.clickable_figures import choosing_point

_MEASURE, _BY, _AGREED = "matters:measure", "matters:by", "matters:agreed"

_EDIT_BY: dict[str, Literal["zeros", "sentence"]] = {"zeros": "zeros", "mean": "sentence"}
"""What silences a head of a question, as the edit says it."""

COSTLY = 4000
"""Most edited copies of a run that are fed without asking: those of the bundled models."""


def draw(page: Page) -> None:
    """Draws the three numbers of every head; of a large network only those that are asked for."""
    titles = panels.titles()
    left, right = st.columns(2)
    with left:
        measure = st.segmented_control(
            _("Measure"), list(titles), format_func=titles.__getitem__, default="without", required=True, key=_MEASURE, wrap=True
        )
        by = _replaced_by()
    question = _question(page, measure, by)
    if measure == "share" and not _agreed(page, question):
        return
    effects = page.engine.ask(question)
    with right:
        token = token_choice(effects, "heads")
    numbers: dict[str, Array] = {name: of_token(getattr(effects, name), token) for name in titles if name in question.measures}
    heads = tuple((head.site, head.head) for head in effects.heads)
    silence = partial(_silence, by)
    st.caption(tokens.markdown(panels.meaning(measure, by)))
    rows = sites_of(panels.numbers_by_head(effects, numbers[measure]))
    clicked = choosing_point("matters-heads", lambda place: silence(rows[place[0]], place[1]))
    drawn_panels.draw_content(page, panels.of_heads(page, effects, numbers[measure], measure), "matters-heads", **clicked)
    st.caption(tokens.markdown(panels.redundancy(page, effects, token)))
    table = panels.all_heads(page, effects, numbers)
    scatter = panels.of_sharpness(table, [tokens.site(Site.parse(site), head) for site, head in heads], measure)
    drawn_panels.draw(page, scatter, scatter.name, **choosing_point(scatter.name, lambda index: silence(*heads[index])))
    clicked = {"selection_mode": "single-row", "on_select": partial(_row_clicked, "matters-table", heads, by)}
    drawn_panels.draw_content(page, panels.of_table(table), "matters-table", **clicked)
    download.csv(table, page.trace, "matters", key="matters-csv")


def _replaced_by() -> Literal["zeros", "mean"]:
    """Draws the choice of what the output of a silenced head becomes."""
    titles = {"zeros": _("zeros"), "mean": _("its mean over the sentence")}
    chosen = st.segmented_control(
        _("A silenced head gives"), list(titles), format_func=titles.__getitem__, default="zeros", required=True, key=_BY, wrap=True
    )
    return "mean" if chosen == "mean" else "zeros"


def _question(page: Page, measure: str, by: Literal["zeros", "mean"]) -> Heads:
    """What is asked: everything at once, unless that takes so many copies that each measure is asked by itself."""
    everything = Heads(request(page), by=by)
    if _copies(page, everything) <= COSTLY:
        return everything
    few: dict[str, tuple[Measure, ...]] = {"without": ("without",), "alone": ("without", "alone")}
    return replace(everything, measures=few.get(measure, everything.measures))


def _copies(page: Page, question: Heads) -> int:
    return question.copies(attention.heads for attention in page.trace.attention.values())


def _agreed(page: Page, question: Heads) -> bool:
    """Whether the share is to be measured: at once where it takes few copies; else its cost is told first, with a button."""
    if (copies := _copies(page, question)) <= COSTLY or question in st.session_state.setdefault(_AGREED, set()):
        return True
    few = _copies(page, replace(question, measures=("without", "alone")))
    minutes = max(1, round(copies * page.trace.model["milliseconds"] / 60_000))
    st.info(
        _(
            "Edited copies of this run that are fed to the network for the Shapley values: {copies:,}. At the speed of the run "
            "shown that takes up to {minutes:,} min. The other two measures need fewer: {few:,}.",
            copies=copies,
            minutes=minutes,
            few=few,
        ),
        icon=":material/hourglass:",
    )
    st.button(_("Measure the Shapley values"), key="matters:share", on_click=st.session_state[_AGREED].add, args=(question,))
    return False


def _silence(by: str, site: str, head: int) -> None:
    """Adds the silenced head to the edits and selects it; a head that is already silenced is heard again."""
    wanted = Silence(site=site, head=(head,), by=_EDIT_BY[by])
    change_edits(lambda edits: edits.with_or_without(wanted), site=site, head=head)


def _row_clicked(key: str, heads: tuple[tuple[str, int], ...], by: str) -> None:
    for row in st.session_state[key].selection.rows:
        _silence(by, *heads[row])
