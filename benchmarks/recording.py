"""The cost of recording: a forward pass with fused attention that records nothing, and the same pass recorded as in the app."""

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
from model.inference import inputs
from model.inference.recorder import Recorder
from model.requests.network import AttentionSpec, ModelSpec, StackSpec
from model.requests.request import KEEP, Keep
from model.trace.types import Array
from model.transformer.attention import Run
from model.transformer.build import Network, build
from model.transformer.stacks import CausalLM, EncoderDecoder

ROOT = Path(__file__).parents[1]
LENGTHS = (128, 512, 1000)
SECONDS = 6.0
"""Turns are repeated for at least this long, so that short cases are measured more often."""

FREED = 31 << 20
"""Bytes that are allocated and freed before measuring, as loading a model does. From then on glibc keeps freed memory for the next
run; a new process would return it to the system, and the system would provide every page of the next recording again."""

HELD = 6
"""Number of recordings in memory at once, to measure the size of one."""

_SMALL = StackSpec(vocab=6000, d_model=256, layers=3, hidden=512, max_positions=1000, attention=AttentionSpec(heads=8, head_dim=32))
_LARGE = StackSpec(
    vocab=6000, d_model=768, layers=12, hidden=3072, max_positions=1000, attention=AttentionSpec(heads=12, head_dim=64)
)
SPECS = {
    "3 + 3 layers, width 256": ModelSpec(encoder=_SMALL, decoder=_SMALL),
    "encoder of 12 layers, width 768": ModelSpec(encoder=_LARGE, decoder=None, output=None),
}


def measure(repeats: int) -> Iterator[Row]:
    """Networks with random weights on one thread, with teacher forcing, for each length. Recorded cases end with arrays."""
    torch.set_num_threads(1)
    torch.empty(FREED, dtype=torch.uint8)
    for title, spec in SPECS.items():
        network = build(spec).eval()
        for length in LENGTHS:
            ids = torch.arange(4, 4 + length)[None]
            fused = length > inputs.LONG
            cases: dict[str, Callable[[], object]] = {
                f"{title}, {length} tokens, fused, recording nothing": partial(forward, network, ids, True, None),
                f"{title}, {length} tokens, as the app records": partial(forward, network, ids, fused, ()),
                f"{title}, {length} tokens, everything": partial(forward, network, ids, False, KEEP),
            }
            measured = in_turns(cases, repeats, SECONDS)
            yield from (replace(row, note="of recording nothing" if row.ratio else "") for row in measured)
    yield _held()


def forward(network: Network, ids: torch.Tensor, fused: bool, keep: tuple[Keep, ...] | None) -> dict[str, Array]:
    """Runs one forward pass with `ids` [batch, position] as source and, where there is a decoder, as target; returns the recording.

    Args:
        keep: tensors to record; None: nothing is recorded.
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
    """The memory of recordings relative to the bytes of queries, keys and values in them, measured in a process of its own.

    That process maps every large block separately and returns it when it is freed, so no block reuses memory of an earlier one.
    """
    script = "from benchmarks.recording import hold; print(*hold())"
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    taken, recorded = map(int, done.stdout.split())
    note = f"of the bytes recorded; {recorded / 1e6:.0f} MB in {HELD} runs of 512 tokens of the larger network"
    return Row("memory that recordings take", float("nan"), taken / recorded, note)


def hold() -> tuple[int, int]:
    """Bytes by which this process grows while recordings are in memory, and the bytes of queries, keys and values in them."""
    torch.set_num_threads(1)
    network, ids = build(SPECS["encoder of 12 layers, width 768"]).eval(), torch.arange(4, 4 + 512)[None]
    forward(network, ids, True, ())
    process = psutil.Process()
    before = process.memory_info().rss
    kept = [forward(network, ids, True, ()) for _ in range(HELD)]
    taken = process.memory_info().rss - before
    return taken, sum(array.nbytes for arrays in kept for name, array in arrays.items() if name.endswith(("/q", "/k", "/v")))
