"""Masks against loops that say in words who may look at whom."""

import pytest
import torch

from model.transformer.masks import Mask, additive, causal_mask, causal_padding_mask, padding_mask, valid_mask

IDS = torch.tensor([[2, 5, 6, 3, 1, 1], [2, 1, 6, 1, 5, 3], [1, 1, 1, 1, 1, 1]])


def test_padding_hides_each_pad_id_wherever_it_stands() -> None:
    mask = padding_mask(IDS, pad_id=1)
    assert mask.shape == (3, 1, 1, 6)
    assert mask.dtype == torch.bool
    for example in range(3):
        for key in range(6):
            assert mask[example, 0, 0, key].item() == (IDS[example, key].item() != 1)


def test_valid_counts_positions_whatever_their_ids() -> None:
    mask = valid_mask(torch.tensor([0, 3, 6]), size=6)
    assert mask.shape == (3, 1, 1, 6)
    for example, valid in enumerate((0, 3, 6)):
        for key in range(6):
            assert mask[example, 0, 0, key].item() == (key < valid)


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (1, 6), (2, 6), (6, 6)])
def test_causal_the_queries_are_the_last_of_the_keys(queries: int, keys: int) -> None:
    mask = causal_mask(queries, keys)
    assert mask.shape == (1, 1, queries, keys)
    for query in range(queries):
        position = keys - queries + query
        for key in range(keys):
            assert mask[0, 0, query, key].item() == (key <= position)


@pytest.mark.parametrize("start", [0, 1, 4, 5])
def test_both_together_and_a_cached_step_is_the_last_rows_of_the_whole(start: int) -> None:
    whole, cached = causal_padding_mask(IDS, 0, pad_id=1), causal_padding_mask(IDS, start, pad_id=1)
    assert torch.equal(cached.allowed, whole.allowed[:, :, start:])
    for example in range(3):
        for query in range(6):
            for key in range(6):
                expected = key <= query and IDS[example, key].item() != 1
                assert whole.allowed[example, 0, query, key].item() == expected


def test_a_mask_keeps_the_parts_it_was_made_of() -> None:
    padding, causal = padding_mask(IDS, 1), causal_mask(6, 6)
    assert Mask(padding, causal).padding is padding
    assert Mask(padding, causal).causal is causal
    assert torch.equal(Mask(padding).allowed, padding)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_additive_form_is_zero_or_minus_infinity(dtype: torch.dtype) -> None:
    allowed = causal_padding_mask(IDS[:2], 0, pad_id=1).allowed
    added = additive(allowed, dtype)
    assert added.dtype == dtype
    assert added.shape == allowed.shape
    for found, may in zip(added.flatten().tolist(), allowed.flatten().tolist(), strict=True):
        assert found == (0.0 if may else float("-inf"))


def test_both_forms_give_one_softmax() -> None:
    allowed = causal_padding_mask(IDS[:2], 0, pad_id=1).allowed
    scores = torch.randn(2, 4, 6, 6, generator=torch.Generator().manual_seed(0))
    by_fill = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(-1)
    torch.testing.assert_close((scores + additive(allowed)).softmax(-1), by_fill, rtol=0, atol=1e-7)
