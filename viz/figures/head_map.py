"""A number of each head, layers × heads."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Site
from viz.figures.annotated_heatmap import grid
from viz.i18n.translate import _
from viz.labels import tokens


def head_map(numbers: Mapping[tuple[str, int], float], words: Callable[[str, float], str], quantity: str, dark: bool) -> go.Figure:
    """The numbers of heads by site and head; the `customdata` of a point is its place among `sites_of(numbers)`, and its head.

    Args:
        words: what pointing at a head says, given its name and its number.
        quantity: what the numbers are.
    """
    sites = sites_of(numbers)
    width = 1 + max(head for _site, head in numbers)
    values = np.full((len(sites), width), np.nan)
    hover = [[""] * width for _site in sites]
    for (site, head), value in numbers.items():
        row = sites.index(site)
        values[row, head] = value
        hover[row][head] = words(tokens.site(Site.parse(site), head), value)
    names = [tokens.site(Site.parse(site)) for site in sites]
    return grid(names, [_("H{head}", head=head + 1) for head in range(width)], values, hover, dark, quantity)


def sites_of(numbers: Mapping[tuple[str, int], float]) -> list[str]:
    """The sites of numbers of heads, in the order of their rows in a map."""
    return by_kind(list(dict.fromkeys(site for site, _head in numbers)))


def by_kind(sites: Sequence[str]) -> list[str]:
    """Sites in the order of the overview: those of a kind together, each in the order in which they run."""
    parsed = [Site.parse(site) for site in sites]
    kinds = list(dict.fromkeys((site.stack, site.kind) for site in parsed))
    return [str(site) for site in sorted(parsed, key=lambda site: kinds.index((site.stack, site.kind)))]
