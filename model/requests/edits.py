"""The kinds of edits: what a request changes while its network runs, as frozen values in the order in which they apply.

Each has a text form, `NAME key=value …` (`model/requests/edit.py`), which links, the command line and JSON use. docs/what-if.md
defines what each one computes. Whether the network has what an edit names is checked when it runs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from model.errors import phrase
from model.requests.edit import EDITS as EDITS
from model.requests.edit import MOST_EDITS as MOST_EDITS
from model.requests.edit import AtSites as AtSites
from model.requests.edit import Edit as Edit
from model.requests.edit import Token as Token
from model.requests.edit import bounded as bounded
from model.requests.edit import read_edits as read_edits
from model.requests.edit import write_edits as write_edits

Stack: TypeAlias = Literal["encoder", "decoder"]


@dataclass(frozen=True)
class _Edges(AtSites):
    """Edges from query tokens to key tokens, each all where left out."""

    query: tuple[Token, ...] = ()
    key: tuple[Token, ...] = ()


@dataclass(frozen=True)
class Forbid(_Edges):
    """Edges that the mask closes, before the softmax, so that the rest of the row is brought to sum 1."""

    name = "forbid"


@dataclass(frozen=True)
class Allow(_Edges):
    """Edges that the mask opens: to the future or to padding, too."""

    name = "allow"


@dataclass(frozen=True)
class SetRow(AtSites):
    """Rows of weights that are replaced.

    Attributes:
        query: the rows; empty: all.
        to: equal weights on the allowed keys, all weight on the token `key`, the typed `numbers`, or the row of the `other` head.
        key: of `one-hot`.
        numbers: of `numbers`, one a key, from the first on; they are divided by their sum.
        other: of `head`, counted from 0.
    """

    name = "set-row"
    query: tuple[Token, ...] = ()
    to: Literal["uniform", "one-hot", "numbers", "head"] = "uniform"
    key: Token | None = None
    numbers: tuple[float, ...] = ()
    other: int | None = None

    def __post_init__(self) -> None:
        """Checks that there is what `to` needs, and no more.

        Raises:
            BadEdit: something is missing or has no effect, or numbers cannot be weights.
        """
        # What is given has to have an effect: a key beside `to=uniform` would be read by nothing, and is an error.
        super().__post_init__()
        given = {"one-hot": self.key is not None, "numbers": bool(self.numbers), "head": self.other is not None}
        needs = {"one-hot": "key", "numbers": "numbers", "head": "other"}
        for to, is_given in given.items():
            if is_given != (self.to == to):
                raise self.refuse(phrase("to={to} goes with {field}", to=to, field=needs[to]))
        if self.numbers and not (min(self.numbers) >= 0 and 0 < sum(self.numbers) < float("inf")):
            raise self.refuse(phrase("numbers must be 0 or above, and one of them above 0"))


@dataclass(frozen=True)
class Silence(AtSites):
    """Heads whose context vectors are replaced.

    Attributes:
        by: zeros, the mean of the sentence's positions, or the mean over the model's example sentences or its survey's texts.
    """

    name = "silence"
    by: Literal["zeros", "sentence", "examples", "survey"] = "zeros"


def silences(heads: Iterable[tuple[str, int]]) -> tuple[Silence, ...]:
    """Edits that silence heads, each a site and a number: one edit a site, in the order in which the sites come."""
    by_site: dict[str, list[int]] = {}
    for site, head in heads:
        by_site.setdefault(site, []).append(head)
    return tuple(Silence(site, tuple(of_site)) for site, of_site in by_site.items())


@dataclass(frozen=True)
class Sharpen(AtSites):
    """Scores that are multiplied by `factor`: above 1 sharper, below 1 flatter, 0 uniform."""

    name = "sharpen"
    factor: float = 2.0


@dataclass(frozen=True)
class NoPositions(Edit):
    """No positional encodings in a stack."""

    name = "no-positions"
    stack: Stack


@dataclass(frozen=True)
class SwapPositions(Edit):
    """The positional encodings of two tokens, exchanged."""

    name = "swap-positions"
    stack: Stack
    a: Token
    b: Token


@dataclass(frozen=True)
class ShiftPositions(Edit):
    """Each token gets the positional encoding of the place `by` positions on."""

    name = "shift-positions"
    stack: Stack
    by: int


@dataclass(frozen=True)
class SinusoidalPositions(Edit):
    """The sinusoids of the paper instead of the stack's own positional encodings."""

    name = "sinusoidal-positions"
    stack: Stack


@dataclass(frozen=True)
class SkipLayer(Edit):
    """A layer whose output is its input, in every pass."""

    name = "skip-layer"
    stack: Stack
    layer: int


@dataclass(frozen=True)
class SkipSublayer(Edit):
    """A sublayer that adds nothing to the residual stream.

    Attributes:
        at: an attention site, or the feed-forward sublayer of a layer, such as decoder.0.2.feed_forward.
    """

    name = "skip-sublayer"
    at: str


@dataclass(frozen=True)
class SwapLayers(Edit):
    """Two layers of a stack, exchanged."""

    name = "swap-layers"
    stack: Stack
    a: int
    b: int


@dataclass(frozen=True)
class Embed(Edit):
    """Another word's embedding.

    Attributes:
        at: the token whose embedding is replaced.
        word: the word whose embedding it gets: a text that is one token, or an id.
    """

    name = "embed"
    stack: Stack
    at: Token
    word: Token


@dataclass(frozen=True)
class Patch(AtSites):
    """Values that come from a second run.

    Attributes:
        value: weights, context (both of heads), output (of attention sublayers), or hidden (the output of layers).
        layer: of `hidden`: layers, counted from 0; empty: all. The stack is then `stack`.
        at: tokens of this run whose rows are replaced; empty: all.
        take: the tokens of the second run that they come from, in the order of `at`; empty: the same positions.
        source: the second run's sentence; None: the same.
        target: the second run's target; None: the same, or decoded where none is given.
        under: edits of the second run.
    """

    name = "patch"
    value: Literal["weights", "context", "output", "hidden"] = "context"
    layer: tuple[int, ...] = ()
    at: tuple[Token, ...] = ()
    take: tuple[Token, ...] = ()
    source: str | None = None
    target: str | None = None
    under: tuple[Edit, ...] = ()

    def __post_init__(self) -> None:
        """Checks that the fields fit together.

        Raises:
            BadEdit: fields that do not go with `value`, or a second run that is patched itself.
        """
        super().__post_init__()
        if self.value in ("output", "hidden") and self.head:
            raise self.refuse(phrase("{value} does not belong to single heads", value=self.value))
        if self.value == "hidden" and (self.site or self.kind):
            raise self.refuse(phrase("the output of a layer is chosen by stack=… and layer=…"))
        if self.value != "hidden" and self.layer:
            raise self.refuse(phrase("layer=… goes with value=hidden; attention layers are chosen by site=…, stack=… and kind=…"))
        if any(isinstance(edit, Patch) for edit in self.under):
            raise self.refuse(phrase("the second run must not be patched itself"))
        # Rows are replaced pair by pair, the first of `at` by the first of `take`.
        if self.take and len(self.at) != len(self.take):
            raise self.refuse(phrase("at and take must name equally many tokens"))


def replaces_context(edit: Edit, site: str, head: int) -> bool:
    """Whether an edit replaces the context vectors of a head: the values, weighted, that its output matrix reads."""
    return (isinstance(edit, Silence) or (isinstance(edit, Patch) and edit.value == "context")) and edit.covers(site, head)


def replaces_output(edit: Edit, site: str) -> bool:
    """Whether an edit replaces the output of an attention sublayer, what all its heads write together."""
    if isinstance(edit, SkipSublayer):
        return edit.at == site
    return isinstance(edit, Patch) and edit.value == "output" and edit.at_site(site)
