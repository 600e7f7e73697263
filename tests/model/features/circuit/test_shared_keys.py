"""Paths to keys and values that several heads share, in networks of the transformers library: of one head, not of its group."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model.engine.local import LocalEngine
from model.features.circuit.circuits import SIDES, PathEffects, Paths
from model.features.what_if.results import Head
from model.requests.request import Decoding, RunRequest
from tests import folders
from tests.model.huggingface.test_maps import CPU, SOURCE

CORRUPTED = (*SOURCE[:2], 7, *SOURCE[3:])
EARLIER, LATER = Head("decoder.0.0.self", 1), Head("decoder.0.1.self", 2)


def effects(folder: Path, name: str) -> PathEffects:
    request = RunRequest(model=name, source=SOURCE, decoding=Decoding(max_length=1))
    return LocalEngine(folder, CPU).ask(Paths(request, corrupted=CORRUPTED))


def unshared(own: Any) -> Any:
    """The same network with a copy of its key and value for each head of a group."""
    config = deepcopy(own.config)
    heads, key_heads = config.num_attention_heads, config.num_key_value_heads
    config.num_key_value_heads = heads
    weights = own.state_dict()
    for name in weights:
        if ".k_proj." in name or ".v_proj." in name:
            of_heads = weights[name].unflatten(0, (key_heads, -1))
            weights[name] = of_heads.repeat_interleave(heads // key_heads, dim=0).flatten(0, 1)
    twin = type(own)(config)
    twin.load_state_dict(weights)
    return twin.eval()


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen2", "gemma"])
def test_a_network_whose_heads_share_keys_has_the_paths_of_its_twin_whose_heads_have_their_own(name: str, tmp_path: Path) -> None:
    unshared(folders.save(tmp_path / name, name)).save_pretrained(tmp_path / "twin")
    own, twin = effects(tmp_path, name), effects(tmp_path, "twin")
    assert np.nanmax(np.abs(own.effects[1:])) > 1e-4, "no key or value carries anything"
    for array in ("effects", "estimates", "kept_difference"):
        np.testing.assert_allclose(getattr(own, array), getattr(twin, array), atol=1e-5, err_msg=array)
    assert own.kept_difference[-1] == pytest.approx(own.clean, abs=1e-5)


@pytest.mark.parametrize("side", SIDES)
def test_a_path_to_a_shared_key_is_what_hooks_in_float64_give(tmp_path: Path, side: str) -> None:
    """From head 1 of the first layer to head 2 of the second, in the twin, whose heads have projections of their own."""
    saved: Any = folders.save(tmp_path / "llama", "llama")
    graph = effects(tmp_path, "llama")
    network = unshared(saved).double()
    first, second = network.model.layers
    inputs: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[..., None]:
        return lambda module, given: inputs.__setitem__(name, given[0].clone())

    hooks = [
        first.self_attn.o_proj.register_forward_pre_hook(keep("contexts")),
        second.input_layernorm.register_forward_pre_hook(keep("stream")),
    ]
    with torch.inference_mode():
        network(torch.tensor([CORRUPTED]))
        corrupted = inputs["contexts"]
        clean = network(torch.tensor([SOURCE])).logits[0, -1]
    for hook in hooks:
        hook.remove()
    of_earlier, of_later = (slice(8 * head.head, 8 * head.head + 8) for head in (EARLIER, LATER))
    change = torch.zeros_like(corrupted)
    change[..., of_earlier] = (corrupted - inputs["contexts"])[..., of_earlier]
    norm = second.input_layernorm
    spread = (inputs["stream"].square().mean(-1, keepdim=True) + norm.variance_epsilon).sqrt()
    read = change @ first.self_attn.o_proj.weight.T / spread * norm.weight
    projection: nn.Linear = second.self_attn.get_submodule(f"{side[0]}_proj")

    def patched(module: Any, given: Any, projected: Tensor) -> Tensor:
        projected[..., of_later] += read @ module.weight[of_later].T
        return projected

    projection.register_forward_hook(patched)
    with torch.inference_mode():
        after = network(torch.tensor([SOURCE])).logits[0, -1]
    token = int(clean.argmax())
    expected = float((after[token] - after[graph.other]) - (clean[token] - clean[graph.other]))
    place = SIDES.index(side), graph.heads.index(LATER), graph.heads.index(EARLIER)
    assert graph.effects[place] == pytest.approx(expected, abs=1e-5)
    assert abs(expected) > 1e-4
