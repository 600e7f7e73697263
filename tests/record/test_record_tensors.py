"""Programs with nested tensors, tensors of other classes, or TorchScript run as without a recording."""

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.testing._internal.two_tensor import TwoTensor

import headlight

SEQUENCES = [torch.randn(count, 16, generator=torch.Generator().manual_seed(count)) for count in (3, 5)]


class Attention(nn.Module):
    """Self-attention of two heads by the fused kernel."""

    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.q, self.k, self.v, self.causal = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16), causal

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (project(x).unflatten(-1, [2, 8]).transpose(1, 2) for project in (self.q, self.k, self.v))
        found: Tensor = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2)
        return found

    def weights_of(self, x: Tensor) -> Tensor:
        """[head, query, key] of one sequence in float64."""
        q, k = ((x.double() @ p.weight.double().T + p.bias).unflatten(-1, [2, 8]).transpose(0, 1) for p in (self.q, self.k))
        found: Tensor = (q @ k.mT / 8**0.5).softmax(-1)
        return found


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_a_program_with_jagged_tensors_runs_as_without_a_recording(mode: Any) -> None:
    """It ended in a RecursionError."""
    model = Attention()
    with mode():
        nested = torch.nested.nested_tensor([sequence.clone() for sequence in SEQUENCES], layout=torch.jagged)
        expected = model(nested)
        with headlight.record(model, example=1) as recording:
            found = model(nested)
    assert all(torch.equal(one, other) for one, other in zip(found.unbind(), expected.unbind(), strict=True))
    assert recording.sites or recording.missing == {"attention/Attention": headlight.NESTED}
    for site in recording.sites:
        np.testing.assert_allclose(site.written(), model.weights_of(SEQUENCES[1]).detach(), atol=1e-6)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_a_program_with_strided_nested_tensors_runs_as_without_a_recording(mode: Any) -> None:
    with mode():
        nested = torch.nested.nested_tensor([sequence.unflatten(-1, [2, 8]).transpose(0, 1) for sequence in SEQUENCES])
        expected = functional.scaled_dot_product_attention(nested, nested, nested)
        with headlight.record(example=1) as recording:
            found = functional.scaled_dot_product_attention(nested, nested, nested)
    assert all(torch.equal(one, other) for one, other in zip(found.unbind(), expected.unbind(), strict=True))
    own = SEQUENCES[1].double().unflatten(-1, [2, 8]).transpose(0, 1)
    assert recording.sites or recording.missing == {"attention/no module": headlight.NESTED}
    for site in recording.sites:
        np.testing.assert_allclose(site.written(), (own @ own.mT / 8**0.5).softmax(-1), atol=1e-6)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_training_on_jagged_tensors_has_the_same_gradients() -> None:
    def gradients(model: nn.Module) -> list[Tensor | None]:
        nested = torch.nested.nested_tensor(SEQUENCES, layout=torch.jagged)
        model(nested).values().pow(2).sum().backward()
        return [parameter.grad for parameter in model.parameters()]

    expected, watched = gradients(Attention()), Attention()
    with headlight.record(watched):
        found = gradients(watched)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_program_with_tensors_of_a_class_of_its_own_runs_as_ever(mode: Any) -> None:
    model = Attention()
    with mode():
        x = TwoTensor(SEQUENCES[0][None], SEQUENCES[0][None] * 2)
        expected = model(x)
        with headlight.record(model):
            found = model(x)
    assert torch.equal(found.a, expected.a)
    assert torch.equal(found.b, expected.b)


def layer() -> nn.Module:
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(16, 2, 16, batch_first=True).eval()


def loaded(module: nn.Module, x: Tensor) -> Any:
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.trace(module, x, check_trace=False), buffer)
    buffer.seek(0)
    return torch.jit.load(buffer)


FORMS: dict[str, Callable[[nn.Module, Tensor], Any]] = {
    "traced": lambda module, x: torch.jit.trace(module, x, check_trace=False),
    "traced, frozen": lambda module, x: torch.jit.freeze(torch.jit.trace(module, x, check_trace=False)),
    "traced, loaded": loaded,
    "scripted": lambda module, _x: torch.jit.script(module),
}


@pytest.mark.parametrize(
    ("make", "form"), [*((layer, form) for form in FORMS), *((Attention, form) for form in FORMS if form != "scripted")]
)
def test_the_first_calls_of_torchscript_run_and_are_recorded(make: Callable[[], nn.Module], form: str) -> None:
    """PyTorch shows constants of a trace as plain numbers, and its own operations then refused them."""
    module, x = make().eval(), SEQUENCES[1][None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the tracer
        scripted, alone = FORMS[form](module, x), FORMS[form](module, x)
    if isinstance(module, Attention):
        wanted = module.weights_of(SEQUENCES[1])
    else:
        part: Any = module
        wanted = part.self_attn(x, x, x, average_attn_weights=False)[1][0]
    with headlight.record(scripted) as recording:
        found = [scripted(x) for _call in range(3)]
    assert all(torch.equal(one, alone(x)) for one in found)
    assert len(recording.sites) == 3
    for site in recording.sites:
        np.testing.assert_allclose(site.written(), wanted.detach(), atol=1e-6)
