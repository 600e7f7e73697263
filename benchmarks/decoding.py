"""Time that the KV cache saves, and time that `Run.see` costs where nothing is recorded or changed, for 30 generated tokens."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from benchmarks.timing import Row, in_turns
from model.checkpoints import native
from model.engine.local import CHECKPOINTS
from model.inference.decoding import Writer, greedy, write
from model.trace.steps import Step
from model.transformer.attention import Run
from model.transformer.cache import KVCache
from model.transformer.stacks import EncoderDecoder

TOKENS = 30
SOURCE, START = 14, 2


def measure(repeats: int) -> Iterator[Row]:
    """The bundled German → English model on one thread: 14 source tokens, 30 target tokens even after an end token."""
    torch.set_num_threads(1)
    network = native.load(CHECKPOINTS / "multi30k-de-en", torch.device("cpu")).network
    assert isinstance(network, EncoderDecoder)
    cases = {
        f"{TOKENS} tokens, cached": partial(decode, network, True),
        f"{TOKENS} tokens, the beginning read anew": partial(decode, network, False),
    }
    yield from (replace(row, note="of cached" if row.ratio else "") for row in in_turns(cases, 4 * repeats))
    hooks = {
        f"{TOKENS} tokens, cached, without a hook": partial(decode, network, True, Unhooked),
        f"{TOKENS} tokens, cached, with the hook that does nothing": partial(decode, network, True),
    }
    yield from (replace(row, note="of without" if row.ratio else "") for row in in_turns(hooks, 8 * repeats))


class Unhooked(Run):
    """A Run whose `see` looks nothing up: what a network without recording and interventions would compute."""

    def see(self, name: str, value: Tensor) -> Tensor:
        """`value`."""
        return value


def decode(network: EncoderDecoder, cached: bool, make: type[Run] = Run) -> tuple[int, ...]:
    """The ids that greedy decoding writes."""
    device = next(network.parameters()).device
    with torch.inference_mode():
        source = torch.arange(4, 4 + SOURCE, device=device)[None]
        mask = network.source_mask(source)
        memory = network.encode(source, mask)
        run = make(cache=KVCache()) if cached else make()

        def read(ids: torch.Tensor, start: int) -> torch.Tensor:
            return network.decode(ids, memory, mask, run, start if cached else 0)

        writer = Writer(lambda ids: [str(id_) for id_ in ids], (), (), TOKENS + 1)
        steps: list[Step] = []
        passes = write((START,), greedy, TOKENS, writer, device, told=steps.extend)
        with suppress(StopIteration):
            asked = next(passes)
            while True:
                asked = passes.send(read(*asked))
        return tuple(step.chosen.id for step in steps)
