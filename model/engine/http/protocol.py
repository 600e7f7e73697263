"""HTTP protocol between client and engine server: paths, request bodies and replies, one table for both sides. No torch.

Requests are JSON, except for the bytes of an upload. Replies are JSON, a serialized trace (`model/trace/serialization.py`) or a
safetensors file of arrays. Nothing is pickled, and every value is validated against its type before it is used.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import load, save

from model.attribution import results as attributions
from model.attribution.circuits import Circuit, CircuitGraph
from model.attribution.costs import CacheRun, Measures, Sizes, TimeLengths, Times, WithoutCache
from model.attribution.questions import QUESTIONS
from model.attribution.sums import CellWords, CellWrites, LogitSum, ScoreSum, Why, Writes
from model.engine.api import Describe, Explain, Export, Inspect, Listing, ModelInfo, Models, Run, Tensors, Texts
from model.errors import Phrase, WireError
from model.inspection.report import Inspection
from model.spec.edits import Edit
from model.spec.questions import Question, RunQuestion
from model.spec.request import RunRequest
from model.spec.validation import read
from model.survey.questions import MeasuredTexts, MeasureTexts, StoredSurvey
from model.survey.reading import HeadRead, ReadHead
from model.trace import serialization
from model.trace.cell_arithmetic import Explanation
from model.trace.serialization import tensors_and_metadata
from model.trace.types import SCHEMA, Array

VERSION = 1
"""Version of paths and bodies; paths begin with /v1."""

WIRE_VERSION = f"{VERSION}.{SCHEMA}"
"""Versions of protocol and trace schema, on which client and server must agree; the header `headlight-speaks` of every reply."""

WIRE_VERSION_HEADER, SESSION_HEADER = "headlight-speaks", "x-session-id"
"""Headers with the version that an answer is written in, and with the session of a question."""

JSON, TRACE, ARRAYS = "application/json", "application/x-headlight-trace", "application/x-safetensors"
"""The media types of answers."""

ZIP, PARQUET = "application/zip", "application/vnd.apache.parquet"


@dataclass(frozen=True)
class Endpoint:
    """One endpoint of the server: a kind of question on its way there, and its answer on its way back.

    Attributes:
        question: the class of its questions. The JSON body has their fields, see `body`.
        media: media type of the reply.
        summary: for the OpenAPI description.
        pack: the reply of an answer.
        unpack: the answer of a reply.
    """

    question: type[Question[Any]]
    media: str
    summary: str
    pack: Callable[[Any], bytes]
    unpack: Callable[[bytes], Any]

    @property
    def path(self) -> str:
        """URL path."""
        return f"/v{VERSION}/{self.question.__name__.lower()}"

    @property
    def runs(self) -> bool:
        """Whether it runs a network, so that it can stream its progress."""
        return issubclass(self.question, RunQuestion)

    @property
    def body(self) -> type | None:
        """The dataclass that has the fields of the JSON body; None: there is no body."""
        return None if self.question is Models else RunRequest if self.question is Run else self.question

    def read(self, values: Any) -> Question[Any]:
        """The question in the JSON values of a body.

        Raises:
            BadSetting: a field is missing, unknown, or has a value that is not allowed.
        """
        if self.body is None:
            return self.question()
        found: Any = read(self.body, values, "the body")
        return Run(found) if isinstance(found, RunRequest) else found


def pack(value: Any) -> bytes:
    """Plain values, dataclasses and questions as JSON bytes, edits as their text."""
    return json.dumps(value, ensure_ascii=False, default=_plain).encode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    if isinstance(value, Run):
        return value.request
    if isinstance(value, RunRequest | Phrase):
        return value.to_json()
    return str(value) if isinstance(value, Edit) else {field.name: getattr(value, field.name) for field in fields(value)}


def pack_explanation(explanation: Explanation) -> bytes:
    """Arrays bit by bit in safetensors, all other fields as JSON in the metadata."""
    values = vars(explanation)
    arrays = {name: np.ascontiguousarray(value) for name, value in values.items() if isinstance(value, np.ndarray)}
    others = {name: value for name, value in values.items() if name not in arrays}
    return save(arrays, metadata={"headlight": json.dumps(others, default=float)})


def unpack_explanation(data: bytes) -> Explanation:
    """The explanation in a reply.

    Raises:
        WireError: the bytes hold none.
    """
    try:
        arrays, metadata = tensors_and_metadata(data)
        found = arrays | json.loads(metadata["headlight"])
        return Explanation(**{field.name: found[field.name] for field in fields(Explanation)})
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise WireError(detail=f"{type(error).__name__}: {error}") from error


def pack_arrays(arrays: Mapping[str, Array]) -> bytes:
    """Arrays by name, bit by bit."""
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def unpack_arrays(data: bytes) -> dict[str, Array]:
    """The arrays in a reply.

    Raises:
        WireError: the bytes hold none.
    """
    try:
        deserialize(data)
        return dict(load(data))
    except (SafetensorError, KeyError, ValueError) as error:
        raise WireError(detail=f"{type(error).__name__}: {error}") from error


def _json(kind: Any, name: str) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Packs a dataclass, or a tuple, as JSON, and unpacks it; every value is validated.

    Args:
        name: names the value in errors.
    """
    return (
        lambda answer: pack(asdict(answer) if is_dataclass(answer) and not isinstance(answer, type) else answer),
        lambda data: read(kind, json.loads(data), name),
    )


ENDPOINTS: Mapping[type[Question[Any]], Endpoint] = {
    endpoint.question: endpoint
    for endpoint in (
        Endpoint(Models, JSON, "The device, and what can be run.", *_json(Listing, "models")),
        Endpoint(Describe, JSON, "What a model is.", *_json(ModelInfo, "model")),
        Endpoint(Inspect, JSON, "The diagnosis of a model's file.", *_json(Inspection, "inspection")),
        Endpoint(Run, TRACE, "The trace of one run.", serialization.to_bytes, serialization.from_bytes),
        Endpoint(Explain, ARRAYS, "The arithmetic of one attention cell.", pack_explanation, unpack_explanation),
        Endpoint(Measures, JSON, "What the cost of a model's decoder follows from.", *_json(Sizes, "sizes")),
        Endpoint(Tensors, ARRAYS, "Tensors by name.", pack_arrays, unpack_arrays),
        *(
            Endpoint(
                kind, ARRAYS, (kind.__doc__ or "").splitlines()[0], attributions.to_bytes, partial(attributions.from_bytes, result)
            )
            for kind, result in {
                **QUESTIONS,
                Why: ScoreSum,
                Writes: LogitSum,
                CellWrites: CellWords,
                Circuit: CircuitGraph,
                WithoutCache: CacheRun,
                TimeLengths: Times,
            }.items()
        ),
        Endpoint(MeasureTexts, ARRAYS, "What each head does in some texts.", MeasuredTexts.to_bytes, MeasuredTexts.from_bytes),
        Endpoint(ReadHead, ARRAYS, "What one head does in some texts.", HeadRead.to_bytes, HeadRead.from_bytes),
        Endpoint(StoredSurvey, PARQUET, "The survey in a model's folder, as Parquet.", bytes, bytes),
        Endpoint(Export, ZIP, "A model as a folder of our own, zipped.", bytes, bytes),
        Endpoint(Texts, JSON, "What ids are called.", *_json(tuple[str, ...], "texts")),
    )
}
"""Endpoints by the class of their questions; other questions are not asked over HTTP. Uploads go to POST /v1/receive?name=NAME,
which replies with a name."""

RECEIVE = f"/v{VERSION}/receive"
