"""Each quirk of the documents matters: a network without it is off by a hundredth or more, and the golden tests would notice."""

import numpy as np
import pytest

from model.requests.inputs import Given
from tests.reference import described, expected, ids, traced


def first_row(name: str, case: str, key: str) -> tuple[int, ...]:
    return ids(expected(name)[f"{case}.{key}"][0])


@pytest.mark.parametrize(
    ("name", "case", "wrong"),
    [
        ("000_tiny_a", "padded", {"decoder_passes": "1"}),
        ("000_tiny_a", "padded", {"embed_scale": "none"}),
        ("000_tiny_a", "padded", {"n_heads": "4"}),
        ("000_tiny_a", "padded", {"source_pad_id": "0"}),
        ("000_tiny_b", "padded", {"norm_order": "pre"}),
        ("000_tiny_b", "padded", {"activation": "gelu"}),
        ("004_tiny_b", "eval_tf", {"causal": "true"}),
        ("004_tiny_a", "causal_tf", {"causal": "false"}),
        ("003_tiny_b", "b1", {"embed_scale": "none"}),
    ],
    ids=str,
)
def test_a_wrong_answer_is_far_off(name: str, case: str, wrong: dict[str, str]) -> None:
    right = {"causal": str(case == "causal_tf").lower()} if name.startswith("004") else {}
    source, target = first_row(name, case, "src_ids"), first_row(name, case, "dec_ids" if name[:3] == "004" else "trg_ids")
    assert furthest(name, source, target, right, right | wrong) > 1e-2


def test_a_language_model_that_looks_ahead_is_far_off() -> None:
    source = ids(expected("001_tiny_b")["lm.src_ids"][:, 0])
    assert furthest("001_tiny_b", source, None, {}, {"causal": "false"}) > 1e-2


@pytest.mark.parametrize("name", ["004_tiny_a", "004_tiny_b"])
def test_running_positions_in_a_cached_decode_are_far_off(name: str) -> None:
    source = first_row(name, "predict0", "src_ids")
    right, wrong = (
        traced(name, source, max_length=4, valid=3, eos_id="0", decode_positions=kind).logits for kind in ("zero", "running")
    )
    assert right is not None
    assert wrong is not None
    assert np.abs(right[:2] - wrong[:2]).max() > 1e-2


def furthest(name: str, source: Given, target: Given | None, right: dict[str, str], wrong: dict[str, str]) -> float:
    """The largest difference between the logits of two answers."""
    valid = described(name)["cases"][0].get("valid_lens", [None])[0] if name.startswith("004") else None
    one, other = (traced(name, source, target, 0, valid, **settings).logits for settings in (right, wrong))
    assert one is not None
    assert other is not None
    return float(np.abs(one - other).max())
