"""Traces of files, for tests of what opens them: a run of ours, and the recording of a program."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np

from model.trace.recorded import Recorded, RecordedSite
from model.trace.serialization import to_bytes
from model.trace.types import Attention, Site, Tokens, Trace
from tests import traces

GREEDY = Path(__file__).parent / "trace_files" / "greedy.trace.safetensors"
"""The file of a run of ours: 2 layers of 2 heads, everything kept."""


def stored(name: str) -> bytes:
    """A file of a run: `greedy`, `beam` (with its tree) or `long` (without the weights)."""
    path = GREEDY.with_name(f"{name}.trace.safetensors")
    return path.read_bytes() if path.exists() else gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes())


FACTS = {
    "name": "vit",
    "title": "A ViT",
    "fingerprint": "",
    "spec": {},
    "dtype": "float32",
    "device": "CPU",
    "milliseconds": 3.0,
}


def program(layers: int = 2, heads: int = 2, patches: int = 5, seed: int = 0, stack: str = "program") -> Trace:
    """The recording of a program: no spec, request, ids or steps; its first site was recomputed from a fused kernel."""
    rng = np.random.default_rng(seed)
    names = tuple(str(number) for number in range(1, patches + 1))
    none = (False,) * patches
    attention: dict[Site, Attention] = {}
    sites: dict[str, RecordedSite] = {}
    for layer in range(layers):
        site = Site(stack, 0, layer, "self" if layer else "unknown")
        made = traces.attention(site, np.ones((patches, patches), bool), heads, rng)
        attention[site] = replace(made, query_tokens="source", key_tokens="source", mask_padding=None, mask_causal=None)
        fused = {"origin": "recomputed", "difference": 3e-7} if layer == 0 else {"origin": "computed", "difference": None}
        sites[str(site)] = RecordedSite(f"blocks.{layer}.attn", operation="scaled_dot_product_attention", **fused)
    return Trace(
        model=FACTS,
        request={},
        tokens={"source": Tokens("source", (), names, none, none)},
        attention=attention,
        missing={"head.pool": "its weights do not meet values"},
        recorded=Recorded("classify.py", "2.13.0", "0:1", 0, (), sites),
    )


def file(trace: Trace) -> bytes:
    """The bytes of a trace file."""
    return to_bytes(trace)
