"""The panels of what a target token depended on: several methods side by side, and beside them where attention looked."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from model.features.what_if.results import WordEffects
from model.trace.types import Array
from viz.figures.annotated_heatmap import grid
from viz.i18n.translate import _, number, said
from viz.labels import tokens
from viz.metrics.ranks import spearman
from viz.panels import Panel, Plot, Table
from viz.session.state import Page

ATTENTION = ("attention", "rollout")
"""Measures that are made of weights alone."""


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
    known = table[list(columns)].notna()
    return table.loc[known.any(axis=1), ["input", "strip", *(name for name in columns if known[name].any())]]


def of_methods(page: Page, found: WordEffects, token: int) -> Panel:
    """What a target token depended on: methods × inputs."""
    table, text = by_input(found, token), found.tokens[token]
    inputs, digits = [tokens.word(word) for word in found.inputs][: len(table)], page.digits(4)
    words = _(
        "Each row is one method; colors are relative to the largest value of its row. Above 0: the input made "
        "“{token}” more likely.",
        token=tokens.word(text),
    )
    alt = _("What “{token}” depended on: methods × input tokens; the table below has the numbers", token=text)
    return Panel("matters-words", "", Plot(lambda dark: _methods(inputs, table, digits, dark), alt, "matters-words", alt), words)


def _methods(inputs: Sequence[str], table: pd.DataFrame, digits: int, dark: bool) -> go.Figure:
    """The numbers of each method as colors relative to its largest one."""
    names = {name: title for name, title in titles().items() if name in table}
    values = table[list(names)].to_numpy(np.float64).T
    largest = np.nanmax(np.abs(values), axis=1, initial=0.0)
    relative = values / np.where(largest > 0, largest, 1.0)[:, None]
    hover = [
        [f"{title}<br>“{text}”: {number(value, f'+.{digits}f')}" for text, value in zip(inputs, row, strict=True)]
        for title, row in zip(names.values(), values, strict=True)
    ]
    return grid(list(names.values()), inputs, relative, hover, dark, _("relative to the row’s largest"), limit=1.0)


def of_agreement(found: WordEffects, token: int) -> Panel:
    """Whether the methods agree with attention: rank correlations."""
    table = by_input(found, token)
    ranks = correlations(table, [name for name in titles() if name in table]).dropna(axis="columns", how="all")
    return Panel("matters-words-ranks", _("Do they agree with attention?"), Table(ranks, decimals=2))


def correlations(table: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """Rank correlations of the size of what each method says with the weights of attention and rollout, for each strip."""
    names = titles()
    columns = [(strip, method) for strip in table["strip"].unique() for method in ATTENTION if method in measures]
    strips = _strips()
    rows = {
        names[name]: {
            f"{names[method]} ({strips[strip]})": spearman(
                table.loc[table["strip"] == strip, name].abs().to_numpy(),
                table.loc[table["strip"] == strip, method].to_numpy(),
            )
            for strip, method in columns
        }
        for name in measures
        if name not in ATTENTION
    }
    return pd.DataFrame(rows).T.round(2)


def _strips() -> dict[str, str]:
    return {"source": _("source"), "target": _("target so far")}


def about_agreement(page: Page, found: WordEffects, token: int) -> Iterator[str]:
    """Sentences on the rank correlations: empty cells, how closely integrated gradients add up, and methods that are missing."""
    table = of_agreement(found, token).content
    if isinstance(table, Table) and table.frame.isna().to_numpy().any():
        yield _("An empty cell: a method gives the same amount to all these tokens, or there is only one.")
    yield from filter(None, (_complete(found, token, page.digits(4)), *map(said, found.missing.values())))


def _complete(found: WordEffects, token: int, digits: int) -> str:
    """How closely integrated gradients add up to what they should; empty: there are none."""
    difference, residue = float(found.difference[token]), float(found.residue[token])
    if np.isnan(difference) or np.isnan(residue):
        return ""
    return _(
        "Integrated gradients sum to {sum}; the log-probability is {difference} above that of the baseline. The two "
        "differ by {share}. With half as many steps, no word’s number changes by more than {change} of the largest.",
        sum=number(difference - residue, f".{digits}f"),
        difference=number(difference, f".{digits}f"),
        share=number(abs(residue) / max(abs(difference), 1e-9), ".2%"),
        change=number(float(found.largest_change[token]), ".2%"),
    )


def of_numbers(found: WordEffects, token: int) -> Panel:
    """What each method says of each input, in numbers."""
    table = by_input(found, token)
    headings = titles() | {"input": _("input"), "strip": _("text")}
    frame = table.assign(strip=table["strip"].map(_strips())).rename(columns=headings)
    return Panel("matters-words-table", _("All numbers"), Table(frame, decimals=4, named=False))
