"""Scenes: what the drawings in the browser are given, as bytes. Pure functions; numpy and JSON alone, no Streamlit.

A scene is a uint32 (little endian) with the length of the header, the header (JSON, UTF-8), zeros up to a multiple of four, then
the blobs, each padded to a multiple of four. `header["blobs"][name]` says where a blob starts (`at`, counted from the first blob),
its `shape` and its `type` (`uint8` or `float32`). common.js has the one function that reads this.

Weights of many heads travel as uint8: round(255·sqrt(weight)), so that small weights stay apart from 0; what is read as a number
with four decimals (the selected head) travels as float32.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from model.trace import Array, Attention, Site, Step, Tokens, Trace
from viz import labels
from viz.canvas import words
from viz.theme import DARK, LIGHT

_ALIGN = 4


def pack(header: Mapping[str, Any], blobs: Mapping[str, Array]) -> bytes:
    """The bytes of a scene: `header`, and arrays of uint8 or float32 that it names."""
    places, parts, at = {}, [], 0
    for name, array in blobs.items():
        part = _padded(np.ascontiguousarray(array).tobytes())
        places[name] = {"at": at, "shape": array.shape, "type": str(array.dtype)}
        parts.append(part)
        at += len(part)
    text = json.dumps({**header, "blobs": places}, ensure_ascii=False).encode("utf-8", "replace")
    return b"".join((_padded(len(text).to_bytes(4, "little") + text), *parts))


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a scene: what the browser reads."""
    length = int.from_bytes(data[:4], "little")
    header: dict[str, Any] = json.loads(data[4 : 4 + length])
    start = 4 + length + -length % _ALIGN
    blobs = {
        name: np.frombuffer(data, place["type"], math.prod(place["shape"]), start + place["at"]).reshape(place["shape"])
        for name, place in header["blobs"].items()
    }
    return header, blobs


def _padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % _ALIGN)


def encode(weights: Array) -> Array:
    """Probabilities as uint8, round(255·sqrt(weight)); (b / 255)² gives them back to within 0.004."""
    code: Array = np.rint(255 * np.sqrt(np.clip(weights, 0, 1))).astype(np.uint8)
    return code


def strips(trace: Trace, site: Site, query: int) -> bytes:
    """The token strips, and which query row of `site` is selected (-1: none)."""
    attention = trace.at(site)
    header = {
        **_base(trace),
        "texts": words.strips(),
        "strips": [_strip(trace, name) for name in trace.tokens],
        "queryStrip": attention.query_tokens,
        "rows": int(attention.weights.shape[1]),
        "query": _row(attention, query),
    }
    return pack(header, {})


def atlas(trace: Trace, site: Site, head: int, query: int) -> bytes:
    """All heads of all sites, grouped by kind. Blobs: `weights/SITE` uint8 [head, query, key], `mask/N` uint8 [query, key] (sites
    with equal masks share one), `exact` float32 [query, key] of the selected head.
    """
    selected = trace.at(site)
    blobs: dict[str, Array] = {"exact": selected.head(head).astype(np.float32)}
    masks: dict[tuple[bytes, tuple[int, ...]], str] = {}
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for where, attention in trace.attention.items():
        blobs[f"weights/{where}"] = encode(attention.weights)
        mask = masks.setdefault((attention.mask.tobytes(), attention.mask.shape), f"mask/{len(masks)}")
        blobs[mask] = attention.mask.astype(np.uint8)
        group = groups.setdefault((where.stack, where.kind), _group(trace, attention))
        group["sites"].append(
            {
                "site": str(where),
                "label": _row_label(trace, where),
                "mask": mask,
                "names": [labels.site(where, h) for h in range(attention.heads)],
            }
        )
    header = {
        **_base(trace),
        "texts": words.atlas(),
        "groups": list(groups.values()),
        "selection": {"site": str(site), "head": head, "query": _row(selected, query)},
    }
    return pack(header, blobs)


def lines(trace: Trace, site: Site, head: int, query: int) -> bytes:
    """One head between its two token strips. Blobs: `exact` float32 and `mask` uint8, both [query, key]."""
    attention = trace.at(site)
    header = {
        **_base(trace),
        "texts": words.lines(),
        **_axes(trace, attention),
        "name": labels.site(site, head),
        "query": _row(attention, query),
    }
    return pack(header, {"exact": attention.head(head).astype(np.float32), "mask": attention.mask.astype(np.uint8)})


def player(trace: Trace, site: Site, head: int, step: int) -> bytes:
    """The decode, token by token, seen from one site. Blobs: `exact` float32 [head, query, key], `mask` uint8 [query, key]."""
    attention = trace.at(site)
    attention.head(head)
    header = {
        **_base(trace),
        "texts": words.player(),
        **_axes(trace, attention),
        "site": str(site),
        "names": [labels.site(site, h) for h in range(attention.heads)],
        "strips": [_strip(trace, name) for name in trace.tokens],
        "written": _written_strip(trace),
        "decodes": site.stack == "decoder" and bool(trace.steps),
        "head": head,
        "step": step,
    }
    return pack(header, {"exact": attention.weights.astype(np.float32), "mask": attention.mask.astype(np.uint8)})


def _row(attention: Attention, query: int) -> int:
    """`query`, or -1 where the site has no such row."""
    return query if 0 <= query < attention.weights.shape[1] else -1


def _base(trace: Trace) -> dict[str, Any]:
    run = json.dumps(
        [trace.model.get("fingerprint"), dict(trace.request), {n: t.texts for n, t in trace.tokens.items()}], default=str
    )
    return {"schemes": {"light": asdict(LIGHT), "dark": asdict(DARK)}, "run": run}


def _group(trace: Trace, attention: Attention) -> dict[str, Any]:
    site = attention.site
    return {"title": labels.kind(site.stack, site.kind), **_axes(trace, attention), "sites": []}


def _axes(trace: Trace, attention: Attention) -> dict[str, Any]:
    query, key = labels.query_axis(trace, attention.site), labels.key_axis(trace, attention.site)
    return {
        "queryAxis": query,
        "keyAxis": key,
        "axes": words.axes(query, key),
        "queries": labels.queries(trace, attention),
        "keys": labels.keys(trace, attention),
        "queryStrip": attention.query_tokens,
        "keyStrip": attention.key_tokens,
        "writes": attention.site.stack == "decoder",
    }


def _row_label(trace: Trace, site: Site) -> str:
    passes = 1 + max(s.pass_ for s in trace.attention if s.stack == site.stack)
    return words.layer(site.layer, site.pass_ if passes > 1 else None)


def _written_strip(trace: Trace) -> str:
    """The strip that decoding writes: a language model's only one, else the target."""
    return "target" if "target" in trace.tokens else "source"


def _has_decoder(trace: Trace) -> bool:
    return any(site.stack == "decoder" for site in trace.attention)


def _strip(trace: Trace, name: str) -> dict[str, Any]:
    """One strip's chips. A chip's `row` is the query row it stands for: in a decoder the row that wrote it."""
    tokens = trace.tokens[name]
    written = name == _written_strip(trace) and _has_decoder(trace)
    steps = {step.computed[1]: step for step in trace.steps} if written else {}
    known = labels.strip(replace(tokens, unknown=(False,) * len(tokens)))
    return {
        "name": name,
        "title": words.strip_title(trace, name, bool(steps)),
        "written": written,
        "generated": bool(steps),
        "tokens": [_chip(tokens, i, label, i - 1 if written else i, steps.get(i)) for i, label in enumerate(known)],
    }


def _chip(tokens: Tokens, position: int, label: str, row: int, step: Step | None) -> dict[str, Any]:
    chip: dict[str, Any] = {
        "label": label,
        "text": labels.plain(tokens.texts[position]),
        "special": tokens.special[position],
        "unknown": tokens.unknown[position],
        "row": row,
    }
    if step is not None:
        chip |= {"step": step.index, "probability": math.exp(step.chosen.log_probability), "candidates": _candidates(step)}
    return chip


def _candidates(step: Step) -> list[dict[str, Any]]:
    """The likeliest tokens, best first, and the chosen one among them, even where a draw took a less likely one."""
    listed = list(step.candidates)
    if all(c.id != step.chosen.id for c in listed):
        listed.append(step.chosen)
    return [
        {"text": labels.plain(c.text), "probability": math.exp(c.log_probability), "chosen": c.id == step.chosen.id} for c in listed
    ]
