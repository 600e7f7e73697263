"""Inputs of a run: a text, ids or features, and the limits on their size (`model.spec.request.check_size` holds them). No torch."""

from dataclasses import dataclass
from typing import TypeAlias

from model.errors import BadSetting, phrase

POSITIONS = 2**14
"""Most tokens, ids or rows of one input, for any model."""

PUBLIC_POSITIONS, PUBLIC_MEASURED = 512, 128
"""The same on a public server, and there of a run about which is asked what matters."""

CHARACTERS_PER_POSITION = 16
"""Characters allowed for each position that a model can read. A token of English, German or Chinese text has one to eight."""

FEW_POSITIONS = 100
"""Models with fewer positions than this may be given as many characters as with this many: their input may be one long word."""


@dataclass(frozen=True)
class Features:
    """Float features as input, for networks without an embedding.

    Attributes:
        rows: [position, model], one vector for each position.
    """

    rows: tuple[tuple[float, ...], ...]

    def __len__(self) -> int:
        """Number of positions."""
        return len(self.rows)


@dataclass(frozen=True)
class RandomFeatures:
    """Random features from the normal distribution, to try a network without an embedding.

    Attributes:
        positions: number of rows.
        seed: seed of the random numbers; equal seeds give equal features.
    """

    positions: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            BadSetting: a value is outside its limits.
        """
        if not 1 <= self.positions <= POSITIONS:
            raise BadSetting(
                name="positions",
                found=self.positions,
                allowed=phrase("a whole number from 1 to {positions:,}", positions=POSITIONS),
            )
        if not 0 <= self.seed < 2**63:
            raise BadSetting(name="seed", found=self.seed, allowed=phrase("a whole number from 0, below 2^63"))

    def __len__(self) -> int:
        """Number of positions."""
        return self.positions


Given: TypeAlias = str | tuple[int, ...] | Features | RandomFeatures
"""An input: a text, ids that are used as they are (special tokens and padding included), or features."""
