"""The panels of one cell: how its weight was calculated, what it contributes, and its whole row, recomputed and compared with the
run.
"""

import math
import operator
from collections.abc import Callable, Iterator

import pandas as pd

from model.engine.api import Explain
from model.errors import HeadlightError
from model.trace.cell_arithmetic import Explanation
from viz.figures import arithmetic as figures
from viz.i18n.translate import _, error_message, localized
from viz.i18n.translate import number as localized_number
from viz.labels import tokens
from viz.panels import NotDrawable, Panel, Plot, Table, Text, TextLine
from viz.session.state import Page


def explained(page: Page, query: int, key: int) -> Explanation:
    """The calculation of a cell of the page's site and head.

    Args:
        query, key: counted from 0.

    Raises:
        HeadlightError: this run has none.
    """
    return page.engine.ask(Explain(page.view.request(), str(page.attention.site), page.head, query, key))


def calculation(page: Page, query: int, key: int) -> Iterator[Panel]:
    """What a link to a cell shows: its calculation and its whole row, and the charts that the link opens.

    Raises:
        NotDrawable: this run has no calculation.
    """
    try:
        cell = explained(page, query, key)
    except HeadlightError as error:
        raise NotDrawable(error_message(error)) from error
    opened = page.view.opened.split()
    if "products" in opened:
        yield of_products(page, cell)
    yield of_calculation(page, cell)
    if "moved" in opened:
        yield of_contributions(page, cell)
    yield of_row(page, cell)


def of_products(page: Page, cell: Explanation) -> Panel:
    """Query, key and their products, dimension by dimension."""
    words = _("The query and key vectors of this head, dimension by dimension, and their products:")
    plot = Plot(lambda dark: figures.products(cell.q, cell.k, dark), name="cell-products")
    return Panel("products", title(page, cell), plot, words)


def of_calculation(page: Page, cell: Explanation) -> Panel:
    """From query and key to the weight. A page has the verdict as a badge, and the share below the chart of contributions."""
    calculated = [*score(cell), *weight(cell)]
    whole = Text([*calculated, TextLine(verdict(cell)), *share(cell)])
    return Panel("calculation", title(page, cell), whole, on_page=lambda: Text(calculated))


def of_contributions(page: Page, cell: Explanation) -> Panel:
    """The weights of the row, and the length of what each key adds to the residual stream."""
    keys = tokens.keys(page.trace, page.attention, longest=None)
    silenced = _("This head is silenced: its output was replaced by zeros, so nothing is moved.")
    words = _(
        "The key’s contribution to the residual stream is weight · v, projected by this head’s part of W_O. "
        "Compare its length with the weight: a large weight on a short value moves almost nothing."
    )
    plot = Plot(lambda dark: figures.row(cell.weights, cell.moved, keys, cell.key, dark), name="cell-row", title=title(page, cell))
    words = f"{silenced}\n{words}" if cell.silenced else words
    return Panel("moved", _("What this weight contributes"), plot, words)


def of_row(page: Page, cell: Explanation) -> Panel:
    """The whole row as numbers, with more decimals on the page, which has room for them."""
    frame = table(page, cell)
    content = Table(frame, cell.key)
    return Panel("row", _("The whole row as numbers"), content, on_page=lambda: Table(frame, cell.key, decimals=4))


def verdict(cell: Explanation) -> str:
    """Whether the calculation, repeated in float64, matches the run."""
    numbers = {"difference": tokens.power_of_ten(cell.largest_difference), "tolerance": tokens.power_of_ten(cell.tolerance)}
    if cell.agrees:
        return _("Matches the run: recomputed in float64, largest difference {difference}", **numbers)
    if math.isfinite(cell.largest_difference):
        return _("Does not match the run: recomputed in float64, largest difference {difference}, tolerance {tolerance}", **numbers)
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
        first, second = (float(f"{part:{significant(part, decimals)}}") for part in parts)
        if f"{combined(first, second):{significant(result)}}" == wanted:
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


def score(cell: Explanation) -> Iterator[TextLine]:
    """From query and key to the masked score."""
    decimals = decimals_of(operator.mul, (cell.dot, cell.scale), cell.score)
    dot, scale, value = number(cell.dot, decimals), number(cell.scale, decimals), number(cell.score)
    yield TextLine(rf"q \cdot k = \sum_d q_d\,k_d = {dot}", formula=True)
    if not cell.scored:
        yield TextLine(
            _(
                "The run itself never computed this product, because the key lies in the future. It is computed here for "
                "illustration."
            )
        )
    usual = math.isclose(cell.scale, len(cell.q) ** -0.5, rel_tol=1e-6)
    yield TextLine(_("Multiplied by 1/√head_dim:") if usual else _("Multiplied by the scale of this model:"))
    yield TextLine(rf"{dot} \times {scale} = \mathbf{{{value}}}", formula=True)
    if cell.allowed[cell.key]:
        yield TextLine(_("The mask allows this key, so 0 is added:"))
        yield TextLine(rf"{value} + 0 = {value}", formula=True)
    else:
        yield TextLine(_("This key is masked for this query, so −∞ is added:"))
        yield TextLine(rf"{value} + (-\infty) = -\infty", formula=True)


def weight(cell: Explanation) -> Iterator[TextLine]:
    """From the scores of the row to the weight."""
    if not cell.allowed.any():
        given = localized_number(cell.weight, significant(cell.weight))
        yield TextLine(
            _("No key of this row is allowed; in that case this network gives this key the weight {weight}.", weight=given)
        )
        return
    yield TextLine(
        _("Softmax: the exponential of the score (after subtracting the row’s largest score), divided by the sum over the row:")
    )
    value, largest = number(cell.scores[cell.key]), minus(cell.scores.max())
    parts = float(cell.exponentials[cell.key]), float(cell.total)
    decimals = decimals_of(operator.truediv, parts, cell.weight)
    above, below, result = number(parts[0], decimals), number(parts[1], decimals), number(cell.weight)
    softmax = rf"\frac{{\exp({value} {largest})}}{{\sum_k \exp(S'_k {largest})}}"
    yield TextLine(rf"{softmax} = \frac{{{above}}}{{{below}}} = \mathbf{{{result}}}", formula=True)
    yield TextLine(_("The run recorded {weight}.", weight=localized_number(cell.ran, ".7f")))


def share(cell: Explanation) -> Iterator[TextLine]:
    """How much of the head's context the key supplies; nothing where that is not defined."""
    if math.isfinite(cell.share):
        length = float(cell.moved[cell.key])
        numbers = {"share": localized_number(100 * cell.share, "z.1f"), "length": localized_number(length, significant(length))}
        yield TextLine(
            _(
                "This cell supplies {share}% of the head’s context vector: the component in that vector’s direction, "
                "so that a row adds up to 100%. It moves the residual stream by a vector of length {length}.",
                **numbers,
            )
        )


def title(page: Page, cell: Explanation) -> str:
    """Title of the calculation of a cell of the page's site."""
    query = tokens.queries(page.trace, page.attention)[cell.query]
    key = tokens.keys(page.trace, page.attention, longest=None)[cell.key]
    return _("How this weight was calculated: “{query}” attends to “{key}”", query=query, key=key)


def table(page: Page, cell: Explanation) -> pd.DataFrame:
    """The whole row as numbers."""
    keys = tokens.keys(page.trace, page.attention, longest=None)
    return pd.DataFrame(
        {
            _("allowed"): cell.allowed,
            _("score + mask"): cell.scores,
            _("exponential"): cell.exponentials,
            _("weight"): cell.weights,
            _("recorded weight"): page.attention.weights[cell.head, cell.query],
            _("contribution length"): cell.moved,
        },
        index=pd.Index([f"{position} {key}" for position, key in enumerate(keys, start=1)], name=_("key")),
    )
