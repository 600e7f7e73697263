"""What a web process and an engine's host say to each other: paths, bodies and replies. Both sides read this one table. No torch.

Requests are JSON, but for the bytes of a file that somebody sends. Replies are JSON, the bytes of a trace
(`model/trace/serialization.py`), or a safetensors file of arrays. Nothing is pickled, and every value is checked by its type before
it is used.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import load, save

from model.engine.api import ModelInfo
from model.engine.session import SharedEngine
from model.errors import WireError
from model.inspection.report import Inspection
from model.spec.request import RunRequest, Settings
from model.spec.validation import read
from model.trace import serialization
from model.trace.cell_arithmetic import Explanation
from model.trace.types import SCHEMA, Array

VERSION = 1
"""Of the paths and bodies, which begin with /v1."""

SPEAKS = f"{VERSION}.{SCHEMA}"
"""Protocol and schema of traces: host and web process must agree on both. Every reply says it in the header `headlight-speaks`."""

SPEAKS_HEADER, SESSION_HEADER = "headlight-speaks", "x-session-id"
JSON, TRACE, ARRAYS = "application/json", "application/x-headlight-trace", "application/x-safetensors"
ZIP = "application/zip"


@dataclass(frozen=True)
class Nothing:
    """The body of a question that needs none."""


@dataclass(frozen=True)
class OfModel:
    """A model, as its file is told by `settings`."""

    model: str
    settings: Settings = ()


@dataclass(frozen=True)
class OfTensors:
    """Tensors of a model."""

    model: str
    names: tuple[str, ...]
    settings: Settings = ()


@dataclass(frozen=True)
class OfTexts:
    """Texts of ids of a strip."""

    model: str
    strip: str
    ids: tuple[int, ...]
    settings: Settings = ()


@dataclass(frozen=True)
class OfCell:
    """One attention cell of a run."""

    request: RunRequest
    site: str
    head: int
    query: int
    key: int


@dataclass(frozen=True)
class Question:
    """One thing that can be asked.

    Attributes:
        path: below the host's address.
        body: the dataclass that the JSON body describes.
        media: what the reply is.
        summary: for the description.
        answer: asks an engine, given the body and the session, and packs the reply.
    """

    path: str
    body: type
    media: str
    summary: str
    answer: Callable[[SharedEngine, Any, str], bytes]


def pack(value: Any) -> bytes:
    """JSON of plain values."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def pack_infos(engine: SharedEngine) -> bytes:
    """The device, and all models."""
    return pack({"device": engine.device, "models": [asdict(info) for info in engine.models()]})


def unpack_infos(data: bytes) -> tuple[str, tuple[ModelInfo, ...]]:
    """The device, and all models."""
    found = json.loads(data)
    return found["device"], read(tuple[ModelInfo, ...], found["models"], "models")


def unpack_info(data: bytes) -> ModelInfo:
    """One model."""
    return read(ModelInfo, json.loads(data), "model")


def unpack_inspection(data: bytes) -> Inspection:
    """A diagnosis."""
    return read(Inspection, json.loads(data), "inspection")


def pack_explanation(explanation: Explanation) -> bytes:
    """Arrays as arrays, in float64 to the last bit; the rest beside them."""
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
        others = json.loads(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["headlight"])
        return Explanation(**{name: (load(data) | others)[name] for name in (field.name for field in fields(Explanation))})
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise WireError(detail=f"{type(error).__name__}: {error}") from error


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


def _explain(engine: SharedEngine, body: OfCell, session: str) -> bytes:
    return pack_explanation(engine.explain(body.request, body.site, body.head, body.query, body.key, session))


def _tensors(engine: SharedEngine, body: OfTensors) -> bytes:
    found: Mapping[str, Array] = engine.tensors(body.model, body.names, body.settings)
    return save({name: np.ascontiguousarray(array) for name, array in found.items()})


QUESTIONS = {
    question.path.rpartition("/")[2]: question
    for question in (
        Question("/v1/models", Nothing, JSON, "The device, and what can be run.", lambda engine, body, session: pack_infos(engine)),
        Question(
            "/v1/describe",
            OfModel,
            JSON,
            "What a model is.",
            lambda engine, body, session: pack(asdict(engine.describe(body.model, body.settings))),
        ),
        Question(
            "/v1/inspect",
            OfModel,
            JSON,
            "The diagnosis of a model's file.",
            lambda engine, body, session: pack(asdict(engine.inspect(body.model, body.settings))),
        ),
        Question(
            "/v1/run",
            RunRequest,
            TRACE,
            "The trace of one run.",
            lambda engine, body, session: serialization.to_bytes(engine.run(body, session)),
        ),
        Question("/v1/explain", OfCell, ARRAYS, "The arithmetic of one attention cell.", _explain),
        Question("/v1/tensors", OfTensors, ARRAYS, "Tensors by name.", lambda engine, body, session: _tensors(engine, body)),
        Question(
            "/v1/export",
            OfModel,
            ZIP,
            "A model as a folder of our own, zipped.",
            lambda engine, body, session: engine.export(body.model, body.settings),
        ),
        Question(
            "/v1/texts",
            OfTexts,
            JSON,
            "What ids are called.",
            lambda engine, body, session: pack(engine.texts(body.model, body.strip, body.ids, body.settings)),
        ),
    )
}
"""By the last part of the path. Besides, POST /v1/receive?name=NAME takes the bytes of a file and replies with a name."""

RECEIVE = "/v1/receive"
