"""Inputs of a run: a text, a conversation, ids or features, and the limits on their size. No torch.

`model.requests.request.check_size` holds the limits.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from model.errors import BadChat, BadSetting, phrase

POSITIONS = 2**14
"""Most tokens, ids or rows of one input, for any model."""

PUBLIC_POSITIONS, PUBLIC_MEASURED = 512, 128
"""The same on a public server, and there of a run about which is asked what matters."""

CHARACTERS_PER_POSITION = 16
"""Characters allowed for each position that a model can read. A token of English, German or Chinese text has one to eight."""

FEW_POSITIONS = 100
"""Models with fewer positions than this may be given as many characters as with this many: their input may be one long word."""


IMAGE_PREFIX = "image-"
"""Prefix of the names of images that were sent: an input that begins so may name one."""

SOUND_PREFIX = "sound-"
"""The same of sounds."""


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


Role: TypeAlias = Literal["system", "user", "assistant"]

ROLES: tuple[Role, ...] = get_args(Role)

MOST_TURNS = 200
"""Most turns of a conversation: each is rendered with those before it."""


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation.

    Attributes:
        role: who speaks: `system` is what the model is told before the conversation, `assistant` is the model.
        text: what is said.
    """

    role: Role
    text: str

    @classmethod
    def from_text(cls, text: str) -> "Turn":
        """The turn that `ROLE:TEXT` writes.

        Raises:
            BadSetting: it begins with no role.
        """
        # Only the first colon divides: what is said may have others.
        role, colon, words = text.partition(":")
        for known in ROLES:
            if colon and role.strip() == known:
                return cls(known, words.strip())
        raise BadSetting(name="turn", found=text[:80], allowed=", ".join(f"{known}:…" for known in ROLES))


@dataclass(frozen=True)
class Chat:
    """A conversation, which a model with a chat template reads and answers.

    Attributes:
        turns: its turns; the user has the last word.
    """

    turns: tuple[Turn, ...]

    def __post_init__(self) -> None:
        """Checks what holds for every model; a template may refuse more.

        Raises:
            BadChat: a turn is empty, there are too many, or the last is not the user's.
        """
        if len(self.turns) > MOST_TURNS:
            raise BadChat(
                reason=phrase("it has {found:,} turns, and at most {most:,} are read", found=len(self.turns), most=MOST_TURNS)
            )
        for number, turn in enumerate(self.turns, 1):
            if not turn.text.strip():
                raise BadChat(reason=phrase("turn {number} ({role}) is empty", number=number, role=turn.role))
        if not self.turns or self.turns[-1].role != "user":
            raise BadChat(reason=phrase("its last turn must be the user’s, which the model answers"))

    @property
    def characters(self) -> int:
        """Number of characters of all turns."""
        return sum(len(turn.text) for turn in self.turns)


Given: TypeAlias = str | tuple[int, ...] | Features | RandomFeatures | Chat
"""An input: a text, ids that are used as they are (special tokens and padding included), features, or a conversation."""
