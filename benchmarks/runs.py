"""Traces with the made-up attention, for our own drawings: the same numbers that the peers draw."""

from pathlib import Path

import numpy as np

from benchmarks.made_up import SCALE, queries_and_keys, weights
from model.inference import inputs
from model.trace import serialization
from model.trace.lazy_attention import LazyAttention
from model.trace.types import Attention, Kind, Site, Tokens, Trace

KINDS: tuple[tuple[str, Kind, str, str], ...] = (
    ("encoder", "self", "source", "source"),
    ("decoder", "self", "target", "target"),
    ("decoder", "cross", "target", "source"),
)
"""The kinds of attention: stack, kind, and the strips of queries and keys."""


def encoder(layers: int, heads: int, tokens: int, valid: int | None = None, written: bool | None = None) -> Trace:
    """A trace of an encoder.

    Args:
        valid: keys from this one on are padding; None: there is no padding.
        written: whether it holds weights instead of queries and keys; None: as the app records an input of this length.
    """
    written = tokens <= inputs.LONG if written is None else written
    mask = np.broadcast_to(np.arange(tokens) < (valid or tokens), (tokens, tokens))
    queries, keys = queries_and_keys(layers, heads, tokens)
    maps = weights(layers, heads, tokens, valid) if written else None
    found = {}
    for layer in range(layers):
        own, site = slice(layer * heads, (layer + 1) * heads), Site("encoder", 0, layer, "self")
        q, k = queries[own], keys[own]
        looked = LazyAttention(q, k, mask, SCALE).array if maps is None else maps[own]
        found[site] = Attention(site, "source", "source", looked, mask, q=q, k=k)
    return _run(f"{layers} × {heads} × {tokens}, written {written}", tokens, found)


def translation(layers: int, heads: int, tokens: int) -> Trace:
    """A trace of an encoder-decoder with all three kinds of attention in `layers` layers each."""
    mask = np.ones((tokens, tokens), bool)
    maps = iter(weights(len(KINDS) * layers, heads, tokens).reshape(-1, heads, tokens, tokens))
    found = {}
    for stack, kind, query, key in KINDS:
        for layer in range(layers):
            site = Site(stack, 0, layer, kind)
            found[site] = Attention(site, query, key, next(maps), mask)
    return _run(f"{layers} × {heads} × {tokens}, three kinds", tokens, found)


def write(trace: Trace, path: Path) -> Path:
    """Writes a trace file, which `atlas_app.py` can read."""
    path.write_bytes(serialization.to_bytes(trace))
    return path


def _run(name: str, tokens: int, attention: dict[Site, Attention]) -> Trace:
    """A trace that holds attention only."""
    strips = {one.query_tokens for one in attention.values()}
    return Trace(
        model={"name": "made-up", "title": "Made up", "fingerprint": name, "device": "cpu", "milliseconds": 0.0},
        request={"model": "made-up", "source": name},
        tokens={strip: _strip(strip, tokens) for strip in sorted(strips)},
        attention=attention,
    )


def _strip(name: str, tokens: int) -> Tokens:
    no = (False,) * tokens
    return Tokens(name, tuple(range(tokens)), tuple(f"t{i}" for i in range(tokens)), no, no)
