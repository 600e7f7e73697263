"""Engine: the protocol between the screens and the networks, and the questions that it answers. Where it runs does not matter.

No torch here: a web process may run on a machine without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from model.checkpoints.hub.names import Mode
from model.checkpoints.hub.plans import Plan as Plan
from model.errors import Words
from model.inspection.report import Inspection
from model.requests.questions import Answer, ModelQuestion, Question, RunQuestion
from model.requests.request import Decoding
from model.requests.snapshots import Losses
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Array, Trace

Reads: TypeAlias = Literal["words", "ids", "features", "image", "sound"]


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
        reads: form of the source: words, ids if there is no vocabulary, the number of random features, or the name of an image
            or a sound.
        snapshots: training steps with saved weights; `at_step` gives the model's name at one of them.
        losses: training and validation loss of each epoch.
        example_labels: what each example shows, in a few words; one per example, or none.
        recorded: whether this is an opened trace: its run is already made, and there is no network to run anything else.
        chats: whether it has a chat template, which makes its prompt of the turns of a conversation.
        sampling: how its authors have it sample; None: they do not say.
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
    chats: bool = False
    sampling: Decoding | None = None

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


@dataclass(frozen=True)
class Listing:
    """What an engine can run.

    Attributes:
        device: where it runs, as shown on screen: "CPU · 2 threads", "CUDA · NVIDIA H200".
        models: all models, damaged checkpoints included. Uploads are not listed: only their senders know the names.
    """

    device: Words
    models: tuple[ModelInfo, ...]


@dataclass(frozen=True)
class Models(Question[Listing]):
    """The models, and the device that they run on."""


@dataclass(frozen=True)
class Receive(Question[str]):
    """Opens an uploaded file and keeps it for a while.

    The answer is the name of a model, such as upload-1a2b3c4d5e6f7081, or a value for the settings `source_vocab` and
    `target_vocab`, such as words-1a2b3c4d5e6f7081. Equal content gets an equal name.

    Attributes:
        data: the bytes of weights, of a trace, or of a vocabulary (.txt, .json or .vocab).
        name: its file name.
    """

    data: bytes
    name: str


@dataclass(frozen=True)
class Offer:
    """A model that can be opened, or downloaded and opened.

    Attributes:
        name: its name in a RunRequest.
        title: what people call it.
        about: what it is, a few words; of a model of the Hub's cache, its branches and tags.
        layers, heads: of its network; 0: unknown.
        bytes: of its weights, or of the download.
        dtype: number type of its weights; empty: unknown.
        license: identifier of its license; empty: unknown.
    """

    name: str
    title: str
    about: Words
    layers: int
    heads: int
    bytes: int
    dtype: str = ""
    license: str = ""


@dataclass(frozen=True)
class Offers:
    """What can be opened here beside the list of models.

    Attributes:
        mode: what the owner of the machine allows with names of the Hub.
        cached: models in this machine's Hub cache that run here.
        known: models of the catalogue that are not on this machine.
    """

    mode: Mode
    cached: tuple[Offer, ...] = ()
    known: tuple[Offer, ...] = ()


@dataclass(frozen=True)
class Offered(Question[Offers]):
    """What can be opened or downloaded. The network is not used for it."""


@dataclass(frozen=True)
class Meaning:
    """What a typed name means.

    Attributes:
        model: the name of a model that is here; empty: it is not.
        known: the name of a model of the catalogue that can be downloaded; empty: it is none.
        plan: what the download of a model of the Hub would take; None: it is none.
    """

    model: str = ""
    known: str = ""
    plan: Plan | None = None


@dataclass(frozen=True)
class Find(Question[Meaning]):
    """What a typed name, or the address of a page of the Hub, means. The Hub is asked where the model is not on this machine."""

    text: str


@dataclass(frozen=True)
class Fetch(Question[str]):
    """Downloads a model; the answer is its name. LISTENER of the calling thread hears the bytes, CANCEL_TOKEN stops it.

    Attributes:
        what: the name of a model of the catalogue, or the plan of a model of the Hub.
    """

    what: str | Plan


@dataclass(frozen=True)
class Describe(ModelQuestion[ModelInfo]):
    """Facts about a model; `problem` of the answer says why it cannot be used."""


@dataclass(frozen=True)
class Inspect(ModelQuestion[Inspection]):
    """The inspection report of a model's file or folder, with its open questions."""


@dataclass(frozen=True)
class Run(RunQuestion[Trace]):
    """The trace of one run. Equal requests may get the same frozen object.

    An unfinished older run of the same session (model/engine/scheduling/queue.py) is superseded.

    While it decodes, LISTENER of the calling thread (model/trace/progress.py) hears the tokens written so far. A run that nobody
    waits for any more, since each CANCEL_TOKEN was canceled, ends at its next step.
    """


@dataclass(frozen=True)
class Explain(RunQuestion[Explanation]):
    """The arithmetic of one attention cell of a run, recomputed in float64. Indices count from 0.

    The run records everything, whatever `request.keep` says, so that equal requests share it.
    """

    site: str
    head: int
    query: int
    key: int


@dataclass(frozen=True)
class Tensors(ModelQuestion[Mapping[str, Array]]):
    """Tensors of a model by name.

    Attributes:
        names: any parameter's name in the model's state dict, or

            - `positions/STACK` [position, model]: all positions that the stack has,
            - `rotation/SITE` [pair, 3]: the two columns of each pair that rotary positions turn, and the radians per position,
            - `biases/SITE` [head, distance]: the numbers added to scores 128 positions before a query, …, 128 after it,
            - `wordless/SITE` [head, distance]: likewise, of DeBERTa-v2, whose numbers depend on words: the part without them,
            - `heads/SITE/PART` [head, head_dim, model], of `output` [head, model, head_dim]: query, key, value or output maps,
            - `singular/SITE/PRODUCT` [head, rank]: singular values of W_Q W_Kᵀ (`query-key`) or W_V W_O (`value-output`), falling,
            - `near/STRIP/ID` [neighbor, 2]: ids and cosines of the embeddings nearest to one.
    """

    names: tuple[str, ...] = field(kw_only=True)


@dataclass(frozen=True)
class Export(ModelQuestion[bytes]):
    """The model as a zip archive of a native checkpoint folder. All settings are stored; it gives the identical run."""


@dataclass(frozen=True)
class Texts(ModelQuestion[tuple[str, ...]]):
    """The texts of token ids, as shown on screen.

    Attributes:
        strip: `source` or `target`.
        ids: the ids.
    """

    strip: str = field(kw_only=True)
    ids: tuple[int, ...] = field(kw_only=True)


@dataclass(frozen=True)
class Healthy(Question[bool]):
    """Whether the engine can answer now. It never waits for a run."""


@dataclass(frozen=True)
class Gauges(Question[Mapping[str, float]]):
    """Prometheus gauges: `waiting` and `running` requests, `device_bytes`; empty if unknown."""


@dataclass(frozen=True)
class Batches(Question[Mapping[int, int]]):
    """Number of batches computed, by the number of runs in a batch; empty if unknown."""


class Engine(Protocol):
    """Answers questions about networks: those of this file, and those of features."""

    def ask(self, question: Question[Answer]) -> Answer:
        """The answer, of the type that the class of the question says.

        Raises:
            HeadlightError: there is none; its text can be shown on screen.
        """


class SharedEngine(Engine, Protocol):
    """The engine of a process, which serves all its sessions."""

    def open_path(self, path: Path) -> str:
        """Opens a file or folder of this machine, a model, a vocabulary or a trace, and returns its name.

        This is no question, which visitors could ask: only the machine's owner may call it.

        Raises:
            NotACheckpoint: the path does not exist or cannot be read.
            BadTrace: it is a trace that cannot be drawn.
            OtherMachine: the engine runs on another machine.
        """
