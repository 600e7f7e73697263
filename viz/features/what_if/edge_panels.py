"""The panels of what hiding each edge of attention does to one target token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from model.features.what_if.results import EdgeEffects
from model.trace.types import Site
from viz.figures.annotated_heatmap import grid
from viz.i18n.translate import _, join_sentences, number
from viz.labels import tokens as labels
from viz.panels import Panel, Plot
from viz.session.state import Page


@dataclass(frozen=True, eq=False)
class EdgeMap:
    """A map of edges whose keys are those of one strip.

    Attributes:
        panel: its picture; its points have their row and key as `customdata`.
        places: site and head of each row; head -1: all heads of the site.
    """

    panel: Panel
    places: tuple[tuple[str, int], ...]


def maps(page: Page, found: EdgeEffects) -> Iterator[EdgeMap]:
    """A map for each strip that is read: a row for each site, or for each head of the one that was asked about."""
    names = (
        [labels.site(Site.parse(site)) for site in found.sites]
        if found.heads[0] < 0
        else [_("head {head}", head=head + 1) for head in found.heads]
    )
    for strip in dict.fromkeys(found.strips):
        yield _map(page, found, strip, names)


def _map(page: Page, found: EdgeEffects, strip: str, names: Sequence[str]) -> EdgeMap:
    """The rows whose keys are those of one strip."""
    rows = [row for row, read in enumerate(found.strips) if read == strip]
    values = found.changes[rows]
    used = np.flatnonzero(~np.isnan(values).all(axis=0))
    values = values[:, : int(used.max(initial=0)) + 1]
    keys = [labels.word(text) for text in page.trace.tokens[strip].texts[: values.shape[1]]]
    form, emptied = f"+.{page.digits(4)}f", [_("This would leave a row without any key.")]

    def words(row: int, column: int, change: float) -> str:
        gaps = {"place": names[row], "key": keys[column], "number": number(change, form)}
        return join_sentences([_("{place}, key “{key}”: {number} nats", **gaps), *(emptied if found.emptied[row, column] else [])])

    hover = [[words(row, column, values[line, column]) for column in range(len(keys))] for line, row in enumerate(rows)]
    named = [names[row] for row in rows]
    token = labels.word(found.tokens[found.token])
    alt = _("What hiding each edge does to “{token}”: one row per attention layer or head, one column per key", token=token)
    of_what = "heads" if found.heads[rows[0]] >= 0 else "sites"
    name, title = f"matters-edges-{of_what}-{strip}", alt.partition(":")[0]
    plot = Plot(lambda dark: grid(named, keys, values, hover, dark, _("nats")), alt, name, title)
    return EdgeMap(Panel(name, title, plot), tuple((found.sites[row], found.heads[row]) for row in rows))


def about() -> str:
    """What the numbers are."""
    return _(
        "Change in this token’s log-probability (nats) when no row may attend to a key, in all heads of an "
        "attention layer together. Click or tap to hide that key from the query above."
    )
