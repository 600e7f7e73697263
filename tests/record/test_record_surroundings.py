"""What surrounds a program while it is recorded: autocast, other threads, a second model."""

import copy
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import headlight

X = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))


def layer(**options: Any) -> nn.TransformerEncoderLayer:
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(16, 2, 16, batch_first=True, **options).eval()


class Einsum(nn.Module):
    """Attention as many write it by hand."""

    def forward(self, x: Tensor) -> Tensor:
        scores = torch.einsum("bqd,bkd->bqk", x, x)
        return torch.einsum("bqk,bkd->bqd", scores.softmax(-1), x)


PARTS: dict[str, tuple[Callable[[], nn.Module], Callable[[Any], Tensor]]] = {
    "layer": (layer, lambda part: part(X)),
    "layer, norm first, gelu": (lambda: layer(norm_first=True, activation="gelu"), lambda part: part(X)),
    "layer, masked": (layer, lambda part: part(X, src_mask=nn.Transformer.generate_square_subsequent_mask(5))),
    "stack": (lambda: nn.TransformerEncoder(layer(), 2, enable_nested_tensor=False).eval(), lambda part: part(X)),
    "heads": (lambda: nn.MultiheadAttention(16, 2, batch_first=True).eval(), lambda part: part(X, X, X)[0]),
    "einsum": (Einsum, lambda part: part(X)),
    "bilinear": (lambda: nn.Bilinear(16, 16, 4), lambda part: part(X, X)),
}


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
@pytest.mark.parametrize("name", PARTS)
def test_under_autocast_a_program_computes_the_same_bits(name: str, mode: Any) -> None:
    """Kernels that are made of other operations ran in float32 while they were recorded."""
    make, call = PARTS[name]
    part = make()
    with mode(), torch.autocast("cpu", torch.bfloat16):
        expected = call(part)
        with headlight.record(part) as recording:
            found = call(part)
        with headlight.record(part, calls="0"):
            call(part)
            later = call(part)  # after the last call that was asked for
    plain = call(part)
    assert all(one.dtype == expected.dtype and torch.equal(one, expected) for one in (found, later))
    assert not torch.equal(plain, expected)
    assert not recording.missing
    for site in recording.sites:
        assert site.difference is None or site.difference < 0.05  # bfloat16


def test_autocast_that_is_off_again_inside_stays_off() -> None:
    part = layer()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16), headlight.record(part), torch.autocast("cpu", enabled=False):
        found = part(X)
    with torch.no_grad():
        assert torch.equal(found, part(X))


def run_apart(call: Callable[[], object]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def test_a_model_that_runs_in_another_thread_is_named() -> None:
    """There were no sites, and nothing said why."""
    model = nn.TransformerEncoder(layer(), 2, enable_nested_tensor=False).eval()
    with torch.no_grad(), headlight.record(model) as recording:
        run_apart(lambda: model(X))
    assert not recording.sites
    assert recording.missing == {"attention/TransformerEncoder": headlight.THREADS}
    with torch.no_grad(), headlight.record() as nameless:
        run_apart(lambda: model(X))
        model(X)
    assert len(nameless.sites) == 2
    assert headlight.THREADS in nameless.missing.values()


def test_a_recording_that_begins_in_a_thread_records_that_thread() -> None:
    model, recordings = layer(), list[headlight.Recording]()

    def call() -> None:
        with torch.no_grad(), headlight.record(model) as recording:
            model(X)
        recordings.append(recording)

    run_apart(call)
    assert [site.module for site in recordings[0].sites] == ["TransformerEncoderLayer"]
    assert not recordings[0].missing


def test_a_backward_pass_in_threads_of_its_own_is_not_meant() -> None:
    model = layer().train()
    with headlight.record(model) as recording:
        torch.utils.checkpoint.checkpoint(model, X.clone().requires_grad_(), use_reentrant=False).sum().backward()
    assert not recording.missing


@pytest.mark.parametrize("given", [True, False])
def test_two_models_of_one_class_have_two_names(given: bool) -> None:
    """As in assisted decoding: the sites of both stood under one name."""
    first = nn.TransformerEncoder(layer(), 2, enable_nested_tensor=False).eval()
    second, third = copy.deepcopy(first), copy.deepcopy(first)
    with torch.no_grad(), headlight.record(first if given else None) as recording:
        for model in (first, second, first, third):
            model(X)
    names = [site.module for site in recording.sites]
    prefixes = ("", "TransformerEncoder-2.", "", "TransformerEncoder-3.")
    assert names == [f"{prefix}layers.{number}" for prefix in prefixes for number in (0, 1)]
    np.testing.assert_array_equal(recording["layers.0"].written(), recording["TransformerEncoder-2.layers.0"].written())


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_views_of_parameters_are_made_once(mode: Any) -> None:
    """In inference mode, attention with three different inputs ended in an error of PyTorch: w.chunk(3) was a view twice."""
    part, q, k, v = nn.MultiheadAttention(16, 2, batch_first=True).eval(), X, X + 1, X * 2
    with mode():
        expected, weights = part(q, k, v, average_attn_weights=False)
        with headlight.record(part) as recording:
            found = part(q, k, v, average_attn_weights=False)[0]
            for name in ("chunk", "split", "tensor_split", "unsafe_chunk", "vsplit"):
                getattr(torch, name)(part.in_proj_weight, 3)
            for name, places in (("movedim", (0, 1)), ("swapaxes", (0, 1)), ("unflatten", (0, (3, 16)))):
                getattr(part.in_proj_weight, name)(*places)
    assert torch.equal(found, expected)
    assert not recording.missing
    np.testing.assert_allclose(recording.sites[0].written(), weights[0].detach(), atol=1e-6)
