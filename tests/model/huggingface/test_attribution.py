"""What mattered in networks of the transformers library, beside plain hooks of torch on the library's own modules."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model.errors import CannotMeasure
from model.features.what_if.questions import Edges, Heads, Words
from model.requests.request import RunRequest
from tests.model.features.conftest import answered
from tests.model.huggingface.test_maps import SOURCE, TARGET, opened

GIVEN = RunRequest("tiny", SOURCE, TARGET)
OUTPUTS = {
    "gpt2": "transformer.h.{layer}.attn.c_proj",
    "llama": "model.layers.{layer}.self_attn.o_proj",
    "marian": "model.{stack}.layers.{layer}.{kind}_attn.out_proj",
    "t5": "{stack}.block.{layer}.layer.{number}.{own}.o",
}


def output(own: nn.Module, family: str, site: str) -> nn.Module:
    """The library's output projection of a site."""
    stack, _, layer, kind = site.split(".")
    named = {
        "stack": stack,
        "layer": layer,
        "kind": "self" if kind == "self" else "encoder",
        "number": "0" if kind == "self" else "1",
        "own": "SelfAttention" if kind == "self" else "EncDecAttention",
    }
    return own.get_submodule(OUTPUTS[family].format(**named))


def scores(own: Any, writer: bool) -> Tensor:
    """Log-probabilities of TARGET by the library itself."""
    following: tuple[int, ...] = TARGET if writer else TARGET[1:]
    first = len(SOURCE) - 1 if writer else 0
    with torch.inference_mode():
        if writer:
            whole = torch.tensor([[*SOURCE, *TARGET]])
            logits: Tensor = own(input_ids=whole).logits[0]
        else:
            logits = own(input_ids=torch.tensor([SOURCE]), decoder_input_ids=torch.tensor([TARGET])).logits[0]
    return logits.log_softmax(-1)[torch.arange(len(following)) + first, torch.tensor(following)]


@pytest.mark.parametrize("family", OUTPUTS)
def test_a_silenced_head_is_zeros_before_the_librarys_output_projection(tmp_path: Path, family: str) -> None:
    found, own = opened(tmp_path, family)
    writer = family in ("gpt2", "llama")
    effects = answered(found, Heads(GIVEN))
    base = scores(own, writer)
    np.testing.assert_allclose(effects.log_probabilities, base, atol=1e-5)
    assert effects.without is not None
    assert effects.share is not None
    assert effects.none is not None
    for row, head in enumerate(effects.heads):
        heads = sum(other.site == head.site for other in effects.heads)

        def silence(module: nn.Module, given: Any, head: Any = head, heads: int = heads) -> Any:
            changed = given[0].clone().unflatten(-1, (heads, -1))
            changed[..., head.head, :] = 0
            return (changed.flatten(-2), *given[1:])

        hook = output(own, family, head.site).register_forward_pre_hook(silence)
        expected = scores(own, writer) - base
        hook.remove()
        np.testing.assert_allclose(effects.without[row], expected, atol=1e-5)
    for row, site in enumerate(effects.sites):
        shares = [effects.share[index] for index, head in enumerate(effects.heads) if head.site == site]
        np.testing.assert_allclose(np.sum(shares, axis=0), -effects.none[row], atol=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "marian"])
def test_integrated_gradients_are_complete(tmp_path: Path, family: str) -> None:
    found, _ = opened(tmp_path, family)
    effects = answered(found, Words(GIVEN))
    assert (np.abs(effects.residue) <= 0.011 * np.abs(effects.difference)).all()
    np.testing.assert_allclose(np.nansum(effects.rollout, axis=1), 1, atol=1e-5)
    assert set(effects.missing) <= {"unknown", "padding"}
    assert all(np.isnan(getattr(effects, name)).all() for name in effects.missing)


@pytest.mark.parametrize("family", ["gpt2", "marian"])
def test_edges_of_every_site_are_measured(tmp_path: Path, family: str) -> None:
    found, _ = opened(tmp_path, family)
    effects = answered(found, Edges(GIVEN, 1))
    last = effects.changes[-1]
    assert np.abs(last[np.isfinite(last)]).max() > 0
    assert len(effects.sites) == {"gpt2": 2, "marian": 5}[family]


def test_an_encoder_is_refused_in_words(tmp_path: Path) -> None:
    found, _ = opened(tmp_path, "bert")
    with pytest.raises(CannotMeasure, match="no output layer"):
        answered(found, Heads(RunRequest("tiny", SOURCE)))
