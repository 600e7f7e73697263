"""Decoding with keys that several heads share: their single queries stand below each other as rows of one head of the kernel."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

import headlight

HEADS, KEY_HEADS, WIDTH, KEYS = 6, 2, 8, 5


class Decoding(nn.Module):
    """One step of a decode: a query of each head; keys of a static cache, all of them allowed but the last."""

    def __init__(self, per_head: bool) -> None:
        super().__init__()
        self.query = nn.Linear(HEADS * WIDTH, HEADS * WIDTH)
        hidden = torch.tensor([[True] * (KEYS - 1) + [False]])
        self.mask = hidden.expand(1, HEADS, 1, KEYS).clone() if per_head else hidden[None, None]

    def forward(self, x: Tensor, key: Tensor, value: Tensor) -> Tensor:
        group = HEADS // KEY_HEADS
        query = self.query(x).view(1, 1, HEADS, WIDTH).transpose(1, 2)  # [batch, head, 1, head_dim]
        mask = self.mask.reshape(1, KEY_HEADS, group, KEYS) if self.mask.shape[1] > 1 else self.mask
        out = scaled_dot_product_attention(query.reshape(1, KEY_HEADS, group, WIDTH), key, value, attn_mask=mask)
        return out.reshape(1, HEADS, 1, WIDTH).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("per_head", [False, True], ids=["one mask", "a mask for each head"])
def test_packed_queries_are_rows_of_their_own_heads(per_head: bool) -> None:
    torch.manual_seed(0)
    program, x = Decoding(per_head).eval(), torch.randn(1, 1, HEADS * WIDTH)
    key, value = torch.randn(2, 1, KEY_HEADS, KEYS, WIDTH)
    with torch.no_grad(), headlight.record(program) as recording:
        program(x, key, value)
    (site,) = recording.sites
    with torch.no_grad():
        query = program.query(x).view(HEADS, 1, WIDTH)
    shared = key[0].repeat_interleave(HEADS // KEY_HEADS, dim=0)
    scores = (query @ shared.mT / WIDTH**0.5)[:, :, : KEYS - 1]
    assert site.shape == (HEADS, 1, KEYS)
    np.testing.assert_allclose(site.written()[:, :, : KEYS - 1], scores.softmax(-1).numpy(), atol=1e-6)
    assert not site.written()[:, :, -1].any()
    assert site.difference is not None
    assert site.difference < 1e-6


class Windows(nn.Module):
    """One head that looks within windows, which its kernel takes for heads: nothing is packed here."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (part.view(1, 12, 1, WIDTH).view(1, 3, 4, WIDTH) for part in self.project(x).chunk(3, dim=-1))
        return scaled_dot_product_attention(query, key, value).view(1, 12, WIDTH)


def test_windows_are_not_taken_for_packed_queries() -> None:
    torch.manual_seed(0)
    program = Windows().eval()
    with torch.no_grad(), headlight.record(program) as recording:
        program(torch.randn(1, 12, WIDTH))
    assert [site.shape for site in recording.sites] == [(3, 4, 4)]


def test_a_decode_of_the_library_with_a_mask_has_the_maps_of_its_eager_attention() -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=40,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        max_position_embeddings=64,
        pad_token_id=0,
    )
    ids = torch.tensor([[5, 9, 4, 7]])
    recorded = []
    for attention in ("eager", "sdpa"):
        torch.manual_seed(3)
        program = LlamaForCausalLM._from_config(config, attn_implementation=attention).eval()
        with torch.no_grad(), headlight.record(program) as recording:
            program.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=4,
                min_new_tokens=4,
                do_sample=False,
                cache_implementation="static",
            )
        recorded.append(recording.sites)
    for eager, fused in zip(*recorded, strict=True):
        assert (fused.name, fused.shape) == (eager.name, eager.shape)
        np.testing.assert_allclose(fused.written(), eager.written(), atol=1e-5)
