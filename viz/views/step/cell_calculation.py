"""How one weight was calculated, in sentences and formulas, for whatever draws them."""

import math
import operator
from collections.abc import Callable, Iterator

import pandas as pd

from model.trace.cell_arithmetic import Explanation
from viz.i18n.translate import _, localized
from viz.i18n.translate import number as shown
from viz.labels import tokens
from viz.panels import TextLine
from viz.session.state import Page


def verdict(found: Explanation) -> str:
    """Whether the calculation, repeated in float64, matches the run."""
    gaps = {"difference": tokens.power_of_ten(found.largest_difference), "tolerance": tokens.power_of_ten(found.tolerance)}
    if found.agrees:
        return _("Matches the run: recomputed in float64, largest difference {difference}", **gaps)
    if math.isfinite(found.largest_difference):
        return _("Does not match the run: recomputed in float64, largest difference {difference}, tolerance {tolerance}", **gaps)
    return _("Cannot be checked: the row contains NaN or infinite values")


def number(value: float, decimals: int = 4) -> str:
    """A number for a formula: so many decimals, or significant digits where it is small; NaN and infinities by name."""
    if math.isnan(value):
        return r"\mathrm{NaN}"
    if math.isinf(value):
        return r"\infty" if value > 0 else r"-\infty"
    if value and _size(value) < SMALLEST:
        digits, power = f"{value:.3e}".split("e")
        return rf"{localized(digits).replace(',', '{,}')} \cdot 10^{{{int(power)}}}"
    return localized(f"{value:{significant(value, decimals)}}").replace(",", "{,}")


def significant(value: float, decimals: int = 4) -> str:
    """Format of a number: so many decimals, or significant digits where it is small."""
    return f".{max(decimals, decimals - 1 - _size(value))}f" if value and math.isfinite(value) else f".{decimals}f"


MOST_DECIMALS = 9
"""Decimals beyond which a printed number is not made longer."""


def decimals_of(combined: Callable[[float, float], float], parts: tuple[float, float], result: float) -> int:
    """With how many decimals two numbers are printed, so that a pocket calculator makes of them the result as it is printed."""
    if not all(map(math.isfinite, (*parts, result))):
        return 4
    wanted = f"{result:{significant(result)}}"
    for decimals in range(4, MOST_DECIMALS):
        one, other = (float(f"{part:{significant(part, decimals)}}") for part in parts)
        if f"{combined(one, other):{significant(result)}}" == wanted:
            return decimals
    return MOST_DECIMALS


def _size(value: float) -> int:
    """Power of ten of a number."""
    return math.floor(math.log10(abs(value)))


SMALLEST = -5
"""Power of ten below which a number is written with one."""


def minus(value: float) -> str:
    """What subtracts a number in a formula; a negative one stands in brackets."""
    return rf"- ({number(value)})" if value < 0 else rf"- {number(value)}"


def score(found: Explanation) -> Iterator[TextLine]:
    """From query and key to the masked score."""
    decimals = decimals_of(operator.mul, (found.dot, found.scale), found.score)
    dot, scale, value = number(found.dot, decimals), number(found.scale, decimals), number(found.score)
    yield TextLine(rf"q \cdot k = \sum_d q_d\,k_d = {dot}", formula=True)
    if not found.scored:
        yield TextLine(
            _(
                "The run itself never computed this product, because the key lies in the future. It is computed here for "
                "illustration."
            )
        )
    usual = math.isclose(found.scale, len(found.q) ** -0.5, rel_tol=1e-6)
    yield TextLine(_("Multiplied by 1/√head_dim:") if usual else _("Multiplied by the scale of this model:"))
    yield TextLine(rf"{dot} \times {scale} = \mathbf{{{value}}}", formula=True)
    if found.allowed[found.key]:
        yield TextLine(_("The mask allows this key, so 0 is added:"))
        yield TextLine(rf"{value} + 0 = {value}", formula=True)
    else:
        yield TextLine(_("This key is masked for this query, so −∞ is added:"))
        yield TextLine(rf"{value} + (-\infty) = -\infty", formula=True)


def weight(found: Explanation) -> Iterator[TextLine]:
    """From the scores of the row to the weight."""
    if not found.allowed.any():
        given = shown(found.weight, significant(found.weight))
        yield TextLine(
            _("No key of this row is allowed; in that case this network gives this key the weight {weight}.", weight=given)
        )
        return
    yield TextLine(
        _("Softmax: the exponential of the score (after subtracting the row’s largest score), divided by the sum over the row:")
    )
    value, largest = number(found.scores[found.key]), minus(found.scores.max())
    parts = float(found.exponentials[found.key]), float(found.total)
    decimals = decimals_of(operator.truediv, parts, found.weight)
    above, below, result = number(parts[0], decimals), number(parts[1], decimals), number(found.weight)
    softmax = rf"\frac{{\exp({value} {largest})}}{{\sum_k \exp(S'_k {largest})}}"
    yield TextLine(rf"{softmax} = \frac{{{above}}}{{{below}}} = \mathbf{{{result}}}", formula=True)
    yield TextLine(_("The run recorded {weight}.", weight=shown(found.ran, ".7f")))


def share(found: Explanation) -> Iterator[TextLine]:
    """How much of the head's context the key supplies; nothing where that is not defined."""
    if math.isfinite(found.share):
        length = float(found.moved[found.key])
        gaps = {"share": shown(100 * found.share, "z.1f"), "length": shown(length, significant(length))}
        yield TextLine(
            _(
                "This cell supplies {share}% of the head’s context vector: the component in that vector’s direction, "
                "so that a row adds up to 100%. It moves the residual stream by a vector of length {length}.",
                **gaps,
            )
        )


def title(page: Page, query: int, key: int) -> str:
    """Title of the calculation of a cell of the page's site."""
    reads = tokens.queries(page.trace, page.attention)[query]
    keys = tokens.keys(page.trace, page.attention, longest=None)
    return _("How this weight was calculated: “{query}” attends to “{key}”", query=reads, key=keys[key])


def table(page: Page, found: Explanation) -> pd.DataFrame:
    """The whole row as numbers."""
    keys = tokens.keys(page.trace, page.attention, longest=None)
    return pd.DataFrame(
        {
            _("allowed"): found.allowed,
            _("score + mask"): found.scores,
            _("exponential"): found.exponentials,
            _("weight"): found.weights,
            _("recorded weight"): page.attention.weights[found.head, found.query],
            _("contribution length"): found.moved,
        },
        index=pd.Index([f"{place} {key}" for place, key in enumerate(keys, start=1)], name=_("key")),
    )
