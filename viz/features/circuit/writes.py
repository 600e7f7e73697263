"""What wrote a token: its logit as a sum over what every head, layer and bias added, beside what silencing each head does."""

from collections.abc import Mapping
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st

from model.errors import HeadlightError
from model.features.circuit.sums import LogitSum, Writes
from model.features.what_if.questions import Heads
from model.features.what_if.results import HeadEffects
from model.trace.types import Array, Site
from viz.features.circuit import stream_parts
from viz.features.circuit.view import CircuitView
from viz.features.circuit.why import badge
from viz.figures import importance, stages
from viz.i18n.translate import _, error_message, number
from viz.labels import alt_text, tokens
from viz.metrics.ranks import spearman
from viz.panels import needs_network
from viz.session import patient_engine
from viz.session.state import Page, bind, decimals, update
from viz.widgets import download, numeric_tables
from viz.widgets.cards import chart, panel, say
from viz.widgets.clickable_figures import clickable, head_map

MOST = 12
"""Parts that have a bar of their own."""

LONGEST = 28
"""Characters of a bar's label: "layer 23, feed-forward" is whole."""


def draw(page: Page) -> None:
    """Draws the sum of one token's logit, or says why there is none."""
    if reason := reason_against(page):
        st.caption(reason)
        return
    with panel("writes"):
        _sum(page)


def _sum(page: Page) -> None:
    _choices(page, token(page))
    try:
        found = page.engine.ask(Writes(page.view.request(), token(page), rival(page)))
    except HeadlightError as error:
        say(error_message(error))
        _saved(page)
        return
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**{tokens.markdown(title(found))}**", width="content")
        badge(found)
    st.caption(tokens.markdown(meaning(found)))
    for sentence in stream_parts.about_the_run(page, bool(np.isfinite(found.values).all())):
        st.caption(sentence)
    _bars(page, found)
    _map(page, found)
    _sources(page, found)
    _totals(page, found)


def _saved(page: Page) -> None:
    """Draws, for a recording that was saved with the sum of a token, a button that shows it."""
    if page.info.recorded and (saved := page.trace.sums.get("writes")):
        rival = "none" if saved["minus"] is None else str(saved["minus"])
        st.button(
            _("Show the token whose sum was saved with this recording"),
            key="saved-writes",
            icon=":material/functions:",
            on_click=partial(update, step=saved["token"], rival=rival),
        )


def link(page: Page) -> str:
    """A sentence that leads to the sum; empty where there is none."""
    return "" if reason_against(page) else _("What made it choose this word")


def reason_against(page: Page) -> str:
    """Why no token of this run has a sum; empty: each has one."""
    if page.info.recorded and "writes" not in page.trace.sums:
        return needs_network()
    if not page.trace.steps:
        return _("This run generated nothing, so there is no logit to explain.")
    return ""


def token(page: Page) -> int:
    """The token that the view names, of those that the run wrote."""
    return min(max(page.view.step, 0), len(page.trace.steps) - 1)


def _choices(page: Page, token: int) -> None:
    """Draws the choice of the token, and of the one that it is compared with."""
    left, right = st.columns(2)
    written = {step.index: f"{step.index + 1} {tokens.word(step.chosen.text)}" for step in page.trace.steps}
    tied = bind("step", rival="runner-up")
    st.session_state[tied["key"]] = token
    with left:
        st.selectbox(_("Token"), list(written), format_func=written.__getitem__, **tied)
    step = page.trace.steps[token]
    rivals = {"runner-up": _("the most likely other token"), "none": _("nothing: the logit itself")}
    rivals |= {str(one.id): tokens.word(one.text) for one in step.candidates if one.id != step.chosen.id}
    chosen = page.view.of(CircuitView).rival
    if chosen not in rivals:
        rivals[chosen] = f"#{chosen}"
    with right:
        st.selectbox(_("Compared with"), list(rivals), format_func=rivals.__getitem__, **bind("rival"))


def rival(page: Page) -> int | Literal["runner-up"] | None:
    """What the view compares the token with."""
    asked = page.view.of(CircuitView).rival
    if asked in ("runner-up", "none"):
        return "runner-up" if asked == "runner-up" else None
    return int(asked)


def title(found: LogitSum) -> str:
    """What is taken apart, in words."""
    gaps = {"token": tokens.word(found.text), "other": tokens.word(found.minus_text), "logit": number(found.logit, ".2f")}
    if found.minus is None:
        return _("Why “{token}”: its logit, {logit}", **gaps)
    return _("Why “{token}” and not “{other}”: the difference of their logits, {logit}", **gaps)


def meaning(found: LogitSum) -> str:
    """What the bars add up to."""
    if found.minus is None:
        gaps = {"sum": number(found.log_sum_exp, ".2f"), "log": number(found.recorded - found.log_sum_exp, ".2f")}
        return _(
            "The bars add up to the logit. Minus {sum}, which is the same for every token, it is the log-probability, {log}. "
            "These are direct effects, with the scaling of the last normalization as it was in this run.",
            **gaps,
        )
    return _(
        "The bars add up to the difference, which is also that of the log-probabilities (nats). These are direct effects, with "
        "the scaling of the last normalization as it was in this run."
    )


def _bars(page: Page, found: LogitSum) -> None:
    """Draws the strongest parts, the others, and their sum."""
    names, values = strongest(found)
    axis = _("what it adds to the logit") if found.minus is None else _("what it adds to the difference of the logits")
    figure = stages.bars(values, names, axis, page.dark, chosen=len(values) - 1, probabilities=False, form="z.2f", longest=LONGEST)
    chart(figure, (page.trace, title(found)), key="writes-bars", alt=alt_text.bars(names, values))


def strongest(found: LogitSum) -> tuple[list[str], list[float]]:
    """The names of the strongest parts, of the others and of the sum, and their numbers."""
    groups = stream_parts.shown(found.parts, np.abs(found.values), MOST)
    stacks = {part.place.partition(".")[0] for part in found.parts if part.kind == "head"}
    names = [one.short if len(stacks) == 1 else one.name for one in groups]
    return [*names, _("sum")], [*stream_parts.added(found.values, groups, 0).tolist(), found.logit]


def of_heads(found: LogitSum) -> dict[tuple[str, int], float]:
    """What each head added, by site and head."""
    return {
        (part.place, part.head): float(value) for part, value in zip(found.parts, found.values, strict=True) if part.kind == "head"
    }


def _map(page: Page, found: LogitSum) -> None:
    """Draws what each head added, layers × heads; a click selects the head."""
    what = _("What each head added directly; click or tap a head to select it")
    st.markdown(f"**{tokens.markdown(what)}**")
    alt = _("What each head added: layers × heads; the table below has the numbers")

    def pointed_at(name: str, value: float) -> str:
        return f"{name}: {number(value, f'+{decimals(3)}')}"

    head_map(page, of_heads(found), pointed_at, _("added to the logit"), "writes-heads", _select, alt, title(found))


def _sources(page: Page, found: LogitSum) -> None:
    """Draws what the selected head took from each token that it read."""
    place = next(
        (i for i, part in enumerate(found.parts) if (part.place, part.head) == (str(page.attention.site), page.head)), None
    )
    name = tokens.site(page.attention.site, page.head)
    if place is None or found.parts[place].kind != "head":
        st.caption(tokens.markdown(_("This token gets nothing directly from {head}: select a head of the decoder.", head=name)))
        return
    keys = found.keys[place]
    if np.isnan(keys).all():
        st.caption(tokens.markdown(_("An edit replaced what {head} took from the tokens, so its part is not split.", head=name)))
        return
    there = np.flatnonzero(~np.isnan(keys))
    labels = [tokens.strip(page.trace.tokens[found.strips[place]])[key] for key in there]
    gaps = {"head": name, "value": number(float(found.values[place]), ".2f")}
    st.markdown("**" + tokens.markdown(_("{head} added {value}, from the tokens that it read:", **gaps)) + "**")
    values = keys[there].tolist()
    figure = stages.bars(values, labels, _("weight × value, as it adds to the logit"), page.dark, probabilities=False, form="z.2f")
    chart(figure, (page.trace, title(found)), key="writes-keys", alt=alt_text.bars(labels, values))


def table(found: LogitSum, total: Mapping[tuple[str, int], float] | None = None) -> pd.DataFrame:
    """A row for each part, biases by themselves; beside the contribution of a head its total effect, if it was measured."""
    columns = {_("part"): [stream_parts.name(part) for part in found.parts], _("added"): found.values}
    if total is not None:
        columns |= {_("total effect"): [total.get((part.place, part.head), np.nan) for part in found.parts]}
    return pd.DataFrame(columns, index=pd.RangeIndex(1, len(found.parts) + 1))


def _table(page: Page, numbers: pd.DataFrame) -> None:
    with st.expander(_("All parts as numbers"), icon=":material/table:"):
        numeric_tables.draw(numbers, hide_index=True)
        download.csv(numbers, page.trace, f"token-{token(page) + 1}", "writes", key="writes-csv")


def _totals(page: Page, found: LogitSum) -> None:
    """Draws direct effects against total ones, where the visitor wants the copies to be run."""
    if page.info.recorded or not st.toggle(
        _("Compare with total effects"),
        key="writes-totals-shown",
        help=_(
            "Runs the sentence again without each head, its output replaced by the mean over the sentence, and compares how the "
            "log-probability of this token changes."
        ),
    ):
        return _table(page, table(found))
    with patient_engine.show_pending():
        try:
            effects = page.engine.ask(Heads(page.view.request(), ("without",), by="mean"))
        except HeadlightError as error:
            say(error_message(error))
            return None
        if found.token >= len(effects.tokens):
            return None
        _compared(page, found, effects)
        _table(page, table(found, totals(effects, found.token)))
    return None


def totals(effects: HeadEffects, token: int) -> dict[tuple[str, int], float]:
    """How much less likely a token is without each head, in nats, by site and head."""
    assert effects.without is not None
    return {(head.site, head.head): -float(own[token]) for head, own in zip(effects.heads, effects.without, strict=True)}


def _compared(page: Page, found: LogitSum, effects: HeadEffects) -> None:
    direct, total = of_heads(found), totals(effects, found.token)
    heads = [head for head in total if head in direct]
    one, other = (np.array([numbers[head] for head in heads]) for numbers in (direct, total))
    names = [tokens.site(Site.parse(site), head) for site, head in heads]
    kinds = [tokens.kind(Site.parse(site).stack, Site.parse(site).kind) for site, _head in heads]
    st.caption(tokens.markdown(said(one, other, sum(abs(value) for head, value in total.items() if head not in direct))))
    st.caption(
        _(
            "For a total effect the head’s output is replaced by its mean over the sentence. “What matters?” in “What if” "
            "uses zeros, unless the mean is chosen there."
        )
    )
    axes = _("direct effect"), _("total effect: drop in log-probability without the head (nats)")
    figure = importance.scatter(one, other, names, kinds, page.dark, axes)
    alt = _("For each head: its direct and its total effect on this token")
    clickable(figure, "writes-totals", lambda index: _select(*heads[index]), alt, (page.trace, title(found)))


def _select(site: str, head: int) -> None:
    update(site=site, head=head)


def said(direct: Array, total: Array, elsewhere: float) -> str:
    """How far direct and total effects agree, and what a difference means.

    Args:
        elsewhere: sum of the amounts of total effects of heads that add nothing directly, such as those of the encoder.
    """
    rank = spearman(direct, total)
    if np.isnan(rank):
        return _("There are too few heads for a rank correlation.")
    gaps = {"rank": number(rank, "+.2f"), "elsewhere": number(elsewhere, ".2f")}
    found = _(
        "Rank correlation of direct and total effects over the heads of the decoder: {rank}. Where the two "
        "differ, later layers reacted: they read what the head wrote, or made up for its absence.",
        **gaps,
    )
    if not elsewhere:
        return found
    return f"{found} " + _(
        "Heads of the encoder add nothing directly; the sizes of their total effects (nats) add up to {elsewhere}.", **gaps
    )
