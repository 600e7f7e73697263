"""Work: how many runs a question takes, counted before it begins from passes through the network, positions and samples. No torch.

A plain run of a sentence makes one small pass after the other. A question makes large ones, which cost less for each position
(docs/hosting.md has what was measured).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Protocol, Self

from model.engine.charging import Price
from model.errors import Phrase, phrase
from model.requests.external import AnySpec
from model.requests.network import ModelSpec
from model.trace.types import Site, Trace, sites

RUN = 1500
"""Positions of a question's passes, each at every site of the network, that take as long as a plain run of a short sentence."""

LONG = 256
"""Positions of a pass at which attention, whose work is their square, doubles what each of them costs."""


@dataclass(frozen=True)
class RunShape:
    """What the cost of a question depends on, of the run that it is about.

    Attributes:
        heads: numbers of heads by site, in the order in which they run.
        source: positions that an encoder reads; 0: there is none.
        fed: positions that the decoder reads.
        measured: target tokens whose probability counts.
        joins: whether copies pass only the layers after their change, as in networks of our own (layerwise.py).
    """

    heads: Mapping[Site, int]
    source: int
    fed: int
    measured: int
    joins: bool

    @classmethod
    def of(cls, spec: AnySpec, trace: Trace, prompt: int = 0) -> Self:
        """The shape of a run; `prompt` is that of `forced_run`."""
        source = len(trace.tokens["source"]) if "target" in trace.tokens else 0
        # The last one is predicted, and read by nobody.
        fed = len(trace.tokens.get("target", trace.tokens["source"])) - 1
        return cls(sites(spec), source, fed, fed - max(prompt - 1, 0), joins=isinstance(spec, ModelSpec))

    @property
    def positions(self) -> int:
        """Positions of one pass."""
        return self.source + self.fed

    @property
    def stretch(self) -> float:
        """How much more each position takes than in a short sentence."""
        return 1 + self.positions / LONG

    def runs(self, passes: float) -> int:
        """About as many plain runs of a short sentence as so many passes through the whole network."""
        return max(1, ceil(passes * self.positions * self.stretch * len(self.heads) / RUN))

    def share(self, site: Site) -> float:
        """How much of the network a copy passes that begins to differ at this site."""
        return 1 - [*self.heads].index(site) / (len(self.heads) + 1) if self.joins else 1.0

    def keys(self, site: Site, token: int) -> int:
        """Keys at a site that the row which writes a token may look at."""
        return self.source if site.stack == "encoder" or site.kind == "cross" else self.fed - self.measured + token + 1

    def shorter(self, positions: int) -> Self:
        """The shape of a run with so many positions, which are divided as those of this one are."""
        # Divided like the run at hand, since a question's cost depends on all three.
        source, fed, measured = (count * positions // self.positions for count in (self.source, self.fed, self.measured))
        return replace(self, source=source, fed=fed, measured=measured)


class Costly(Protocol):
    """A question whose cost follows from the shape of its run."""

    def runs(self, shape: RunShape) -> int:
        """About as many plain runs of a short sentence as it takes."""

    def cheaper(self, shape: RunShape) -> Iterable[tuple["Costly", Phrase]]:
        """Questions that tell a part of the same, each with the words that advise it."""


def price(question: Costly, shape: RunShape) -> Price:
    """What a question about a run of this shape costs."""
    return Price(question.runs(shape), partial(_instead, question, shape))


def _instead(question: Costly, shape: RunShape, allowed: int) -> Phrase:
    """What to ask instead of a question that takes more runs than are allowed."""
    for cheaper, advice in question.cheaper(shape):
        if cheaper.runs(shape) <= allowed:
            return advice
    # No cheaper question is cheap enough: then the longest run about which this one may be asked.
    for positions in reversed(range(1, shape.positions)):
        if question.runs(shape.shorter(positions)) <= allowed:
            return phrase("ask about a run of at most {count:,} tokens", count=positions)
    return phrase("ask it on a machine of your own")
