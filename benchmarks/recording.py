"""What recording costs: a forward with fused attention that records nothing, and the same one recorded as the app records it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch

from benchmarks.timing import Row, in_turns
from model import running
from model.engine.base import KEEP, Keep
from model.recording import Recorder
from model.spec import AttentionSpec, ModelSpec, StackSpec
from model.transformer.attention import Run
from model.transformer.build import Network, build
from model.transformer.stacks import CausalLM, EncoderDecoder

LENGTHS = {128: 10, 512: 4, 1000: 1}
"""Tokens, and how many turns there are for each repeat."""

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
    for title, spec in SPECS.items():
        network = build(spec).eval()
        for length, turns in LENGTHS.items():
            ids = torch.arange(4, 4 + length)[None]
            fused = length > running.LONG
            cases: dict[str, Callable[[], object]] = {
                f"{title}, {length} tokens, fused, recording nothing": partial(forward, network, ids, True, None),
                f"{title}, {length} tokens, as the app records": partial(forward, network, ids, fused, ()),
                f"{title}, {length} tokens, everything": partial(forward, network, ids, False, KEEP),
            }
            yield from (replace(row, note="of recording nothing" if row.ratio else "") for row in in_turns(cases, turns * repeats))


def forward(network: Network, ids: torch.Tensor, fused: bool, keep: tuple[Keep, ...] | None) -> None:
    """One pass of `ids` [batch, position] as source, and as target where there is a decoder; `keep` None records nothing."""
    assert not isinstance(network, CausalLM)
    recorder = None if keep is None else Recorder(keep, fused)
    run = Run(fused=fused) if recorder is None else Run(recorder, fused=fused)
    with torch.inference_mode():
        mask = network.source_mask(ids)
        memory = network.encode(ids, mask, run)
        if isinstance(network, EncoderDecoder):
            network.decode(ids, memory, mask, run)
    if recorder is not None:
        recorder.arrays()
