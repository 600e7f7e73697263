"""Caches of a decode: keys that are written into zeros of a fixed length, and a cache that a beam search reorders between steps."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

import headlight

WIDTH, HEADS, LENGTH = 16, 2, 12

Write: Any = Callable[[Tensor, Tensor, int], Tensor]


def by_slice(cache: Tensor, new: Tensor, start: int) -> Tensor:
    cache[:, :, start : start + new.shape[2]] = new
    return cache


def one_by_one(cache: Tensor, new: Tensor, start: int) -> Tensor:
    for place in range(new.shape[2]):
        cache[:, :, start + place] = new[:, :, place]
    return cache


def by_index(cache: Tensor, new: Tensor, start: int) -> Tensor:
    cache[:, :, torch.arange(start, start + new.shape[2])] = new
    return cache


def by_copy(cache: Tensor, new: Tensor, start: int) -> Tensor:
    return cache.index_copy_(2, torch.arange(start, start + new.shape[2]), new)


class Fixed(nn.Module):
    """Self-attention with a cache of fixed length, which a mask covers beyond what was written."""

    def __init__(self, write: Write, fused: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.project, self.write, self.fused = nn.Linear(WIDTH, 3 * WIDTH), write, fused

    def forward(self, x: Tensor, cache: tuple[Tensor, Tensor] | None = None, start: int = 0) -> tuple[Tensor, Any]:
        batch, count, _width = x.shape
        q, k, v = (own.view(batch, count, HEADS, -1).transpose(1, 2) for own in self.project(x).chunk(3, -1))
        empty = torch.zeros(batch, HEADS, LENGTH, WIDTH // HEADS)
        before = (empty, empty.clone()) if cache is None else cache
        keys, values = (self.write(held, new, start) for held, new in zip(before, (k, v), strict=True))
        mask = torch.arange(LENGTH)[None] <= torch.arange(start, start + count)[:, None]
        if self.fused:
            found = scaled_dot_product_attention(q, keys, values, mask)
        else:
            scores = q @ keys.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
            found = scores.masked_fill(~mask, -torch.inf).softmax(-1) @ values
        return found.transpose(1, 2).reshape(batch, count, WIDTH), (keys, values)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("write", [by_slice, one_by_one, by_index, by_copy])
def test_keys_that_are_written_into_fresh_zeros_are_those_of_a_self_attention(write: Write, fused: bool) -> None:
    """A fused kernel's keys were zeros of an unknown origin, and its steps were called cross-attention."""
    model, x = Fixed(write, fused), torch.randn(1, 6, WIDTH, generator=torch.Generator().manual_seed(1))
    with torch.no_grad(), headlight.record(model) as recording:
        _found, cache = model(x[:, :3])
        for step in range(3, 6):
            model(x[:, step : step + 1], cache, step)
    with torch.no_grad(), headlight.record(model) as whole:
        model(x)
    (site,), (expected,) = recording.sites, whole.sites
    assert (site.kind, expected.kind, site.joined) == ("self", "self", True)
    np.testing.assert_allclose(site.written(), expected.written()[:, :, :6], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(site.mask, expected.mask[:, :6])  # type: ignore[index]
    assert not recording.missing


def llama() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "vocab_size": 50}
    return LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, pad_token_id=0)).eval()


def bart() -> Any:
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(0)
    stacks = {f"{stack}_{name}": size for stack in ("encoder", "decoder") for name, size in (("layers", 2), ("attention_heads", 4))}
    sizes = {"d_model": 32, "vocab_size": 50, "max_position_embeddings": 40, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    return BartForConditionalGeneration(BartConfig(**sizes, **stacks)).eval()


ORDERS = ((2, 0, 0), (1, 1, 2), (0, 2, 1), (1, 0, 2))
"""Which hypothesis each one goes on from, step by step."""


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("example", [0, 2])
def test_a_map_has_the_rows_of_the_hypothesis_that_stands_there_in_the_end(attention: str, example: int) -> None:
    """Each step was a site of its own. What one hypothesis reads in one pass is what its rows of the decode are."""
    from transformers.cache_utils import DynamicCache

    model, past = llama(), DynamicCache()
    model.set_attn_implementation(attention)
    draw = torch.Generator().manual_seed(3)
    texts = torch.tensor([[5, 6, 7]]).expand(3, 3)
    with torch.no_grad(), headlight.record(model, example=example, keep=["qkv", "context"]) as recording:
        model(texts, past_key_values=past)
        for order in ORDERS:
            past.reorder_cache(torch.tensor(order, dtype=torch.int32))
            written = torch.randint(50, (3, 1), generator=draw)
            texts = torch.cat([texts[list(order)], written], 1)
            model(written, past_key_values=past)
    with torch.no_grad(), headlight.record(model, keep=["qkv", "context"]) as alone:
        model(texts[example : example + 1])
    assert [(site.module, site.shape) for site in recording.sites] == [(site.module, (4, 7, 7)) for site in alone.sites]
    for site, expected in zip(recording.sites, alone.sites, strict=True):
        np.testing.assert_allclose(site.written(), expected.written(), rtol=0, atol=1e-6)
        np.testing.assert_array_equal(site.mask, expected.mask)
        for name in ("q", "k", "v", "context"):
            np.testing.assert_allclose(getattr(site, name), getattr(expected, name), rtol=0, atol=1e-5, err_msg=name)
    assert not recording.missing
    assert [note.fields for note in recording.notes] == [{"place": example + 1}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "stacks"), [(llama, {"program.self": 2}), (bart, {"encoder.self": 2, "decoder.self": 2, "decoder.cross": 2})]
)
def test_a_beam_search_of_the_library_is_one_site_for_each_attention(make: Callable[[], Any], stacks: dict[str, int]) -> None:
    model = make()
    with torch.no_grad(), headlight.record(model) as recording:
        model.generate(torch.tensor([[5, 6, 7, 8]]), num_beams=4, max_new_tokens=6, do_sample=False, eos_token_id=None)
    counted = [f"{site.stack}.{site.kind}" for site in recording.sites]
    assert {name: counted.count(name) for name in counted} == stacks
    assert all(site.joined for site in recording.sites if site.stack != "encoder")
    for site in recording.sites:
        np.testing.assert_allclose(site.written().sum(-1), 1.0, atol=1e-5)
    assert not recording.missing
    assert [note.fields for note in recording.notes] == [{"place": 1}]


def test_a_convolution_whose_kernel_depends_on_the_input_is_no_site() -> None:
    """As in convbert: its softmax weighs windows of the input, and was a site of kind unknown."""

    class Convolves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernel = nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            windows = nn.functional.unfold(x.transpose(1, 2)[..., None], (3, 1), padding=(1, 0))
            kernel = self.kernel(x).softmax(-1).reshape(-1, 3, 1)
            found: Tensor = windows.transpose(1, 2).reshape(-1, 8, 3) @ kernel
            return found

    model = Convolves()
    with torch.no_grad(), headlight.record(model) as recording:
        model(torch.randn(1, 5, 8))
    assert recording.sites == []
    assert recording.missing == {"attention/Convolves": headlight.CONVOLVES}
