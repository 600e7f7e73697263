"""Questions: what can be asked about one run. Frozen, small and hashable, like the RunRequest in each. No torch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from model.features.what_if.results import EdgeEffects, HeadEffects, PruneCurve, Result, WordEffects
from model.spec.questions import RunQuestion
from model.spec.request import RunRequest
from model.spec.validation import Between

Measured = TypeVar("Measured", bound=Result)
Measure: TypeAlias = Literal["without", "alone", "share"]
Order: TypeAlias = Literal["least", "most"]

MOST_EXACT = 10
"""Heads of a site up to which a share is exact."""

PERMUTATIONS = 32
"""Orders of heads from which a Shapley value is estimated where it is not exact."""


@dataclass(frozen=True)
class Attribution(RunQuestion[Measured]):
    """What was something in a run for? What is measured is the log-probability of the run's target: the one that `request` gives,
    or else the one that its run writes.

    A language model has no target strip: the target is what follows the prompt, either `request.target` or what it writes. With
    neither (`max_length` 0), it is the prompt itself, from its second token on. The edits of the request hold in every copy.
    """

    @property
    def cost(self) -> int:
        """Usually as many runs as 20."""
        return 20

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
            return (1 << heads) - 1  # every set of heads but all of them; the other measures need no more
        each = ("without" in self.measures) + ("alone" in self.measures and heads > 1)
        return heads * each + (1 + self.permutations * (heads - 1) if "share" in self.measures else 0)

    @property
    def cost(self) -> int:
        """Silencing each head takes about ten runs, a share hundreds of copies."""
        return 30 if "share" in self.measures else 10


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
    def cost(self) -> int:
        """More if all heads are measured again after each step."""
        return 50 if self.every or self.order == "most" else 20


@dataclass(frozen=True)
class Words(Attribution[WordEffects]):
    """Which tokens did each target token depend on?"""


@dataclass(frozen=True)
class Edges(Attribution[EdgeEffects]):
    """Which edges of attention did one target token depend on?

    Attributes:
        token: index of the target token, counted from 0, the first measured one.
        site: measure each head of this site alone; empty: all heads of each site together.
    """

    token: Annotated[int, Between(0, 2**31)]
    site: str = ""

    @property
    def cost(self) -> int:
        """One copy for each edge."""
        return 10


QUESTIONS: Mapping[type[Attribution[Any]], type[Result]] = MappingProxyType(
    {Heads: HeadEffects, Prune: PruneCurve, Words: WordEffects, Edges: EdgeEffects}
)
"""All kinds of questions, each with the kind of its result."""
