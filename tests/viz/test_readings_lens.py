"""The logit lens against the network's own output layer."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from model.requests import network
from model.requests.network import ModelSpec
from model.trace.types import Array, Trace
from model.transformer.norms import UnbiasedNorm
from tests import networks, traces
from viz.metrics.logit_lens import Lens, _best, _normed, lens, logits_of, output_names

MODERN = networks.VARIANTS["modern, tied"].writer
VARIANTS: dict[str, ModelSpec] = {
    **networks.VARIANTS,
    "norm of a sample": replace(networks.VARIANTS["modern, tied"], decoder=replace(MODERN, norm="unbiased")),
    "norm without bias": replace(networks.VARIANTS["modern, tied"], decoder=replace(MODERN, norm="bias-free")),
}


def run(model: ModelSpec) -> tuple[Trace, dict[str, Array], dict[str, Array]]:
    """A run with hidden states, the parameters that the lens asks for, and what the network's own output layer says of each."""
    built = networks.network(model)
    target = torch.tensor([networks.some_ids(6, model.writer.vocab, seed=1)])
    if model.encoder is None:
        notes = networks.continue_(built, target)  # type: ignore[arg-type]
        norm = built.final_norm
    else:
        notes = networks.translate(built, torch.tensor([networks.some_ids(5, model.encoder.vocab)]), target)  # type: ignore[arg-type]
        norm = built.decoder.final_norm  # type: ignore[union-attr]
    hidden = {name.removeprefix("hidden/"): value[0] for name, value in notes.items() if name.startswith("hidden/")}
    with torch.inference_mode():
        said = {name: built.output(norm(state)).double().numpy() for name, state in hidden.items() if "decoder" in name}  # type: ignore[operator]
    parameters = built.state_dict()
    tensors = {name: parameters[name].numpy() for name in output_names(network.to_json(model))}
    whole = replace(traces.translation(), hidden={name: state.numpy() for name, state in hidden.items()})
    return replace(whole, logits=notes["logits"][0].numpy()), tensors, said


@pytest.mark.parametrize("name", VARIANTS)
def test_every_layer_is_read_as_the_network_would_read_it(name: str) -> None:
    trace, tensors, said = run(VARIANTS[name])
    found = lens(trace, asdict(VARIANTS[name]), tensors, count=4)
    assert tuple(f"decoder.{layer}" for layer in found.layers) == tuple(said)
    for layer, logits in enumerate(said.values()):
        for position, row in enumerate(logits.tolist()):
            order = sorted(range(len(row)), key=lambda id_: -row[id_])[:4]
            total = sum(np.exp(x) for x in row)
            assert found.ids[layer, position].tolist() == order
            expected = [np.exp(row[id_]) / total for id_ in order]
            assert found.probabilities[layer, position].tolist() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_last_layer_says_what_the_model_said(name: str) -> None:
    trace, tensors, _said = run(VARIANTS[name])
    last = list(trace.hidden.values())[-1]
    assert trace.logits is not None
    assert logits_of(last, network.to_json(VARIANTS[name]), tensors) == pytest.approx(trace.logits.astype(float), abs=1e-4)


def test_a_small_vocabulary_has_no_more_candidates_than_words() -> None:
    trace, tensors, _said = run(VARIANTS["paper"])
    found = lens(trace, asdict(VARIANTS["paper"]), tensors, count=99)
    assert isinstance(found, Lens)
    assert found.ids.shape == (2, 6, 10)
    assert found.probabilities.sum(axis=-1) == pytest.approx(np.ones((2, 6)), abs=1e-12)


def test_the_lens_shows_five_candidates_unless_told_otherwise() -> None:
    trace, tensors, _said = run(VARIANTS["paper"])
    assert lens(trace, asdict(VARIANTS["paper"]), tensors).ids.shape == (2, 6, 5)


def test_the_likeliest_of_many_words_are_found() -> None:
    logits = np.random.default_rng(3).normal(size=(4, 5000))
    ids, probabilities = _best(logits, 5)
    np.testing.assert_array_equal(ids, np.argsort(-logits, axis=-1)[:, :5])
    everything = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(probabilities, np.take_along_axis(everything, ids, axis=-1), rtol=1e-12)


def test_a_state_that_hardly_differs_between_its_numbers_is_normed_as_the_network_norms_it() -> None:
    state = np.linspace(-1e-6, 1e-6, 8)[None]
    norm = UnbiasedNorm(8).double()
    with torch.inference_mode():
        expected = norm(torch.from_numpy(state)).numpy()
    np.testing.assert_allclose(_normed(state, "unbiased"), expected, rtol=1e-6)
    layer = torch.nn.LayerNorm(8).double()
    with torch.inference_mode():
        expected = layer(torch.from_numpy(state)).numpy()
    np.testing.assert_allclose(_normed(state, "standard"), expected, rtol=1e-6)
