"""Words: what a target token depended on, by several methods side by side, and beside them where attention looked."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from model.features.what_if.questions import Words
from model.features.what_if.results import WordEffects
from model.trace.types import Array
from viz.features.what_if.importance_run import request, token_choice
from viz.figures.annotated_heatmap import grid
from viz.i18n.translate import _, number, said
from viz.labels import tokens
from viz.metrics.ranks import spearman
from viz.session.state import Page, decimals
from viz.widgets import download, numeric_tables
from viz.widgets.cards import chart

ATTENTION = ("attention", "rollout")
"""Measures that are made of weights alone."""


def draw(page: Page) -> None:
    """Draws the methods for one target token."""
    found = page.engine.ask(Words(request(page)))
    token = token_choice(found, "words", whole=False) or 0
    table = by_input(found, token)
    measures = [name for name in titles() if name in table]
    inputs = [tokens.word(text) for text in found.inputs][: len(table)]
    st.caption(
        _(
            "Each row is one method; colors are relative to the largest value of its row. Above 0: the input made "
            "“{token}” more likely.",
            token=tokens.word(found.tokens[token]),
        )
    )
    figure = _picture(page, inputs, table, measures)
    alt = _("What “{token}” depended on: methods × input tokens; the table below has the numbers", token=found.tokens[token])
    chart(figure, printed=(page.trace, alt), key="matters-words", alt=alt)
    st.markdown("**" + _("Do they agree with attention?") + "**")
    ranks = correlations(table, measures).dropna(axis="columns", how="all")
    numeric_tables.draw(ranks, decimals=2, key="matters-words-ranks")
    if ranks.isna().to_numpy().any():
        st.caption(_("An empty cell: a method gives the same amount to all these tokens, or there is only one."))
    for words in filter(None, (_complete(found, token), *map(said, found.missing.values()))):
        st.caption(tokens.markdown(words))
    _what_attention_is_not()
    _numbers(page, table, found.tokens[token])


def titles() -> dict[str, str]:
    """The methods, by the names of their columns."""
    return {
        "unknown": _("left out: replaced by the unknown token"),
        "padding": _("left out: replaced by padding"),
        "gradient": _("gradient × input"),
        "integrated": _("integrated gradients"),
        "attention": _("attention, mean of heads and layers"),
        "rollout": _("attention rollout"),
    }


def by_input(found: WordEffects, token: int) -> pd.DataFrame:
    """The effects of the inputs on one target token, a row for each input that it could depend on.

    Of leaving out it is the loss: minus the change. Measures that are not there, and inputs after the token, are left out.
    """
    columns: dict[str, Array] = {name: np.asarray(getattr(found, name)[token]) for name in titles()}
    columns |= {name: -columns[name] for name in ("unknown", "padding")}
    table = pd.DataFrame({"input": list(found.inputs), "strip": list(found.strips), **columns})
    there = table[list(columns)].notna()
    return table.loc[there.any(axis=1), ["input", "strip", *(name for name in columns if there[name].any())]]


def correlations(table: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """Rank correlations of the size of what each method says with the weights of attention and rollout, for each strip."""
    names = titles()
    columns = [(strip, one) for strip in table["strip"].unique() for one in ATTENTION if one in measures]
    strips = {"source": _("source"), "target": _("target so far")}
    rows = {
        names[name]: {
            f"{names[one]} ({strips[strip]})": spearman(
                table.loc[table["strip"] == strip, name].abs().to_numpy(), table.loc[table["strip"] == strip, one].to_numpy()
            )
            for strip, one in columns
        }
        for name in measures
        if name not in ATTENTION
    }
    return pd.DataFrame(rows).T.round(2)


def _picture(page: Page, inputs: Sequence[str], table: pd.DataFrame, measures: Sequence[str]) -> go.Figure:
    names = titles()
    values = table[list(measures)].to_numpy(np.float64).T
    largest = np.nanmax(np.abs(values), axis=1, initial=0.0)
    relative = values / np.where(largest > 0, largest, 1.0)[:, None]
    form = f"+{decimals(4)}"
    hover = [
        [f"{names[name]}<br>“{text}”: {number(value, form)}" for text, value in zip(inputs, row, strict=True)]
        for name, row in zip(measures, values, strict=True)
    ]
    return grid(
        [names[name] for name in measures], inputs, relative, hover, page.dark, _("relative to the row’s largest"), limit=1.0
    )


def _complete(found: WordEffects, token: int) -> str:
    """How closely integrated gradients add up to what they should; empty: there are none."""
    difference, residue = float(found.difference[token]), float(found.residue[token])
    if np.isnan(difference) or np.isnan(residue):
        return ""
    return _(
        "Integrated gradients sum to {sum}; the log-probability is {difference} above that of the baseline. The two "
        "differ by {share}. With half as many steps, no word’s number changes by more than {change} of the largest.",
        sum=number(difference - residue, decimals(4)),
        difference=number(difference, decimals(4)),
        share=number(abs(residue) / max(abs(difference), 1e-9), ".2%"),
        change=number(float(found.largest_change[token]), ".2%"),
    )


def _what_attention_is_not() -> None:
    st.markdown(
        _(
            "**Attention is not explanation.** A weight says how much of a key’s value went into one head, not what the output "
            "needed it for: values can be short, other heads can carry the same word, and later layers can ignore it. Jain and "
            "Wallace (2019) found that attention often disagrees with other measures of importance, and that very different "
            "weights can give the same output. Wiegreffe and Pinter (2019) answer that this depends on what one calls an "
            "explanation: weights that were trained with the model are not arbitrary. So compare, as above, and test with an edit."
        )
    )


def _numbers(page: Page, table: pd.DataFrame, token: str) -> None:
    strips = {"source": _("source"), "target": _("target so far")}
    shown = table.assign(strip=table["strip"].map(strips)).rename(columns=titles() | {"input": _("input"), "strip": _("text")})
    with st.expander(_("All numbers"), icon=":material/table:"):
        numeric_tables.draw(shown, hide_index=True, key="matters-words-table")
        download.csv(table, page.trace, "words", token, key="matters-words-csv")
