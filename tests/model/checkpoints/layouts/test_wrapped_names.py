"""Names of wrappers inside the names of a raw file: it runs as the same file without them, or says what it cannot tell apart."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from model.checkpoints.layouts.loading import inspect
from model.errors import NearLayout, UnknownLayout
from tests.foreign_files import GPT, shaken
from tests.toolkits import SOURCE
from tests.weight_files import saved, traced

TOLD = {"n_heads": "3", "activation": "gelu"}


def inside(wrapper: str) -> Callable[[str], str]:
    return lambda name: name.replace("transformer.h.1.", f"transformer.h.1.{wrapper}.").replace("mlp.", f"mlp.{wrapper}.")


WRAPPED: dict[str, Callable[[str], str]] = {
    "compiled layers": inside("_orig_mod"),
    "FSDP of the whole and of layers": lambda name: "_fsdp_wrapped_module." + inside("_fsdp_wrapped_module")(name),
    "checkpointed activations": inside("_checkpoint_wrapped_module"),
    "compiled, then distributed": lambda name: "module._orig_mod." + inside("_checkpoint_wrapped_module")(name),
    "in an attribute of a program": lambda name: "model." + inside("_orig_mod")(name),
    "layers that are distributed": inside("module"),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_a_wrapped_network_runs_as_the_network(name: str, tmp_path: Path) -> None:
    state = shaken(GPT).state_dict()
    (tmp_path / "plain").mkdir()
    plain = traced(saved(tmp_path / "plain", state), TOLD, SOURCE)
    path = saved(tmp_path, {WRAPPED[name](own): tensor for own, tensor in state.items()})
    np.testing.assert_array_equal(traced(path, TOLD, SOURCE).logits, plain.logits)
    assert inspect(path, TOLD).prefix.endswith(".")


def test_two_tensors_of_one_name_are_not_chosen_between(tmp_path: Path) -> None:
    state = shaken(GPT).state_dict()
    twice = state | {f"_orig_mod.{name}": tensor + 1 for name, tensor in state.items()}
    with pytest.raises(NearLayout, match=r"_orig_mod\.transformer\.wte\.weight, .* have no place in it"):
        inspect(saved(tmp_path, twice), TOLD)


def test_half_of_a_layout_is_the_least_that_is_called_close(tmp_path: Path) -> None:
    state = shaken(GPT).state_dict()
    others = {f"vision.{i}.weight": torch.ones(2, 2) for i in range(len(state) - 1)}
    with pytest.raises(NearLayout, match="The closest is gpt"):
        inspect(saved(tmp_path, state | others), TOLD)
    more = {f"vision.{name}.weight": torch.ones(2) for name in "xy"}
    with pytest.raises(UnknownLayout, match=r"match no known layout, and none is close: .*, … \(\+\d+\)\. Nothing") as refused:
        inspect(saved(tmp_path, state | others | more), TOLD)
    assert type(refused.value) is UnknownLayout
