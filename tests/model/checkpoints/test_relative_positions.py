"""Positions inside attention, against the networks' own rotation and the formula of the relative buckets."""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.checkpoints import head_circuits, loader, tensors
from model.checkpoints.tensors import FARTHEST
from model.errors import UnknownTensor
from model.trace.types import Site
from tests import folders, recorded_folders
from tests.networks import VARIANTS, network
from viz.metrics.rotary import turned

CPU = torch.device("cpu")
VECTORS = torch.randn(1, 2, 9, 8, generator=torch.Generator().manual_seed(3))
"""[batch, head, position, head_dim]"""

SCALED = {
    "linear": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
        "rope_theta": 500000.0,
    },
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 10000.0},
}


@pytest.mark.parametrize(("name", "stack"), [("rotary", "encoder"), ("rotary", "decoder"), ("rotary language model", "decoder")])
def test_pairs_turn_as_the_network_turns_them(name: str, stack: str) -> None:
    built, site = network(VARIANTS[name]), Site.parse(f"{stack}.0.0.self")
    attention = head_circuits.sites(built)[site]
    vectors = VECTORS[..., : attention.query.out_features // attention.heads]
    rotation = tensors.tensor(built, f"rotation/{site}").numpy()
    wanted = attention.rotation(vectors, 5).numpy()
    np.testing.assert_allclose(turned(vectors.numpy(), rotation, np.arange(5, 14)), wanted, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("llama", {}),
        ("gpt_neox", {}),
        ("gemma", {}),
        ("qwen3", {}),
        *(("llama", {"rope_parameters": one, "max_position_embeddings": 64}) for one in SCALED.values()),
    ],
)
def test_pairs_of_the_librarys_networks_turn_as_the_library_turns_them(
    tmp_path: Path, family: str, changes: dict[str, Any]
) -> None:
    made: Any = folders.save(tmp_path, family, **changes)
    found = loader.load(tmp_path, {}, CPU)
    rotation = tensors.tensor(found.network, "rotation/decoder.0.1.self").numpy()
    inner = made.base_model
    code = sys.modules[type(inner).__module__]
    cosines, sines = inner.rotary_emb(VECTORS, torch.arange(9)[None])
    wanted = code.apply_rotary_pos_emb(VECTORS, VECTORS, cosines, sines)[0].numpy()
    by_hand = turned(VECTORS.numpy(), rotation, np.arange(9))
    columns = rotation[:, :2].astype(int).ravel()
    by_hand[..., columns] *= inner.rotary_emb.attention_scaling  # YaRN makes queries and keys longer, too
    np.testing.assert_allclose(by_hand, wanted, atol=1e-5)
    assert (len(rotation) < 4) == (family == "gpt_neox")  # partial: half of the columns


def bucket(distance: int, buckets: int, farthest: int, both_ways: bool) -> int:
    """The row of T5's table for a key at `distance` from the query: section 2.1, exact when near, logarithmic when far."""
    first = 0
    if both_ways:
        buckets //= 2
        first, distance = (buckets if distance > 0 else 0), abs(distance)
    else:
        distance = max(-distance, 0)
    near = buckets // 2
    if distance < near:
        return first + distance
    far = near + int(math.log(distance / near) / math.log(farthest / near) * (buckets - near))
    return first + min(far, buckets - 1)


@pytest.mark.slow
@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_numbers_for_each_distance_are_those_of_the_buckets(tmp_path: Path, stack: str) -> None:
    made = folders.save(tmp_path, "t5")
    found = loader.load(tmp_path, {}, CPU)
    table = made.state_dict()[f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"].numpy()  # [bucket, head]
    rows = [bucket(distance, 8, 12, stack == "encoder") for distance in range(-FARTHEST, FARTHEST + 1)]
    for layer in (0, 1):
        np.testing.assert_allclose(
            tensors.tensor(found.network, f"biases/{stack}.0.{layer}.self").numpy(), table[rows].T, atol=1e-7
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bloom", "mpt"])
def test_slopes_of_alibi_are_powers_of_two(tmp_path: Path, name: str) -> None:
    """Press et al. 2022, section 3: with n heads the slopes begin at 2^(-8/n), which is the factor between them, too."""
    own: Any = recorded_folders.saved(tmp_path, name)[0]
    heads = int(own.config.num_attention_heads)
    found = loader.load(tmp_path, {}, CPU)
    slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    expected = slopes[:, None] * np.arange(-FARTHEST, FARTHEST + 1)
    np.testing.assert_allclose(tensors.tensor(found.network, "biases/decoder.0.0.self").numpy(), expected, atol=1e-6)


@pytest.mark.slow
def test_a_falcon_that_rotates_has_no_slopes(tmp_path: Path) -> None:
    recorded_folders.saved(tmp_path, "falcon")
    with pytest.raises(UnknownTensor):
        tensors.tensor(loader.load(tmp_path, {}, CPU).network, "biases/decoder.0.0.self")


@pytest.mark.slow
def test_what_deberta_adds_without_words_is_what_its_attention_does_when_it_reads_none(tmp_path: Path) -> None:
    """Of states that are 0, the logarithms of two weights of a row differ by what was added, since all contents are the same."""
    own: Any = recorded_folders.saved_deberta(tmp_path)
    found = loader.load(tmp_path, {}, CPU)
    encoder, rows = own.base_model.encoder, 9
    nothing = torch.zeros(1, rows, own.config.hidden_size)
    apart = np.arange(rows)[None] - np.arange(rows)[:, None]
    for layer in (0, 1):
        module, all_see = encoder.layer[layer].attention.self, torch.ones(1, 1, rows, rows)
        _context, weights = module(nothing, all_see, True, None, encoder.get_rel_pos(nothing), encoder.get_rel_embedding())
        logs = weights[0].detach().double().log().numpy()
        curve = tensors.tensor(found.network, f"wordless/encoder.0.{layer}.self").numpy()
        added = curve[:, FARTHEST + apart]
        assert np.ptp(added) > 0.1
        np.testing.assert_allclose(logs - logs[..., :1], added - added[..., :1], atol=1e-5)


@pytest.mark.parametrize(
    "name", ["rotation/decoder.0.0.self", "biases/decoder.0.0.self", "rotation/decoder.0.9.self", "rotation/x"]
)
def test_a_network_with_a_table_has_neither(name: str) -> None:
    with pytest.raises(UnknownTensor):
        tensors.tensor(network(VARIANTS["paper"]), name)
