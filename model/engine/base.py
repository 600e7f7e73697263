"""Engine: the one thing that a screen asks. What can be run, run it, give me a tensor — wherever the network lives.

No torch here: a web process may stand on a machine that has none.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, Self, TypeAlias, get_args

from model.checked import read
from model.errors import BadSetting
from model.explain import Explanation
from model.inspection import Inspection
from model.trace import Array, Trace

Settings: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values that a model's file does not tell, as `--set` takes them."""

Reads: TypeAlias = Literal["words", "ids", "features"]

Method: TypeAlias = Literal["greedy", "sample", "beam"]
Keep: TypeAlias = Literal["scores", "qkv", "context", "output", "hidden", "stages"]

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
    """

    method: Method = "greedy"
    max_length: int = 60
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    beam_size: int = 5

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
class Features:
    """An input of float features, for networks without an embedding.

    Attributes:
        rows: [position, model].
    """

    rows: tuple[tuple[float, ...], ...]


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
        if not 1 <= self.positions <= 2**14:
            raise BadSetting(name="positions", found=self.positions, allowed=f"from 1 to {2**14}")
        if not 0 <= self.seed < 2**63:
            raise BadSetting(name="seed", found=self.seed, allowed="0 or a positive whole number below 2^63")


Given: TypeAlias = str | tuple[int, ...] | Features | RandomFeatures
"""An input: text, ids that are taken as they are (special tokens and padding included), or features."""


@dataclass(frozen=True)
class RunRequest:
    """One run, described: frozen, small, hashable. Equal requests to one model give equal traces.

    Attributes:
        model: a name that `Engine.models` lists.
        source: what is read.
        target: what is fed to the decoder (teacher forcing); None: the model decodes.
        decoding: how it does. Where a target is given, nothing is decoded.
        source_valid: source positions that are no padding; None: those that are not the pad id.
        source_pad_to: the source is padded to this many positions.
        keep: what is recorded besides weights, masks, positions and logits.
        interventions: what is changed while the network runs.
        settings: names and values that the model's file does not tell, as `--set` takes them.
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

    def __post_init__(self) -> None:
        """Refuses an unknown thing to keep; brings `keep` and `settings` into one order, so that equal requests are equal.

        Raises:
            BadSetting: `keep` names something that cannot be kept, or `settings` a name twice.
        """
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


@dataclass(frozen=True)
class ModelInfo:
    """One line of the list of models.

    Attributes:
        name: what a RunRequest asks for.
        title, summary: for people.
        languages: what the strips hold, by strip: {"source": "German", "target": "English"}; no "target" for a language model.
        examples: sentences to begin with.
        parameters: how many numbers were learned.
        spec: the ModelSpec as JSON values; empty where the checkpoint cannot be used.
        max_source, max_target: positions that the two stacks have.
        problem: why the checkpoint cannot be used, in one sentence; empty where it can.
        reads: what its source is typed as: words, ids where nobody told a vocabulary, or how many random features to draw.
    """

    name: str
    title: str
    summary: str
    languages: Mapping[str, str]
    examples: tuple[str, ...]
    parameters: int
    spec: Mapping[str, Any]
    max_source: int
    max_target: int
    problem: str = ""
    reads: Reads = "words"


class Engine(Protocol):
    """Where networks run. Every method may raise a HeadlightError, whose text can be shown as it is."""

    @property
    def device(self) -> str:
        """Where it computes, for people: "CPU · 2 threads", "CUDA · NVIDIA H200"."""

    def models(self) -> tuple[ModelInfo, ...]:
        """What can be asked for, damaged checkpoints included. Uploads are known to those who sent them, and not listed."""

    def receive(self, data: bytes, name: str) -> str:
        """Opens a file that somebody sent, called `name`, and keeps it for a while.

        Returns:
            The name of a model, such as upload-1a2b3c4d5e6f7081; the same for the same content.
        """

    def describe(self, model: str, settings: Settings = ()) -> ModelInfo:
        """What a model is, given `settings`; why it cannot be used is its `problem`."""

    def inspect(self, model: str, settings: Settings = ()) -> Inspection:
        """The diagnosis of a model's file or folder; what it leaves open is listed."""

    def run(self, request: RunRequest) -> Trace:
        """The trace of one run. Equal requests may get the same object back: it is frozen."""

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int) -> Explanation:
        """The arithmetic of one attention cell of a run, recomputed in float64. All counted from 0.

        Whatever `request` keeps, the run behind it keeps everything: equal requests share it.
        """

    def tensors(self, model: str, names: tuple[str, ...], settings: Settings = ()) -> dict[str, Array]:
        """Tensors of a model by name: `positions/encoder`, `positions/decoder` [position, model] (all positions that the model
        has), or any parameter's name in its state dict.
        """

    def texts(self, model: str, strip: str, ids: tuple[int, ...], settings: Settings = ()) -> tuple[str, ...]:
        """What ids of a strip, `source` or `target`, are called on screen."""
