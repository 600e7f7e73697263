"""Joining: copies of one batch in the order in which they begin to differ, and how many of them join in front of each layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from model.attribution.copies import Copies, Edge, changed, columns_of
from model.trace.types import Array, Site
from model.transformer.attention import Intervention


class Layout:
    """Which sites each layer of a network has, and which columns of `Copies.silenced` are their heads.

    Args:
        sites: with their numbers of heads, in the order in which they run.
        layers: stack, pass and layer of each application of a layer, in the order in which they run.
    """

    def __init__(self, sites: dict[Site, int], layers: Sequence[tuple[str, int, int]]) -> None:
        columns = columns_of(sites)
        of_layer: list[list[Site]] = [[] for _ in layers]
        for site in sites:
            of_layer[layers.index((site.stack, site.pass_, site.layer))].append(site)
        self.columns = [[(site, columns[site]) for site in own] for own in of_layer]
        """Of each layer: its sites and their columns."""
        self.sites_before = np.cumsum([0, *map(len, of_layer)]).tolist()
        """Of each layer, and of the end: the number of sites in front of it."""
        self.heads_before = np.cumsum([0, *(sum(sites[site] for site in own) for own in of_layer)]).tolist()
        """The same, of heads."""

    def changed(
        self, number: int, silenced: Array | None, edges: Sequence[Edge | None] | None, device: torch.device
    ) -> dict[str, Intervention]:
        """The interventions that make each row of one layer another copy, by value name. Arrays are those of `Copies`."""
        found: dict[str, Intervention] = {}
        for site, columns in self.columns[number]:
            found |= changed(site, columns, silenced, edges, device)
        return found


@dataclass(frozen=True, eq=False)
class Rows:
    """Copies of a batch, in the order of the sites where they begin to differ.

    Attributes:
        copies: what they are.
        common: what they have in common.
        firsts: for each the number of the site where it begins to differ; of sites: nowhere.
        layout: of the network.
    """

    copies: Copies
    common: Copies
    firsts: Array
    layout: Layout

    def __len__(self) -> int:
        """The number of copies."""
        return len(self.firsts)

    @cached_property
    def _counts(self) -> list[int]:
        counts: list[int] = np.bincount(self.firsts, minlength=self.layout.sites_before[-1] + 1).tolist()
        return counts

    def before(self, number: int) -> int:
        """How many copies begin to differ in front of a layer."""
        return sum(self._counts[: self.layout.sites_before[number]])

    def part(self, begin: int, end: int) -> "Rows":
        """Some of the copies, next to each other."""
        return Rows(self.copies.rows(np.arange(begin, end)), self.common, self.firsts[begin:end], self.layout)

    def joining(self, number: int, first: bool) -> list[int]:
        """How many copies join in front of a layer, site by site; in front of a stack's first one all that differ before, too."""
        sites = slice(self.layout.sites_before[number], self.layout.sites_before[number + 1])
        early = [self.before(number)] if first else []
        return [count for count in (*early, *self._counts[sites]) if count]

    def interventions(self, number: int, rows: slice, device: torch.device, common: bool = False) -> dict[str, Intervention]:
        """The interventions that make some of the rows other copies in one layer, by the names of the values.

        Args:
            common: whether one more row follows, of what all have in common.
        """
        silenced = None if self.copies.silenced is None else self.copies.silenced[rows]
        if silenced is not None and common and self.common.silenced is not None:
            silenced = np.concatenate([silenced, self.common.silenced])
        edges = None if self.copies.edges is None else (*self.copies.edges[rows], *((None,) if common else ()))
        return self.layout.changed(number, silenced, edges, device)
