"""How the questions of the core travel to an engine on another machine. No torch."""

import json
from dataclasses import fields

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save

from model.engine.api import Describe, Explain, Export, Inspect, Listing, ModelInfo, Models, Run, Tensors, Texts
from model.errors import WireError
from model.inspection.report import Inspection
from model.requests.endpoints import ARRAYS, JSON, TRACE, ZIP, Endpoint, as_json, endpoint, pack_arrays, unpack_arrays
from model.requests.request import RunRequest
from model.trace import serialization
from model.trace.cell_arithmetic import Explanation
from model.trace.serialization import tensors_and_metadata


def pack_explanation(explanation: Explanation) -> bytes:
    """Arrays bit by bit in safetensors, all other fields as JSON in the metadata."""
    values = vars(explanation)
    # safetensors writes the bytes as they lie in memory, so an array with gaps, a view of another one, is copied
    # first.
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
        # The bytes come from another machine: whatever is wrong with them becomes one error, which a page can show.
        values = arrays | json.loads(metadata["headlight"])
        return Explanation(**{field.name: values[field.name] for field in fields(Explanation)})
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise WireError(detail=f"{type(error).__name__}: {error}") from error


ENDPOINTS = (
    Endpoint(Models, JSON, "The device, and what can be run.", *as_json(Listing, "models"), body=None),
    endpoint(Describe, JSON, "What a model is.", *as_json(ModelInfo, "model")),
    endpoint(Inspect, JSON, "The diagnosis of a model's file.", *as_json(Inspection, "inspection")),
    Endpoint(Run, TRACE, "The trace of one run.", serialization.to_bytes, serialization.from_bytes, body=RunRequest),
    endpoint(Explain, ARRAYS, "The arithmetic of one attention cell.", pack_explanation, unpack_explanation),
    endpoint(Tensors, ARRAYS, "Tensors by name.", pack_arrays, unpack_arrays),
    endpoint(Export, ZIP, "A model as a folder of our own, zipped.", bytes, bytes),
    endpoint(Texts, JSON, "What ids are called.", *as_json(tuple[str, ...], "texts")),
)
"""The core's; features bring their own (model/feature.py). Other questions are not asked over HTTP."""
