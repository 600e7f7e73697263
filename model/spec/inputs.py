"""Inputs of a run: a text, ids or features; and how large they may be, for the app, the command line and hosts alike. No torch.

Sizes are compared before any work is done on an input: splitting a text into words takes time that grows with its length.
"""

from dataclasses import dataclass
from typing import TypeAlias

from model.errors import BadSetting, TooManyCharacters, TooManyTokens

POSITIONS = 2**14
"""Tokens, ids or rows of one input, whatever the model."""

CHARACTERS_PER_POSITION = 16
"""Characters of a text for each position that can be read. A token of English, German or Chinese text has one to eight."""

FEW_POSITIONS = 100
"""Models with fewer positions get as many characters as with these: one long word may be all that they read."""


@dataclass(frozen=True)
class Features:
    """An input of float features, for networks without an embedding.

    Attributes:
        rows: [position, model].
    """

    rows: tuple[tuple[float, ...], ...]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class RandomFeatures:
    """Features drawn from the normal distribution, to see such a network run where there is no input of its own.

    Attributes:
        positions: how many rows.
        seed: of the draws; the same seed draws the same.
    """

    positions: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuses what cannot be drawn.

        Raises:
            BadSetting: a value outside what is allowed.
        """
        if not 1 <= self.positions <= POSITIONS:
            raise BadSetting(name="positions", found=self.positions, allowed=f"from 1 to {POSITIONS}")
        if not 0 <= self.seed < 2**63:
            raise BadSetting(name="seed", found=self.seed, allowed="0 or a positive whole number below 2^63")

    def __len__(self) -> int:
        return self.positions


Given: TypeAlias = str | tuple[int, ...] | Features | RandomFeatures
"""An input: text, ids that are taken as they are (special tokens and padding included), or features."""


def allowed_characters(positions: int = POSITIONS) -> int:
    """Characters of the longest text that is taken where so many positions can be read."""
    return CHARACTERS_PER_POSITION * min(max(positions, FEW_POSITIONS), POSITIONS)


def check_size(name: str, given: Given, positions: int = POSITIONS, reason: str = "the limit of one run") -> None:
    """Refuses what cannot fit, before anything is done with it.

    Args:
        name: of the strip, `source` or `target`.
        positions: how many the model reads of it.
        reason: why no more.

    Raises:
        TooManyCharacters: a text is longer than `allowed_characters`.
        TooManyTokens: there are more ids or rows than positions.
    """
    if isinstance(given, str):
        if len(given) > (allowed := allowed_characters(positions)):
            raise TooManyCharacters(what=f"{name} text", found=f"{len(given):,}", allowed=f"{allowed:,}")
    elif len(given) > positions:
        raise TooManyTokens(what=f"{name} input", found=len(given), allowed=positions, reason=reason)
