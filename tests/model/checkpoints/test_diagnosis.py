"""What the numbers of a file say, against numpy, against networks made to be so, and against what programs begin with."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from model.__main__ import main
from model.checkpoints import head_circuits, loader
from model.checkpoints.diagnosis import parts
from model.inspection.report import Freshness, Inspection, TensorInfo
from model.inspection.tensor_stats import BINS, PIECE, measured
from model.trace.types import Array
from model.transformer.build import build
from tests.networks import VARIANTS, network, save_checkpoint, translator
from tests.reference import GOLDEN, SETTINGS, opened

BUNDLED = sorted(path.parent for path in (Path(__file__).parents[3] / "checkpoints").glob("*/spec.json"))

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


def info(tensor: Tensor) -> TensorInfo:
    return TensorInfo("x", tuple(tensor.shape), "", "matched")


def by_numpy(values: Array) -> dict[str, Any]:
    """The same statistics, from the sorted numbers and by other formulas."""
    finite = np.sort(values[np.isfinite(values)].astype(np.float64))
    edges = np.linspace(finite[0], finite[-1], BINS + 1)
    below = np.searchsorted(finite, edges[1:-1], side="left")
    return {
        "mean": math.fsum(finite) / len(finite),
        "deviation": float(np.sqrt(np.mean(finite**2) - np.mean(finite) ** 2)),
        "norm": float(np.sqrt(finite @ finite)),
        "lowest": finite[0],
        "highest": finite[-1],
        "sparsity": float(np.mean(finite == 0)),
        "histogram": np.diff([0, *below, len(finite)]).tolist(),
        "nan": int(np.isnan(values).sum()),
        "infinite": int(np.isinf(values).sum()),
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8])
@pytest.mark.parametrize("count", [7, 5000, PIECE + 3])
def test_statistics_are_those_of_numpy(dtype: torch.dtype, count: int) -> None:
    drawn = torch.randn(count, generator=torch.Generator().manual_seed(count)) * 3 + 1
    drawn[::5] = 0
    tensor = drawn.to(dtype)
    found, wanted = measured(info(tensor), tensor), by_numpy(tensor.double().numpy())
    for name, value in wanted.items():
        if name == "histogram":
            assert sum(found.histogram) == count
            off = np.abs(np.cumsum(found.histogram) - np.cumsum(value)).max()  # a number on an edge may fall to either side
            assert off <= (0 if dtype in (torch.float32, torch.float64) else count * 0.2)
        else:
            assert getattr(found, name) == pytest.approx(value, rel=1e-9, abs=1e-12), name


def test_numbers_that_are_not_finite_are_counted_and_left_out() -> None:
    tensor = torch.tensor([1.0, math.nan, 3.0, math.inf, -math.inf, 0.0])
    found = measured(info(tensor), tensor)
    assert (found.nan, found.infinite, found.lowest, found.highest) == (1, 2, 0.0, 3.0)
    assert found.mean == pytest.approx(4 / 3)
    assert found.sparsity == pytest.approx(1 / 3)
    nothing = torch.full((3,), math.nan)
    assert (measured(info(nothing), nothing).nan, measured(info(nothing), nothing).mean) == (3, None)
    alike = torch.ones(5)
    assert measured(info(alike), alike).histogram == ()
    assert measured(info(alike), alike.bool()) == info(alike)


def diagnosis(folder: Path, state: Any, **settings: str) -> Inspection:
    torch.save(state, folder / "weights.pt")
    return loader.inspect(folder / "weights.pt", settings)


def fresh(found: Inspection) -> Freshness:
    assert found.freshness
    return found.freshness


def torch_transformer() -> nn.Module:
    torch.manual_seed(0)
    return nn.Transformer(32, 4, 2, 2, 64, batch_first=True)


TOLD = {"n_heads": "4", "norm_order": "post", "activation": "relu", "causal": "true"}


def test_a_transformer_of_torch_that_was_never_trained_looks_untrained_and_one_step_changes_that(tmp_path: Path) -> None:
    network = torch_transformer()
    found = diagnosis(tmp_path, network.state_dict(), **TOLD)
    assert fresh(found).untrained
    assert fresh(found).norms == fresh(found).untouched_norms == 12
    assert fresh(found).fresh_matrices == fresh(found).matrices == 20
    assert fresh(diagnosis(tmp_path, network.half().state_dict(), **TOLD)).untrained
    network = torch_transformer()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    network(torch.randn(1, 5, 32), torch.randn(1, 4, 32)).square().sum().backward()
    optimizer.step()
    found = diagnosis(tmp_path, network.state_dict(), **TOLD)
    assert not fresh(found).untrained
    assert fresh(found).untouched_norms == 0


@pytest.mark.parametrize("variant", ["paper", "modern, tied", "uneven"])
def test_a_network_of_our_own_as_it_is_built_looks_untrained(variant: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    save_checkpoint(tmp_path, VARIANTS[variant])
    assert not fresh(loader.inspect(tmp_path, {})).untrained, "norms were drawn at random"
    state = build(VARIANTS[variant]).state_dict()
    save_file({name: tensor.clone() for name, tensor in state.items()}, tmp_path / "model.safetensors")
    assert fresh(loader.inspect(tmp_path, {})).untrained


def test_the_bundled_model_looks_trained() -> None:
    found = loader.inspect(Path(__file__).parents[3] / "checkpoints" / "multi30k-de-en", {})
    assert not fresh(found).untrained
    assert fresh(found).untouched_norms == 0
    assert (found.heads, found.heads_seen) == ((), 72)


@pytest.mark.parametrize("variant", VARIANTS)
def test_parts_add_up_to_all_learned_numbers(variant: str) -> None:
    built = network(VARIANTS[variant])
    assert sum(part.parameters for part in parts(built)) == sum(parameter.numel() for parameter in built.parameters())


def test_a_part_is_what_its_names_say(tmp_path: Path) -> None:
    save_checkpoint(tmp_path)
    found = loader.inspect(tmp_path, {})
    state = load_file(tmp_path / "model.safetensors")
    by_hand = sum(t.numel() for n, t in state.items() if n.startswith("decoder.") and ".cross_attention." in n)
    assert {(p.stack, p.kind): p.parameters for p in found.parts}["decoder", "cross_attention"] == by_hand
    assert sum(p.parameters for p in found.parts) == found.parameters


@pytest.mark.parametrize("folder", BUNDLED, ids=lambda folder: folder.name)
def test_the_parts_of_a_bundled_network_add_up_to_its_parameters_and_a_tied_output_counts_once(folder: Path) -> None:
    found = loader.inspect(folder, {})
    weights, tied = load_file(folder / "model.safetensors"), found.spec["output"]["tied"]
    assert found.parameters == sum(part.parameters for part in found.parts)
    assert found.parameters == sum(tensor.numel() for name, tensor in weights.items() if not (tied and name == "output.weight"))
    shared = {(part.stack, part.kind): part.shared for part in found.parts if part.shared}
    assert shared == ({("decoder", "embedding"): (("decoder", "output"),)} if tied else {})


def test_matrices_with_the_same_numbers_are_named_and_constant_ones_are_not(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "tied", VARIANTS["modern, tied"])
    assert loader.inspect(tmp_path / "tied", {}).tied == (("decoder.embedding.token.weight", "output.weight"),)
    state = torch_transformer().state_dict()
    names = [f"encoder.layers.{i}.linear1.weight" for i in range(2)]
    state[names[1]] = state[names[0]]
    for i in range(2):
        state[f"decoder.layers.{i}.linear1.weight"] = torch.zeros(64, 32)
    found = diagnosis(tmp_path, state, **TOLD)
    assert (tuple(names)) in found.tied
    assert not [group for group in found.tied if "decoder.layers.0.linear1.weight" in group]


def products(state: dict[str, Tensor], prefix: str, count: int) -> dict[str, Array]:
    """Both products of each head, [head, model, model], one matrix after the other."""
    q, k, v, o = (state[f"{prefix}.{part}.weight"].double().numpy() for part in ("query", "key", "value", "output"))
    size = len(q) // count
    cuts = [slice(h * size, (h + 1) * size) for h in range(count)]
    return {
        "query-key": np.stack([q[cut].T @ k[cut] for cut in cuts]),
        "value-output": np.stack([o[:, cut] @ v[cut] for cut in cuts]),
    }


def test_singular_values_are_those_of_the_products() -> None:
    built = translator(VARIANTS["paper"])
    for site, attention in head_circuits.sites(built).items():
        kind = {"self": "attention" if site.stack == "encoder" else "self_attention", "cross": "cross_attention"}[site.kind]
        whole = products(built.state_dict(), f"{site.stack}.layers.{site.layer}.{kind}", attention.heads)
        for name, factors in head_circuits.head_maps(attention).products.items():
            found = head_circuits.singular_values(*factors).numpy()
            wanted = np.linalg.svd(whole[name], compute_uv=False)[:, : found.shape[1]]
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)
    assert torch.isnan(head_circuits.singular_values(torch.full((2, 4, 2), math.nan), torch.ones(2, 2, 4))).all()


def test_a_shared_matrix_is_the_same_map_for_every_head_of_its_own_columns() -> None:
    loaded = opened("003_tiny_a", tuple(SETTINGS["003_tiny_a"].items()))
    attention = next(iter(head_circuits.sites(loaded.network).values()))
    x = torch.randn(5, attention.output.out_features)
    maps = head_circuits.head_maps(attention)
    wanted = attention.query(x[None])[0].unflatten(-1, (attention.heads, -1)).transpose(0, 1)  # [head, position, head_dim]
    torch.testing.assert_close(x.double() @ maps.query.mT, wanted.double(), atol=1e-6, rtol=0)


def test_dead_heads_and_twins_are_found_and_no_other(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a", seed=3)
    state = load_file(tmp_path / "a" / "model.safetensors")
    assert loader.inspect(tmp_path / "a", {}).heads == ()
    rng = np.random.default_rng(0)
    value = state["encoder.layers.0.attention.value.weight"]
    value[: len(value) // 2] *= 1e-4
    key, query = (state[f"decoder.layers.1.cross_attention.{part}.weight"] for part in ("key", "query"))
    half = len(key) // 2
    turn = torch.from_numpy(rng.normal(size=(half, half))).to(key.dtype)
    query[half:] = turn @ query[:half]
    key[half:] = torch.linalg.inv(turn.float()).T.to(key.dtype) @ key[:half]
    save_file(state, tmp_path / "a" / "model.safetensors")
    found = loader.inspect(tmp_path / "a", {})
    notes = {(note.site, note.head, note.kind, note.product, note.other) for note in found.heads}
    assert notes == {
        ("encoder.0.0.self", 0, "dead", "value-output", None),
        ("decoder.0.1.cross", 0, "twin", "query-key", 1),
    }
    whole = products(state, "decoder.layers.1.cross_attention", 2)["query-key"]
    cosine = (whole[0] * whole[1]).sum() / np.linalg.norm(whole[0]) / np.linalg.norm(whole[1])
    assert next(note.value for note in found.heads if note.kind == "twin") == pytest.approx(cosine, abs=1e-9)
    norm = np.linalg.norm(products(state, "encoder.layers.0.attention", 2)["value-output"][0])
    assert next(note.value for note in found.heads if note.kind == "dead") == pytest.approx(norm, rel=1e-6)


def test_weights_that_are_not_finite_are_diagnosed_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = torch.load(GOLDEN / "000_tiny_a.pt", weights_only=True)
    name = "encoder.layers.0.self_attention.fc_q.weight"
    state[name][0, :2] = math.nan
    torch.save(state, tmp_path / "nan.pt")
    told = [part for item in SETTINGS["000_tiny_a"].items() for part in ("--set", "=".join(item))]
    assert main(["inspect", str(tmp_path / "nan.pt"), *told, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert next(tensor["nan"] for tensor in found["tensors"] if tensor["name"] == name) == 2
    assert found["heads_seen"] == 12
    assert not found["freshness"]["untrained"] or found["freshness"]["fresh_matrices"] < found["freshness"]["matrices"]
    assert main(["inspect", str(tmp_path / "nan.pt"), *told]) == 0
    said = capsys.readouterr().out
    assert f"{name}  2 NaN" in said
    assert "37 matrices are like an initial draw" in said
