"""Pooled maps and pyramids, against the same numbers worked out cell by cell."""

from dataclasses import replace

import numpy as np
import pytest

from model.trace.types import Array, Site
from tests import opened, traces
from viz.canvas.wire import overviews, parts
from viz.canvas.wire.parts import Pyramid, pool
from viz.canvas.wire.transport import Blob, encode, unpack

RNG = np.random.default_rng(7)


def blocks(cells: Array, down: int, across: int) -> list[list[Array]]:
    """The cells of each block."""
    rows, columns = cells.shape
    return [[cells[r : r + down, c : c + across] for c in range(0, columns, across)] for r in range(0, rows, down)]


@pytest.mark.parametrize(
    ("shape", "down", "across"), [((8, 8), 2, 2), ((7, 10), 3, 4), ((1, 9), 1, 4), ((5, 3), 9, 9), ((4, 4), 1, 1)]
)
@pytest.mark.parametrize("combine", [np.maximum, np.add, np.logical_or], ids=lambda ufunc: str(ufunc.__name__))
def test_a_block_is_its_cells_taken_together(shape: tuple[int, int], down: int, across: int, combine: np.ufunc) -> None:
    cells = RNG.random(shape) > 0.7 if combine is np.logical_or else RNG.random(shape)
    before = cells.copy()
    expected = [[combine.reduce(block, axis=None) for block in line] for line in blocks(cells, down, across)]
    np.testing.assert_allclose(pool(cells, down, across, combine), expected)
    np.testing.assert_array_equal(cells, before)


TILE = 32


@pytest.fixture
def head(monkeypatch: pytest.MonkeyPatch) -> tuple[Array, Array]:
    """90 × 70 weights, some of which lie where nobody may look; and tiles small enough for them."""
    monkeypatch.setattr(parts, "TILE", TILE)
    mask = np.tril(np.ones((90, 70), bool), 40)
    mask[:, 65:] = False
    return RNG.dirichlet(np.full(70, 0.1), 90).astype(np.float32), mask


def test_every_tile_of_every_level_holds_what_its_cells_hold(head: tuple[Array, Array]) -> None:
    weights, mask = head
    pyramid = Pyramid(weights, mask)
    assert pyramid.facts == {"rows": 90, "columns": 70, "side": TILE, "levels": 3}
    for level in range(pyramid.facts["levels"]):
        size = 2**level
        masked = np.where(mask, weights, 0)
        expected = {
            "max": encode(np.array([[b.max() for b in line] for line in blocks(masked, size, size)])),
            "mean": encode(
                np.array(
                    [
                        [b.sum(dtype=np.float64) / max(1, m.sum()) for b, m in zip(*lines, strict=True)]
                        for lines in zip(blocks(masked, size, size), blocks(mask, size, size), strict=True)
                    ]
                )
            ),
            "mask": np.array([[b.any() for b in line] for line in blocks(mask, size, size)]),
        }
        for kind in ("max", "mean") if level else ("exact",):
            for row in range(-(-90 // (TILE * size))):
                for column in range(-(-70 // (TILE * size))):
                    here = (slice(row * TILE, (row + 1) * TILE), slice(column * TILE, (column + 1) * TILE))
                    _header, found = unpack(pyramid.piece(f"{kind}/{level}/{row}/{column}") or b"")
                    np.testing.assert_array_equal(found["mask"].astype(bool), expected["mask"][here])
                    if kind == "exact":
                        np.testing.assert_array_equal(found["exact"], weights[here])
                    else:
                        assert np.abs(found["codes"].astype(int) - expected[kind][here]).max() <= (kind == "mean")  # rounding


@pytest.mark.parametrize(
    "path",
    ["whole", "exact/0/0", "exact/1/0/0", "max/0/0/0", "max/3/0/0", "exact/0/3/0", "exact/0/-1/0", "max/²/0/0", "max/1/0/999999"],
)
def test_there_is_no_other_piece(head: tuple[Array, Array], path: str) -> None:
    assert Pyramid(*head).piece(path) is None


def test_a_pyramid_counts_what_it_holds_and_is_named_by_its_cells(head: tuple[Array, Array]) -> None:
    weights, mask = head
    pyramid = Pyramid(weights, mask)
    assert 5 * weights.size < pyramid.nbytes < 6.1 * weights.size
    assert pyramid.name == Pyramid(weights.copy(), mask).name != Pyramid(weights, ~mask).name


@pytest.mark.parametrize("tokens", [30, 128, 130, 300])
def test_an_overview_holds_the_largest_weight_of_each_block(tokens: int) -> None:
    trace = traces.encoder(2, 2, tokens)
    header, blobs = unpack(overviews.part(trace).data)
    (group,) = header["groups"]
    down, across = group["blocks"]
    assert (down, across) == (-(-tokens // 128),) * 2
    for site in group["sites"]:
        attention = trace.at(site["site"])
        for head, codes in enumerate(blobs[f"weights/{site['site']}"]):
            expected = [[b.max() for b in line] for line in blocks(attention.head(head), down, across)]
            np.testing.assert_array_equal(codes, encode(np.array(expected)))
        np.testing.assert_array_equal(
            blobs[site["mask"]], [[b.any() for b in line] for line in blocks(attention.mask, down, across)]
        )


@pytest.mark.parametrize(
    ("layers", "heads", "tokens", "cells"),
    [(12, 12, 128, 128), (12, 12, 256, 128), (12, 12, 512, 86), (12, 12, 600, 120), (32, 32, 64, 32), (6, 8, 1000, 125)],
)
def test_what_opens_an_atlas_is_bounded_in_bytes_and_sharp(layers: int, heads: int, tokens: int, cells: int) -> None:
    """A tile of 12 × 12 stands in 41 pixels on a screen of 1440 × 900: 82 cells are sharp on one with twice as many pixels."""
    trace = traces.encoder(layers, heads, tokens)
    overview, selected = overviews.part(trace), parts.exact(trace, Site("encoder", 0, 0, "self"), 0)
    assert overview.nbytes + (selected.nbytes if isinstance(selected, Blob) else 0) <= 2.85e6
    assert unpack(overview.data)[1]["weights/encoder.0.0.self"].shape == (heads, cells, cells)


@pytest.mark.parametrize("rest", [False, True])
def test_sites_that_are_read_together_are_told_as_each_alone(monkeypatch: pytest.MonkeyPatch, rest: bool) -> None:
    whole = traces.translation(layers=3, heads=2)
    masked = {site: replace(own, mask=np.triu(own.mask)) if site.layer == 2 else own for site, own in whole.attention.items()}
    trace = replace(whole, attention=masked)
    together = overviews._made(trace, rest)
    monkeypatch.setattr(overviews, "TOGETHER", 0)
    alone = overviews._made(trace, rest)
    assert together.data == alone.data
    np.testing.assert_array_equal(together.shares, unpack(alone.data)[1]["readings"][0])


def test_sites_of_a_program_with_other_tokens_stood_under_the_axes_of_the_first() -> None:
    """CrossViT reads two sizes of patches: its sites of one kind have 17 and 5 keys."""
    large, small = opened.program(patches=5), opened.program(patches=3)
    own = {replace(site, layer=site.layer + 2): other for site, other in small.attention.items()}
    named = {site: replace(other, site=site, query_tokens="small", key_tokens="small") for site, other in own.items()}
    trace = replace(
        large,
        attention={**large.attention, **named},
        tokens={**large.tokens, "small": replace(small.tokens["source"], name="small")},
    )
    header, blobs = unpack(overviews.part(trace).data)
    for group in header["groups"]:
        for row in group["sites"]:
            assert blobs[f"weights/{row['site']}"].shape[1:] == (len(group["queries"]), len(group["keys"])), row["site"]


def test_a_head_travels_whole_up_to_512_tokens() -> None:
    site = Site("encoder", 0, 0, "self")
    assert isinstance(parts.exact(traces.encoder(1, 1, 512), site, 0), Blob)
    assert isinstance(parts.exact(traces.encoder(1, 1, 513), site, 0), Pyramid)


def test_a_head_is_copied_where_it_is_a_piece_of_its_run_alone() -> None:
    run, mask = RNG.random((2, 30, 20), np.float32), np.ones((30, 20), bool)
    whole = run[:1].copy()[0]
    assert not np.shares_memory(Pyramid(run[0], mask)._exact, run)
    assert np.shares_memory(Pyramid(whole, mask)._exact, whole)
