"""Tensors by name, against numpy on the state dict."""

import numpy as np
import pytest
import torch

from model.checkpoints import tensors
from model.errors import UnknownTensor
from model.trace.types import Array
from tests.networks import VARIANTS, network, translator
from tests.reference import SETTINGS, opened

PREFIXES = {"encoder.0.1.self": "encoder.layers.1.attention", "decoder.0.1.cross": "decoder.layers.1.cross_attention"}


def of(built: torch.nn.Module, name: str) -> Array:
    array: Array = tensors.tensor(built, name).detach().numpy()  # type: ignore[arg-type]  # a Network
    return array


@pytest.mark.parametrize("site", PREFIXES)
def test_maps_and_singular_values_are_those_of_the_state_dict(site: str) -> None:
    built = translator(VARIANTS["paper"])
    state = {name: tensor.double().numpy() for name, tensor in built.state_dict().items()}
    cuts = [slice(0, 4), slice(4, 8)]
    q, k, v = (state[f"{PREFIXES[site]}.{part}.weight"] for part in ("query", "key", "value"))
    o = state[f"{PREFIXES[site]}.output.weight"]
    for head, cut in enumerate(cuts):
        for part, matrix in (("query", q[cut]), ("key", k[cut]), ("value", v[cut]), ("output", o[:, cut])):
            np.testing.assert_array_equal(of(built, f"heads/{site}/{part}")[head], matrix)
        for product, whole in (("query-key", q[cut].T @ k[cut]), ("value-output", o[:, cut] @ v[cut])):
            wanted = np.linalg.svd(whole, compute_uv=False)[:4]
            np.testing.assert_allclose(of(built, f"singular/{site}/{product}")[head], wanted, rtol=0, atol=1e-10)


def test_all_passes_have_the_same_maps() -> None:
    built = translator(VARIANTS["two passes"])
    np.testing.assert_array_equal(of(built, "heads/decoder.1.0.self/key"), of(built, "heads/decoder.0.0.self/key"))


def test_neighbours_are_those_of_numpy() -> None:
    built = translator(VARIANTS["paper"])
    for strip, name in (("source", "encoder.embedding.token.weight"), ("target", "decoder.embedding.token.weight")):
        table = built.state_dict()[name].double().numpy()
        unit = table / np.linalg.norm(table, axis=1, keepdims=True)
        found = of(built, f"near/{strip}/4")
        cosines = unit @ unit[4]
        others = [id_ for id_ in np.argsort(-cosines) if id_ != 4][: len(found)]
        assert found[:, 0].astype(int).tolist() == others
        np.testing.assert_allclose(found[:, 1], cosines[others], rtol=0, atol=1e-12)


def test_rows_of_zeros_and_nan_are_near_nothing() -> None:
    table = torch.tensor([[1.0, 0.0], [0.0, 0.0], [2.0, 0.0], [torch.nan, 1.0], [0.0, 3.0]])
    assert tensors.nearest(table, 0).tolist() == [[2, 1.0], [1, 0.0], [4, 0.0], [3, -1.0]]
    assert tensors.nearest(table[:1], 0).shape == (0, 2)


@pytest.mark.parametrize(
    "name", ["near/source/99", "near/target/x", "heads/encoder.0.9.self/key", "heads/x/key", "singular/encoder.0.0.self/key", "x"]
)
def test_what_is_not_there_is_refused_in_words(name: str) -> None:
    with pytest.raises(UnknownTensor, match="Available: positions/STACK, heads/SITE/PART"):
        of(translator(VARIANTS["paper"]), name)


@pytest.mark.parametrize("name", ["language model", "modern language model"])
def test_a_language_model_has_them_too(name: str) -> None:
    built = network(VARIANTS[name])
    assert of(built, "heads/decoder.0.0.self/query").ndim == 3
    assert len(of(built, "near/source/5")) == 12
    np.testing.assert_array_equal(of(built, "positions/decoder"), of(built, "positions/decoder"))


def test_a_network_without_an_embedding_has_no_neighbours() -> None:
    built = opened("002_tiny_mha", tuple(SETTINGS["002_tiny_mha"].items())).network
    assert of(built, "heads/encoder.0.0.self/value").shape[0] == 3
    with pytest.raises(UnknownTensor):
        of(built, "near/source/0")
