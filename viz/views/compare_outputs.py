"""Inputs and outputs of both sides of Compare, aligned token by token."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from model.trace.types import Trace
from viz import labels
from viz.readings.aligning import Pair, align
from viz.readings.changes import Written, written
from viz.texts import _


def draw(first: Trace, second: Trace) -> None:
    """Draws every strip of the two runs; the generated strip with its log-probabilities."""
    st.markdown(f"**{_('The two outputs, aligned')}**")
    st.caption(
        _(
            "Aligned with as few insertions, deletions and replacements as possible (Levenshtein). Struck through: "
            "only on side A; bold: only on side B."
        )
    )
    for name in dict.fromkeys((*first.tokens, *second.tokens)):
        if name in first.tokens and name in second.tokens:
            _strip(first, second, name)
        elif name in first.tokens:
            st.caption(labels.markdown(_("Only side A has “{name}” tokens.", name=name)))
        else:
            st.caption(labels.markdown(_("Only side B has “{name}” tokens.", name=name)))


def _strip(first: Trace, second: Trace, name: str) -> None:
    sides = [written(trace, name) for trace in (first, second)]
    pairs = align(*([token.text for token in side] for side in sides))
    st.markdown(f"{_title(first, name)} {_line(sides, pairs)}")
    if any(token.log_probability is not None for side in sides for token in side):
        _say_totals(sides)
        with st.expander(_("Log-probability of each token"), icon=":material/table:", key=f"tokens-{name}"):
            st.dataframe(_table(sides, pairs), hide_index=True, width="stretch", key=f"aligned-{name}")


def _title(trace: Trace, name: str) -> str:
    language = trace.model.get("languages", {}).get(name, name)
    return f":small[{labels.markdown(language)}]"


def _line(sides: Sequence[Sequence[Written]], pairs: Sequence[Pair]) -> str:
    """Both strips in one line of Markdown, with escaped tokens."""
    parts = []
    for pair in pairs:
        if pair.same and pair.first is not None:
            parts.append(_token(sides[0], pair.first))
            continue
        if pair.first is not None:
            parts.append(f"~~{_token(sides[0], pair.first)}~~")
        if pair.second is not None:
            parts.append(f"**{_token(sides[1], pair.second)}**")
    return " ".join(parts)


def _token(side: Sequence[Written], place: int) -> str:
    return labels.markdown(labels.plain(side[place].text))


def _say_totals(sides: Sequence[Sequence[Written]]) -> None:
    """Draws the total log-probability of each side's output."""
    scores = [[token.log_probability for token in side if token.log_probability is not None] for side in sides]
    gaps = {"first": sum(scores[0]), "second": sum(scores[1]), "tokens": len(scores[0]), "others": len(scores[1])}
    st.caption(
        _(
            "Log-probability of the output: {first:.3f} on side A (tokens: {tokens}), {second:.3f} on side B (tokens: {others}).",
            **gaps,
        )
    )


def _table(sides: Sequence[Sequence[Written]], pairs: Sequence[Pair]) -> pd.DataFrame:
    """Table with one row per place of the alignment."""
    first, second = sides
    rows = [
        (
            "" if pair.first is None else labels.plain(first[pair.first].text),
            _sign(pair),
            "" if pair.second is None else labels.plain(second[pair.second].text),
            np.nan if pair.first is None else first[pair.first].log_probability,
            np.nan if pair.second is None else second[pair.second].log_probability,
        )
        for pair in pairs
    ]
    columns = [_("side A"), _("comparison"), _("side B"), _("log-probability (A)"), _("log-probability (B)")]
    return pd.DataFrame(rows, columns=columns)


def _sign(pair: Pair) -> str:
    if pair.same:
        return _("same")
    if pair.second is None:
        return _("deleted")
    return _("inserted") if pair.first is None else _("replaced")
