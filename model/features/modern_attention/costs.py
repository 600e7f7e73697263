"""Costs: what a decoder keeps of the tokens that it has read, and what it computes for new ones. Questions and formulas, no torch.

Operations are those of matrix products, as torch counts them: a product of [n, m] and [m, k] takes 2 n m k, a multiplication and an
addition for each pair of numbers. The rest of a network (softmax, norms, activations) is small beside them and is not counted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from model.errors import Phrase
from model.features.what_if.results import Arrays
from model.features.what_if.work import Costly, RunShape
from model.requests.questions import ModelQuestion, RunQuestion
from model.trace.types import Array

Way: TypeAlias = Literal["heads", "model", "window"]
"""How keys and values are kept: as if each query head had its own; as the model does; only what its windows still reach."""

MOST_PASSES = 64
"""Passes of a decode that are measured: without a cache their cost grows with the square of the length."""


@dataclass(frozen=True)
class LayerSizes:
    """The self-attention, or the cross-attention, of one layer.

    Attributes:
        heads: heads of queries.
        key_heads: heads of keys and values.
        key_width: width of a query and of a key.
        value_width: width of a value.
        window: most keys that a query may attend to, its own included; 0: all before it.
        latent: numbers of a token from which a layer with latent attention makes its keys and values, and which are kept instead
            of them; 0: it has none.
    """

    heads: int
    key_heads: int
    key_width: int
    value_width: int
    window: int = 0
    latent: int = 0

    def keys(self, tokens: int) -> int:
        """How many of so many tokens the newest query may attend to."""
        return min(tokens, self.window or tokens)

    def kept(self, tokens: int, way: Way = "model") -> int:
        """Numbers of so many tokens that are kept for the next one.

        Args:
            way: `model`: keys and values of each key head, or latents; `window`: only those of tokens that the window of the next
                token reaches; `heads`: as if each query head had its own keys and values.
        """
        both = self.key_width + self.value_width
        numbers = self.heads * both if way == "heads" else self.latent or self.key_heads * both
        return numbers * (min(tokens, self.window - 1) if way == "window" and self.window else tokens)

    def products(self, new: int, keys: int) -> int:
        """Operations of scores and weighted values, every cell computed, as the maps show them."""
        return 2 * self.heads * new * keys * (self.key_width + self.value_width)

    def reading(self, tokens: int) -> int:
        """The same for a text of so many tokens, without the cells that causality or the window closes."""
        window = self.keys(tokens)
        cells = window * (window + 1) // 2 + (tokens - window) * window
        return 2 * self.heads * cells * (self.key_width + self.value_width)


@dataclass(frozen=True)
class Sizes:
    """What the cost of a decoder follows from.

    Attributes:
        layers: its self-attention, layer by layer, in the order in which they run.
        maps: numbers of all matrices that a token is multiplied with once, those of the output not counted.
        output: numbers of the map to the vocabulary; 0: there is none.
        cross: its cross-attention, layer by layer; empty for a language model.
        source_maps: numbers of the matrices that make keys and values of cross-attention of a source token.
        latent_maps: numbers of the matrices that make keys and values of latents; each pass does this for all tokens.
    """

    layers: tuple[LayerSizes, ...]
    maps: int
    output: int
    cross: tuple[LayerSizes, ...] = ()
    source_maps: int = 0
    latent_maps: int = 0

    def kept(self, tokens: int, source: int = 0, way: Way = "model") -> int:
        """Numbers that are kept after so many tokens: those of every layer, and the keys and values of the source."""
        return sum(sizes.kept(tokens, way) for sizes in self.layers) + sum(sizes.kept(source, way) for sizes in self.cross)

    def operations(self, new: int, keys: int, source: int = 0, source_again: bool = True) -> int:
        """Operations of one pass: `new` tokens are read, the newest of `keys` tokens.

        Args:
            source: tokens of the source.
            source_again: whether keys and values of the source are computed in this pass.
        """
        operations = 2 * new * (self.maps + self.output) + 2 * keys * self.latent_maps
        operations += sum(sizes.products(new, keys) for sizes in self.layers)
        operations += sum(sizes.products(new, source) for sizes in self.cross)
        return operations + (2 * source * self.source_maps if source_again else 0)

    def decode(self, lengths: list[int], source: int = 0) -> tuple[list[int], list[int]]:
        """Operations of each pass of a decode, with a cache and without.

        Args:
            lengths: tokens that have been read after each pass.
            source: tokens of the source.
        """
        before = [0, *lengths[:-1]]
        cached = [
            self.operations(now - then, now, source, source_again=not then) for then, now in zip(before, lengths, strict=True)
        ]
        return cached, [self.operations(now, now, source) for now in lengths]


@dataclass(frozen=True)
class Measures(ModelQuestion[Sizes]):
    """What the cost of a model's decoder follows from. The network is not run."""


@dataclass(frozen=True, eq=False)
class CacheRun(Arrays):
    """A decode that was read twice, with a cache and without: the result of `WithoutCache`.

    Attributes:
        lengths: [pass], tokens that have been read after each pass.
        cached, whole: [pass], milliseconds of each pass with the cache, and without.
        weights: largest difference between a weight of the one and the same weight of the other.
        logits: the same of logits, of the last row of each pass; NaN where there are none.
    """

    lengths: Array
    cached: Array
    whole: Array
    weights: float
    logits: float


@dataclass(frozen=True)
class WithoutCache(RunQuestion[CacheRun]):
    """The tokens of a run, read once more with a cache and without: the same maps, and the time of each pass."""

    def runs(self, shape: RunShape) -> int:
        """A pass over the text so far for each token that was written, and with the cache as many small ones."""
        return shape.runs(2 * min(MOST_PASSES, shape.fed))

    def cheaper(self, shape: RunShape) -> Iterable[tuple[Costly, Phrase]]:
        """None tells a part of the same."""
        return ()


@dataclass(frozen=True, eq=False)
class Times(Arrays):
    """How long attention over texts of some lengths takes on this machine: the result of `TimeLengths`.

    Attributes:
        tokens: [length].
        written: [length], milliseconds of one layer with all weights written out; NaN where they take too much memory.
        fused: [length], milliseconds with a fused kernel.
        linear: [length], milliseconds of linear attention.
    """

    tokens: Array
    written: Array
    fused: Array
    linear: Array


@dataclass(frozen=True)
class TimeLengths(ModelQuestion[Times]):
    """How long one layer of a model's self-attention takes for random queries, keys and values of growing lengths.

    It doubles the length from 256 tokens on, and stops where the next one would take longer than half a second.
    """

    @property
    def cost(self) -> int:
        """About two seconds of computing."""
        return 80
