"""Engine: the one thing that a screen asks. What can be run, run it, give me a tensor — wherever the network lives.

No torch here: a web process may stand on a machine that has none.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, Self, TypeAlias, get_args

from model.checked import read
from model.errors import BadSetting
from model.explain import Explanation
from model.inspection import Inspection
from model.run_inputs import Features as Features
from model.run_inputs import Given as Given
from model.run_inputs import RandomFeatures as RandomFeatures
from model.run_inputs import check_size
from model.trace import Array, Trace

Settings: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values that a model's file does not tell, as `--set` takes them."""

Reads: TypeAlias = Literal["words", "ids", "features"]

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


def at_step(model: str, step: int) -> str:
    """The name of a model as it was after `step` updates of its weights: "reverse-digits@000151"."""
    return f"{model}@{step:06}"


def without_step(name: str) -> tuple[str, int | None]:
    """The model and the step in the name of a snapshot; None: `name` names no snapshot."""
    model, _at, step = name.rpartition("@")
    return (model, int(step)) if model and step.isascii() and step.isdigit() and len(step) < 13 else (name, None)


@dataclass(frozen=True)
class Losses:
    """What a training had come to after `step` updates of the weights: mean losses in nats a target token."""

    step: int
    training: float
    validation: float


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
        problem: why the checkpoint cannot be used, the error as JSON values; empty where it can.
        reads: what its source is typed as: words, ids where nobody told a vocabulary, or how many random features to draw.
        snapshots: the steps of its training after which its weights were kept; `at_step` names the model as it was then.
        losses: of its training, epoch by epoch.
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
    problem: Mapping[str, Any] = field(default_factory=dict)
    reads: Reads = "words"
    snapshots: tuple[int, ...] = ()
    losses: tuple[Losses, ...] = ()

    @property
    def writes(self) -> bool:
        """Whether it has an output layer over a vocabulary, so that it can decode."""
        return self.spec.get("decoder") is not None and self.spec.get("output", {}) is not None

    @property
    def continues(self) -> bool:
        """Whether it is a language model, whose source is a prompt that it goes on from."""
        return self.writes and self.spec.get("encoder") is None

    @property
    def translates(self) -> bool:
        """Whether it has a target strip beside the source."""
        return None not in (self.spec.get("encoder"), self.spec.get("decoder"))


class Engine(Protocol):
    """Where networks run. Every method may raise a HeadlightError, whose text can be shown as it is."""

    @property
    def device(self) -> str:
        """Where it computes, for people: "CPU · 2 threads", "CUDA · NVIDIA H200"."""

    def models(self) -> tuple[ModelInfo, ...]:
        """What can be asked for, damaged checkpoints included. Uploads are known to those who sent them, and not listed."""

    def receive(self, data: bytes, name: str) -> str:
        """Opens a file that somebody sent, called `name`, and keeps it for a while: weights, or words (.txt, .json or .vocab).

        Returns:
            The name of a model, such as upload-1a2b3c4d5e6f7081, or what the settings `source_vocab` and `target_vocab` of an
                upload take, such as words-1a2b3c4d5e6f7081; the same for the same content.
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
        """Tensors of a model by name: any parameter's name in its state dict, or

        - `positions/STACK` [position, model]: all positions that the stack has,
        - `heads/SITE/PART` [head, head_dim, model], of `output` [head, model, head_dim]: query, key, value or output maps,
        - `singular/SITE/PRODUCT` [head, rank]: singular values of W_Q W_Kᵀ (`query-key`) or W_V W_O (`value-output`), falling,
        - `near/STRIP/ID` [neighbour, 2]: ids and cosines of the embeddings nearest to one.
        """

    def export(self, model: str, settings: Settings = ()) -> bytes:
        """The model as a folder of our own, which holds all answers and opens to the identical run; a zip archive."""

    def texts(self, model: str, strip: str, ids: tuple[int, ...], settings: Settings = ()) -> tuple[str, ...]:
        """What ids of a strip, `source` or `target`, are called on screen."""
