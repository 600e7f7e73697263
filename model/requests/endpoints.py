"""How a question and its answer travel to an engine on another machine. No torch.

Questions are JSON, except for the bytes of an upload. Answers are JSON, a serialized trace or a safetensors file of arrays.
Nothing is pickled, and every value is validated against its type before it is used.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import load, save

from model.errors import Phrase, WireError
from model.requests.edits import Edit
from model.requests.questions import Question, RunQuestion
from model.requests.request import RunRequest
from model.requests.validation import read

VERSION = 1
"""Version of paths and bodies; paths begin with /v1."""

JSON, TRACE, ARRAYS = "application/json", "application/x-headlight-trace", "application/x-safetensors"
ZIP, PARQUET = "application/zip", "application/vnd.apache.parquet"
"""The media types of answers."""


@dataclass(frozen=True)
class Endpoint:
    """A kind of question on its way to a server, and its answer on its way back.

    Attributes:
        question: the class of its questions.
        media: media type of the reply.
        summary: for the OpenAPI description.
        pack: the reply of an answer.
        unpack: the answer of a reply.
        body: the dataclass whose fields the JSON body has, the question itself or its only field; None: there is no body.
    """

    question: type[Question[Any]]
    media: str
    summary: str
    pack: Callable[[Any], bytes]
    unpack: Callable[[bytes], Any]
    body: type | None

    @property
    def path(self) -> str:
        """URL path."""
        return f"/v{VERSION}/{self.question.__name__.lower()}"

    @property
    def runs(self) -> bool:
        """Whether it runs a network, so that it can stream its progress."""
        return issubclass(self.question, RunQuestion)

    def read(self, values: Any) -> Question[Any]:
        """The question in the JSON values of a body.

        Raises:
            BadSetting: a field is missing, unknown, or has a value that is not allowed.
        """
        if self.body is None:
            return self.question()
        value: Any = read(self.body, values, "the body")
        asked: Callable[..., Question[Any]] = self.question
        return value if isinstance(value, Question) else asked(value)

    def write(self, question: Question[Any]) -> bytes:
        """The JSON body of a question."""
        if self.body is self.question or self.body is None:
            return pack(question)
        # The body is the value of the question's only field: a Run is sent as its request, without a wrapper around
        # it.
        (name,) = (field.name for field in fields(question))
        return pack(getattr(question, name))


def endpoint(
    question: type[Question[Any]], media: str, summary: str, pack: Callable[[Any], bytes], unpack: Callable[[bytes], Any]
) -> Endpoint:
    """An endpoint whose body has the fields of its question, as nearly all do."""
    return Endpoint(question, media, summary, pack, unpack, question)


def pack(value: Any) -> bytes:
    """Plain values, dataclasses and questions as JSON bytes, edits as their text."""
    return json.dumps(value, ensure_ascii=False, default=_plain).encode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    if isinstance(value, RunRequest | Phrase):
        return value.to_json()
    return str(value) if isinstance(value, Edit) else {field.name: getattr(value, field.name) for field in fields(value)}


def as_json(kind: Any, name: str) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Packs a dataclass, or a tuple, as JSON, and unpacks it; every value is validated.

    Args:
        name: names the value in errors.
    """
    return (
        lambda answer: pack(asdict(answer) if is_dataclass(answer) and not isinstance(answer, type) else answer),
        lambda data: read(kind, json.loads(data), name),
    )


def pack_arrays(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """Arrays by name, bit by bit."""
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def unpack_arrays(data: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays in a reply.

    Raises:
        WireError: the bytes hold none.
    """
    try:
        deserialize(data)
        return dict(load(data))
    except (SafetensorError, KeyError, ValueError) as error:
        raise WireError(detail=f"{type(error).__name__}: {error}") from error
