"""The effect of edits on the tokens that were written before."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from model.trace.types import Array
from tests import traces
from viz.features.what_if.edit_effect import divergence, effect, most_looked_at


def random_logits(seed: int) -> Array:
    return np.random.default_rng(seed).normal(scale=3, size=(4, 50)).astype(np.float32)


def test_the_divergence_is_that_of_torch_in_nats() -> None:
    first, second = random_logits(1), random_logits(2)
    one, other = (torch.tensor(logits).double().log_softmax(dim=-1) for logits in (first, second))
    wanted = torch.nn.functional.kl_div(other, one, reduction="none", log_target=True).sum(dim=-1)
    assert divergence(first, second) == pytest.approx(wanted.numpy(), rel=1e-9)


def test_what_rounding_makes_is_no_divergence_and_no_change() -> None:
    before = traces.translation(layers=1, heads=2)
    assert before.logits is not None
    found = effect(before, replace(before, logits=before.logits + np.float32(1e-6)), 1)
    assert (found.change == 0).all()
    assert (found.divergence == 0).all()


def test_each_token_has_its_log_probabilities_in_both_runs() -> None:
    before, now = traces.translation(seed=1), traces.translation(seed=2)
    assert before.logits is not None
    assert now.logits is not None
    found = effect(before, now, first=4)
    assert found.texts == before.tokens["target"].texts[4:]
    ids = torch.tensor(before.tokens["target"].ids[4:])
    for logits, told in ((before.logits, found.before), (now.logits, found.now)):
        wanted = torch.tensor(logits).double().log_softmax(dim=-1)[3:].gather(1, ids[:, None])[:, 0]
        assert told == pytest.approx(wanted.numpy(), rel=1e-9)
    assert found.divergence == pytest.approx(divergence(before.logits[3:], now.logits[3:]))


def test_nan_stays_nan_and_has_no_total() -> None:
    before = traces.translation(layers=1, heads=2)
    broken = effect(before, replace(before, logits=np.full_like(before.logits, np.nan)), 1)
    assert np.isnan(broken.divergence).all()
    assert np.isnan(broken.now).all()
    assert not broken.finite
    assert effect(before, before, 1).finite


def test_the_most_looked_at_key_is_found_among_the_candidates() -> None:
    weights = np.zeros((2, 3, 4), np.float32)
    weights[..., 0], weights[..., 2], weights[0, 0, 3] = 0.6, 0.3, 0.1
    assert most_looked_at(weights, [0, 1, 2, 3]) == 0
    assert most_looked_at(weights, [1, 2, 3]) == 2
