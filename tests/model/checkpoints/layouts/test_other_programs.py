"""Weights without the files that describe them: of a network of the transformers library, or of an adapter."""

from pathlib import Path

import pytest
import torch
from torch import nn

from model.checkpoints.layouts.loading import inspect
from model.errors import LibraryWeights, NearLayout, OnlyAnAdapter, UnknownLayout
from tests import folders
from tests.foreign_files import GPT
from tests.weight_files import saved

KINDS = {
    "bert": r"\(bert, electra, roberta, …\)",
    "distilbert": r"\(distilbert\)",
    "gpt2": r"\(gpt2\)",
    "gpt_neox": r"\(gpt_neox\)",
    "opt": r"\(opt, marian, pegasus, …\)",
    "llama": r"\(llama, mistral, qwen2, …\)",
    "t5": r"\(t5, mt5\)",
    "marian": r"\(marian, pegasus, m2m_100, …\)",
}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "prefix"), [*((kind, "") for kind in KINDS), ("bert", "module."), ("bert", "student.")])
def test_a_state_dict_of_a_library_network_says_what_it_lacks(kind: str, prefix: str, tmp_path: Path) -> None:
    """It said "The closest is tutorial-parts", of which no tensor was there."""
    state = {prefix + name: tensor for name, tensor in folders.network(kind).state_dict().items()}
    with pytest.raises(LibraryWeights, match=KINDS[kind]) as refused:
        inspect(saved(tmp_path, state), {})
    assert "without the config.json that says how it computes. Save its folder" in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "marian"])
def test_the_network_without_what_is_around_it_is_recognized_too(kind: str, tmp_path: Path) -> None:
    made = folders.network(kind)
    state = getattr(made, made.base_model_prefix, made).state_dict()  # type: ignore[call-overload]  # untyped library
    with pytest.raises(LibraryWeights if kind != "marian" else (LibraryWeights, NearLayout)):
        inspect(saved(tmp_path, state), {})


def test_a_network_of_the_same_names_whose_maps_lie_the_other_way_is_no_library_network(tmp_path: Path) -> None:
    state = GPT().state_dict() | {"adapter.weight": torch.ones(2, 2)}
    with pytest.raises(NearLayout, match=r"The closest is gpt\. What does not fit: adapter\.weight has no place in it"):
        inspect(saved(tmp_path, state), {})


def test_an_adapter_alone_is_called_one(tmp_path: Path) -> None:
    names = [f"base_model.model.model.layers.0.self_attn.{part}_proj.lora_{side}.weight" for part in "qv" for side in "AB"]
    with pytest.raises(OnlyAnAdapter, match=r"holds an adapter, .* Merge the two"):
        inspect(saved(tmp_path, {name: torch.ones(2, 2) for name in names}), {})


@pytest.mark.parametrize(
    "state",
    [
        nn.Conv2d(3, 4, 7).state_dict(),
        nn.LSTM(4, 4).state_dict(),
        *({name: torch.ones(4, 4)} for name in ("lm_head.weight", "fc.weight")),
    ],
    ids=["images", "recurrent", "a head alone", "one map"],
)
def test_what_is_like_nothing_known_is_compared_with_nothing(state: dict[str, torch.Tensor], tmp_path: Path) -> None:
    with pytest.raises(UnknownLayout) as refused:
        inspect(saved(tmp_path, state), {})
    assert type(refused.value) is UnknownLayout
    assert next(iter(state)) in str(refused.value)
    assert "closest" not in str(refused.value)
