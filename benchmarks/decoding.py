"""Time that the KV cache saves, that `Run.see` costs where nothing is recorded, and that a run costs beside a bare loop."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.timing import Row, in_turns
from model.checkpoints import native
from model.checkpoints.native import Checkpoint
from model.engine.local import CHECKPOINTS
from model.inference.decoding import Writer, greedy, write
from model.inference.run import run
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace.steps import Step
from model.transformer.attention import Run
from model.transformer.cache import KVCache
from model.transformer.stacks import EncoderDecoder

TOKENS = 30
SOURCE, START, END, LONGEST = 14, 2, 3, 50

SENTENCE = "Ein Mann repariert das Fahrrad eines kleinen Mädchens."


def measure(repeats: int) -> Iterator[Row]:
    """The bundled German → English model on one thread: 14 source tokens, 30 target tokens even after an end token."""
    torch.set_num_threads(1)
    checkpoint = native.load(CHECKPOINTS / "multi30k-de-en", torch.device("cpu"))
    network = checkpoint.network
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
    yield from beside_a_bare_loop(checkpoint, 8 * repeats)


def beside_a_bare_loop(checkpoint: Checkpoint, repeats: int) -> Iterator[Row]:
    """A greedy run of a sentence, beside a loop of PyTorch calls with the same weights that records nothing."""
    ids = (*checkpoint.tokenizers["source"].encode(SENTENCE, "source").ids,)
    requests = {keep: RunRequest("", SENTENCE, decoding=Decoding(), keep=keep) for keep in ((), KEEP)}
    recorded = {keep: partial(run, checkpoint, request, torch.device("cpu"), "cpu") for keep, request in requests.items()}
    written = tuple(step.chosen.id for step in recorded[KEEP]().steps)
    assert bare_decode(checkpoint.network, ids) == written, "the bare loop writes something else"
    cases: dict[str, Callable[[], object]] = {
        f"{len(written)} tokens, a bare loop that records nothing": partial(bare_decode, checkpoint.network, ids),
        f"{len(written)} tokens, a run that records weights": recorded[()],
        f"{len(written)} tokens, a run that records everything": recorded[KEEP],
    }
    yield from (replace(row, note="of the bare loop" if row.ratio else "") for row in in_turns(cases, repeats))


@torch.inference_mode()
def bare_decode(network: Any, source: tuple[int, ...]) -> tuple[int, ...]:
    """The ids that greedy decoding writes: PyTorch's functions on the weights of a post-norm encoder-decoder, with a cache."""
    functional, heads = torch.nn.functional, network.decoder.layers[0].self_attention.heads

    def attend(q: Tensor, k: Tensor, v: Tensor, attention: Any) -> Tensor:
        weights = (q @ k.mT * attention.scale).softmax(-1)
        attended: Tensor = attention.output((weights @ v).transpose(1, 2).flatten(2))
        return attended

    def split(x: Tensor) -> Tensor:
        parts: Tensor = x.unflatten(2, (heads, -1))
        return parts.transpose(1, 2)

    def fed_forward(x: Tensor, layer: Any) -> Tensor:
        hidden = functional.relu(layer.feed_forward.expand(x))
        return layer.feed_forward_residual.norm(x + layer.feed_forward.contract(hidden))  # type: ignore[no-any-return]

    def embedded(ids: list[int], first: int, embedding: Any) -> Tensor:
        rows = embedding.token(torch.tensor([ids])) * embedding.scale
        return rows + embedding.positions.weight[first : first + len(ids)]  # type: ignore[no-any-return]

    x = embedded(list(source), 0, network.encoder.embedding)
    for layer in network.encoder.layers:
        own = layer.attention
        x = layer.attention_residual.norm(x + attend(split(own.query(x)), split(own.key(x)), split(own.value(x)), own))
        x = fed_forward(x, layer)
    memory, ids = x, [START]
    crosses = [
        (split(layer.cross_attention.key(memory)), split(layer.cross_attention.value(memory))) for layer in network.decoder.layers
    ]
    caches: list[tuple[Tensor, Tensor] | None] = [None] * len(crosses)
    while len(ids) <= LONGEST and ids[-1] != END:
        x = embedded(ids[-1:], len(ids) - 1, network.decoder.embedding)
        for index, (layer, cross) in enumerate(zip(network.decoder.layers, crosses, strict=True)):
            own, held = layer.self_attention, caches[index]
            k, v = split(own.key(x)), split(own.value(x))
            k, v = (k, v) if held is None else (torch.cat([held[0], k], 2), torch.cat([held[1], v], 2))
            caches[index] = k, v
            x = layer.self_residual.norm(x + attend(split(own.query(x)), k, v, own))
            own = layer.cross_attention
            x = layer.cross_residual.norm(x + attend(split(own.query(x)), *cross, own))
            x = fed_forward(x, layer)
        ids.append(int(network.output(x)[0, -1].argmax()))
    return tuple(ids[1:])


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
        passes = write((START,), greedy, TOKENS, writer, device, on_steps=steps.extend)
        with suppress(StopIteration):
            asked = next(passes)
            while True:
                asked = passes.send(read(*asked))
        return tuple(step.chosen.id for step in steps)
