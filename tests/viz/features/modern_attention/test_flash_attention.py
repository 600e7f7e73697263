"""FlashAttention in tiles, against a softmax over the whole row and against torch's own fused kernel."""

import numpy as np
import pytest
import torch

from model.trace.types import Array
from viz.features.modern_attention.flash_attention import attend, numbers_moved


def made_up(queries: int, keys: int, causal: bool) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(queries * keys)
    allowed = np.tril(np.ones((queries, keys), bool)) if causal else np.ones((queries, keys), bool)
    return rng.normal(size=(queries, keys)) * 30, allowed, rng.normal(size=(keys, 3))


@pytest.mark.parametrize("size", [1, 2, 4, 16])
@pytest.mark.parametrize(("queries", "keys", "causal"), [(7, 7, True), (5, 9, False), (1, 4, False), (8, 8, True)])
def test_the_result_is_that_of_the_whole_row(queries: int, keys: int, causal: bool, size: int) -> None:
    scores, allowed, values = made_up(queries, keys, causal)
    whole = np.where(allowed, scores, -np.inf)
    weights = np.exp(whole - whole.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    found = attend(np.where(allowed, scores, np.nan), allowed, values, size)
    np.testing.assert_allclose(found.context, weights @ values, rtol=1e-12, atol=1e-14)
    for tile in found.tiles:  # what is kept after a tile is that of all keys up to it
        part = whole[tile.queries.start : tile.queries.stop, : tile.keys.stop]
        np.testing.assert_array_equal(tile.largest, part.max(axis=1))
        np.testing.assert_allclose(tile.total, np.exp(part - part.max(axis=1, keepdims=True)).sum(axis=1), rtol=1e-12)


def test_the_result_is_that_of_a_fused_kernel() -> None:
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(1, 1, 12, 8, generator=generator, dtype=torch.float64) for _ in range(3))
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)[0, 0].numpy()
    scores = (q @ k.mT / 8**0.5)[0, 0].numpy()
    np.testing.assert_allclose(attend(scores, np.tril(np.ones((12, 12), bool)), v[0, 0].numpy(), 5).context, wanted, atol=1e-12)


def test_tiles_that_the_mask_closes_are_skipped() -> None:
    scores, allowed, values = made_up(8, 8, causal=True)
    found = attend(scores, allowed, values, 2)
    assert (len(found.tiles), found.skipped) == (10, 6)
    assert [(tile.queries.start, tile.keys.start) for tile in found.tiles[:4]] == [(0, 0), (2, 0), (2, 2), (4, 0)]


def test_a_row_without_a_key_has_no_context_and_others_have() -> None:
    scores, allowed, values = made_up(4, 4, causal=False)
    allowed[1] = False
    found = attend(scores, allowed, values, 2)
    assert np.isnan(found.context[1]).all()
    assert np.isfinite(found.context[[0, 2, 3]]).all()


def test_numbers_are_counted_one_by_one() -> None:
    queries, keys, width, size = 6, 8, 3, 2
    plain = queries * width + keys * width + queries * keys  # q and k are read, scores written
    plain += 2 * queries * keys  # scores are read, weights written
    plain += queries * keys + keys * width + queries * width  # weights and v are read, the context is written
    tiles = [(q, k) for q in range(0, queries, size) for k in range(0, keys, size)]
    tiled = 2 * queries * width + sum(2 * size * width for _ in tiles)
    assert numbers_moved(queries, keys, width, size, len(tiles)) == (plain, tiled)
