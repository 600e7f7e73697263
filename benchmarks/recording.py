"""What recording costs: a forward with fused attention that records nothing, and the same one recorded as the app records it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import torch

from benchmarks.timing import Row, in_turns
from model.inference import run as running
from model.inference.recorder import Recorder
from model.spec.network import AttentionSpec, ModelSpec, StackSpec
from model.spec.request import KEEP, Keep
from model.trace.types import Array
from model.transformer.attention import Run
from model.transformer.build import Network, build
from model.transformer.stacks import CausalLM, EncoderDecoder

ROOT = Path(__file__).parents[1]
LENGTHS = (128, 512, 1000)
SECONDS = 6.0
"""Turns go on for so long where they are short, so that what is short is measured more often."""

FREED = 31 << 20
"""Bytes that are taken and freed before anything is measured, as who loads a model has done: from then on glibc keeps what is freed
for the next run. A fresh process gives it back to the system, and has every page of the next recording made anew."""

HELD = 6
"""Recordings that are held at once to see what one takes."""

_SMALL = StackSpec(vocab=6000, d_model=256, layers=3, hidden=512, max_positions=1000, attention=AttentionSpec(heads=8, head_dim=32))
_LARGE = StackSpec(
    vocab=6000, d_model=768, layers=12, hidden=3072, max_positions=1000, attention=AttentionSpec(heads=12, head_dim=64)
)
SPECS = {
    "3 + 3 layers, width 256": ModelSpec(encoder=_SMALL, decoder=_SMALL),
    "encoder of 12 layers, width 768": ModelSpec(encoder=_LARGE, decoder=None, output=None),
}


def measure(repeats: int) -> Iterator[Row]:
    """Random weights, one thread, source and target of each length, teacher forcing. Recorded cases end with arrays."""
    torch.set_num_threads(1)
    torch.empty(FREED, dtype=torch.uint8)
    for title, spec in SPECS.items():
        network = build(spec).eval()
        for length in LENGTHS:
            ids = torch.arange(4, 4 + length)[None]
            fused = length > running.LONG
            cases: dict[str, Callable[[], object]] = {
                f"{title}, {length} tokens, fused, recording nothing": partial(forward, network, ids, True, None),
                f"{title}, {length} tokens, as the app records": partial(forward, network, ids, fused, ()),
                f"{title}, {length} tokens, everything": partial(forward, network, ids, False, KEEP),
            }
            measured = in_turns(cases, repeats, SECONDS)
            yield from (replace(row, note="of recording nothing" if row.ratio else "") for row in measured)
    yield _held()


def forward(network: Network, ids: torch.Tensor, fused: bool, keep: tuple[Keep, ...] | None) -> dict[str, Array]:
    """What is recorded of one pass of `ids` [batch, position] as source, and as target where there is a decoder.

    Args:
        keep: None records nothing.
    """
    assert not isinstance(network, CausalLM)
    recorder = None if keep is None else Recorder(keep, fused)
    run = Run(fused=fused) if recorder is None else Run(recorder, fused=fused)
    with torch.inference_mode():
        mask = network.source_mask(ids)
        memory = network.encode(ids, mask, run)
        if isinstance(network, EncoderDecoder):
            network.decode(ids, memory, mask, run)
    return {} if recorder is None else recorder.arrays()


def _held() -> Row:
    """How much memory recordings take, and how many bytes of queries, keys and values there are in them, in a process of its own.

    There every large block is mapped by itself, and given back when it is free: none hides in what an earlier one left.
    """
    script = "from benchmarks.recording import hold; print(*hold())"
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    taken, recorded = map(int, done.stdout.split())
    note = f"of the bytes recorded; {recorded / 1e6:.0f} MB in {HELD} runs of 512 tokens of the larger network"
    return Row("memory that recordings take", float("nan"), taken / recorded, note)


def hold() -> tuple[int, int]:
    """Bytes by which this process grows while recordings are held, and the bytes of queries, keys and values in them."""
    torch.set_num_threads(1)
    network, ids = build(SPECS["encoder of 12 layers, width 768"]).eval(), torch.arange(4, 4 + 512)[None]
    forward(network, ids, True, ())
    process = psutil.Process()
    before = process.memory_info().rss
    kept = [forward(network, ids, True, ()) for _ in range(HELD)]
    taken = process.memory_info().rss - before
    return taken, sum(array.nbytes for arrays in kept for name, array in arrays.items() if name.endswith(("/q", "/k", "/v")))
