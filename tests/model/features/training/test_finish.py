"""The last act of a training: the mean of weights, and calibration against an independent computation."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from model.checkpoints import native
from model.errors import BadSetting
from model.features.training import recipes
from model.features.training import train as training
from model.features.training.calibration import calibrate, mix
from model.features.training.data import Pair, validation_loss
from model.features.training.train import train
from tests.networks import VARIANTS, tiny_recipe, translator, write_corpus

CPU = torch.device("cpu")
PAIRS = [Pair((2, 5 + i % 3, 4, 3), (2, 4 + i % 5, 0 if i % 2 else 6, 3)) for i in range(24)]


def test_the_mean_of_weights_is_their_weighted_sum(tmp_path: Path) -> None:
    one, two = {"w": torch.full((3,), 2.0)}, {"w": torch.tensor([0.0, 4.0, 8.0])}
    for name, weights in (("one", one), ("two", two)):
        native.save_weights(tmp_path / f"{name}.safetensors", weights)
    files = [tmp_path / "one.safetensors", tmp_path / "two.safetensors"]
    assert mix(files, (0.25, 0.75))["w"].tolist() == [0.5, 3.5, 6.5]
    assert mix(files, (1.0, 0.0))["w"].tolist() == [2.0, 2.0, 2.0]


def test_calibration_finds_the_best_three_numbers() -> None:
    network = translator(VARIANTS["paper"])
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    weights["output.weight"] *= 3  # far too sure
    network.load_state_dict(weights)
    before = validation_loss(network, PAIRS, CPU)
    calibrated = calibrate(network, weights, PAIRS, PAIRS, 0, CPU)
    network.load_state_dict(calibrated)
    after = validation_loss(network, PAIRS, CPU)
    assert after < before
    changed = {name for name in weights if not torch.equal(weights[name], calibrated[name])}
    assert changed == {"output.weight", "output.bias"}

    counts = Counter(id_ for pair in PAIRS for id_ in pair.target[1:])
    vocab = len(weights["output.bias"])
    frequencies = torch.tensor([math.log((1 + counts[i]) / (vocab + counts.total())) for i in range(vocab)])
    for bias, factor in ((0.5 * frequencies, 1), (-0.5 * frequencies, 1), (0, 1.4), (0, 0.6)):
        moved = {**calibrated, "output.bias": (calibrated["output.bias"] + bias) * factor}
        network.load_state_dict({**moved, "output.weight": calibrated["output.weight"] * factor})
        assert validation_loss(network, PAIRS, CPU) > after
    for shift in (0.9, -0.9):
        bias = calibrated["output.bias"].clone()
        bias[0] += shift
        network.load_state_dict({**calibrated, "output.bias": bias})
        assert validation_loss(network, PAIRS, CPU) > after


def test_an_output_layer_without_bias_is_refused() -> None:
    network = translator(VARIANTS["paper"])
    weights = {name: value for name, value in network.state_dict().items() if name != "output.bias"}
    with pytest.raises(BadSetting, match=r"calibrate: “True” is not accepted. Allowed: false where the output layer has no bias"):
        calibrate(network, weights, PAIRS, PAIRS, 0, CPU)


def test_a_recipe_with_shares_keeps_the_mean_of_its_phases(tmp_path: Path) -> None:
    recipe = tiny_recipe(epochs=1)
    phase = recipe.optimisation.phases[0]
    how = replace(recipe.optimisation, phases=(phase, replace(phase, label_smoothing=0.0)), shares=(0.5, 0.5))
    out = train(replace(recipe, optimisation=how), write_corpus(tmp_path / "corpus"), tmp_path / "out", CPU)
    one, two, kept = (load_file(out / f"{name}.safetensors") for name in ("phase-1", "phase-2", "model"))
    assert any(not torch.equal(one[name], two[name]) for name in one)
    for name in one:
        torch.testing.assert_close(kept[name].float(), (one[name].float() + two[name].float()) / 2, atol=1e-3, rtol=1e-3)


def test_a_phase_that_keeps_its_last_epoch_keeps_it_however_it_validated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "validation_loss", lambda *_, losses=iter([1.0, 2.0, 1.5, 3.0]): next(losses))
    recipe = tiny_recipe(epochs=2)
    phase = recipe.optimisation.phases[0]
    how = replace(recipe.optimisation, phases=(phase, replace(phase, keeps="last")))
    seen: list[bytes] = []
    monkeypatch.setattr(training, "log", lambda *_: seen.append((tmp_path / "out" / "last.safetensors").read_bytes()))
    out = train(replace(recipe, optimisation=how), write_corpus(tmp_path / "corpus"), tmp_path / "out", CPU)
    kept = [(out / f"{name}.safetensors").read_bytes() for name in ("phase-1", "phase-2", "model")]
    assert kept == [seen[0], seen[3], seen[0]]
    assert len(set(seen)) == 4


@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.6, 0.0), (0.5, 0.25, 0.0)])
def test_shares_that_do_not_fit_the_phases_are_refused(shares: tuple[float, ...]) -> None:
    how = recipes.load("multi30k-de-en").optimisation
    with pytest.raises(BadSetting, match="one for each phase, summing to 1, or left out"):
        replace(how, shares=shares)
