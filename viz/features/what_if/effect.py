"""The effect of the edits: what the model writes now, and how likely what it wrote before is now."""

from html import escape

import numpy as np
import streamlit as st

from model.trace.types import Trace
from viz.features.what_if.edit_effect import Effect
from viz.i18n.translate import _, number
from viz.labels import tokens
from viz.metrics.alignment import Pair, align
from viz.metrics.teacher_forcing import first_written
from viz.session.state import Page, decimals
from viz.widgets.cards import heading

LOWEST = -7.0
"""Log-probabilities below this are drawn at the left end of the scale."""


def outputs(page: Page, now: Trace | str) -> None:
    """Draws what the model wrote before and writes now, token by token in two rows; changed tokens are marked."""
    if isinstance(now, str):
        st.html(heading(_("What does the model generate with the edits?"), now))
        return
    one, other = _written(page.trace), _written(now)
    pairs = align(one, other)
    changed = sum(not pair.same for pair in pairs)
    said = (
        _("The output is the same, word for word.")
        if not changed
        else _("Decoded freely, with the edits; changed tokens are marked.")
    )
    columns = "".join(_column(one, other, pair) for pair in pairs)
    before, now = escape(_("without the edits")), escape(_("with the edits"))
    names = f'<span class="pair names"><span>{before}</span><span>{now}</span></span>'
    title = heading(_("What does the model generate with the edits?"), said)
    st.html(f'{title}<div class="pairs" role="group">{names}{columns}</div>')


def _written(trace: Trace) -> list[str]:
    """The tokens that a run wrote."""
    strip = trace.tokens[tokens.written_strip(trace)]
    return [tokens.plain(text) for text in strip.texts[first_written(trace) :]]


def _column(one: list[str], other: list[str], pair: Pair) -> str:
    """One place of the alignment as HTML: the token before above the token now."""
    before = "" if pair.first is None else escape(one[pair.first])
    now = "" if pair.second is None else escape(other[pair.second])
    if pair.same:
        return f'<span class="pair"><bdi>{before}</bdi><bdi>{now}</bdi></span>'
    return f'<span class="pair changed"><del><bdi>{before or "–"}</bdi></del><ins><bdi>{now or "–"}</bdi></ins></span>'


def likelihood(found: Effect) -> None:
    """Draws each token's log-probability before and now, and the divergence of the distributions, as a table with dumb-bells."""
    st.html(heading(_("With the edits, how likely is the output without them?"), _summary(found)) + _table(found))


def _summary(found: Effect) -> str:
    if not len(found.texts):
        return _("Without the edits there is no output.")
    if not found.finite:
        return _("With these edits some probabilities are NaN, so there is no total.")
    gaps = {"before": _number(found.before.sum()), "now": _number(found.now.sum()), "change": _signed(found.change.sum())}
    most = _most_changed(found)
    if most is None:
        return _("Log-probability of the whole output: {before}. No token changed by more than the rounding error.", **gaps)
    gaps |= {"token": tokens.word(found.texts[most]), "divergence": number(found.divergence[most], ".2f")}
    return _(
        "The same tokens are fed to both runs. Log-probability of the whole output: {before} without the edits, {now} with them "
        "(change {change} nats). The prediction changed most at “{token}” (divergence {divergence} nats).",
        **gaps,
    )


def _most_changed(found: Effect) -> int | None:
    """The token whose distribution changed most; None if none changed by more than rounding."""
    if not found.change.any() and not found.divergence.any():
        return None
    return 0 if np.isnan(found.divergence).all() else int(np.nanargmax(found.divergence))


def _table(found: Effect) -> str:
    if not len(found.texts):
        return ""
    scale, most = max(float(np.nanmax(found.divergence, initial=0.0)), LONGEST_BAR), _most_changed(found)
    titles = (
        _("token"),
        _("probability, without the edits ○ and with them ● (log scale)"),
        _("change (nats)"),
        _("divergence (nats)"),
    )
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    rows = "".join(_row(found, place, scale, place == most) for place in range(len(found.texts)))
    return f'<div class="effect-scroll"><table class="effect"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _row(found: Effect, place: int, scale: float, most: bool) -> str:
    """One token as HTML; the one whose distribution changed `most` is drawn strong."""
    before, now, divergence = found.before[place], found.now[place], found.divergence[place]
    change = found.change[place]
    one, other = float(np.exp(before)), float(np.exp(now))
    said = _("without the edits {before}, with them {now}", before=number(one, decimals(3)), now=number(other, decimals(3)))
    bell = f'<span class="bell" style="--a:{_place(before):.4f};--b:{_place(now):.4f}"><i></i><i></i><i></i></span>'
    bar = f'<span class="divergence" style="--share:{_share(divergence / scale):.4f}"><i></i></span>'
    numbers = f'<span class="numbers">{number(one, decimals(3))} → {number(other, decimals(3))}</span>'
    return (
        f'<tr class="{"strong" if most else ""}"><th scope="row"><bdi>{escape(tokens.plain(found.texts[place]))}</bdi></th>'
        f'<td title="{escape(said)}">{bell}{numbers}</td><td>{escape(_signed(change))}</td><td>{bar}{_number(divergence)}</td></tr>'
    )


LONGEST_BAR = float(np.log(2))
"""In nats: a divergence of one bit fills the bar, or the largest one, if that is larger."""


def _place(log_probability: float) -> float:
    """Place of a log-probability on the scale of the dumb-bells, from 0 to 1."""
    return _share(1 - log_probability / LOWEST)


def _share(value: float) -> float:
    return 0.0 if np.isnan(value) else float(np.clip(value, 0, 1))


def _number(value: float) -> str:
    return _("no number") if np.isnan(value) else number(value, ".2f")


def _signed(value: float) -> str:
    if abs(value) < SMALLEST:
        return number(0, ".2f")
    return _number(value) if np.isnan(value) or value < 0 else f"+{number(value, '.2f')}"


SMALLEST = 0.005
"""Changes below this are written as 0.00, without a sign."""
