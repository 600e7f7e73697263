"""Trace <-> bytes: safetensors with one JSON entry. The same bytes are the download, the wire format and the offline replay.

Masks are stored as uint8 (1 = may be looked at), everything else as float32, ids as int64. Nothing is pickled, nothing executed.
"""

import json
from dataclasses import asdict
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from model.errors import WireError
from model.trace import SCHEMA, TENSORS_OF_ATTENTION, Array, Attention, Candidate, Site, Step, Tokens, Trace

ENTRY = "headlight"
"""Key of the metadata entry that holds everything which is no array."""


def to_bytes(trace: Trace) -> bytes:
    """The file `*.trace.safetensors` of a trace."""
    header = {
        "schema": trace.schema,
        "model": dict(trace.model),
        "request": dict(trace.request),
        "tokens": {name: {**asdict(t), "ids": None} for name, t in trace.tokens.items()},
        "sites": {str(s): [a.query_tokens, a.key_tokens] for s, a in trace.attention.items()},
        "steps": [asdict(step) for step in trace.steps],
        "missing": dict(trace.missing),
    }
    return save(_arrays(trace), metadata={ENTRY: json.dumps(header, ensure_ascii=False)})


def from_bytes(data: bytes) -> Trace:
    """The trace in a file's bytes.

    Raises:
        WireError: the bytes are no safetensors file, no trace, damaged, or of another schema.
    """
    try:
        header, arrays = _open(data)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise WireError(detail=str(error) or type(error).__name__) from error
    if header.get("schema") != SCHEMA:
        raise WireError(detail=f"its schema is {header.get('schema')!r}, this version reads {SCHEMA}")
    try:
        return _trace(header, arrays)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise WireError(detail=f"its parts do not fit together: {error}") from error


def _arrays(trace: Trace) -> dict[str, Array]:
    arrays: dict[str, Array] = {f"ids/{name}": np.asarray(t.ids, np.int64) for name, t in trace.tokens.items()}
    for site, attention in trace.attention.items():
        for name in TENSORS_OF_ATTENTION:
            if (array := getattr(attention, name)) is not None:
                arrays[f"attention/{site}/{name}"] = array.astype(np.uint8 if name.startswith("mask") else np.float32)
    for group in ("positions", "embedded", "hidden"):
        arrays |= {f"{group}/{name}": a.astype(np.float32) for name, a in getattr(trace, group).items()}
    if trace.logits is not None:
        arrays["logits"] = trace.logits.astype(np.float32)
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _open(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    from safetensors import deserialize

    length = int.from_bytes(data[:8], "little")
    arrays = {name: np.frombuffer(t["data"], _DTYPES[t["dtype"]]).reshape(t["shape"]) for name, t in deserialize(data)}
    header: dict[str, Any] = json.loads(json.loads(data[8 : 8 + length])["__metadata__"][ENTRY])
    return header, arrays


_DTYPES = {"F32": np.float32, "U8": np.uint8, "I64": np.int64}


def _trace(header: dict[str, Any], arrays: dict[str, Array]) -> Trace:
    def group(prefix: str) -> dict[str, Array]:
        return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}

    def attention(text: str, query_tokens: str, key_tokens: str) -> Attention:
        found = group(f"attention/{text}/")
        tensors = {n: a.astype(bool) if n.startswith("mask") else a for n, a in found.items()}
        return Attention(Site.parse(text), query_tokens, key_tokens, **tensors)

    return Trace(
        model=header["model"],
        request=header["request"],
        tokens={
            name: Tokens(name, tuple(arrays[f"ids/{name}"].tolist()), *(tuple(t[k]) for k in ("texts", "special", "unknown")))
            for name, t in header["tokens"].items()
        },
        attention={Site.parse(text): attention(text, *strips) for text, strips in header["sites"].items()},
        positions=group("positions/"),
        embedded=group("embedded/"),
        hidden=group("hidden/"),
        logits=arrays.get("logits"),
        steps=tuple(
            Step(s["index"], Candidate(**s["chosen"]), tuple(Candidate(**c) for c in s["candidates"]), tuple(s["computed"]))
            for s in header["steps"]
        ),
        missing=header["missing"],
    )
