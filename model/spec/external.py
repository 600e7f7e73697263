"""What is known of a network that another program runs: enough to feed it, to name its sites and to keep within its limits.

A ModelSpec describes how a network computes, since `build` makes it; a ForeignSpec does not claim to. The fields that both have are
called alike, so whoever reads no more than those need not ask which one it is. This module needs no torch.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from model.errors import BadSetting
from model.spec.network import (
    AttentionSpec,
    Depth,
    EmptyRows,
    Few,
    Id,
    Many,
    ModelSpec,
    OutputSpec,
    Reach,
    StackSpec,
    Width,
    Wiring,
)

ForeignPositions: TypeAlias = Literal["learned", "sinusoidal-halves", "rotary", "relative"]


@dataclass(frozen=True)
class ForeignAttention:
    """Multi-head attention.

    Attributes:
        heads: query heads; each has a map of its own.
        key_heads: heads of keys and values, each shared by heads / key_heads query heads.
        head_dim: width of a head's queries and keys.
        empty_rows: as in AttentionSpec; the library's softmax over the most negative numbers is uniform.
    """

    heads: Few
    key_heads: Few
    head_dim: Width
    empty_rows: EmptyRows = "uniform"

    def __post_init__(self) -> None:
        """Refuses heads that cannot share.

        Raises:
            BadSetting: `heads` is no multiple of `key_heads`.
        """
        if self.heads % self.key_heads:
            raise BadSetting(name="the number of key heads", found=self.key_heads, allowed=f"a divisor of its {self.heads} heads")


@dataclass(frozen=True)
class ForeignStack:
    """An encoder or a decoder, its embedding included.

    Attributes:
        vocab: ids the embedding knows.
        d_model: width of the residual stream.
        layers: how many layers the stack holds.
        attention: every attention sublayer of the stack.
        positions: how positions are told apart: a table that is added to the embedding, learned or of waves (all sines, then all
            cosines); queries and keys that are rotated; or a learned number for each distance that is added to the scores.
        max_positions: the longest input; where there is no table, it bounds what is asked of the machine.
        passes: how often the whole stack is applied.
    """

    vocab: Many
    d_model: Width
    layers: Depth
    attention: ForeignAttention
    positions: ForeignPositions
    max_positions: Reach
    passes: Few = 1

    @property
    def wiring(self) -> Wiring:
        """Each layer looks at its own stream, and a decoder's at the encoder's output."""
        return "standard"


@dataclass(frozen=True)
class ForeignSpec:
    """A whole network.

    Attributes:
        program: what runs it, and which of its classes.
        encoder, decoder, output: as in ModelSpec.
        pad_id, start_id, end_id, unk_id, suppressed: as in ModelSpec; source and target share their padding.
        forced: ids that a target begins with, behind its start: the target's language, for instance.
    """

    program: str
    encoder: ForeignStack | None
    decoder: ForeignStack | None
    output: OutputSpec | None
    pad_id: Id | None = None
    start_id: Id | None = None
    end_id: Id | None = None
    unk_id: Id | None = None
    suppressed: tuple[Id, ...] = ()
    forced: tuple[Id, ...] = ()

    @property
    def stacks(self) -> dict[str, ForeignStack]:
        """The stacks that there are, by name, in the order in which they run."""
        both = {"encoder": self.encoder, "decoder": self.decoder}
        return {name: stack for name, stack in both.items() if stack is not None}

    @property
    def writer(self) -> ForeignStack:
        """The stack that the ids stand for: the decoder, or of an encoder alone the encoder."""
        return list(self.stacks.values())[-1]

    @property
    def source_pad_id(self) -> int | None:
        """No other than the target's."""
        return None


AnyAttention: TypeAlias = AttentionSpec | ForeignAttention
AnyStack: TypeAlias = StackSpec | ForeignStack
AnySpec: TypeAlias = ModelSpec | ForeignSpec
