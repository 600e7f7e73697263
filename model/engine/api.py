"""Engine: the one thing that a screen asks. What can be run, run it, give me a tensor — wherever the network lives.

No torch here: a web process may stand on a machine that has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from model.inspection.report import Inspection
from model.spec.request import RunRequest, Settings
from model.spec.snapshots import Losses
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Array, Trace

Reads: TypeAlias = Literal["words", "ids", "features"]


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
