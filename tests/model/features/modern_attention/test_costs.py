"""The cost of a decoder: operations against torch's own counter, what is kept against a real cache, and reading without one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from model.checkpoints import loader
from model.errors import CannotMeasure
from model.features.modern_attention import decode_costs
from model.features.modern_attention.costs import LayerSizes, Sizes, Times
from model.features.modern_attention.decode_costs import passes_of, sizes_of, without_cache
from model.features.what_if import results
from model.inference.run import run
from model.requests.edits import Silence
from model.requests.request import Decoding, RunRequest
from model.transformer.attention import Run
from model.transformer.cache import KVCache
from model.transformer.stacks import CausalLM, EncoderDecoder
from tests import folders, recorded_folders
from tests.networks import VARIANTS
from tests.runs import CPU, SPECS, checkpoint, request


def counted(call: Any) -> int:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        call()
    return int(counter.get_total_flops())


WRITERS = [
    name for name, spec in SPECS.items() if spec.decoder is not None and spec.decoder.wiring != "memory" and spec.decoder.vocab
]


@pytest.mark.parametrize("name", WRITERS)
def test_operations_are_those_that_torch_counts(name: str) -> None:
    network = checkpoint(SPECS[name]).network
    sizes, ids, source = sizes_of(network), torch.tensor([[2, 4, 5, 6, 4, 5]]), torch.tensor([[4, 5, 6]])
    cache, lengths = KVCache(), [2, 3, 4, 6]
    mask = memory = None
    if isinstance(network, EncoderDecoder):
        mask = network.source_mask(source)
        memory = network.encode(source, mask)

    def read(end: int, start: int, kept: Any) -> None:
        if isinstance(network, EncoderDecoder):
            assert mask is not None
            assert memory is not None
            network.decode(ids[:, :end], memory, mask, Run(cache=kept), start)
        else:
            assert isinstance(network, CausalLM)
            network(ids[:, :end], Run(cache=kept), start)

    cached, whole = sizes.decode(lengths, 3 if sizes.cross else 0)
    assert [
        counted(lambda b=before, e=end: read(e, b, cache)) for before, end in zip((0, *lengths), lengths, strict=False)
    ] == cached
    assert [counted(lambda e=end: read(e, 0, Run().cache)) for end in lengths] == whole


@pytest.mark.parametrize(
    "name", ["llama", "gpt2", "mistral", "gemma", "gemma2", "gpt_oss", "mixtral", "deepseek_v2", "deepseek_v3"]
)
@pytest.mark.slow
def test_operations_of_folders_are_those_that_torch_counts(tmp_path: Path, name: str) -> None:
    """Those of the library's own network with its own attention, and its own cache."""
    from transformers.cache_utils import DynamicCache

    if name in folders.SETTINGS:
        own: Any = folders.save(tmp_path, name)
    else:
        own, _kind = recorded_folders.saved(tmp_path, name)
    sizes = sizes_of(loader.load(tmp_path, {}, CPU).network)
    ids, past = torch.tensor([[4, 5, 6, 7, 8]]), DynamicCache()
    assert own.config._attn_implementation == "eager"
    own.config._experts_implementation = "eager"  # torch does not count the kernel that computes all experts at once
    passes = [lambda a=a, b=b: own(input_ids=ids[:, a:b], past_key_values=past, use_cache=True) for a, b in ((0, 4), (4, 5))]
    assert [counted(each) for each in passes] == [sizes.operations(4, 4), sizes.operations(1, 5)]
    assert sizes.kept(5) == sum(layer.keys.numel() + layer.values.numel() for layer in past.layers)
    usual = own(input_ids=ids, use_cache=True).past_key_values  # the library's own cache drops what a window has passed
    assert sizes.kept(5, way="window") == sum(layer.keys.numel() + layer.values.numel() for layer in usual.layers)


@pytest.mark.slow
def test_windows_and_latents_are_those_of_the_settings(tmp_path: Path) -> None:
    folders.save(tmp_path / "mistral", "mistral")
    assert {own.window for own in sizes_of(loader.load(tmp_path / "mistral", {}, CPU).network).layers} == {4}


def test_what_is_kept_by_hand() -> None:
    grouped = LayerSizes(heads=8, key_heads=2, key_width=16, value_width=12, window=4)
    assert grouped.kept(10) == 10 * 2 * 28
    assert grouped.kept(10, "heads") == 10 * 8 * 28
    assert grouped.kept(10, "window") == 3 * 2 * 28
    assert replace(grouped, latent=20).kept(10) == 10 * 20
    both = Sizes((grouped, replace(grouped, window=0)), maps=100, output=0, cross=(replace(grouped, window=0),))
    assert both.kept(10, 3, "window") == 3 * 56 + 10 * 56 + 3 * 56


@pytest.mark.parametrize("window", [0, 1, 3, 9])
@pytest.mark.parametrize("tokens", [1, 3, 7])
def test_reading_a_text_computes_the_open_cells(window: int, tokens: int) -> None:
    rows = np.arange(tokens)
    allowed = (rows[None] <= rows[:, None]) & (rows[:, None] - rows[None] < (window or tokens))
    assert LayerSizes(3, 1, 5, 7, window).reading(tokens) == 2 * 3 * int(allowed.sum()) * (5 + 7)


@pytest.mark.parametrize("name", WRITERS)
def test_without_a_cache_the_maps_are_the_same(name: str) -> None:
    found = checkpoint(SPECS[name])
    trace = run(found, request(found.info.spec), CPU, "cpu")
    own = without_cache(trace, found, CPU)
    assert own.lengths.tolist() == passes_of(trace)
    assert own.lengths[-1] == trace.of("decoder", "self")[0].mask.shape[0]
    assert own.weights < 1e-6
    assert own.logits < 1e-5
    assert (own.cached > 0).all()
    assert (own.whole > 0).all()


def test_an_altered_run_and_an_encoder_are_refused() -> None:
    found = checkpoint(VARIANTS["language model"])
    trace = run(found, request(found.info.spec, (Silence("decoder.0.0.self", (0,)),)), CPU, "cpu")
    with pytest.raises(CannotMeasure, match="altered"):
        without_cache(trace, found, CPU)
    for name in ("encoder alone", "memory"):
        with pytest.raises(CannotMeasure, match="language models"):
            sizes_of(checkpoint(SPECS[name]).network)


@pytest.mark.slow
def test_a_folder_without_a_cache_has_the_same_maps(tmp_path: Path) -> None:
    folders.save(tmp_path, "mistral")
    found = loader.load(tmp_path, {}, CPU)
    trace = run(found, RunRequest("tiny", (4, 6, 5, 8, 9), decoding=Decoding(max_length=6)), CPU, "cpu")
    own = without_cache(trace, found, CPU)
    assert own.weights < 1e-5
    assert own.logits < 1e-3


def test_linear_attention_in_blocks_is_the_sum_of_products_of_features() -> None:
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(1, 2, 128, width, generator=generator, dtype=torch.float64) for width in (5, 5, 7))
    found = decode_costs._linear(q, k, v)
    sums, total = torch.zeros(2, 5, 7, dtype=torch.float64), torch.zeros(2, 5, dtype=torch.float64)
    for place in range(128):  # as a recurrent network, token by token
        one, key = (torch.nn.functional.elu(each[0, :, place]) + 1 for each in (q, k))
        sums += key[:, :, None] * v[0, :, place][:, None]
        total += key
        wanted = (one[:, None] @ sums)[:, 0] / (one * total).sum(-1, keepdim=True)
        torch.testing.assert_close(found[0, :, place], wanted)


def test_the_three_ways_of_attention_are_timed_over_doubling_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_costs, "MOST_TOKENS", 1024)
    monkeypatch.setattr(decode_costs, "LIMIT_MS", 1e9)
    monkeypatch.setattr(decode_costs, "MOST_WRITTEN", 2 * 512**2 * 4)
    found = decode_costs.times_of(checkpoint(VARIANTS["language model"]).network, CPU)
    assert found.tokens.tolist() == [256, 512, 1024]
    assert np.isfinite(found.written).tolist() == [True, True, False], "weights that take too much memory are not written out"
    assert (found.fused > 0).all()
    assert (found.linear > 0).all()
    again = results.from_bytes(Times, results.to_bytes(found))
    np.testing.assert_array_equal(again.written, found.written)
    q, k, v = (torch.randn(1, 2, 8, 4) for _ in range(3))
    torch.testing.assert_close(decode_costs._written(q, k, v), decode_costs._fused(q, k, v))
