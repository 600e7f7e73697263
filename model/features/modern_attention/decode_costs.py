"""What the cost of a decoder follows from, and a decode that is read again with its cache and without."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from model.checkpoints.loader import AnyNetwork, Runner
from model.errors import CannotMeasure, phrase
from model.features.modern_attention.costs import MOST_PASSES, CacheRun, LayerSizes, Sizes, Times
from model.huggingface.network import ForeignWriter
from model.inference.calls import Ask, Call, alone, computed
from model.inference.inputs import valid_positions
from model.requests.request import RunRequest
from model.trace.progress import OnCount, ignore_count
from model.trace.types import Trace
from model.transformer.attention import MultiHeadAttention, Run, attend
from model.transformer.layers import CrossAttentionLayer
from model.transformer.networks import RunsWhole, Writes
from model.transformer.shared_head import SharedProjection
from model.transformer.stacks import CausalLM, EncoderDecoder, Output

NO_DECODER = phrase("costs can be computed only for language models, and for encoder-decoders built like the bundled ones")


def sizes_of(network: AnyNetwork) -> Sizes:
    """What the cost of a network's decoder follows from.

    Raises:
        CannotMeasure: it has no decoder, or one that the count does not fit.
    """
    if isinstance(network, RunsWhole):
        raise CannotMeasure(reason=network.why)
    if isinstance(network, CausalLM):
        modules, passes = list(network.layers), network.passes
    elif isinstance(network, EncoderDecoder):
        modules, passes = list(network.decoder.layers), network.decoder.passes
    elif isinstance(network, Writes):
        return _of_library(network)
    else:
        raise CannotMeasure(reason=NO_DECODER)
    # Counted from the modules and not from the spec, so that a matrix which the network does not have is not
    # counted. Of a decoder's layer the first attention is that to itself, the second that to the encoder's output.
    attentions = [[part for part in layer.modules() if isinstance(part, MultiHeadAttention)] for layer in modules]
    crossed = isinstance(network, EncoderDecoder)
    if any(crossed and not isinstance(layer, CrossAttentionLayer) for layer in modules):
        raise CannotMeasure(reason=NO_DECODER)  # a layer in which the encoder's output attends to itself
    crosses = [attention[1] for attention in attentions] if crossed else []
    source_maps = sum(_numbers(part) for attention in crosses for part in (attention.key, attention.value))
    maps = sum(_numbers(part) for layer in modules for part in layer.modules()) - source_maps
    output = network.output.weight.numel() if isinstance(network.output, Output) else 0
    layers, cross = (tuple(map(_layer, of)) * passes for of in ([attention[0] for attention in attentions], crosses))
    return Sizes(layers, passes * maps, output, cross, passes * source_maps)


def _layer(attention: MultiHeadAttention) -> LayerSizes:
    width = round(attention.scale**-2)
    return LayerSizes(attention.heads, attention.key_heads, width, width)


def _numbers(module: nn.Module) -> int:
    """Numbers that a map multiplies each token with; 0: the module is none."""
    if isinstance(module, SharedProjection):
        return module.weight.numel() * module.heads
    weight = module._parameters.get("weight")
    return weight.numel() if weight is not None and weight.dim() == 2 and not isinstance(module, nn.Embedding) else 0


def _of_library(network: ForeignWriter) -> Sizes:
    """The sizes of a language model of the transformers library."""
    stack = network.spec.decoder
    assert stack is not None
    library: Any = network.library
    config, output = library.config.get_text_config(), library.get_output_embeddings()
    maps = sum(_numbers(part) for part in library.modules() if part is not output)
    for part in library.parameters():  # the matrices of experts lie in one tensor [expert, row, column]
        if part.dim() == 3:
            maps += part.numel() // len(part) * min(len(part), _setting(config, "num_experts_per_tok") or len(part))
    attention, latent = stack.attention, 0
    if rank := _setting(config, "kv_lora_rank"):
        latent = rank + _setting(config, "qk_rope_head_dim")
    value = _setting(config, "v_head_dim") if latent else attention.head_dim
    again = sum(part.get_parameter("kv_b_proj.weight").numel() for part in network.places.sites) if latent else 0
    windows = [_window(config, index) for index in range(stack.layers)]
    sizes = attention.heads, attention.key_heads, attention.head_dim
    layers = tuple(LayerSizes(*sizes, value, window, latent) for window in windows)
    return Sizes(layers, maps - again, output.weight.numel(), latent_maps=again)


def _setting(config: object, name: str) -> int:
    value = getattr(config, name, None)
    return value if type(value) is int else 0


def _window(config: object, index: int) -> int:
    """The window of a layer; 0: it has none."""
    kinds = getattr(config, "layer_types", None)
    if kinds and kinds[index] == "chunked_attention":
        return _setting(config, "attention_chunk_size")
    return _setting(config, "sliding_window") if not kinds or kinds[index] == "sliding_attention" else 0


Read: TypeAlias = Callable[[int, int, Run], tuple[Tensor, float]]
"""Tokens that have been read after a pass, the first that it computes, and its run -> logits [query, vocab] and milliseconds."""


def without_cache(trace: Trace, runner: Runner, device: torch.device, ask: Ask = alone, count: OnCount = ignore_count) -> CacheRun:
    """Reads the tokens of a run again, with a cache and without.

    Args:
        trace: the run.
        runner: the network that ran.
        device: of the network.
        ask: has a pass computed.
        count: is told how many passes are done, and of how many.

    Raises:
        CannotMeasure: the run was altered, or its network has no cache that is known here.
    """
    sizes_of(runner.network)
    request = RunRequest.from_json(trace.request)
    if request.edits:
        raise CannotMeasure(reason=phrase("the run was altered; undo the changes first"))
    with torch.inference_mode():
        read, lengths = _reader(runner, request, trace, device, ask), passes_of(trace)
        read(lengths[-1], 0, Run())  # what is allocated at first is not measured
        cache, times, weights, logits = runner.network.new_cache(), np.zeros((2, len(lengths))), 0.0, 0.0
        for number, (before, now) in enumerate(pairwise((0, *lengths))):
            maps: tuple[dict[str, Tensor], dict[str, Tensor]] = {}, {}
            cached, times[0, number] = read(now, before, Run(record=maps[0].__setitem__, cache=cache))
            whole, times[1, number] = read(now, 0, Run(record=maps[1].__setitem__))
            logits = max(logits, float((cached[-1] - whole[-1]).abs().max()))
            for name in (name for name in maps[0] if name.endswith("/weights") and "/decoder." in name):
                # Without a cache all rows are computed again; those of the new tokens are compared with what the
                # cache gave.
                rows = maps[1][name][0, :, before:]  # [head, query, key]
                weights = max(weights, float((maps[0][name][0] - rows).abs().max()))
            count(number + 1, len(lengths))
    return CacheRun(np.array(lengths), times[0], times[1], weights, logits)


def passes_of(trace: Trace) -> list[int]:
    """Tokens that have been read after each pass of a decode; one pass where nothing was written."""
    total = trace.of("decoder", "self")[0].mask.shape[0]
    prompt = min(trace.steps[0].computed[1], total) if trace.steps else total
    return list(range(prompt, total + 1))[:MOST_PASSES]


def _reader(runner: Runner, request: RunRequest, trace: Trace, device: torch.device, ask: Ask) -> Read:
    """Reads the tokens of a run with its network; the source, if there is one, is read once before."""
    network = runner.network
    strip = trace.tokens[trace.of("decoder", "self")[0].query_tokens]
    ids, memory, mask = torch.tensor([strip.ids], device=device), None, None
    if isinstance(network, EncoderDecoder):
        source = torch.tensor([trace.tokens["source"].ids], device=device)
        mask = network.source_mask(source, valid_positions(request, trace.tokens["source"], runner.info.spec, device))
        memory = ask(Call(network, Run(), source, mask))

    def read(now: int, start: int, run: Run) -> tuple[Tensor, float]:
        call, took = Call(network, run, ids[:, :now], mask, memory, start), 0.0

        def timed() -> Tensor:
            nonlocal took
            began = time.perf_counter()
            made = computed(call)
            # A GPU computes behind Python's back: without waiting, only the handing out of the work would be
            # measured.
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            took = 1000 * (time.perf_counter() - began)
            return made

        return ask(replace(call, computed_by=timed, gives_way=True))[0], took

    return read


LIMIT_MS, MOST_WRITTEN, MOST_TOKENS, BLOCK = 500.0, 2**28, 2**17, 64
"""A length is measured if it will take at most so long, judged by half of it; weights are written out if they have at most so
many bytes; no length is greater than MOST_TOKENS; linear attention takes BLOCK tokens at a time."""


def times_of(network: AnyNetwork, device: torch.device, ask: Ask = alone) -> Times:
    """Measures one layer of self-attention over random texts of growing lengths: written out, fused, and linear.

    Args:
        network: gives the sizes and the number type.
        device: of the network.
        ask: has a measurement computed where networks are.
    """
    sizes, rows, tokens = sizes_of(network).layers[0], list[tuple[float, ...]](), 256
    ways: tuple[Callable[[Tensor, Tensor, Tensor], Tensor], ...] = (_written, _fused, _linear)
    # Written out, twice the length takes four times as long: a length is begun only if that stays under the limit.
    while not rows or (4 * float(np.nanmax(rows[-1][1:])) <= LIMIT_MS and tokens <= MOST_TOKENS):
        generator = torch.Generator().manual_seed(tokens)
        widths = (sizes.key_width, sizes.key_width, sizes.value_width)
        q, k, v = (torch.randn(1, sizes.heads, tokens, width, generator=generator).to(device, network.dtype) for width in widths)
        small = sizes.heads * tokens**2 * q.element_size() <= MOST_WRITTEN
        took = [_timed(way, q, k, v, ask, network) if way is not _written or small else math.nan for way in ways]
        rows.append((tokens, *took))
        tokens *= 2
    table = np.array(rows)
    return Times(table[:, 0].astype(np.int64), table[:, 1], table[:, 2], table[:, 3])


def _timed(way: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor, ask: Ask, network: AnyNetwork) -> float:
    """The shorter of two runs of a way of attention, in milliseconds."""
    took = list[float]()

    def timed() -> Tensor:
        for _again in range(2):
            began = time.perf_counter()
            made = way(q, k, v)
            if q.device.type == "cuda":
                torch.cuda.synchronize(q.device)
            took.append(1000 * (time.perf_counter() - began))
        return made

    with torch.inference_mode():
        ask(Call(network, Run(), q, computed_by=timed, gives_way=True))
    return min(took)


def _written(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    causal = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
    return attend(q, k, v, causal, q.shape[-1] ** -0.5).context


def _fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def _linear(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal linear attention with features elu(x) + 1, block by block: earlier blocks are one sum of products φ(k) vᵀ.

    Source: Katharopoulos et al. 2020, "Transformers are RNNs", equations 9 to 12.
    """
    q, k = nn.functional.elu(q) + 1, nn.functional.elu(k) + 1
    v = torch.cat([v, v.new_ones(*v.shape[:-1], 1)], dim=-1)  # the last column adds up the weights of a row
    parts = [part.unflatten(2, (-1, BLOCK)) for part in (q, k, v)]  # [batch, head, block, position, width]
    sums = parts[1].mT @ parts[2]  # [batch, head, block, width, width of v]
    before = sums.cumsum(dim=2) - sums
    sums_ = parts[0] @ before + (parts[0] @ parts[1].mT).tril() @ parts[2]
    sums_ = sums_.flatten(2, 3)
    divided: Tensor = sums_[..., :-1] / sums_[..., -1:]
    return divided
