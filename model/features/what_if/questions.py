"""Questions: what can be asked about one run. Frozen, small and hashable, like the RunRequest in each. No torch."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from model.errors import Phrase, phrase
from model.features.what_if.results import EdgeEffects, HeadEffects, PruneCurve, Result, WordEffects
from model.features.what_if.work import Costly, RunShape
from model.requests.questions import RunQuestion
from model.requests.request import RunRequest
from model.requests.validation import Between

Measured = TypeVar("Measured", bound=Result)
Measure: TypeAlias = Literal["without", "alone", "share"]
Order: TypeAlias = Literal["least", "most"]

MOST_EXACT = 10
"""Heads of a site up to which a share is exact."""

PERMUTATIONS = 32
"""Orders of heads from which a Shapley value is estimated where it is not exact."""

GRADIENT_POINTS, GRADIENT_FORWARD = 160, 2
"""Points for which integrated gradients are usually computed, and passes at each of them beside one for each target token."""

QUICKER = 3
"""How many times less the quick approximation of pruning measures."""


@dataclass(frozen=True)
class Attribution(RunQuestion[Measured]):
    """What was something in a run for? What is measured is the log-probability of the run's target: the one that `request` gives,
    or else the one that its run writes.

    A language model has no target strip: the target is what follows the prompt, either `request.target` or what it writes. With
    neither (`max_length` 0), it is the prompt itself, from its second token on. The edits of the request hold in every copy.
    """

    @abstractmethod
    def passes(self, shape: RunShape) -> float:
        """About how many times it passes through the whole network of a run of this shape, forward or backward."""

    def runs(self, shape: RunShape) -> int:
        """About as many plain runs of a short sentence as it takes."""
        return shape.runs(self.passes(shape))

    def cheaper(self, shape: RunShape) -> Iterable[tuple[Costly, Phrase]]:
        """Questions that tell a part of the same, each with the words that advise it."""
        return ()

    def about(self, request: RunRequest) -> Self:
        """The same question about another run."""
        return replace(self, request=request)


@dataclass(frozen=True)
class Heads(Attribution[HeadEffects]):
    """How much does each head matter?

    Attributes:
        measures: which numbers to compute; `share` takes the longest.
        permutations: orders of the heads of a site from which shares are estimated, where a site has more than ten heads.
        seed: seed of these orders.
        by: what the context of a silenced head is replaced by: zeros, or its mean over the positions of the sentence.
    """

    measures: tuple[Measure, ...] = ("without", "alone", "share")
    permutations: Annotated[int, Between(2, 1024)] = PERMUTATIONS
    seed: Annotated[int, Between(0, 2**32 - 1)] = 0
    by: Literal["zeros", "mean"] = "zeros"

    def copies(self, heads: Iterable[int]) -> int:
        """Most edited copies of the run that are fed, for sites with these numbers of heads."""
        return 1 + sum(map(self._copies, heads))

    def _copies(self, heads: int) -> int:
        if "share" in self.measures and heads <= MOST_EXACT:
            # Every set of heads but all of them; the other measures need no more.
            return (1 << heads) - 1
        without = "without" in self.measures
        # Of two heads, one alone is without the other.
        alone = "alone" in self.measures and heads > (2 if without else 1)
        return heads * (without + alone) + (1 + self.permutations * (heads - 1) if "share" in self.measures else 0)

    def passes(self, shape: RunShape) -> float:
        """One for each copy, from the site on where it begins to differ."""
        return 1 + sum(shape.share(site) * self._copies(heads) for site, heads in shape.heads.items())

    def cheaper(self, shape: RunShape) -> Iterable[tuple[Costly, Phrase]]:
        """The other measures, without the shares."""
        rest = tuple(measure for measure in self.measures if measure != "share")
        if rest and rest != self.measures:
            yield replace(self, measures=rest), phrase("leave out the shares")


@dataclass(frozen=True)
class Prune(Attribution[PruneCurve]):
    """How many heads can be silenced, one after the other, before it breaks?

    Attributes:
        order: `least` silences the head that costs least, `most` the one that costs most.
        every: whether all others are measured again after each step, which `most` always does; False: the most promising ones
            (heads.py), an approximation that is three times as fast.
    """

    order: Order = "least"
    every: bool = True

    @property
    def _measures_all(self) -> bool:
        return self.every or self.order == "most"

    def passes(self, shape: RunShape) -> float:
        """One for each head that is left, after each step."""
        # As many as there are heads, with half of the heads left on average.
        steps = (sum(shape.heads.values()) + 1) / 2
        passes = 1 + steps * sum(shape.share(site) * heads for site, heads in shape.heads.items())
        return passes if self._measures_all else passes / QUICKER

    def cheaper(self, shape: RunShape) -> Iterable[tuple[Costly, Phrase]]:
        """The quick approximation."""
        if self.order == "least" and self.every:
            yield replace(self, every=False), phrase("ask for the quick approximation")


@dataclass(frozen=True)
class Words(Attribution[WordEffects]):
    """Which tokens did each target token depend on?"""

    def passes(self, shape: RunShape) -> float:
        """A copy for each token that is taken out or replaced, and gradients at each point, for each target token."""
        return 2 * (1 + shape.positions) + GRADIENT_POINTS * (GRADIENT_FORWARD + shape.measured)


@dataclass(frozen=True)
class Edges(Attribution[EdgeEffects]):
    """Which edges of attention did one target token depend on?

    Attributes:
        token: index of the target token, counted from 0, the first measured one.
        site: measure each head of this site alone; empty: all heads of each site together.
    """

    token: Annotated[int, Between(0, 2**31)]
    site: str = ""

    def passes(self, shape: RunShape) -> float:
        """One for each edge, of all heads of a site together or of each head of one site."""
        # Heads of one site, each by itself; or one row for each site, with all its heads together.
        rows = {site: heads for site, heads in shape.heads.items() if str(site) == self.site} or dict.fromkeys(shape.heads, 1)
        return 1 + sum(count * shape.share(site) * shape.keys(site, self.token) for site, count in rows.items())


QUESTIONS: Mapping[type[Attribution[Any]], type[Result]] = MappingProxyType(
    {Heads: HeadEffects, Prune: PruneCurve, Words: WordEffects, Edges: EdgeEffects}
)
"""All kinds of questions, each with the kind of its result."""
