"""Copies: edited copies of one example, one a row, and the interventions that make each row another copy.

One function a site changes all rows at once, by an array [row, …]; there is no function a row. `Rows` are the copies of one
batch in the order in which they begin to differ, and say how many join in front of each layer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from model.trace.types import Array, Site
from model.transformer.attention import Intervention


@dataclass(frozen=True)
class Edge:
    """Edges that one copy forbids.

    Attributes:
        site: where.
        head: None: all heads.
        query: the row; None: every row.
        key: the forbidden key.
    """

    site: Site
    head: int | None
    query: int | None
    key: int


@dataclass(frozen=True, eq=False)
class Silencer:
    """What the context vectors of a silenced head are replaced by.

    Attributes:
        mean: the mean over the positions of the sentence, of a decoder over those so far, as the edit `silence by=sentence` does;
            False: zeros.
        valid: [position] of bool, which positions of the encoder are no padding; None: all.
        of_source: whether the rows of the decoder, too, are those of the source, which it has all at once.
    """

    mean: bool = False
    valid: Tensor | None = None
    of_source: bool = False

    def __call__(self, site: Site, silenced: Tensor) -> Intervention:
        """Replaces the vectors [row or 1, head, query, head_dim] of the heads that `silenced` [row, head] says.

        A value with one row, the same for all copies, gets a row for each: what follows is then computed for each.
        """
        chosen = silenced[:, :, None, None]

        def silence(context: Tensor, start: int) -> Tensor:
            # Three cases: zeros; one mean for all rows, where all rows are there at once; and of a decoder, for each row the mean
            # of the rows up to it, which is what a run that writes token by token can know.
            if not self.mean:
                return context.masked_fill(chosen, 0.0)
            if site.stack == "encoder" or self.of_source:
                all_ = torch.ones(context.shape[2], device=context.device)
                valid = self.valid if self.valid is not None and site.stack == "encoder" else all_
                # Padding has weight 0, every other position the same weight.
                weights = (valid / valid.sum()).to(context)[:, None]
                return torch.where(chosen, (context * weights).sum(dim=2, keepdim=True), context)
            counts = torch.arange(1, context.shape[2] + 1, device=context.device)[:, None]  # a copy is fed from its first row on
            return torch.where(chosen, (context.cumsum(dim=2) / counts).to(context.dtype), context)

        return silence


ZEROS = Silencer()


@dataclass(frozen=True, eq=False)
class Copies:
    """Edited copies of one example. What is None is the same in all of them.

    Attributes:
        sites: the sites of the network with their numbers of heads, in the order in which they run.
        silenced: [row, head] of bool, over all heads of all sites: True where the head is silenced.
        edges: the edges that each copy forbids; None in a copy that forbids none.
        source: [row, key], ids that the encoder reads.
        fed: [row, query], ids that the decoder reads.
        apart: whether rows differ in something that is not part of these fields.
        silencer: silences heads.
    """

    sites: Mapping[Site, int]
    silenced: Array | None = None
    edges: tuple[Edge | None, ...] | None = None
    source: Array | None = None
    fed: Array | None = None
    apart: bool = False
    silencer: Silencer = ZEROS

    def __len__(self) -> int:
        """Number of copies."""
        return next(len(part) for part in (self.silenced, self.edges, self.source, self.fed) if part is not None)

    def rows(self, index: Array) -> "Copies":
        """Some of the copies."""
        silenced, source, fed = (None if part is None else part[index] for part in (self.silenced, self.source, self.fed))
        edges = None if self.edges is None else tuple(self.edges[i] for i in index)
        return Copies(self.sites, silenced, edges, source, fed, self.apart, self.silencer)

    def of(self, stack: str) -> list[bytes]:
        """For each row what is changed in a stack: rows that are equal in it give the same bytes."""
        # Everything that a copy changes in the stack becomes one row of numbers. Where copies differ in more than that (`apart`),
        # their row number makes each different.
        parts = [np.arange(len(self))[:, None] * self.apart]
        if self.silenced is not None:
            parts.append(self.silenced[:, self._heads(stack)].astype(np.int64))
        if self.edges is not None:
            # Equal edges get equal numbers; 0 means no edge in this stack.
            numbers = {edge: number for number, edge in enumerate(dict.fromkeys(self.edges), start=1)}
            parts.append(np.array([[numbers[edge] if edge and edge.site.stack == stack else 0] for edge in self.edges]))
        ids = self.source if stack == "encoder" else self.fed
        if ids is not None:
            parts.append(ids.astype(np.int64))
        return [row.tobytes() for row in np.concatenate(parts, axis=1)]

    def changes(self, stack: str) -> bool:
        """Whether a copy changes anything in a stack."""
        ids = self.source if stack == "encoder" else self.fed
        return self.apart or ids is not None or bool(self.interventions(stack, torch.device("cpu")))

    def common(self) -> "Copies":
        """One copy: the heads that are silenced in all copies. Edges and ids are those of no copy."""
        silenced = None if self.silenced is None else np.asarray(self.silenced.all(axis=0, keepdims=True))
        return Copies(self.sites, silenced, None if self.edges is None else (None,), silencer=self.silencer)

    def first_sites(self) -> Array:
        """For each row the number of the first site where it differs from what all have in common; of sites: nowhere."""
        first = np.full(len(self), len(self.sites))
        if self.silenced is not None:
            # `argmax` of booleans is the first True: the first head that is silenced here and not in all copies. Where there is
            # none it is 0 by accident, hence `any`.
            differs = self.silenced & ~self.silenced.all(axis=0)
            of_head = np.repeat(np.arange(len(self.sites)), list(self.sites.values()))
            first = np.where(differs.any(axis=1), of_head[differs.argmax(axis=1)], first)
        if self.edges is not None:
            # An edge is never common to all copies, not even if all have the same one.
            numbers = {site: number for number, site in enumerate(self.sites)}
            first = np.minimum(first, [numbers[edge.site] if edge else len(numbers) for edge in self.edges])
        return first

    def batches(self, most: int, passes: Array, units: Callable[[], float]) -> Iterator[Array]:
        """The rows in batches, in the order of the sites where they begin to differ.

        Args:
            most: rows of a batch.
            passes: [row], how much of the network each goes through.
            units: says how many passes the next batch should take; it has one row at least.
        """
        # Neighbors in this order begin to differ in the same layers, so a batch of them has the longest way in common.
        left = np.argsort(self.first_sites(), kind="stable")
        while len(left):
            # As many of the next copies as together take at most `units()` passes: copies that differ late count as a part of a
            # pass.
            within = int(np.searchsorted(np.cumsum(passes[left]), units(), side="right"))
            batch, left = np.split(left, [max(1, min(most, within))])
            yield batch

    def interventions(self, stack: str, device: torch.device) -> dict[str, Intervention]:
        """The interventions that make each row of a stack another copy, by the names of the values."""
        interventions: dict[str, Intervention] = {}
        for site, columns in columns_of(self.sites).items():
            if site.stack == stack:
                interventions |= changed(site, columns, self, device)
        return interventions

    def _heads(self, stack: str) -> list[int]:
        columns = columns_of(self.sites)
        return [head for site in self.sites if site.stack == stack for head in range(columns[site].start, columns[site].stop)]


def columns_of(sites: Mapping[Site, int]) -> dict[Site, slice]:
    """The columns of `Copies.silenced` that are the heads of each site."""
    ends = np.cumsum(list(sites.values())).tolist()
    return {site: slice(end - heads, end) for (site, heads), end in zip(sites.items(), ends, strict=True)}


def changed(site: Site, columns: slice, copies: Copies, device: torch.device) -> dict[str, Intervention]:
    """The interventions that make each row of one site another copy, by the names of the values."""
    interventions, silenced, edges = dict[str, Intervention](), copies.silenced, copies.edges
    if silenced is not None and (of_site := silenced[:, columns]).any():
        rows = of_site[:1] if (of_site == of_site[:1]).all() else of_site  # one row where all are the same
        interventions[f"attention/{site}/context"] = copies.silencer(site, torch.tensor(rows, device=device))
    if edges is not None and any(edge and edge.site == site for edge in edges):
        interventions[f"attention/{site}/mask"] = _forbidding(site, columns.stop - columns.start, edges)
    return interventions


def _forbidding(site: Site, heads: int, edges: Sequence[Edge | None]) -> Intervention:
    """A mask [row, head or 1, query, key] in which each row's edge at `site` is closed."""
    forbidden = [(row, edge) for row, edge in enumerate(edges) if edge and edge.site == site]
    each_head = any(edge.head is not None for _, edge in forbidden)

    def forbid(mask: Tensor, start: int) -> Tensor:
        # Masks usually have one row and one head for all: now each copy gets a row, and each head only if an edge names one.
        wide = mask.expand(len(edges), heads if each_head else -1, -1, -1).clone()
        # A copy is fed all at once, so positions are indices, and `start` is 0.
        for row, edge in forbidden:
            head = slice(None) if edge.head is None else edge.head
            query = slice(None) if edge.query is None else edge.query
            wide[row, head, query, edge.key] = False
        return wide

    return forbid


def chained(first: Mapping[str, Intervention], then: Mapping[str, Intervention]) -> dict[str, Intervention]:
    """Both sets of interventions, one after the other where they change the same value."""

    def both(name: str) -> Intervention:
        before, after = first.get(name), then.get(name)
        if before is None or after is None:
            change = before or after
            assert change is not None
            return change
        return lambda value, start: after(before(value, start), start)

    # The names of `first` keep their order, then come those that only `then` has.
    return {name: both(name) for name in (*first, *(name for name in then if name not in first))}


class Layout:
    """Which sites each layer of a network has, and which columns of `Copies.silenced` are their heads.

    Args:
        sites: with their numbers of heads, in the order in which they run.
        layers: stack, pass and layer of each application of a layer, in the order in which they run.
    """

    def __init__(self, sites: dict[Site, int], layers: Sequence[tuple[str, int, int]]) -> None:
        columns = columns_of(sites)
        # A layer of a decoder has up to two sites, self and cross, in the order in which they run.
        of_layer: list[list[Site]] = [[] for _ in layers]
        for site in sites:
            of_layer[layers.index((site.stack, site.pass_, site.layer))].append(site)
        self.columns = [[(site, columns[site]) for site in sites_of_layer] for sites_of_layer in of_layer]
        """Of each layer: its sites and their columns."""
        self.sites_before = np.cumsum([0, *map(len, of_layer)]).tolist()
        """Of each layer, and of the end: the number of sites in front of it."""
        self.heads_before = np.cumsum([0, *(sum(sites[site] for site in sites_of_layer) for sites_of_layer in of_layer)]).tolist()
        """The same, of heads."""

    def changed(self, number: int, copies: Copies, device: torch.device) -> dict[str, Intervention]:
        """The interventions that make each row of one layer another copy, by value name."""
        interventions: dict[str, Intervention] = {}
        for site, columns in self.columns[number]:
            interventions |= changed(site, columns, copies, device)
        return interventions


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
        # Those of a site stand together, since the batch is sorted by site.
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
            # What all have in common is the last row; of edges it has none.
            silenced = np.concatenate([silenced, self.common.silenced])
        edges = None if self.copies.edges is None else (*self.copies.edges[rows], *((None,) if common else ()))
        part = Copies(self.copies.sites, silenced, edges, silencer=self.copies.silencer)
        return self.layout.changed(number, part, device)
