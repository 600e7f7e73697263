"""Kinds of masks: each pattern against a loop over its definition, and reach against powers of the masks as matrices."""

from typing import get_args

import numpy as np
import pytest
import torch

from model.trace.types import Array
from viz.features.modern_attention.kinds_of_masks import Kind, Made, MaskKind, farthest, kind_of, pattern, reached

COUNT, STARTS = 9, (3, 7)


def looped(kind: Made, size: int) -> Array:
    found = np.zeros((COUNT, COUNT), bool)
    for query in range(COUNT):
        for key in range(COUNT):
            later = key > query
            if kind == "prefix":
                found[query, key] = not later or key < size
            elif kind == "window":
                found[query, key] = not later and key > query - size
            elif kind == "chunks":
                found[query, key] = not later and any(low <= query < low + size and low <= key for low in range(0, COUNT, size))
            elif kind == "documents":
                found[query, key] = not later and not any(key < start <= query for start in STARTS)
            else:
                found[query, key] = not later
    return found


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("kind", get_args(Made))
def test_a_pattern_is_what_it_says_and_is_recognized(kind: Made, size: int) -> None:
    made = pattern(kind, COUNT, size, STARTS)
    np.testing.assert_array_equal(made, looped(kind, size))
    wanted = {"causal": 0, "documents": 3}.get(kind, size)
    assert kind_of(made) == MaskKind(kind, wanted)
    padded = made.copy()
    padded[:, -1] = False
    assert kind_of(padded).kind == kind, "a closed column is padding"


def test_masks_of_other_forms() -> None:
    kinds: dict[Kind, Array] = {
        "all": np.ones((5, 5), bool),
        "both-sides": np.abs(np.subtract.outer(np.arange(5), np.arange(5))) < 2,
        "other": np.eye(5, dtype=bool)[::-1],
    }
    assert {kind: kind_of(mask).kind for kind, mask in kinds.items()} == {kind: kind for kind in kinds}
    assert kind_of(np.ones((2, 5), bool)) == MaskKind("other")


@pytest.mark.parametrize("kind", get_args(Made))
@pytest.mark.parametrize("token", [0, 4, 8])
def test_what_is_reached_has_a_path_of_open_cells(kind: Made, token: int) -> None:
    masks = [pattern(kind, COUNT, 3, STARTS), pattern("window", COUNT, 2), pattern(kind, COUNT, 3, STARTS)]
    found, paths = reached(masks, token), torch.eye(COUNT, dtype=torch.float64)
    for layer, mask in enumerate(masks, start=1):
        paths = (torch.from_numpy(mask).double() + torch.eye(COUNT, dtype=torch.float64)) @ paths
        np.testing.assert_array_equal(found[layer], (paths[:, token] > 0).numpy())
    last = (paths[-1] > 0).numpy()
    assert farthest(masks) == COUNT - last.argmax()


def test_windows_add_up_over_layers() -> None:
    masks = [pattern("window", 40, 4)] * 5
    assert farthest(masks) == 5 * 3 + 1
