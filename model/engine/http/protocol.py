"""HTTP protocol between client and engine server: paths, request bodies and replies, one table for both sides. No torch.

Requests are JSON, except for the bytes of an upload. Replies are JSON, a serialized trace (`model/trace/serialization.py`) or a
safetensors file of arrays. Nothing is pickled, and every value is validated against its type before it is used.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import load, save

from model.attribution import serialization as attributions
from model.attribution.questions import QUESTIONS, Question
from model.engine.api import Engine, ModelInfo
from model.errors import Phrase, WireError, Words, in_english
from model.inspection.report import Inspection
from model.spec.edits import Edit
from model.spec.request import RunRequest, Settings
from model.spec.sent_text import whole_number
from model.spec.validation import read
from model.trace import serialization
from model.trace.cell_arithmetic import Explanation
from model.trace.types import SCHEMA, Array

VERSION = 1
"""Version of paths and bodies; paths begin with /v1."""

WIRE_VERSION = f"{VERSION}.{SCHEMA}"
"""Versions of protocol and trace schema, on which client and server must agree; the header `headlight-speaks` of every reply."""

WIRE_VERSION_HEADER, SESSION_HEADER = "headlight-speaks", "x-session-id"

PHRASES = "phrases"

ADDED_FIELDS = (
    ("models", "example_labels"),
    ("describe", "example_labels"),
    ("inspect", "problem"),
    ("models", "recorded"),
    ("describe", "recorded"),
    ("", PHRASES),
    ("inspect", "proposal"),
)
"""Fields of JSON replies that did not exist at first, by endpoint, oldest first: append new ones, with a default. Clients refuse
fields that they do not know, so FIELDS_HEADER of a request says how many of these its client knows; the server omits the others.
Who does not know PHRASES gets their sentences in English."""

FIELDS_HEADER = "headlight-fields"
JSON, TRACE, ARRAYS = "application/json", "application/x-headlight-trace", "application/x-safetensors"
ZIP = "application/zip"


@dataclass(frozen=True)
class EmptyBody:
    """Body of an endpoint that takes none."""


@dataclass(frozen=True)
class ModelQuery:
    """A model and the settings of its file."""

    model: str
    settings: Settings = ()


@dataclass(frozen=True)
class TensorsQuery:
    """Tensors of a model by name."""

    model: str
    names: tuple[str, ...]
    settings: Settings = ()


@dataclass(frozen=True)
class TextsQuery:
    """Token ids of a strip whose texts are asked for."""

    model: str
    strip: str
    ids: tuple[int, ...]
    settings: Settings = ()


@dataclass(frozen=True)
class CellQuery:
    """One attention cell of a run."""

    request: RunRequest
    site: str
    head: int
    query: int
    key: int


@dataclass(frozen=True)
class Endpoint:
    """One endpoint of the server.

    Attributes:
        path: URL path.
        body: dataclass of the JSON body.
        media: media type of the reply.
        summary: for the OpenAPI description.
        answer: calls the engine with the body and packs the reply.
    """

    path: str
    body: type
    media: str
    summary: str
    answer: Callable[[Engine, Any], bytes]


def pack(value: Any) -> bytes:
    """Plain values and dataclasses as JSON bytes, edits as their text, requests without what older hosts do not know."""
    return json.dumps(value, ensure_ascii=False, default=_plain).encode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    if isinstance(value, RunRequest | Phrase):
        return value.to_json()
    return str(value) if isinstance(value, Edit) else {field.name: getattr(value, field.name) for field in fields(value)}


def without_unknown_fields(reply: bytes, what: str, known: str) -> bytes:
    """A JSON reply of an endpoint for a client that knows the first `known` of ADDED_FIELDS; "", as it sent no header: none."""
    first = whole_number(known, 0, 999) or 0
    unknown = {name for endpoint, name in ADDED_FIELDS[first:] if endpoint in (what, "")}
    if not unknown or ENDPOINTS[what].media != JSON:
        return reply

    def told(found: dict[str, Any]) -> Any:
        """An object of the reply as this client knows it; phrases within a phrase came first."""
        known = {name: each for name, each in found.items() if name not in unknown}
        return in_english(known) if PHRASES in unknown else known

    return pack(json.loads(reply, object_hook=told))


def pack_infos(engine: Engine) -> bytes:
    """The device, and all models."""
    return pack({"device": engine.device, "models": [asdict(info) for info in engine.models()]})


def unpack_infos(data: bytes) -> tuple[Words, tuple[ModelInfo, ...]]:
    """The device, and all models."""
    found = json.loads(data)
    device = found["device"]
    return device if isinstance(device, str) else Phrase.from_json(device), read(tuple[ModelInfo, ...], found["models"], "models")


def unpack_info(data: bytes) -> ModelInfo:
    """One model."""
    return read(ModelInfo, json.loads(data), "model")


def unpack_inspection(data: bytes) -> Inspection:
    """An inspection report."""
    return read(Inspection, json.loads(data), "inspection")


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


def _explain(engine: Engine, body: CellQuery) -> bytes:
    return pack_explanation(engine.explain(body.request, body.site, body.head, body.query, body.key))


def _attribute(engine: Engine, body: Question[Any]) -> bytes:
    return attributions.to_bytes(engine.attribute(body))


def _tensors(engine: Engine, body: TensorsQuery) -> bytes:
    found: Mapping[str, Array] = engine.tensors(body.model, body.names, body.settings)
    return save({name: np.ascontiguousarray(array) for name, array in found.items()})


ENDPOINTS = {
    endpoint.path.rpartition("/")[2]: endpoint
    for endpoint in (
        Endpoint("/v1/models", EmptyBody, JSON, "The device, and what can be run.", lambda engine, body: pack_infos(engine)),
        Endpoint(
            "/v1/describe",
            ModelQuery,
            JSON,
            "What a model is.",
            lambda engine, body: pack(asdict(engine.describe(body.model, body.settings))),
        ),
        Endpoint(
            "/v1/inspect",
            ModelQuery,
            JSON,
            "The diagnosis of a model's file.",
            lambda engine, body: pack(asdict(engine.inspect(body.model, body.settings))),
        ),
        Endpoint(
            "/v1/run",
            RunRequest,
            TRACE,
            "The trace of one run.",
            lambda engine, body: serialization.to_bytes(engine.run(body)),
        ),
        Endpoint("/v1/explain", CellQuery, ARRAYS, "The arithmetic of one attention cell.", _explain),
        Endpoint("/v1/tensors", TensorsQuery, ARRAYS, "Tensors by name.", _tensors),
        *(
            Endpoint(f"/v1/{kind.__name__.lower()}", kind, ARRAYS, (kind.__doc__ or "").splitlines()[0], _attribute)
            for kind in QUESTIONS
        ),
        Endpoint(
            "/v1/export",
            ModelQuery,
            ZIP,
            "A model as a folder of our own, zipped.",
            lambda engine, body: engine.export(body.model, body.settings),
        ),
        Endpoint(
            "/v1/texts",
            TextsQuery,
            JSON,
            "What ids are called.",
            lambda engine, body: pack(engine.texts(body.model, body.strip, body.ids, body.settings)),
        ),
    )
}
"""Endpoints by the last part of their path. Uploads go to POST /v1/receive?name=NAME, which replies with a name."""

RECEIVE = "/v1/receive"
RUNS = frozenset({"/v1/run", "/v1/explain", *(f"/v1/{kind.__name__.lower()}" for kind in QUESTIONS)})
"""Paths of endpoints that run a network: they can stream their progress."""
