"""What a run asks of a network, whoever computes it: each network answers for itself, so that no caller needs to know whose it is.

`build` makes networks of this package (`BuiltNetwork`); others are those of another library, which derive from the same classes.
A network encodes a source (`Encodes`), translates it (`Translates`), continues a text (`Writes`), or is called as a whole and
recorded by what it computes (`RunsWhole`).
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal, Self, TypeVar

import torch
from torch import Tensor, nn

from model.errors import Words
from model.trace.types import Site, Tokens, Trace
from model.transformer.attention import MultiHeadAttention, Run
from model.transformer.cache import KVCache
from model.transformer.masks import Mask


class Runnable(ABC):
    """A network that can be run.

    Attributes:
        batched: whether its calls can be computed in one batch with those of other runs.
        fuses: whether its weights follow from queries and keys, so that a long run need not write them out.
        writes_scores: whether its runs can record scores.
        feed_forwards: the feed-forward sublayers whose outputs can be changed, such as `decoder.0.2.feed_forward`; None: all.
    """

    batched: bool = False
    fuses: bool = False
    writes_scores: bool = False
    feed_forwards: Collection[str] | None = None

    @abstractmethod
    def parameters(self) -> Iterator[nn.Parameter]:
        """The tensors that training changes: matrices, biases, gains."""

    @property
    def dtype(self) -> torch.dtype:
        """The type of its weights and of its arithmetic."""
        return next(iter(self.parameters())).dtype

    def new_cache(self, decodes: bool = True) -> KVCache:
        """The cache of one run.

        Args:
            decodes: whether the run writes token by token; else it reads everything in one pass.
        """
        return KVCache()

    @abstractmethod
    def missing(self) -> dict[str, Words]:
        """The values that its runs never record, by name, with the reasons."""


class Changeable(Runnable):
    """A network whose values a run can change."""

    @abstractmethod
    def value_of_scores(self) -> Literal["scores", "q"]:
        """What an edit of scores changes: the scores, or the queries that they are products of.

        Raises:
            CannotChange: it computes its scores otherwise.
        """

    @abstractmethod
    def scale(self, site: Site) -> float:
        """The factor of a site's products of queries and keys."""

    @abstractmethod
    def scale_and_output(self, site: Site) -> tuple[float, Tensor]:
        """The scale of a site's scores, and its output projection [model, head · head_dim].

        Raises:
            NoArithmetic: a score is more than a product, or the projection is not known.
        """

    @abstractmethod
    def position_rows(self, stack: str) -> Tensor:
        """The positional encodings that are added to the embeddings of a stack, all that there are: [position, model].

        Raises:
            CannotChange: none are added.
        """

    def first_position(self, stack: str, start: int) -> int:
        """The position as which a stack encodes the first token of a call, given the number of tokens before it."""
        return start

    @abstractmethod
    def with_swapped_layers(self, stack: str, a: int, b: int, name: str) -> Self:
        """A second network of the same modules, two layers of a stack exchanged.

        Args:
            name: of what asks for it, for the error.

        Raises:
            CannotChange: the order of its layers cannot be changed.
        """


class Encodes(Changeable):
    """A network that reads a source."""

    @abstractmethod
    def source_mask(self, source: Tensor, valid: Tensor | None = None) -> Mask:
        """The mask over the source: positions that are not padding; given `valid` [batch], the first `valid` positions."""

    @abstractmethod
    def encode(self, source: Tensor, mask: Mask, run: Run = Run()) -> Tensor:
        """[batch, key] of ids, or [batch, key, model] of features -> [batch, key, model]."""


class Translates(Encodes):
    """A network that reads a source and writes a target."""

    @abstractmethod
    def decode(self, target: Tensor, memory: Tensor, source_mask: Mask, run: Run = Run(), start: int = 0) -> Tensor:
        """Logits [batch, query, vocab] for the token after each target position from `start` on."""


class Writes(Changeable):
    """A network that continues a text."""

    @abstractmethod
    def __call__(self, ids: Tensor, run: Run = Run(), start: int = 0) -> Tensor:
        """Logits [batch, query, vocab] for the token after each position from `start` on."""


class RunsWhole(Runnable):
    """A network that is called as a whole: it reads all tokens in each step, and one more pass is recorded.

    Attributes:
        kind: its stacks: `encoder`, `decoder`, or `both`.
        why: why nothing in it can be changed.
    """

    kind: Literal["encoder", "decoder", "both"]
    why: Words

    @abstractmethod
    def check_rows(self, source: Tensor) -> None:
        """Refuses features that are not as many as the network reads.

        Raises:
            DoesNotFit: they are not.
        """

    @abstractmethod
    def valid(self, source: Tensor, count: Tensor | None) -> Tensor | None:
        """[row, position], 0 at the padding of a source: after the first `count` [1] positions; None: there is no padding."""

    @abstractmethod
    def logits(self, source: Tensor, valid: Tensor | None = None, target: Tensor | None = None) -> Tensor:
        """Logits [row, position, vocab] of one pass.

        Raises:
            RunFailed: the program that computes raised an error.
        """

    @abstractmethod
    def recorded_pass(
        self,
        source: Tensor,
        valid: Tensor | None,
        target: Tensor | None,
        strips: dict[str, Tokens],
        keep: Sequence[str],
        limit: int,
    ) -> tuple[Tensor, Trace]:
        """The result of one pass, logits or the encoder's states, and the trace of its attention.

        Args:
            strips: tokens whose texts name the positions.
            keep: what is recorded besides weights and masks.
            limit: most bytes of the recording.

        Raises:
            RunFailed: the program that computes raised an error, or no attention was recognized.
        """


class BuiltNetwork(nn.Module, Changeable):
    """A network of this package, made of stacks by `build`."""

    batched = True
    fuses = True
    writes_scores = True

    def stacks(self) -> dict[str, nn.Module]:
        """Its stacks by name, in the order in which they run."""
        return {name: part for name, part in self.named_children() if name in ("encoder", "decoder")}

    def attention_at(self, site: Site) -> MultiHeadAttention:
        """The attention module that is applied at a site."""
        layer = self.stacks()[site.stack].get_submodule(f"layers.{site.layer}")
        parts = dict(layer.named_children())
        module = parts.get(f"{site.kind}_attention") or parts["attention"]
        assert isinstance(module, MultiHeadAttention)
        return module

    def missing(self) -> dict[str, Words]:
        """The positions of stacks that rotate queries and keys instead of adding any."""
        reasons = {f"positions/{name}": _embedding(stack).never_recorded for name, stack in self.stacks().items()}
        return {name: reason for name, reason in reasons.items() if reason}

    def value_of_scores(self) -> Literal["scores", "q"]:
        """The scores: they are computed as a value of their own."""
        return "scores"

    def scale(self, site: Site) -> float:
        """1 / √head_dim."""
        scale: float = self.attention_at(site).scale
        return scale

    def scale_and_output(self, site: Site) -> tuple[float, Tensor]:
        """The scale of a site's scores, and its output projection [model, head · head_dim]."""
        attention = self.attention_at(site)
        return attention.scale, attention.output.weight.detach()

    def position_rows(self, stack: str) -> Tensor:
        """The positional encodings of a stack, all that it has: [position, model].

        Raises:
            CannotChange: none are added.
        """
        rows: Tensor = _embedding(self.stacks()[stack]).position_rows(stack)
        return rows

    def first_position(self, stack: str, start: int) -> int:
        """The position as which the first token of a call is encoded: in some stacks, each step of a decode is at position 0."""
        position: int = _embedding(self.stacks()[stack]).first(start)
        return position

    def with_swapped_layers(self, stack: str, a: int, b: int, name: str) -> Self:
        """A second network of the same modules, two layers of a stack exchanged; this one stays as it is."""
        network = _shallow_copy(self)
        changed: nn.Module = network
        if self.stacks()[stack] is not self:  # a language model is its own stack
            changed = _shallow_copy(network.get_submodule(stack))
            network.register_module(stack, changed)
        layers = list(changed.get_submodule("layers").children())
        layers[a], layers[b] = layers[b], layers[a]
        changed.register_module("layers", nn.ModuleList(layers))
        return network


def _embedding(stack: nn.Module) -> Any:
    """What a stack makes its residual stream of: `Embedding`, `EmbeddingAlone` or `Features` (stacks.py)."""
    return stack.embedding


Module = TypeVar("Module", bound=nn.Module)


def _shallow_copy(module: Module) -> Module:
    """A module of the same parts, whose parts can be exchanged without changing the first one's."""
    copied = copy.copy(module)
    copied.__dict__ = {name: dict(part) if name == "_modules" else part for name, part in vars(module).items()}
    return copied


def is_out_of_memory(error: Exception) -> bool:
    """Whether a device is out of memory: torch has an error class for it, but on a CPU only a message."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "DefaultCPUAllocator: can't allocate memory" in str(error)
