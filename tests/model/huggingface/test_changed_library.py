"""Interventions in networks of the transformers library, beside plain hooks of torch on the library's own modules."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from model.errors import CannotChange
from model.huggingface.network import ForeignTranslator, ForeignWriter
from model.transformer.attention import Intervention, Run
from tests.model.huggingface.test_maps import opened
from tests.networks import Notes, assert_close

IDS = torch.tensor([[4, 6, 5, 8, 9]])


def writer(tmp_path: Path, family: str = "gpt2") -> tuple[ForeignWriter, nn.Module]:
    found, own = opened(tmp_path, family)
    assert isinstance(found.network, ForeignWriter)
    return found.network, own


def ran(network: ForeignWriter, changes: dict[str, Intervention], cuts: tuple[int, ...] = (5,)) -> list[Notes]:
    """What each step of a decode recorded."""
    past, steps = network.new_cache(), []
    with torch.inference_mode():
        for start, end in zip((0, *cuts), cuts, strict=False):
            steps.append(notes := Notes())
            network(IDS[:, :end], Run(notes, changes, past), start)
    return steps


def table(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def adding(added: Tensor) -> Intervention:
    return lambda value, start: value + added[start : start + value.shape[-2], : value.shape[-1]]


def hide_first(mask: Tensor, start: int) -> Tensor:
    hidden = mask.clone()
    hidden[..., (torch.arange(mask.shape[-2]) + start) > 0, 0] = False
    return hidden


def projection(columns: slice, added: Tensor) -> Callable[[nn.Module, Any, Tensor], Tensor]:
    """A hook that adds to some columns of what a module makes: three heads of eight columns each."""

    def hook(module: nn.Module, given: Any, made: Tensor) -> Tensor:
        changed = made.clone()
        changed[..., columns] += added.repeat(1, 3)
        return changed

    return hook


def stream(added: Tensor) -> Callable[[nn.Module, Any, Any], Any]:
    """A hook that adds to what a module returns, or the first of it."""
    return lambda module, given, made: (made[0] + added, *made[1:]) if isinstance(made, tuple) else made + added


SLICES = {"q": slice(0, 24), "k": slice(24, 48), "v": slice(48, 72)}
MODULES = {
    "attention/decoder.0.0.self/output": "transformer.h.0.attn.c_proj",
    "hidden/decoder.0.0": "transformer.h.0",
    "embedded/decoder": "transformer.drop",
    "positions/decoder": "transformer.wpe",
}


@pytest.mark.parametrize("name", [*SLICES, *MODULES, "context", "weights"])
def test_a_change_is_what_a_hook_on_the_librarys_module_gives(tmp_path: Path, name: str) -> None:
    network, own = writer(tmp_path)
    attention = own.get_submodule("transformer.h.0.attn")
    if name in SLICES:
        added, hooked, path = table(5, 8), attention.get_submodule("c_attn"), f"attention/decoder.0.0.self/{name}"
        hooked.register_forward_hook(projection(SLICES[name], added))
    elif name in MODULES:
        added, path = table(5, 24), name
        own.get_submodule(MODULES[name]).register_forward_hook(stream(added))
    else:
        added, path = table(5, 8 if name == "context" else 5).tril(), f"attention/decoder.0.0.self/{name}"
        values = ran(network, {})[0]["attention/decoder.0.0.self/v"]
        rows = added.expand(1, 3, -1, -1) if name == "context" else added @ values  # [batch, head, query, head_dim]
        more = rows.transpose(1, 2).flatten(-2)
        attention.get_submodule("c_proj").register_forward_pre_hook(lambda module, given: (given[0] + more,))
    with torch.inference_mode():
        expected = own(IDS).logits
    plain, changed = ran(network, {})[0], ran(network, {path: adding(added)})[0]
    assert_close(name, changed["logits"], expected, 1e-4)
    assert not torch.allclose(plain["logits"], changed["logits"], atol=1e-3) or name == "k"
    assert_close(name, changed[path], plain[path] + added)
    steps = torch.cat([step["logits"] for step in ran(network, {path: adding(added)}, (2, 3, 5))], dim=1)
    assert_close(name, steps, changed["logits"], 1e-4)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_key_that_is_hidden_weighs_nothing(tmp_path: Path, family: str) -> None:
    network, _ = writer(tmp_path, family)
    path = "attention/decoder.0.1.self"
    plain, changed = ran(network, {})[0], ran(network, {f"{path}/mask": hide_first})[0]
    weights = plain[f"{path}/weights"].clone()
    weights[:, :, 1:, 0] = 0
    assert_close("weights", changed[f"{path}/weights"], weights / weights.sum(-1, keepdim=True))
    assert not changed[f"{path}/mask"][..., 1:, 0].any()
    steps = torch.cat([step["logits"] for step in ran(network, {f"{path}/mask": hide_first}, (2, 5))], dim=1)
    assert_close("logits", steps, changed["logits"], 1e-4)


def test_a_translator_hands_every_value_back_as_it_was(tmp_path: Path) -> None:
    found, _ = opened(tmp_path, "marian")
    network = found.network
    assert isinstance(network, ForeignTranslator)

    def run(changes: dict[str, Intervention]) -> Notes:
        notes, mask = Notes(), network.source_mask(IDS)
        with torch.inference_mode():
            run = Run(notes, changes, network.new_cache())
            network.decode(IDS[:, :3], network.encode(IDS, mask, run), mask, run)
        return notes

    plain = run({})
    asked = list[str]()

    def hand_back(name: str, value: Tensor, start: int) -> Tensor:
        asked.append(name)
        return value

    same = run({name: partial(hand_back, name) for name in plain if "mask_" not in name})
    assert set(asked) == {name for name in plain if "mask_" not in name}
    assert all(torch.equal(plain[name], same[name]) for name in plain)


@pytest.mark.parametrize(
    ("family", "name", "why"),
    [
        ("gpt2", "attention/decoder.0.0.self/scores", "returns no scores"),
        ("gpt2", "stages/decoder.0.0.self/normed", "exposes only what each feed-forward network adds"),
        ("gpt2", "attention/decoder.0.0.self/mask_causal", "only their result can be changed"),
        ("llama", "positions/decoder", "queries and keys are rotated"),
    ],
)
def test_what_the_library_keeps_to_itself_is_refused_in_words(tmp_path: Path, family: str, name: str, why: str) -> None:
    network, _ = writer(tmp_path, family)
    with pytest.raises(CannotChange, match=why):
        ran(network, {name: lambda value, start: value})
