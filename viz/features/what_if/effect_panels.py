"""The panels of the effect of edits: what the model writes now, and how likely what it wrote before is now."""

from html import escape

import numpy as np
import pandas as pd

from model.trace.types import Trace
from viz.features.what_if.edit_effect import Effect
from viz.i18n.translate import _, number
from viz.labels import tokens
from viz.metrics.alignment import Pair, align
from viz.metrics.teacher_forcing import first_written
from viz.panels import Aligned, Markup, Panel, Table, Text
from viz.session.state import Page

LOWEST = -7.0
"""Log-probabilities below this are drawn at the left end of the scale."""


def of_outputs(page: Page, now: Trace | str) -> Panel:
    """What the model wrote before and writes now, token by token in two rows; changed tokens are marked.

    Args:
        now: the run with the edits, or why there is none.
    """
    title = _("What does the model generate with the edits?")
    if isinstance(now, str):
        return Panel("writes-now", title, Text(()), now)
    one, other = _written(page.trace), _written(now)
    pairs = align(one, other)
    words = (
        _("The output is the same, word for word.")
        if all(pair.same for pair in pairs)
        else _("Decoded freely, with the edits; changed tokens are marked.")
    )
    names = _("without the edits"), _("with the edits")
    before, after = (f"<span>{escape(name)}</span>" for name in names)
    columns = "".join(_column(one, other, pair) for pair in pairs)
    html = f'<div class="pairs" role="group"><span class="pair names">{before}{after}</span>{columns}</div>'
    places = [
        (None if pair.first is None else one[pair.first], None if pair.second is None else other[pair.second]) for pair in pairs
    ]
    return Panel("writes-now", title, Markup(html, Aligned("", names, places)), words)


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


def of_likelihood(page: Page, found: Effect) -> Panel:
    """Each token's log-probability before and now, and the divergence of the distributions, as a table with dumb-bells."""
    title = _("With the edits, how likely is the output without them?")
    return Panel("likelihood", title, Markup(_table(found, page.digits(3)), _plain_table(found)), _summary(found))


def _plain_table(found: Effect) -> Table:
    """The same numbers as a table without drawings; the token whose distribution changed most is the chosen one."""
    columns = {
        _("without the edits"): np.exp(found.before),
        _("with the edits"): np.exp(found.now),
        _("change in log-probability (nats)"): found.change,
        _("divergence of the predictions (nats)"): found.divergence,
    }
    names = pd.Index([tokens.plain(text) for text in found.texts], name=_("token"))
    most = _most_changed(found)
    return Table(pd.DataFrame(columns, index=names), -1 if most is None else most)


def _summary(found: Effect) -> str:
    if not len(found.texts):
        return _("Without the edits there is no output.")
    if not found.finite:
        return _("With these edits some probabilities are NaN, so there is no total.")
    fields = {"before": _number(found.before.sum()), "now": _number(found.now.sum()), "change": _signed(found.change.sum())}
    most = _most_changed(found)
    if most is None:
        return _("Log-probability of the whole output: {before}. No token changed by more than the rounding error.", **fields)
    fields |= {"token": tokens.word(found.texts[most]), "divergence": number(found.divergence[most], ".2f")}
    return _(
        "The same tokens are fed to both runs. Log-probability of the whole output: {before} without the edits, {now} with them "
        "(change {change} nats). The prediction changed most at “{token}” (divergence {divergence} nats).",
        **fields,
    )


def _most_changed(found: Effect) -> int | None:
    """The token whose distribution changed most; None if none changed by more than rounding."""
    if not found.change.any() and not found.divergence.any():
        return None
    return 0 if np.isnan(found.divergence).all() else int(np.nanargmax(found.divergence))


def _table(found: Effect, digits: int) -> str:
    if not len(found.texts):
        return ""
    scale, most = max(float(np.nanmax(found.divergence, initial=0.0)), LONGEST_BAR), _most_changed(found)
    titles = (
        _("token"),
        _("probability, without the edits ○ and with them ● (log scale)"),
        _("change in log-probability (nats)"),
        _("divergence of the predictions (nats)"),
    )
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    rows = "".join(_row(found, place, scale, place == most, digits) for place in range(len(found.texts)))
    return f'<div class="effect-scroll"><table class="effect"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _row(found: Effect, place: int, scale: float, most: bool, digits: int) -> str:
    """One token as HTML; the one whose distribution changed `most` is drawn strong."""
    before, now, divergence = found.before[place], found.now[place], found.divergence[place]
    change = found.change[place]
    one, other = float(np.exp(before)), float(np.exp(now))
    written = [number(probability, f".{digits}f") for probability in (one, other)]
    said = _("without the edits {before}, with them {now}", before=written[0], now=written[1])
    bell = f'<span class="bell" style="--a:{_place(before):.4f};--b:{_place(now):.4f}"><i></i><i></i><i></i></span>'
    bar = f'<span class="divergence" style="--share:{_share(divergence / scale):.4f}"><i></i></span>'
    numbers = f'<span class="numbers">{written[0]} → {written[1]}</span>'
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
