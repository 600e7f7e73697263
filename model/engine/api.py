"""Engine: the protocol between the screens and the networks: list models, run one, return tensors. Where it runs does not matter.

No torch here: a web process may run on a machine without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from model.attribution.questions import Answer, Question
from model.errors import Words
from model.inspection.report import Inspection
from model.spec.request import RunRequest, Settings
from model.spec.snapshots import Losses
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Array, Trace

Reads: TypeAlias = Literal["words", "ids", "features"]


@dataclass(frozen=True)
class ModelInfo:
    """One entry in the list of models.

    Attributes:
        name: the model's name in a RunRequest.
        title, summary: shown on screen.
        languages: what the strips hold, by strip: {"source": "German", "target": "English"}; no "target" for a language model.
        examples: example sentences.
        parameters: number of learned parameters.
        spec: the ModelSpec as JSON values; empty if the checkpoint cannot be used.
        max_source, max_target: number of positions of the two stacks.
        problem: the error that makes the checkpoint unusable, as JSON values; empty if there is none.
        reads: form of the typed source: words, ids if there is no vocabulary, or the number of random features.
        snapshots: training steps with saved weights; `at_step` gives the model's name at one of them.
        losses: training and validation loss of each epoch.
        example_labels: what each example shows, in a few words; one per example, or none.
        recorded: whether this is an opened trace: its run is already made, and there is no network to run anything else.
    """

    name: str
    title: str
    summary: Words
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
    example_labels: tuple[str, ...] = ()
    recorded: bool = False

    @property
    def writes(self) -> bool:
        """Whether it has an output layer over a vocabulary, so that it can decode."""
        return not self.recorded and self.spec.get("decoder") is not None and self.spec.get("output", {}) is not None

    @property
    def continues(self) -> bool:
        """Whether it is a language model, which continues its source, the prompt."""
        return self.writes and self.spec.get("encoder") is None

    @property
    def translates(self) -> bool:
        """Whether it has a target strip beside the source."""
        return not self.recorded and None not in (self.spec.get("encoder"), self.spec.get("decoder"))


class Engine(Protocol):
    """Runs networks. Every method may raise a HeadlightError, whose text can be shown on screen."""

    @property
    def device(self) -> Words:
        """The device as shown on screen: "CPU · 2 threads", "CUDA · NVIDIA H200"."""

    def models(self) -> tuple[ModelInfo, ...]:
        """All models, damaged checkpoints included. Uploads are not listed: only their senders know the names."""

    def receive(self, data: bytes, name: str) -> str:
        """Opens an uploaded file called `name` and keeps it for a while: weights, or a vocabulary (.txt, .json or .vocab).

        Returns:
            The name of a model, such as upload-1a2b3c4d5e6f7081, or a value for the settings `source_vocab` and `target_vocab`,
                such as words-1a2b3c4d5e6f7081. Equal content gets an equal name.
        """

    def describe(self, model: str, settings: Settings = ()) -> ModelInfo:
        """Facts about a model, given `settings`; `problem` says why it cannot be used."""

    def inspect(self, model: str, settings: Settings = ()) -> Inspection:
        """The inspection report of a model's file or folder, with its open questions."""

    def run(self, request: RunRequest) -> Trace:
        """The trace of one run. Equal requests may return the same frozen object.

        An unfinished older run of the same session (model/engine/scheduling/queue.py) is superseded.

        While it decodes, LISTENER of the calling thread (model/trace/progress.py) hears the tokens written so far. A run that
        nobody waits for any more, since each CANCEL_TOKEN was canceled, ends at its next step.
        """

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int) -> Explanation:
        """The arithmetic of one attention cell of a run, recomputed in float64. Indices count from 0.

        The underlying run records everything, whatever `request.keep` says, so that equal requests share it.
        """

    def attribute(self, question: Question[Answer]) -> Answer:
        """What heads, words or edges of a run were for: the result of a question (model/attribution/questions.py).

        Equal questions may return the same frozen object. Most take longer than a run.
        """

    def tensors(self, model: str, names: tuple[str, ...], settings: Settings = ()) -> dict[str, Array]:
        """Tensors of a model by name: any parameter's name in its state dict, or

        - `positions/STACK` [position, model]: all positions that the stack has,
        - `heads/SITE/PART` [head, head_dim, model], of `output` [head, model, head_dim]: query, key, value or output maps,
        - `singular/SITE/PRODUCT` [head, rank]: singular values of W_Q W_Kᵀ (`query-key`) or W_V W_O (`value-output`), falling,
        - `near/STRIP/ID` [neighbor, 2]: ids and cosines of the embeddings nearest to one.
        """

    def export(self, model: str, settings: Settings = ()) -> bytes:
        """The model as a zip archive of a native checkpoint folder. All settings are stored; it gives the identical run."""

    def texts(self, model: str, strip: str, ids: tuple[int, ...], settings: Settings = ()) -> tuple[str, ...]:
        """The texts of token ids of a strip, `source` or `target`, as shown on screen."""


class SharedEngine(Engine, Protocol):
    """The engine of a process, which serves all its sessions."""

    def open_path(self, path: Path) -> str:
        """Opens a file or folder of this machine and returns its name. Only the machine's owner may call this."""

    def gauges(self) -> Mapping[str, float]:
        """Prometheus gauges: `waiting` and `running` requests, `device_bytes`; empty if unknown."""

    def batches(self) -> Mapping[int, int]:
        """Number of batches computed, by the number of runs in a batch."""

    def is_healthy(self) -> bool:
        """Whether the engine can answer now."""
