"""The atlas of differences holds what changed, small changes too."""

import numpy as np
import pytest

from model.trace.types import Site
from tests import traces
from viz.canvas.wire.transport import unpack
from viz.features.compare import difference_scene as changes_scene
from viz.features.compare.run_difference import changes

CROSS = Site("decoder", 0, 1, "cross")


def test_every_compared_head_is_there_and_the_selected_one_exactly() -> None:
    target = [*traces.ENGLISH[:5], "the", "garden", ".", "<eos>"]
    first, second = traces.translation(layers=2, heads=3), traces.translation(target=target, layers=2, heads=3, seed=1)
    found, _refused = changes(first, second)
    _header, inside = unpack(changes_scene.scene(first, second, found, CROSS, 2))
    header, blobs = unpack(inside["overview"].tobytes())
    largest = max(np.abs(change.difference(head)).max() for change in found.values() for head in range(3))
    assert header["signed"] == pytest.approx(largest)
    for site, change in found.items():
        parts = (blobs[f"weights/{site}"].astype(float) - 128) / 127
        decoded = largest * np.sign(parts) * parts**2
        expected = np.stack([change.difference(head) for head in range(3)])
        assert decoded == pytest.approx(expected, abs=0.008 * largest)
        assert (blobs[f"mask/{site}"] == change.mask).all()
    assert unpack(inside["exact"].tobytes())[1]["exact"] == pytest.approx(found[CROSS].difference(2), abs=1e-6)
    groups = {(group["title"]): group for group in header["groups"]}
    assert groups["Cross-attention"]["queries"][0] == "<sos> → two"
    assert groups["Cross-attention"]["queries"][4] == "play → with / play → the"
    assert len(groups["Cross-attention"]["keys"]) == 12


def test_a_head_that_cannot_be_compared_has_no_exact_numbers() -> None:
    first, second = traces.translation(layers=2, heads=3), traces.translation(layers=1, heads=2, seed=1)
    found, _refused = changes(first, second)
    for site, head in ((CROSS, 0), (Site("decoder", 0, 0, "cross"), 2)):
        header, _blobs = unpack(changes_scene.scene(first, second, found, site, head))
        assert header["parts"].keys() == {"overview"}
        assert header["selection"] == {"site": str(site), "head": head, "query": -1}


def test_the_code_keeps_small_changes_apart_from_none_and_has_no_favourite_side() -> None:
    values = np.linspace(-0.02, 0.02, 4001)
    code = changes_scene.encode(values, 0.02).astype(int)
    assert (code[0], code[2000], code[-1]) == (1, 128, 255)
    assert np.abs((code - 128) + (code[::-1] - 128)).max() <= 1
    assert changes_scene.encode(np.array([1e-6, np.nan]), 0.02).tolist() == [129, 128]
