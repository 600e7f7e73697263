"""The panels of what each head is for: a map, how sharp it looks against how much it matters, and a table."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from model.features.what_if.results import HeadEffects
from model.trace.types import Array, Site
from viz.features.what_if.importance_run import of_token
from viz.figures import importance as figures
from viz.figures.head_map import head_map
from viz.i18n.translate import _, join_sentences, number
from viz.labels import measures, tokens
from viz.metrics import heads
from viz.metrics.ranks import spearman
from viz.panels import Panel, Plot, Table
from viz.session.state import Page

WEAK = 0.3
"""Rank correlations below this are called next to nothing."""


def titles() -> dict[str, str]:
    """What is measured of each head, by the names of the measures."""
    return {
        "without": _("without this head"),
        "alone": _("with this head only"),
        "share": _("Shapley value of this head"),
    }


def meaning(measure: str, by: str) -> str:
    """What a measure says, and what a silenced head gives.

    Args:
        by: zeros, or mean.
    """
    return join_sentences([_meanings()[measure], _silence_means(by)])


def _meanings() -> dict[str, str]:
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
    }


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


def of_heads(page: Page, found: HeadEffects, numbers: Array, measure: str) -> Panel:
    """One measure of every head, layers × heads.

    Args:
        numbers: [head] of `found`.
    """
    title, form = titles()[measure], f"+.{page.digits(4)}f"
    by_head = numbers_by_head(found, numbers)

    def words(name: str, value: float) -> str:
        return _("{head}: {number} nats", head=name, number=number(value, form))

    alt = _("{title}: layers × heads; the table below has the numbers", title=title)
    plot = Plot(lambda dark: head_map(by_head, words, _("nats"), dark), alt, "matters-heads", title)
    return Panel("matters-heads", title, plot)


def numbers_by_head(found: HeadEffects, numbers: Array) -> dict[tuple[str, int], float]:
    """Numbers [head] of `found` by site and head."""
    return {(head.site, head.head): float(value) for head, value in zip(found.heads, numbers, strict=True)}


def redundancy(page: Page, found: HeadEffects, token: int | None) -> str:
    """A sentence that compares the loss of the most important head with that of a whole layer: heads can replace each other."""
    if found.without is None or found.none is None:
        return ""
    without, none, form = of_token(found.without, token), of_token(found.none, token), f"+.{page.digits(3)}f"
    worst, heaviest = int(without.argmin()), int(none.argmin())
    of_layer = [index for index, head in enumerate(found.heads) if head.site == found.sites[heaviest]]
    gaps = {
        "head": tokens.site(Site.parse(found.heads[worst].site), found.heads[worst].head),
        "cost": number(without[worst], form),
        "place": tokens.site(Site.parse(found.sites[heaviest])),
        "all": number(none[heaviest], form),
        "sum": number(without[of_layer].sum(), form),
    }
    return _(
        "Change in nats when the head that matters most is silenced ({head}): {cost}. When all heads of one layer "
        "are silenced ({place}): {all}, although their individual changes add up to only {sum}. Heads can replace "
        "each other, so silencing one at a time shows too little.",
        **gaps,
    )


def all_heads(page: Page, found: HeadEffects, numbers: Mapping[str, Array]) -> pd.DataFrame:
    """A row for each head: its place, its numbers, and how sharp it looks. The index is (site, head), counted from 0."""
    looks = heads.all_heads(page.trace)
    index = pd.MultiIndex.from_tuples([(head.site, head.head) for head in found.heads], names=["site", "head"])
    table = looks.reindex(index)[[name for name in ("kind", "pass", "layer", "head", "largest", "entropy") if name in looks]]
    for name, values in numbers.items():
        table[name] = values
    if found.total_share_error is not None and found.total_share_error.any():
        table["share_error"] = found.total_share_error
    return table


def of_sharpness(table: pd.DataFrame, names: Sequence[str], measure: str) -> Panel:
    """How sharp each head looks against how much it matters, and what the rank correlation means.

    Args:
        table: as `all_heads` makes it.
        names: of the heads.
    """
    matters = -table[measure].to_numpy() if measure == "without" else table[measure].to_numpy()
    sharp, kinds, title = table["largest"].to_numpy(), table["kind"].tolist(), titles()[measure]
    axis = {
        "without": _("log-probability of the output lost without this head (nats)"),
        "alone": _("with this head only (nats)"),
        "share": _("Shapley value of this head (nats)"),
    }[measure]
    axes = measures.titles()["largest"], axis
    alt = _("For each head: {title}, and the sharpness of its weights; the table below has the numbers", title=title)
    plot = Plot(lambda dark: figures.scatter(sharp, matters, names, kinds, dark, axes), alt, "matters-scatter", title)
    return Panel("matters-scatter", _("Sharpness and effect of the heads"), plot, _correlated(spearman(sharp, matters)))


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


def of_table(table: pd.DataFrame) -> Panel:
    """The numbers of all heads, as `all_heads` makes them."""
    names = {"kind": _("attention"), "pass": _("pass"), "layer": _("layer"), "head": _("head")}
    numbers = titles() | measures.titles() | {"share_error": _("standard error of the Shapley value")}
    return Panel("matters-table", _("All numbers"), Table(table, decimals=4, titles=names | numbers, named=False))
