"""The panels of what wrote a token: its logit as a sum over what every head, layer and bias added."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from model.features.circuit.sums import LogitSum
from model.features.what_if.results import HeadEffects
from model.trace.types import Array, Site
from viz.features.circuit import stream_parts
from viz.features.circuit.view import CircuitView
from viz.figures import importance, stages
from viz.figures.head_map import head_map
from viz.i18n.translate import _, number
from viz.labels import alt_text, tokens
from viz.metrics.ranks import spearman
from viz.panels import Bars, Panel, Plot, Table, Text
from viz.session.state import Page

MOST = 12
"""Parts that have a bar of their own."""


LONGEST = 28
"""Characters of a bar's label: "layer 23, feed-forward" is whole."""


def token(page: Page) -> int:
    """The token that the view names, of those that the run wrote."""
    return min(max(page.view.step, 0), len(page.trace.steps) - 1)


def rival(page: Page) -> int | Literal["runner-up"] | None:
    """What the view compares the token with."""
    asked = page.view.of(CircuitView).rival
    if asked in ("runner-up", "none"):
        return "runner-up" if asked == "runner-up" else None
    return int(asked)


def title(logit_sum: LogitSum) -> str:
    """What is taken apart, in words."""
    fields = {
        "token": tokens.word(logit_sum.text),
        "other": tokens.word(logit_sum.minus_text),
        "logit": number(logit_sum.logit, ".2f"),
    }
    if logit_sum.minus is None:
        return _("Why “{token}”: its logit, {logit}", **fields)
    return _("Why “{token}” and not “{other}”: the difference of their logits, {logit}", **fields)


def meaning(logit_sum: LogitSum) -> str:
    """What the bars add up to."""
    if logit_sum.minus is None:
        fields = {"sum": number(logit_sum.log_sum_exp, ".2f"), "log": number(logit_sum.recorded - logit_sum.log_sum_exp, ".2f")}
        return _(
            "The bars add up to the logit. Minus {sum}, which is the same for every token, it is the log-probability, {log}. "
            "These are direct effects, with the scaling of the last normalization as it was in this run.",
            **fields,
        )
    return _(
        "The bars add up to the difference, which is also that of the log-probabilities (nats). These are direct effects, with "
        "the scaling of the last normalization as it was in this run."
    )


def of_token(logit_sum: LogitSum) -> Panel:
    """The logit of a token as bars: the strongest parts, the others, and their sum."""
    names, values = strongest(logit_sum)
    axis = _("what it adds to the logit") if logit_sum.minus is None else _("what it adds to the difference of the logits")
    chosen = len(values) - 1

    def draw(dark: bool) -> go.Figure:
        return stages.bars(values, names, axis, dark, chosen=chosen, probabilities=False, form="z.2f", longest=LONGEST)

    plot = Plot(draw, alt_text.bars(names, values), "writes-bars", instead=Bars(names, values, chosen))
    return Panel("writes", title(logit_sum), plot, meaning(logit_sum))


def strongest(logit_sum: LogitSum) -> tuple[list[str], list[float]]:
    """The names of the strongest parts, of the others and of the sum, and their numbers."""
    groups = stream_parts.shown(logit_sum.parts, np.abs(logit_sum.values), MOST)
    stacks = {part.place.partition(".")[0] for part in logit_sum.parts if part.kind == "head"}
    names = [group.short if len(stacks) == 1 else group.name for group in groups]
    return [*names, _("sum")], [*stream_parts.added(logit_sum.values, groups, 0).tolist(), logit_sum.logit]


def of_heads(logit_sum: LogitSum) -> dict[tuple[str, int], float]:
    """What each head added, by site and head."""
    return {
        (part.place, part.head): float(value)
        for part, value in zip(logit_sum.parts, logit_sum.values, strict=True)
        if part.kind == "head"
    }


def of_map(page: Page, logit_sum: LogitSum) -> Panel:
    """What each head added, layers × heads."""
    form, numbers = f"+.{page.digits(3)}f", of_heads(logit_sum)

    def words(name: str, value: float) -> str:
        return f"{name}: {number(value, form)}"

    alt = _("What each head added: layers × heads; the table below has the numbers")
    plot = Plot(lambda dark: head_map(numbers, words, _("added to the logit"), dark), alt, "writes-heads", title(logit_sum))
    return Panel("writes-heads", _("What each head added directly; click or tap a head to select it"), plot)


def of_sources(page: Page, logit_sum: LogitSum) -> Panel:
    """What the selected head took from each token that it read, or why that is not known."""
    head = (str(page.attention.site), page.head)
    index_of_part = next((index for index, part in enumerate(logit_sum.parts) if (part.place, part.head) == head), None)
    name = tokens.site(page.attention.site, page.head)
    if index_of_part is None or logit_sum.parts[index_of_part].kind != "head":
        reason = _("This token gets nothing directly from {head}: select a head of the decoder.", head=name)
        return Panel("writes-keys", "", Text(()), reason)
    keys = logit_sum.keys[index_of_part]
    if np.isnan(keys).all():
        reason = _("An edit replaced what {head} took from the tokens, so its part is not split.", head=name)
        return Panel("writes-keys", "", Text(()), reason)
    known = np.flatnonzero(~np.isnan(keys))
    labels = [tokens.strip(page.trace.tokens[logit_sum.strips[index_of_part]])[key] for key in known]
    fields = {"head": name, "value": number(float(logit_sum.values[index_of_part]), ".2f")}
    values, axis = keys[known].tolist(), _("weight × value, as it adds to the logit")
    plot = Plot(
        lambda dark: stages.bars(values, labels, axis, dark, probabilities=False, form="z.2f"),
        alt_text.bars(labels, values),
        "writes-keys",
        title(logit_sum),
    )
    return Panel("writes-keys", _("{head} added {value}, from the tokens that it read:", **fields), plot)


def table(logit_sum: LogitSum, total: Mapping[tuple[str, int], float] | None = None) -> pd.DataFrame:
    """A row for each part, biases by themselves; beside the contribution of a head its total effect, if it was measured."""
    columns = {_("part"): [stream_parts.name(part) for part in logit_sum.parts], _("added"): logit_sum.values}
    if total is not None:
        columns |= {_("total effect"): [total.get((part.place, part.head), np.nan) for part in logit_sum.parts]}
    return pd.DataFrame(columns, index=pd.RangeIndex(1, len(logit_sum.parts) + 1))


def of_numbers(table: pd.DataFrame) -> Panel:
    """All parts as numbers, as `table` makes them."""
    return Panel("writes-numbers", _("All parts as numbers"), Table(table, decimals=4, named=False))


def totals(effects: HeadEffects, token: int) -> dict[tuple[str, int], float]:
    """How much less likely a token is without each head, in nats, by site and head."""
    assert effects.without is not None
    return {(head.site, head.head): -float(changes[token]) for head, changes in zip(effects.heads, effects.without, strict=True)}


def of_totals(logit_sum: LogitSum, effects: HeadEffects) -> Panel:
    """Direct effects of heads against total ones.

    Args:
        effects: the heads replaced by their mean, one after the other.
    """
    direct, total = of_heads(logit_sum), totals(effects, logit_sum.token)
    heads = compared_heads(logit_sum, effects)
    across, up = (np.array([numbers[head] for head in heads]) for numbers in (direct, total))
    names = [tokens.site(Site.parse(site), head) for site, head in heads]
    kinds = [tokens.kind(Site.parse(site).stack, Site.parse(site).kind) for site, _head in heads]
    about = _(
        "For a total effect the head’s output is replaced by its mean over the sentence. “What matters?” in “What if” "
        "uses zeros, unless the mean is chosen there."
    )
    elsewhere = sum(abs(value) for head, value in total.items() if head not in direct)
    axes = _("direct effect"), _("total effect: drop in log-probability without the head (nats)")
    alt = _("For each head: its direct and its total effect on this token")
    plot = Plot(lambda dark: importance.scatter(across, up, names, kinds, dark, axes), alt, "writes-totals", title(logit_sum))
    return Panel("writes-totals", "", plot, "\n".join([agreement(across, up, elsewhere), about]))


def compared_heads(logit_sum: LogitSum, effects: HeadEffects) -> list[tuple[str, int]]:
    """The heads that have a direct and a total effect."""
    direct = of_heads(logit_sum)
    return [head for head in totals(effects, logit_sum.token) if head in direct]


def agreement(direct: Array, total: Array, elsewhere: float) -> str:
    """How far direct and total effects agree, and what a difference means.

    Args:
        elsewhere: sum of the amounts of total effects of heads that add nothing directly, such as those of the encoder.
    """
    rank = spearman(direct, total)
    if np.isnan(rank):
        return _("There are too few heads for a rank correlation.")
    fields = {"rank": number(rank, "+.2f"), "elsewhere": number(elsewhere, ".2f")}
    sentence = _(
        "Rank correlation of direct and total effects over the heads of the decoder: {rank}. Where the two "
        "differ, later layers reacted: they read what the head wrote, or made up for its absence.",
        **fields,
    )
    if not elsewhere:
        return sentence
    return f"{sentence} " + _(
        "Heads of the encoder add nothing directly; the sizes of their total effects (nats) add up to {elsewhere}.", **fields
    )
