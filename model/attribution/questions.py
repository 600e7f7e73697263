"""Questions: what can be asked about one run. Frozen, small and hashable, like the RunRequest in each. No torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Generic, Literal, Self, TypeAlias, TypeVar

from model.attribution.results import EdgeEffects, HeadEffects, PruneCurve, Result, WordEffects
from model.spec.request import RunRequest
from model.spec.validation import Between

Answer = TypeVar("Answer", bound=Result)
Measure: TypeAlias = Literal["without", "alone", "share"]
Order: TypeAlias = Literal["least", "most"]

PERMUTATIONS = 32
"""Orders of heads from which a Shapley value is estimated where it is not exact."""


@dataclass(frozen=True)
class Question(Generic[Answer]):
    """A question about one run. What is measured is the log-probability of the run's target: the one that `request` gives, or else
    the one that its run writes.

    A language model has no target strip: the target is what follows the prompt, either `request.target` or what it writes. With
    neither (`max_length` 0), it is the prompt itself, from its second token on.

    Attributes:
        request: the run. Its edits hold in every copy.
    """

    request: RunRequest

    @property
    def cost(self) -> int:
        """As how many runs the question counts where a server limits the pace of its callers."""
        return 20

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.request.model

    def about(self, request: RunRequest) -> Self:
        """The same question about another run."""
        return replace(self, request=request)


@dataclass(frozen=True)
class Heads(Question[HeadEffects]):
    """How much does each head matter?

    Attributes:
        measures: which numbers to compute; `share` takes the longest.
        permutations: orders of the heads of a site from which shares are estimated, where a site has more than ten heads.
        seed: seed of these orders.
    """

    measures: tuple[Measure, ...] = ("without", "alone", "share")
    permutations: Annotated[int, Between(2, 1024)] = PERMUTATIONS
    seed: Annotated[int, Between(0, 2**32 - 1)] = 0

    @property
    def cost(self) -> int:
        """Silencing each head takes about ten runs, a share hundreds of copies."""
        return 30 if "share" in self.measures else 10


@dataclass(frozen=True)
class Prune(Question[PruneCurve]):
    """How many heads can be silenced, one after the other, before it breaks?

    Attributes:
        order: `least` silences the head that costs least, `most` the one that costs most.
        every: whether all others are measured again after each step, which `most` always does; False: the most promising ones
            (prune.py), which is three times as fast.
    """

    order: Order = "least"
    every: bool = False

    @property
    def cost(self) -> int:
        """More if all heads are measured again after each step."""
        return 50 if self.every or self.order == "most" else 20


@dataclass(frozen=True)
class Words(Question[WordEffects]):
    """Which tokens did each target token depend on?"""


@dataclass(frozen=True)
class Edges(Question[EdgeEffects]):
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


QUESTIONS: Mapping[type[Question[Any]], type[Result]] = MappingProxyType(
    {Heads: HeadEffects, Prune: PruneCurve, Words: WordEffects, Edges: EdgeEffects}
)
"""All kinds of questions, each with the kind of its result."""


def result_of(question: Question[Answer]) -> type[Answer]:
    """The kind of the result of a question."""
    return QUESTIONS[type(question)]  # type: ignore[return-value]  # as each class says
