"""Heads: what each is for, as a map, a table and a scatter against how sharp it looks."""

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st

from model.features.what_if.questions import Heads, Measure
from model.features.what_if.results import HeadEffects
from model.requests.edits import Silence
from model.trace.types import Array, Site
from viz.features.what_if.importance_run import of_token, request, token_choice
from viz.features.what_if.undo import change_edits
from viz.figures import importance as figures
from viz.i18n.translate import _, join_sentences, number
from viz.labels import measures, tokens
from viz.metrics import heads
from viz.metrics.ranks import spearman
from viz.session.state import Page, decimals
from viz.widgets import download, numeric_tables
from viz.widgets.clickable_figures import clickable, head_map

_MEASURE, _BY, _AGREED = "matters:measure", "matters:by", "matters:agreed"

_EDIT_BY: dict[str, Literal["zeros", "sentence"]] = {"zeros": "zeros", "mean": "sentence"}
"""What silences a head of a question, as the edit says it."""

COSTLY = 4000
"""Most edited copies of a run that are fed without asking: those of the bundled models."""


def draw(page: Page) -> None:
    """Draws the three numbers of every head; of a large network only those that are asked for."""
    titles = {
        "without": _("without this head"),
        "alone": _("with this head only"),
        "share": _("share of this head"),
    }
    left, right = st.columns(2)
    with left:
        chosen = st.segmented_control(
            _("Measure"), list(titles), format_func=titles.__getitem__, default="without", required=True, key=_MEASURE, wrap=True
        )
        by = _replaced_by()
    question = _question(page, chosen, by)
    if chosen == "share" and not _agreed(page, question):
        return
    found = page.engine.ask(question)
    with right:
        token = token_choice(found, "heads")
    st.caption(tokens.markdown(join_sentences([_meaning(chosen), _silence_means(by)])))
    titles = {name: title for name, title in titles.items() if name in question.measures}
    numbers = {name: of_token(getattr(found, name), token) for name in titles}
    _map(page, found, numbers[chosen], titles[chosen], by)
    st.caption(tokens.markdown(_redundancy(found, token)))
    table = all_heads(page, found, numbers)
    _scatter(page, found, table, chosen, titles[chosen], by)
    _table(page, found, table, titles, by)


def _replaced_by() -> Literal["zeros", "mean"]:
    """Draws the choice of what the output of a silenced head becomes."""
    titles = {"zeros": _("zeros"), "mean": _("its mean over the sentence")}
    chosen = st.segmented_control(
        _("A silenced head gives"), list(titles), format_func=titles.__getitem__, default="zeros", required=True, key=_BY, wrap=True
    )
    return "mean" if chosen == "mean" else "zeros"


def _silence_means(by: str) -> str:
    """What a silenced head gives, and where the other way is used."""
    if by == "mean":
        return _(
            "A silenced head gives the mean of its output over the sentence, and so it does in the total effects of “Why this "
            "token” on Explore."
        )
    return _(
        "A silenced head gives zeros. The total effects of “Why this token” on Explore use the mean over the sentence instead, so "
        "the numbers differ."
    )


def _question(page: Page, chosen: str, by: Literal["zeros", "mean"]) -> Heads:
    """What is asked: everything at once, unless that takes so many copies that each measure is asked by itself."""
    everything = Heads(request(page), by=by)
    if _copies(page, everything) <= COSTLY:
        return everything
    few: dict[str, tuple[Measure, ...]] = {"without": ("without",), "alone": ("without", "alone")}
    return replace(everything, measures=few.get(chosen, everything.measures))


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
            "Edited copies of this run that are fed to the network for the share: {copies:,}. At the speed of the run shown that "
            "takes up to {minutes:,} min. The other two measures need fewer: {few:,}.",
            copies=copies,
            minutes=minutes,
            few=few,
        ),
        icon=":material/hourglass:",
    )
    st.button(_("Measure the share"), key="matters:share", on_click=st.session_state[_AGREED].add, args=(question,))
    return False


def _meaning(name: str) -> str:
    return {
        "without": _("Change in log-probability (nats) when this head is silenced. Click or tap to silence the head above."),
        "alone": _(
            "Change in log-probability (nats) when every other head of its attention layer is silenced: 0 means that "
            "it does as well alone as all of them together."
        ),
        "share": _(
            "Shapley value (nats): its share of what all heads of its attention layer add, averaged over the orders in "
            "which heads can be added."
        ),
    }[name]


def _map(page: Page, found: HeadEffects, numbers: Array, title: str, by: str) -> None:
    """Draws layers by heads."""
    form = f"+{decimals(4)}"

    def said(name: str, value: float) -> str:
        return _("{head}: {number} nats", head=name, number=number(value, form))

    alt = _("{title}: layers × heads; the table below has the numbers", title=title)
    of_heads = {(head.site, head.head): float(value) for head, value in zip(found.heads, numbers, strict=True)}
    head_map(page, of_heads, said, _("nats"), "matters-heads", partial(_silence, by), alt, title)


def _silence(by: str, site: str, head: int) -> None:
    """Adds the silenced head to the edits and selects it; a head that is already silenced is heard again."""
    wanted = Silence(site=site, head=(head,), by=_EDIT_BY[by])
    change_edits(lambda edits: edits.with_or_without(wanted), site=site, head=head)


def _redundancy(found: HeadEffects, token: int | None) -> str:
    """A sentence that compares the loss of the most important head with that of a whole layer: heads can replace each other."""
    if found.without is None or found.none is None:
        return ""
    without, none = of_token(found.without, token), of_token(found.none, token)
    worst = int(without.argmin())
    heaviest = int(none.argmin())
    own = [index for index, head in enumerate(found.heads) if head.site == found.sites[heaviest]]
    gaps = {
        "head": tokens.site(Site.parse(found.heads[worst].site), found.heads[worst].head),
        "cost": _signed(without[worst]),
        "place": tokens.site(Site.parse(found.sites[heaviest])),
        "all": _signed(none[heaviest]),
        "sum": _signed(without[own].sum()),
    }
    return _(
        "Change in nats when the head that matters most is silenced ({head}): {cost}. When all heads of one layer "
        "are silenced ({place}): {all}, although their individual changes add up to only {sum}. Heads can replace "
        "each other, so silencing one at a time shows too little.",
        **gaps,
    )


def _signed(value: float) -> str:
    return number(value, f"+{decimals(3)}")


def all_heads(page: Page, found: HeadEffects, numbers: dict[str, Array]) -> pd.DataFrame:
    """A row for each head: its place, its numbers, and how sharp it looks. The index is (site, head), counted from 0."""
    looks = heads.all_heads(page.trace)
    index = pd.MultiIndex.from_tuples([(head.site, head.head) for head in found.heads], names=["site", "head"])
    table = looks.reindex(index)[[name for name in ("kind", "pass", "layer", "head", "largest", "entropy") if name in looks]]
    for name, values in numbers.items():
        table[name] = values
    if found.total_share_error is not None and found.total_share_error.any():
        table["share_error"] = found.total_share_error
    return table


def _scatter(page: Page, found: HeadEffects, table: pd.DataFrame, chosen: str, title: str, by: str) -> None:
    """Draws how sharp each head looks against how much it matters, and says what the rank correlation means."""
    matters = -table[chosen].to_numpy() if chosen == "without" else table[chosen].to_numpy()
    sharp = table["largest"].to_numpy()
    names = [tokens.site(Site.parse(head.site), head.head) for head in found.heads]
    axis = {
        "without": _("drop in log-probability without this head (nats)"),
        "alone": _("with this head only (nats)"),
        "share": _("share of this head (nats)"),
    }[chosen]
    figure = figures.scatter(sharp, matters, names, table["kind"].tolist(), page.dark, (measures.titles()["largest"], axis))
    correlation = spearman(sharp, matters)
    st.markdown("**" + _("Sharpness, and how much a head matters") + "**")
    st.caption(tokens.markdown(_correlated(correlation)))
    heads = tuple((head.site, head.head) for head in found.heads)
    alt = _("For each head: {title}, and the sharpness of its weights; the table below has the numbers", title=title)
    clickable(figure, "matters-scatter", lambda index: _silence(by, *heads[index]), alt, (page.trace, title))


def _correlated(value: float) -> str:
    """One sentence on a rank correlation of sharpness and effect."""
    if np.isnan(value):
        return _("There are too few heads for a rank correlation.")
    gaps = {"value": number(value, "+.2f")}
    if abs(value) < WEAK:
        return _("Rank correlation {value}: the sharpness of a head says almost nothing about how much it matters.", **gaps)
    if value > 0:
        return _("Rank correlation {value}: sharp heads tend to matter more here, with many exceptions.", **gaps)
    return _("Rank correlation {value}: sharp heads tend to matter less here.", **gaps)


WEAK = 0.3
"""Rank correlations below this are called next to nothing."""


def _table(page: Page, found: HeadEffects, table: pd.DataFrame, titles: dict[str, str], by: str) -> None:
    """Draws the numbers as a sortable table; a click on a row silences its head."""
    names = {"kind": _("attention"), "pass": _("pass"), "layer": _("layer"), "head": _("head")}
    numbers = titles | measures.titles() | {"share_error": _("standard error of share")}
    heads = tuple((head.site, head.head) for head in found.heads)
    key = "matters-table"
    numeric_tables.draw(
        table,
        titles=names | numbers,
        hide_index=True,
        selection_mode="single-row",
        key=key,
        on_select=partial(_row_clicked, key, heads, by),
    )
    download.csv(table, page.trace, "matters", key="matters-csv")


def _row_clicked(key: str, heads: tuple[tuple[str, int], ...], by: str) -> None:
    for row in st.session_state[key].selection.rows:
        _silence(by, *heads[row])
