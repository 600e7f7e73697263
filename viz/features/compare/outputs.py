"""Inputs and outputs of both sides of Compare, aligned token by token, and the probabilities of the written tokens."""

from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from model.trace.types import Trace
from viz.features.compare.dumbbells import dumbbells
from viz.features.compare.probabilities import Both, both, effect
from viz.features.compare.run_difference import ROUNDING, Written, written
from viz.features.compare.runs import Runs
from viz.i18n.translate import _, _n, language_of
from viz.labels import tokens as labels
from viz.metrics.alignment import Pair, align
from viz.session.state import decimals
from viz.widgets import numeric_tables
from viz.widgets.cards import chart

MOST_DRAWN = 24
"""Most tokens in the picture of the probabilities; the table below it has them all."""


def draw(runs: Runs, names: tuple[str, str], dark: bool) -> None:
    """Draws every strip of the two runs in two aligned rows; of the written strip its log-probabilities, too.

    Args:
        names: what the sides are called.
    """
    first, second = runs.first, runs.second
    st.markdown("**" + _("The two outputs, aligned") + "**")
    st.caption(
        _(
            "Aligned with as few insertions, deletions and replacements as possible (Levenshtein). Struck through: "
            "only on side A; bold: only on side B."
        )
    )
    for name in dict.fromkeys((*first.tokens, *second.tokens)):
        if name in first.tokens and name in second.tokens:
            _strip(first, second, name, names)
        elif name in first.tokens:
            st.caption(labels.markdown(_("Only side A has “{name}” tokens.", name=name)))
        else:
            st.caption(labels.markdown(_("Only side B has “{name}” tokens.", name=name)))
    _probabilities(runs, names, dark)


def _strip(first: Trace, second: Trace, name: str, names: tuple[str, str]) -> None:
    sides = [written(trace, name) for trace in (first, second)]
    pairs = align(*([token.text for token in side] for side in sides))
    language = language_of(first, name)
    st.html(f'<p class="small">{escape(language)}</p>{_rows(sides, pairs, names)}')
    if any(token.log_probability is not None for side in sides for token in side):
        _say_totals(sides)
        with st.expander(_("Log-probability of each token"), icon=":material/table:", key=f"tokens-{name}"):
            numeric_tables.draw(_table(sides, pairs), hide_index=True, key=f"aligned-{name}")


def _rows(sides: Sequence[Sequence[Written]], pairs: Sequence[Pair], names: tuple[str, str]) -> str:
    """Both strips as HTML, one above the other. A token is above its counterpart, or above a gap."""
    columns = "".join(
        f"<div>{_cell(sides[0], pair.first, pair, 'del')}{_cell(sides[1], pair.second, pair, 'strong')}</div>" for pair in pairs
    )
    heads = "".join(f'<span title="{escape(name)}">{escape(name)}</span>' for name in names)
    return f'<div class="aligned"><div class="names">{heads}</div><div class="tokens">{columns}</div></div>'


def _cell(side: Sequence[Written], place: int | None, pair: Pair, mark: str) -> str:
    if place is None:
        return '<span class="gap">·</span>'
    text = f"<bdi>{escape(labels.plain(side[place].text))}</bdi>"
    return f"<span>{text}</span>" if pair.same else f"<span><{mark}>{text}</{mark}></span>"


def _say_totals(sides: Sequence[Sequence[Written]]) -> None:
    """Draws the total log-probability of each side's output."""
    scores = [[token.log_probability for token in side if token.log_probability is not None] for side in sides]
    first, second = (labels.number(sum(side), decimals(3)) for side in scores)
    gaps = {"first": first, "second": second, "tokens": len(scores[0]), "others": len(scores[1])}
    st.caption(
        _(
            "Log-probability of the output: {first} on side A (tokens: {tokens}), {second} on side B (tokens: {others}).",
            **gaps,
        )
    )


def _probabilities(runs: Runs, names: tuple[str, str], dark: bool) -> None:
    """Draws the probability of each token on both sides, the largest change first."""
    found = both(runs.first, runs.second, runs.since)
    if not found:
        return
    st.markdown("**" + _("How likely each token was") + "**")
    for note in _notes(runs, found):
        st.caption(labels.markdown(note))
    shown = found[:MOST_DRAWN]
    probabilities = np.exp([[token.first for token in shown], [token.second for token in shown]])
    texts = [labels.word(token.text) for token in shown]
    chart(
        dumbbells(texts, probabilities[0], probabilities[1], names, dark),
        (runs.first, _("The probability of each token on side A and on side B")),
        key="dumbbells",
        alt=_("The probability of each token on side A and on side B"),
    )


def _notes(runs: Runs, found: Sequence[Both]) -> list[str]:
    """Sentences on the effect, on tokens that are left out, and on changes that are only rounding."""
    notes = [said] if (said := effect_in_words(runs)) else []
    if not any(token.change for token in found):
        notes.append(_("No probability changed by more than the rounding error ({limit}).", limit=labels.power_of_ten(ROUNDING)))
    if len(found) > MOST_DRAWN:
        gaps = {"most": MOST_DRAWN, "count": len(found)}
        notes.append(_("Showing the {most} tokens that changed most, of {count}. The table above has all of them.", **gaps))
    if not runs.fed and len(found) < max(len(runs.first.steps), len(runs.second.steps)):
        notes.append(
            _("Only tokens that both sides generated are compared. The switch above lets both sides read the same tokens.")
        )
    return notes


def effect_in_words(runs: Runs) -> str:
    """A sentence on the change of the output's log-probability; empty if no token can be compared, or none changed."""
    tokens = both(runs.first, runs.second, runs.since)
    found = effect(tokens) if any(token.change for token in tokens) else None
    if found is None:
        return ""
    most = found.most.second - found.most.first
    gaps = {"count": found.tokens, "total": _signed(found.total), "token": labels.word(found.most.text), "most": _signed(most)}
    return _n(
        "Effect on the output: the log-probability of the one token that both sides have, “{token}”, changed by {total}.",
        "Effect on the output: the log-probability of the {count} tokens that both sides have changed by {total} in "
        "total, most at “{token}”: {most}.",
        found.tokens,
        **gaps,
    )


def _signed(value: float) -> str:
    """A number with its sign and four decimals, or two in big mode."""
    return labels.number(value, f"+z{decimals(4)}")  # z: no minus before a zero


def _table(sides: Sequence[Sequence[Written]], pairs: Sequence[Pair]) -> pd.DataFrame:
    """Table with one row per place of the alignment."""
    first, second = sides
    rows = [
        (
            "" if pair.first is None else labels.word(first[pair.first].text),
            _sign(pair),
            "" if pair.second is None else labels.word(second[pair.second].text),
            one := np.nan if pair.first is None else _number(first[pair.first]),
            other := np.nan if pair.second is None else _number(second[pair.second]),
            other - one if pair.same else np.nan,
        )
        for pair in pairs
    ]
    columns = [_("side A"), _("comparison"), _("side B"), _("log-probability (A)"), _("log-probability (B)")]
    return pd.DataFrame(rows, columns=[*columns, _("difference (B − A)")])


def _number(token: Written) -> float:
    return np.nan if token.log_probability is None else token.log_probability


def _sign(pair: Pair) -> str:
    if pair.same:
        return _("same")
    if pair.second is None:
        return _("deleted")
    return _("inserted") if pair.first is None else _("replaced")
