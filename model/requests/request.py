"""RunRequest: the description of one run, frozen, small and hashable.

A field with an `option` can be set on the command line, which takes its name, type, default and range from here.
"""

import math
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields, replace
from functools import cache
from typing import Any, Literal, Self, TypeAlias, get_args

from model.errors import BadSetting, DoesNotFit, MustNotBeSet, TooManyCharacters, TooManyTokens, Words, phrase
from model.requests.edits import Edit, bounded
from model.requests.inputs import CHARACTERS_PER_POSITION, FEW_POSITIONS, POSITIONS, Chat, Given
from model.requests.validation import Between, read

Settings: TypeAlias = tuple[tuple[str, str], ...]
"""Settings that a model's file does not hold, as names and values, in the form that `--set` takes."""

Method: TypeAlias = Literal["greedy", "sample", "beam"]

Keep: TypeAlias = Literal["scores", "qkv", "context", "output", "hidden", "stages"]
"""What a run can record besides weights, masks, positions and logits."""


Precision: TypeAlias = Literal["float32", "bfloat16", "float16"]
"""Number types in which a network can be computed. For the two lower ones, a trace says how far its numbers are from float32."""


KEEP: tuple[Keep, ...] = get_args(Keep)
"""Tensors that a run records on request. It always records weights, masks, positions and logits. `hidden` includes `embedded`."""

MOST_TOKENS = 1000
"""Largest number of new tokens that can be asked for."""

MOST_CANDIDATES = 1_000_000
"""Largest top k that can be asked for: more than any vocabulary has."""

_ABOVE_0 = math.nextafter(0, 1)


_OPTION = "option"


@dataclass(frozen=True)
class OneOf:
    """The allowed names."""

    names: tuple[str, ...]

    def __contains__(self, value: object) -> bool:
        """Whether a value is one of the names."""
        return value in self.names

    @property
    def in_words(self) -> str:
        """The allowed values."""
        return ", ".join(self.names)


@dataclass(frozen=True)
class Option:
    """An option of `python -m model run` and `explain`.

    Attributes:
        help: its line in `--help`.
        allowed: the values that a request takes besides its default; None: all of the field's type.
        flag: its name on the command line, without dashes; empty: the field's name.
        usual: the command line's default; None: the field's default.
        variable: the environment variable that sets it; empty: none does.
        ids, features, turns, image, sound: the help of the options that give an input as ids, as features, as the turns of a
            conversation, as an image, or as a sound.
    """

    help: str
    allowed: Between | OneOf | None = None
    flag: str = ""
    usual: str | None = None
    variable: str = ""
    ids: str = ""
    features: str = ""
    turns: str = ""
    image: str = ""
    sound: str = ""


def option(help_: str, allowed: Between | OneOf | None = None, **more: str) -> dict[str, Option]:
    """The metadata of a field: `field(default=…, metadata=option(…))`. Arguments as for Option."""
    return {_OPTION: Option(help_, allowed, **more)}


def described_fields(described: Any) -> tuple[tuple[Field[Any], Option], ...]:
    """The fields of a dataclass, or of one of its values, that have an option, each with it."""
    return _described_fields(described if isinstance(described, type) else type(described))


@cache
def _described_fields(described: type) -> tuple[tuple[Field[Any], Option], ...]:
    return tuple((field_, field_.metadata[_OPTION]) for field_ in fields(described) if _OPTION in field_.metadata)


def check(described: Any) -> None:
    """Refuses a value that one of its options does not allow.

    Raises:
        BadSetting: the sentence names the field.
    """
    for field_, option in described_fields(described):
        value = getattr(described, field_.name)
        if option.allowed is not None and value != field_.default and value not in option.allowed:
            raise BadSetting(name=field_.name, found=value, allowed=option.allowed.in_words)


@dataclass(frozen=True)
class Decoding:
    """How the target is decoded where none is given.

    Attributes:
        method: `greedy` takes the likeliest token, `sample` draws one, `beam` follows the `beam_size` likeliest hypotheses.
        max_length: most tokens to write, the end token included.
        beam_size: number of hypotheses followed at once.
        hypothesis: rank of the hypothesis of a beam search whose steps and attention are shown; 0: the best.
        temperature: divides the logits before sampling; below 1 it favors likely tokens.
        top_k: sample among the k likeliest tokens only; 0: among all.
        top_p: sample among the fewest tokens that together have this probability; 1: among all.
        seed: seed of the sampling; equal seeds give equal texts.
    """

    method: Method = field(default="greedy", metadata=option("how the target is decoded", OneOf(get_args(Method)), flag="decode"))
    max_length: int = field(default=60, metadata=option("maximum new tokens", Between(0, MOST_TOKENS)))
    beam_size: int = field(default=5, metadata=option("beam width", Between(1, 32)))
    hypothesis: int = field(default=0, metadata=option("rank of the beam search hypothesis to show; 0: the best", Between(0, 63)))
    temperature: float = field(default=1.0, metadata=option("divides the logits before sampling", Between(0.01, 10)))
    top_k: int = field(
        default=0,
        metadata=option(
            "sample among the k likeliest tokens; 0: all", Between(0, MOST_CANDIDATES, phrase("a number of tokens; 0: all"))
        ),
    )
    top_p: float = field(
        default=1.0,
        metadata=option(
            "sample among the likeliest tokens of this total probability; 1: all",
            Between(_ABOVE_0, 1, phrase("a number above 0, at most 1")),
        ),
    )
    seed: int = field(
        default=0, metadata=option("seed of sampling", Between(0, 2**63 - 1, phrase("a whole number from 0, below 2^63")))
    )

    def __post_init__(self) -> None:
        """Checks every value.

        Raises:
            BadSetting: a value is outside its limits.
        """
        check(self)


def allowed_characters(positions: int = POSITIONS) -> int:
    """Length of the longest text that is accepted for a model with this many positions."""
    return CHARACTERS_PER_POSITION * min(max(positions, FEW_POSITIONS), POSITIONS)


OF_ONE_RUN = phrase("one run reads no more")
"""Why an input may not be longer where no model is known."""


def check_size(strip: str, given: Given, positions: int = POSITIONS, reason: Words = OF_ONE_RUN) -> None:
    """Checks the size of an input, before any work is done on it: splitting a text takes time that grows with its length.

    Args:
        strip: what the input is for, `source` or `target`; the error says it.
        positions: number of positions that the model can read.
        reason: why there are no more, for the error.

    Raises:
        TooManyCharacters: a text is longer than `allowed_characters`.
        TooManyTokens: there are more ids or rows than positions.
    """
    if isinstance(given, str | Chat):
        if (size := len(given) if isinstance(given, str) else given.characters) > (allowed := allowed_characters(positions)):
            raise TooManyCharacters(found=size, allowed=allowed, strip="chat" if isinstance(given, Chat) else strip)
    elif len(given) > positions:
        raise TooManyTokens(found=len(given), allowed=positions, reason=reason, strip=strip)


@dataclass(frozen=True)
class RunRequest:
    """The description of one run: frozen, small, hashable. Equal requests to one model give equal traces.

    Attributes:
        model: name of a model that an engine lists, or of one of its snapshots (`at_step`).
        source: the source; for a language model its prompt, or a conversation, which its chat template makes a prompt of.
        target: a target to feed to the decoder (teacher forcing); None: the model decodes one.
        decoding: how the model decodes. Not used where a target is given.
        begin: ids that a decode generates first, whatever the method would choose; it continues from them.
        source_valid: number of source positions that are not padding; None: of ids, all but the pad id; of a text, all.
        source_pad_to: number of positions that the source is padded to; None: no padding is added.
        keep: tensors to record besides weights, masks, positions and logits.
        edits: changes to make while the network runs, in this order.
        precision: number type of weights and arithmetic; None: the engine's default, which is float32 unless set otherwise.
        settings: settings that the model's file does not hold, in the form that `--set` takes.
    """

    model: str
    source: Given = field(
        metadata=option(
            "the source text",
            ids="the source as ids, taken as given: 2,5,3",
            features="the source of a network without an embedding: {form}",
            image="the source as an image, for a network that reads patches: a PNG, JPEG, WebP, GIF or BMP file",
            sound="the source as a sound, for a network that listens: a WAV, FLAC or OGG file",
            turns="a turn of a conversation, ROLE one of system, user, assistant; repeatable, the last is the user's",
        )
    )
    target: Given | None = field(
        default=None,
        metadata=option(
            "forced target (teacher forcing) instead of decoding",
            ids="the decoder's input as ids, start token first: 2,7",
            features="the target of a network without an embedding, of the same form",
        ),
    )
    decoding: Decoding = Decoding()
    begin: tuple[int, ...] = field(
        default=(), kw_only=True, metadata=option("ids that a decode generates first, then it continues on its own: 5,3")
    )
    source_valid: int | None = field(
        default=None, metadata=option("number of source positions that are not padding [default: those that are not the pad id]")
    )
    source_pad_to: int | None = field(default=None, metadata=option("pad the source to this many positions"))
    keep: tuple[Keep, ...] = ()
    edits: tuple[Edit, ...] = field(default=(), metadata=option("NAME key=value …: a change (what-if.md); repeatable", flag="edit"))
    precision: Precision | None = field(
        default=None,
        metadata=option(
            "precision of weights and arithmetic", OneOf(get_args(Precision)), usual="float32", variable="HEADLIGHT_PRECISION"
        ),
    )
    settings: Settings = field(default=(), metadata=option("an answer that the file does not give; repeatable", flag="set"))

    def __post_init__(self) -> None:
        """Checks the values, and sorts `keep` and `settings`, so that requests for the same run are equal.

        Raises:
            BadEdit: there are too many edits.
            BadSetting: `keep` has an unknown name, `settings` has a name twice, `precision` is not a known number type, or `begin`
                is given beside a target or is longer than the decode.
            TooManyCharacters, TooManyTokens: an input is longer than any model reads.
        """
        check_size("source", self.source)
        if self.target is not None:
            check_size("target", self.target)
        check(self)
        if self.begin and self.target is not None:
            raise MustNotBeSet(name="begin", reason=phrase("a target is given, so nothing is generated"))
        if (size := len(self.begin)) > (most := self.decoding.max_length):
            reason = phrase("it has {found:,} ids, and at most {most:,} new tokens are generated", found=size, most=most)
            raise DoesNotFit(name="begin", reason=reason)
        if self.edits:
            bounded(self.edits)
        if unknown := set(self.keep) - set(KEEP):
            raise BadSetting(name="keep", found=", ".join(sorted(map(str, unknown))), allowed=", ".join(KEEP))
        if len(dict(self.settings)) < len(self.settings):
            raise BadSetting(name="settings", found=", ".join(name for name, _ in self.settings), allowed=phrase("each name once"))
        # The value is frozen, and this is the one moment at which it may still change: two requests that differ
        # only in an order would be two entries in every cache.
        object.__setattr__(self, "keep", tuple(name for name in KEEP if name in self.keep))
        object.__setattr__(self, "settings", tuple(sorted(self.settings)))

    def to_json(self) -> dict[str, Any]:
        """The request as plain JSON values, edits as their text."""
        # Edits have a text form of their own, which also keeps their class; `asdict` would lose it.
        return asdict(replace(self, edits=())) | {"edits": [str(edit) for edit in self.edits]}

    @staticmethod
    def edits_in(data: Mapping[str, Any]) -> tuple[Edit, ...]:
        """The edits of a request in JSON values, such as `Trace.request`."""
        return tuple(map(Edit.from_text, data.get("edits", ())))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reads a request from JSON values.

        Raises:
            BadSetting: a field is unknown, missing, of another type or outside its limits.
        """
        return read(cls, data, "run request")
