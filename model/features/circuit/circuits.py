"""Circuits: which earlier part each head's queries, keys and values used in one run, and which paths between heads carry what tells
two sentences apart. A question and the results, no torch.

docs/circuit.md derives the numbers. Arrays are float64, NaN where a head does not read a part. Axis names: side (query, key or
value), head (a reading one), part (what wrote into the stream).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import ceil
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from model.errors import BadSetting, Phrase, phrase
from model.features.circuit.sums import Index, Part
from model.features.what_if.questions import Attribution
from model.features.what_if.results import Arrays, Head, Result, plain
from model.features.what_if.work import Costly, RunShape
from model.requests.inputs import Given
from model.requests.questions import RunQuestion
from model.requests.validation import Between
from model.trace.types import Array, Site

Side: TypeAlias = Literal["query", "key", "value"]
"""What a head makes of the stream that it reads."""

SIDES: tuple[Side, ...] = ("query", "key", "value")

PAIRS = 400
"""Pairs of heads whose parts of a circuit take as long as a plain run of a short sentence."""


@dataclass(frozen=True)
class Circuit(RunQuestion["CircuitGraph"]):
    """Which earlier parts did the queries, keys and values of each head use in a run?

    The run records everything, whatever `request.keep` says, so that equal requests share it.

    Attributes:
        row: count only this row of the stack that writes, from 0; None: all rows that have a choice. A head can need another one
            in a single row, which the mean over all rows hides.
    """

    row: Index | None = None

    def runs(self, shape: RunShape) -> int:
        """A part for each side of each pair of heads; the network runs once."""
        heads = sum(shape.heads.values())
        return 2 + ceil(len(SIDES) * heads * (heads - 1) / 2 * shape.stretch / PAIRS)

    def cheaper(self, shape: RunShape) -> Iterable[tuple[Costly, Phrase]]:
        """None tells a part of the same."""
        return ()


@dataclass(frozen=True)
class Paths(Attribution["PathEffects"]):
    """Which paths from one head to another carry what tells the run from a corrupted one?

    Attributes:
        corrupted: the source of the corrupted run: as many tokens as that of the run.
        token: index of the target token, counted from 0, the first measured one.
        minus: the id of the token whose logit is taken away; `corrupted`: the likeliest other one of the corrupted run there.
        site, head: measure only the paths to this head; empty and -1: those to every head.
        shared: whether a path to a key or value is a path to all heads that share it.
    """

    corrupted: Given
    token: Annotated[int, Between(0, 2**31)] = 0
    minus: Annotated[int, Between(0, 2**31)] | Literal["corrupted"] = "corrupted"
    site: str = ""
    head: int = -1
    shared: bool = False

    def passes(self, shape: RunShape) -> float:
        """One for each path."""
        # Of a named site one head is reached, of the others none; without a name every head of every site.
        later = {site: 1 if self.site else heads for site, heads in shape.heads.items() if self.site in ("", str(site))}
        return 2 + sum(heads * _paths_to(site, shape) for site, heads in later.items())

    def cheaper(self, shape: RunShape) -> Iterable[tuple[Costly, Phrase]]:
        """The paths to one head."""
        if not self.site:
            yield replace(self, site=str([*shape.heads][-1]), head=0), phrase("name the head that the paths lead to")


def _paths_to(site: Site, shape: RunShape) -> int:
    """Paths that lead to one head of a site: to its queries from its own stack, to keys and values from the stack that it reads."""
    # Sites come in the order in which they run.
    earlier = [*takewhile(lambda other: other != site, shape.heads)]
    to_query = sum(shape.heads[other] for other in earlier if other.stack == site.stack)
    read = "encoder" if site.kind == "cross" else site.stack
    # Keys and values are two sides, and both are read from the same stack.
    return to_query + 2 * sum(shape.heads[other] for other in earlier if other.stack == read)


@dataclass(frozen=True)
class Edge:
    """What one head used of one part.

    Attributes:
        side: of the reading head.
        head: the reading head.
        part: what it read.
        used: of a query or key, what the part adds to the mean lift of a row (`CircuitGraph`); of a value, its share of the output.
        share: |used| divided by the sum of all |used| of this side of the head.
        composition: how far the two heads' matrices compose; NaN where no head wrote the part.
    """

    side: Side
    head: Head
    part: Part
    used: float
    share: float
    composition: float


@dataclass(frozen=True, eq=False)
class CircuitGraph(Arrays):
    """What each head used: the result of `Circuit`.

    The *lift* of a row is the mean score of what the row reads, each key by its weight, minus the mean score of all keys that it
    may attend to: what the softmax made of the scores. Rows with a single key have none.

    Attributes:
        heads: the reading heads, in the order in which they run.
        parts: what any of them read.
        used: [side, head, part]; of queries and keys what the part adds to the lift, the mean over the rows that the question
            counts; of values its share of the head's output in these rows, measured along that output.
        total: [side, head], the same lift from the recorded scores and weights, and 1 for values: what `used` adds up to.
        difference: [side, head], how far the sums are from it.
        tolerance: [side, head], largest difference that rounding in the run's number type explains.
        composition: [side, head, part], of a part that a head wrote: the norm of the product of both heads' matrices, divided by
            the product of their norms, from the weights alone.
        chance: [head], the root mean square of that for a random matrix in place of the earlier head's: 1 / √model.
        copying: [head], from -1 to 1: whether the output matrix makes tokens likelier that the head reads; NaN where what it reads
            and what is written are not the same vocabulary.
    """

    heads: tuple[Head, ...]
    parts: tuple[Part, ...]
    used: Array
    total: Array
    difference: Array
    tolerance: Array
    composition: Array
    chance: Array
    copying: Array

    @property
    def agrees(self) -> bool:
        """Whether every sum is what the run recorded, up to rounding; False if no sum is known.

        Heads that an edit changed, or whose numbers are NaN, are left out.
        """
        known = ~np.isnan(self.total)
        return bool(known.any() and (self.difference[known] <= self.tolerance[known]).all())

    @property
    def shares(self) -> Array:
        """[side, head, part], |used| divided by its sum over the parts."""
        sizes = np.abs(self.used)
        # A head that used nothing has the sum 0. Its shares are NaN, which is no reason for a warning.
        with np.errstate(all="ignore"):
            return np.asarray(sizes / np.nansum(sizes, axis=2, keepdims=True))

    def edges(self, least: float = 0.0) -> Iterator[Edge]:
        """The edges with at least this share, in the order of the run."""
        shares = self.shares
        # NaN is never as large as `least`: what a head does not read makes no edge.
        for side, head, part in np.argwhere(shares >= least).tolist():
            cell = side, head, part
            numbers = float(self.used[cell]), float(shares[cell]), float(self.composition[cell])
            yield Edge(SIDES[side], self.heads[head], self.parts[part], *numbers)

    def left_out(self, least: float) -> float:
        """The share of all that heads used of earlier heads which edges of a smaller share have: from 0 to 1."""
        of_heads = self.shares[:, :, [part.kind == "head" for part in self.parts]]
        whole = np.nansum(of_heads)
        return float(np.nansum(of_heads[of_heads < least]) / whole) if whole else 0.0

    def readable_share(self) -> float:
        """The smallest share at which a picture of the edges begins: 0.05, or less where that would leave out more than half."""
        # A picture of all edges cannot be read, and one that leaves out most of what happened would mislead.
        return next((least for least in (0.05, 0.04, 0.03, 0.02) if self.left_out(least) <= 0.5), 0.01)

    def to_json(self) -> dict[str, Any]:
        """`edges` lists every edge, `heads` each head with its sums. NaN becomes null."""
        edges = [
            {"side": edge.side, "site": edge.head.site, "head": edge.head.head, "part": vars(edge.part) | {"text": str(edge.part)}}
            | {"used": plain(edge.used), "share": plain(edge.share), "composition": plain(edge.composition)}
            for edge in self.edges()
        ]
        heads = [
            {"site": head.site, "head": head.head, "copying": plain(self.copying[row]), "chance": plain(self.chance[row])}
            | {"total": dict(zip(SIDES, plain(self.total[:, row]), strict=True))}
            | {"difference": dict(zip(SIDES, plain(self.difference[:, row]), strict=True))}
            for row, head in enumerate(self.heads)
        ]
        return {"agrees": self.agrees, "heads": heads, "edges": edges}


@dataclass(frozen=True, eq=False)
class PathEffects(Result):
    """What each path between two heads carries: the result of `Paths`.

    Measured is the logit of one token minus that of another, in the clean run. A path is patched by adding, to the query, key or
    value of the later head alone, what the earlier head's output of the corrupted run makes of it minus what its own does.

    Attributes:
        token: which of the measured tokens.
        other, other_text: the token whose logit is taken away.
        heads: all heads, in the order in which they run.
        effects: [side, head, earlier head], the change of the logit difference; NaN where there is no path, or none was asked for.
        estimates: [side, head, earlier head], the same by gradients (attribution patching).
        clean, corrupted: the logit difference in either run.
        kept: [step], of how many paths, the ones of the largest effects, the clean run is kept; on all others the earlier head's
            output is read as in the corrupted run. Empty where only some heads were asked for.
        kept_difference, kept_log_probability: [step], the logit difference, and the log-probability of the token.
    """

    token: int
    other: int
    other_text: str
    heads: tuple[Head, ...]
    effects: Array
    estimates: Array
    clean: float
    corrupted: float
    kept: Array
    kept_difference: Array
    kept_log_probability: Array

    @property
    def rank(self) -> float:
        """Rank correlation (Spearman) of effects and estimates over all paths; NaN for fewer than three, or where all are equal."""
        return spearman(*(values[~np.isnan(self.effects)] for values in (self.effects, self.estimates)))

    def to_json(self) -> dict[str, Any]:
        """`paths` lists every path with its `effect` and `estimate`, the largest first. NaN becomes null."""
        arrays = ("heads", "effects", "estimates")
        summary = {name: value for name, value in super().to_json().items() if name not in arrays}
        places = np.argwhere(~np.isnan(self.effects))
        # A path that lowers the difference counts as much as one that raises it.
        order = np.argsort(-np.abs(self.effects[tuple(places.T)]), kind="stable")
        paths = [
            {"side": SIDES[side], "to": vars(self.heads[head]), "from": vars(self.heads[earlier])}
            | {"effect": plain(self.effects[side, head, earlier]), "estimate": plain(self.estimates[side, head, earlier])}
            for side, head, earlier in places[order].tolist()
        ]
        return summary | {"rank": plain(self.rank), "paths": paths}


def mean_of(effects: Sequence[PathEffects]) -> PathEffects:
    """The mean of results of several pairs: effects, estimates and logit differences, and of kept paths where all kept as many.

    The tokens are those of the first pair.
    """
    averaged = ["effects", "estimates", "clean", "corrupted"]
    if all(np.array_equal(pair.kept, effects[0].kept) for pair in effects):
        averaged += ["kept_difference", "kept_log_probability"]
    # `np.mean` makes numbers of numpy's own type of the two fields that are plain numbers: those are made plain again below.
    means = {name: np.mean([getattr(pair, name) for pair in effects], axis=0) for name in averaged}
    return replace(effects[0], **means | {name: float(means[name]) for name in ("clean", "corrupted")})


LONGEST_FILE = 2**20
"""Bytes of a file of pairs."""


def read_pairs(data: bytes, name: str) -> tuple[tuple[str, str], ...]:
    """The pairs of texts in a file, one a line, clean and corrupted text with a tab between; empty lines are passed over.

    Args:
        name: names the file in errors.

    Raises:
        BadSetting: it is too large, no text in UTF-8, or a line is no pair.
    """
    if len(data) > LONGEST_FILE:
        raise BadSetting(name=name, found=f"{len(data):,}", allowed=phrase("at most {most:,} bytes", most=LONGEST_FILE))
    try:
        # Some editors begin a file with a byte order mark, which would become part of the first text; utf-8-sig drops
        # it.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        allowed = phrase("a text file in UTF-8; byte {number:,} of this file is not UTF-8", number=error.start + 1)
        raise BadSetting(name=name, found=f"0x{data[error.start]:02X}", allowed=allowed) from error
    pairs = list[tuple[str, str]]()
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            clean, tab, corrupted = line.partition("\t")
            # A second tab is refused, too: a third column would silently become part of the corrupted text.
            if not tab or not clean.strip() or not corrupted.strip() or "\t" in corrupted:
                allowed = phrase("two texts with one tab between them, which line {number:,} does not have", number=number)
                raise BadSetting(name=name, found=line[:40], allowed=allowed)
            pairs.append((clean, corrupted))
    if not pairs:
        raise BadSetting(name=name, found="", allowed=phrase("at least one line with two texts and a tab between them"))
    return tuple(pairs)


def spearman(first: Array, second: Array) -> float:
    """The correlation of the ranks of two measures [thing], equal values sharing their mean rank.

    NaN where there are fewer than three things, or one measure is constant.

    Source: Spearman 1904, "The Proof and Measurement of Association between Two Things".
    """
    # Two points are always on a line, and a constant has no ranks to compare (0 / 0).
    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    ranks = list[Array]()
    for values in (first, second):
        # The running count is the highest rank of each group of equal values. The mean rank of a group of n is (n -
        # 1) / 2 below it.
        _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(counts) - (counts - 1) / 2)[places])
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
