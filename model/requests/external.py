"""ForeignSpec: describes a network that another program runs, as far as feeding it, naming its sites and keeping its limits need.

A ModelSpec says exactly how a network computes, since `build` makes the network from it; a ForeignSpec does not. Fields that both
have are named alike, so code that reads only those works with either. This module needs no torch.
"""

from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

from model.errors import BadSetting, phrase
from model.requests.network import (
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

ForeignPositions: TypeAlias = Literal["learned", "sinusoidal-halves", "rotary", "relative", "unknown"]


@dataclass(frozen=True)
class ForeignAttention:
    """Multi-head attention.

    Attributes:
        heads: number of query heads; each has its own attention map.
        key_heads: number of heads of keys and values; each is shared by heads / key_heads query heads.
        head_dim: width of a head's queries and keys.
        empty_rows: as in AttentionSpec; the library masks with the most negative number, so such a row is uniform.
        latent: width of the latent of a position, from which all heads make their keys and values; 0: there is none.
        rotated: with a latent, the last columns of a key, which are rotated and the same for all heads.
    """

    heads: Few
    key_heads: Few
    head_dim: Width
    empty_rows: EmptyRows = "uniform"
    latent: Many = 0
    rotated: Many = 0

    def __post_init__(self) -> None:
        """Checks that query heads can be divided among key heads.

        Raises:
            BadSetting: `heads` is not a multiple of `key_heads`.
        """
        if self.heads % self.key_heads:
            raise BadSetting(
                name="key_heads", found=self.key_heads, allowed=phrase("a divisor of the {heads} heads", heads=self.heads)
            )


@dataclass(frozen=True)
class ForeignImage:
    """The images that an encoder reads, cut into square patches.

    Attributes:
        rows, columns: numbers of patches.
        side: of a patch, in pixels.
        channels: numbers of a pixel.
        added: names of the positions that the network puts before the patches, such as its class token.
    """

    rows: Few
    columns: Few
    side: Few
    channels: Few
    added: tuple[str, ...] = ()

    @property
    def patches(self) -> int:
        """Number of patches."""
        return self.rows * self.columns

    @property
    def width(self) -> int:
        """Numbers of a patch."""
        return self.channels * self.side**2

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each position: of a patch its row and column, counted from 1."""
        places = product(range(1, self.rows + 1), range(1, self.columns + 1))
        return (*self.added, *(f"{row},{column}" for row, column in places))


@dataclass(frozen=True)
class ForeignSound:
    """The sounds that an encoder reads, cut into frames of a spectrogram.

    Attributes:
        positions: of the encoder.
        bands: of frequency, the numbers of a frame.
        joined: frames that become one position.
        hop: samples from one frame to the next; 0: the folder does not say it.
        rate: samples a second; 0: the folder does not say it.
    """

    positions: Reach
    bands: Few
    joined: Few
    hop: Many = 0
    rate: Many = 0

    @property
    def width(self) -> int:
        """Numbers of the frames that become one position."""
        return self.joined * self.bands

    @property
    def step(self) -> float:
        """Seconds from one position to the next; 0: not known."""
        return self.joined * self.hop / self.rate if self.rate else 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each position: the second at which it begins or, where that is not known, its number."""
        if not self.step:
            return tuple(str(number + 1) for number in range(self.positions))
        digits = 2 if (self.step * 100).is_integer() else 3
        return tuple(f"{number * self.step:.{digits}f} s" for number in range(self.positions))


@dataclass(frozen=True)
class ForeignStack:
    """An encoder or a decoder, its embedding included.

    Attributes:
        vocab: number of ids in the embedding.
        d_model: width of the residual stream.
        layers: number of layers in the stack.
        attention: the attention sublayers of the stack, all alike.
        positions: the positional encoding: a table that is added to the embedding, learned or sinusoidal (all sines, then all
            cosines); rotated queries and keys; a learned number for each distance, added to the scores; or not known.
        max_positions: length of the longest input; where there is no table, a limit that keeps runs small enough for the machine.
        passes: how often the whole stack is applied.
        image: what its input is an image of, as rows of patches; None: it reads something else.
        sound: the same of a sound, as frames.
    """

    vocab: Many
    d_model: Width
    layers: Depth
    attention: ForeignAttention
    positions: ForeignPositions
    max_positions: Reach
    passes: Few = 1
    image: ForeignImage | None = None
    sound: ForeignSound | None = None

    @property
    def wiring(self) -> Wiring:
        """Standard layers: self-attention, and in a decoder cross-attention to the encoder's output."""
        return "standard"


@dataclass(frozen=True)
class ForeignSpec:
    """A whole network.

    Attributes:
        program: the program that runs it, and the class of the network there.
        encoder, decoder, output: as in ModelSpec.
        pad_id, start_id, end_id, unk_id, suppressed: as in ModelSpec; source and target share their padding id.
        forced: ids that follow the start token of every target, such as the token of the target's language.
        more_ends: ids of other tokens that end a text, such as one that ends a turn.
        opening: ids of which each of the first tokens is one that are written, such as those of all languages that it knows.
        alignment: layer and head of each cross-attention by which its folder aligns words with a sound; empty: it names none.
        median: positions of the median that smooths these maps.
        recorded: whether its architecture has no row of module names, so that its runs are recorded by what is computed.
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
    recorded: bool = False
    more_ends: tuple[Id, ...] = ()
    opening: tuple[tuple[Id, ...], ...] = ()
    alignment: tuple[tuple[int, int], ...] = ()
    median: Few = 7

    @property
    def ends(self) -> tuple[int, ...]:
        """Ids of all tokens that end a text."""
        return (*(() if self.end_id is None else (self.end_id,)), *self.more_ends)

    @property
    def steps_agree(self) -> bool:
        """Whether a pass over several tokens computes what a step for each of them does: not known of a library's cache."""
        return False

    @property
    def stacks(self) -> dict[str, ForeignStack]:
        """The stacks of the network by name, in the order in which they run."""
        both = {"encoder": self.encoder, "decoder": self.decoder}
        return {name: stack for name, stack in both.items() if stack is not None}

    @property
    def writer(self) -> ForeignStack:
        """The stack whose vocabulary the spec's ids belong to: the decoder, or the encoder where there is no decoder."""
        return list(self.stacks.values())[-1]

    @property
    def source_padding(self) -> int | None:
        """The id of padding in the source: the same as in the target; None: there is none."""
        return self.pad_id


AnyAttention: TypeAlias = AttentionSpec | ForeignAttention
AnyStack: TypeAlias = StackSpec | ForeignStack
AnySpec: TypeAlias = ModelSpec | ForeignSpec
