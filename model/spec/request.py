"""RunRequest: one run, described by frozen values that are small and hashable."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, TypeAlias, get_args

from model.errors import BadSetting
from model.spec.inputs import Given, check_size
from model.spec.validation import read

Settings: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values that a model's file does not tell, as `--set` takes them."""


Method: TypeAlias = Literal["greedy", "sample", "beam"]


Keep: TypeAlias = Literal["scores", "qkv", "context", "output", "hidden", "stages"]


Precision: TypeAlias = Literal["float32", "bfloat16", "float16"]
"""Number types that a network can be computed in. Of the lower two a trace says how far they are from float32."""


KEEP: tuple[Keep, ...] = get_args(Keep)
"""What a run may keep besides weights, masks, positions and logits, which it always keeps. `hidden` includes `embedded`."""


@dataclass(frozen=True)
class Decoding:
    """How the target is written where none is given.

    Attributes:
        method: `greedy` takes the likeliest token, `sample` draws one, `beam` follows the `beam_size` likeliest beginnings.
        max_length: tokens written at most, the end token counted.
        temperature: divides the logits before a draw; below 1 favours the likely.
        top_k: draw among the k likeliest only; 0: among all.
        top_p: draw among the fewest tokens that together hold this probability; 1: among all.
        seed: of the draws; the same seed draws the same.
        beam_size: beginnings followed at once.
        hypothesis: which of those that beam search ended with is shown: its steps, its attention; 0: the best.
    """

    method: Method = "greedy"
    max_length: int = 60
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    beam_size: int = 5
    hypothesis: int = 0

    def __post_init__(self) -> None:
        """Refuses what cannot be run.

        Raises:
            BadSetting: a value outside what is allowed.
        """
        for name, ok, allowed in (
            ("method", self.method in get_args(Method), " or ".join(get_args(Method))),
            ("max_length", 0 <= self.max_length <= 1000, "from 0 to 1000"),
            ("temperature", 0.01 <= self.temperature <= 10, "from 0.01 to 10"),
            ("top_k", 0 <= self.top_k <= 1_000_000, "0 (all) or a number of tokens"),
            ("top_p", 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("seed", 0 <= self.seed < 2**63, "0 or a positive whole number below 2^63"),
            ("beam_size", 1 <= self.beam_size <= 32, "from 1 to 32"),
            ("hypothesis", 0 <= self.hypothesis <= 63, "from 0 to 63"),
        ):
            if not ok:
                raise BadSetting(name=name, found=getattr(self, name), allowed=allowed)


@dataclass(frozen=True)
class Silence:
    """An intervention: one head's context vectors are replaced by zeros, so that it adds nothing but its output bias.

    Attributes:
        site: text form of the Site.
        head: counted from 0.
    """

    site: str
    head: int


@dataclass(frozen=True)
class RunRequest:
    """One run, described: frozen, small, hashable. Equal requests to one model give equal traces.

    Attributes:
        model: a name that `Engine.models` lists, or `at_step` of one of its snapshots.
        source: what is read.
        target: what is fed to the decoder (teacher forcing); None: the model decodes.
        decoding: how it does. Where a target is given, nothing is decoded.
        source_valid: source positions that are no padding; None: those that are not the pad id.
        source_pad_to: the source is padded to this many positions.
        keep: what is recorded besides weights, masks, positions and logits.
        interventions: what is changed while the network runs.
        settings: names and values that the model's file does not tell, as `--set` takes them.
        precision: the number type of weights and arithmetic; None: what the engine is set to, float32 unless told otherwise.
    """

    model: str
    source: Given
    target: Given | None = None
    decoding: Decoding = Decoding()
    source_valid: int | None = None
    source_pad_to: int | None = None
    keep: tuple[Keep, ...] = ()
    interventions: tuple[Silence, ...] = ()
    settings: Settings = ()
    precision: Precision | None = None

    def __post_init__(self) -> None:
        """Refuses what is not known here; brings `keep` and `settings` into one order, so that equal requests are equal.

        Raises:
            BadSetting: `keep` names something that cannot be kept, `settings` a name twice, or `precision` no number type.
            TooManyCharacters, TooManyTokens: an input is longer than any model reads.
        """
        check_size("source", self.source)
        if self.target is not None:
            check_size("target", self.target)
        if self.precision not in (None, *get_args(Precision)):
            raise BadSetting(name="precision", found=self.precision, allowed=" or ".join(get_args(Precision)))
        if unknown := set(self.keep) - set(KEEP):
            raise BadSetting(name="keep", found=", ".join(sorted(map(str, unknown))), allowed=f"among {', '.join(KEEP)}")
        if len(dict(self.settings)) < len(self.settings):
            raise BadSetting(name="settings", found=", ".join(name for name, _ in self.settings), allowed="each name once")
        object.__setattr__(self, "keep", tuple(name for name in KEEP if name in self.keep))
        object.__setattr__(self, "settings", tuple(sorted(self.settings)))

    def to_json(self) -> dict[str, Any]:
        """The request as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The request in JSON values.

        Raises:
            BadSetting: a field is unknown, missing, of another type or outside what is allowed.
        """
        return read(cls, data, "run request")
