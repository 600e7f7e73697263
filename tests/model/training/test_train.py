"""Training on a tiny corpus: what it writes, that it learns, and that a killed one goes on as if nothing had happened."""

import csv
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from model import checkpoints
from model.errors import DamagedFile, DataError
from model.training import train as training
from model.training.data import Pair
from model.training.recipes import Recipe
from model.training.train import COLUMNS, train, validation_loss
from tests.networks import VARIANTS, some_ids, tiny_recipe, translator, write_corpus

CPU = torch.device("cpu")
TIMES = ("tokens_per_second", "seconds")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def trained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two epochs without an interruption."""
    return train(tiny_recipe(), corpus, tmp_path_factory.mktemp("trained") / "out", CPU)


def curve(folder: Path) -> list[dict[str, str]]:
    with (folder / "curve.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_it_leaves_a_checkpoint_its_last_weights_its_curve_and_its_state(trained: Path) -> None:
    names = {"model.safetensors", "spec.json", "tokenizer.json", "last.safetensors", "phase-1.safetensors", "curve.csv", "state.pt"}
    assert {path.name for path in trained.iterdir()} == names
    for name in ("model.safetensors", "last.safetensors"):
        assert {value.dtype for value in load_file(trained / name).values()} == {torch.float16}
    loaded = checkpoints.load(trained, CPU)
    assert loaded.info.name == "tiny"
    assert json.loads((trained / "spec.json").read_text(encoding="utf-8"))["format"] == 1
    vocabulary = json.loads((trained / "tokenizer.json").read_text(encoding="utf-8"))["source"]["vocabulary"]
    words = {word for word in vocabulary if not word.startswith("<")}
    assert {"hund", "schnee", "."} <= words
    assert loaded.info.spec.stacks["encoder"].vocab == len(words) + 4


def test_the_curve_has_a_row_for_each_epoch_in_the_documented_columns(trained: Path) -> None:
    rows = curve(trained)
    assert tuple(rows[0]) == COLUMNS
    assert [row["epoch"] for row in rows] == ["1", "2"]
    assert [row["step"] for row in rows] == ["3", "6"]
    for row in rows:
        assert float(row["validation_ppl"]) == pytest.approx(math.exp(float(row["validation_loss"])))
    assert float(rows[-1]["learning_rate"]) == 0.0


def test_it_learns(corpus: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(epochs=12, dropout=0.0, rate=0.02)
    how = replace(recipe.optimisation, average=0.5)
    rows = curve(train(replace(recipe, optimisation=how), corpus, tmp_path, CPU))
    assert float(rows[-1]["validation_loss"]) < 0.6 * float(rows[0]["validation_loss"])


def test_the_best_weights_are_kept_and_training_stops_when_none_better_come(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([3.0, 2.0, 2.5, 2.5, 1.0])
    monkeypatch.setattr(training, "validation_loss", lambda *_: next(losses))
    recipe = tiny_recipe(epochs=5)
    recipe = replace(recipe, optimisation=replace(recipe.optimisation, patience=2))
    kept: list[bytes] = []
    monkeypatch.setattr(training, "_log", lambda *_: kept.append((tmp_path / "last.safetensors").read_bytes()))
    train(recipe, corpus, tmp_path, CPU)
    assert len(kept) == 4
    assert (tmp_path / "model.safetensors").read_bytes() == kept[1]
    assert (tmp_path / "last.safetensors").read_bytes() == kept[3] != kept[1]


def assert_same_training(found: Path, expected: Path) -> None:
    for name in ("model.safetensors", "last.safetensors", "spec.json", "tokenizer.json"):
        assert (found / name).read_bytes() == (expected / name).read_bytes(), name
    rows = [
        [{key: value for key, value in row.items() if key not in TIMES} for row in curve(folder)] for folder in (found, expected)
    ]
    assert rows[0] == rows[1]
    states = [torch.load(folder / "state.pt", weights_only=True) for folder in (found, expected)]
    for name, value in states[1]["network"].items():
        assert torch.equal(states[0]["network"][name], value), name
    assert states[0]["schedule"] == states[1]["schedule"]


class Killed(BaseException):
    """What stops a training in these tests: nothing catches it."""


@pytest.mark.parametrize(
    ("function", "call"), [("_step", 5), ("_step", 1), ("validation_loss", 2), ("_log", 2), ("_save_state", 2)]
)
def test_a_killed_training_goes_on_as_if_nothing_had_happened(
    corpus: Path, tmp_path: Path, trained: Path, monkeypatch: pytest.MonkeyPatch, function: str, call: int
) -> None:
    whole: Callable[..., Any] = getattr(training, function)
    calls = iter(range(1, 100))

    def killed(*arguments: Any) -> Any:
        if next(calls) == call:
            raise Killed
        return whole(*arguments)

    monkeypatch.setattr(training, function, killed)
    with pytest.raises(Killed):
        train(tiny_recipe(), corpus, tmp_path, CPU)
    monkeypatch.setattr(training, function, whole)
    train(tiny_recipe(), corpus, tmp_path, CPU)
    assert_same_training(tmp_path, trained)
    assert not list(tmp_path.glob("*.part"))


def test_a_finished_training_is_not_done_again(corpus: Path, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_epoch", None)
    before = {path.name: path.read_bytes() for path in trained.iterdir()}
    train(tiny_recipe(), corpus, trained, CPU)
    assert {path.name: path.read_bytes() for path in trained.iterdir()} == before


def test_a_new_training_takes_the_place_of_an_old_curve(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "curve.csv").write_text("epoch,step\n1,9\n\n2,9\n7,9\n", encoding="utf-8")
    train(tiny_recipe(), corpus, tmp_path, CPU)
    assert [row["step"] for row in curve(tmp_path)] == ["3", "6"]


def other_network(recipe: Recipe) -> Recipe:
    return replace(recipe, encoder={**recipe.encoder, "d_model": 6})


FOREIGN: dict[str, Callable[[Path], object]] = {
    "no bytes": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"\x80\x02garbage" * 50),
    "a text": lambda path: path.write_text("state", encoding="utf-8"),
    "a list": lambda path: torch.save([1, 2], path),
    "other names": lambda path: torch.save({"model": torch.zeros(2)}, path),
    "other kinds": lambda path: torch.save(dict.fromkeys(("network", "average", "optimizer", "schedule"), 3), path),
    "half a file": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "a call": lambda path: path.write_bytes(b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00echo\x85R."),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_state_of_something_else_is_refused_and_left_alone(corpus: Path, tmp_path: Path, trained: Path, name: str) -> None:
    path = tmp_path / "state.pt"
    path.write_bytes((trained / "state.pt").read_bytes())
    FOREIGN[name](path)
    before = path.read_bytes()
    with pytest.raises(DamagedFile) as caught:
        train(tiny_recipe(), corpus, tmp_path, CPU)
    assert str(caught.value).startswith(f"{path} cannot be read (it is no state of this training: ")
    assert path.read_bytes() == before


def test_a_state_of_another_network_is_refused(corpus: Path, tmp_path: Path, trained: Path) -> None:
    (tmp_path / "state.pt").write_bytes((trained / "state.pt").read_bytes())
    with pytest.raises(DamagedFile, match="it is no state of this training"):
        train(other_network(tiny_recipe()), corpus, tmp_path, CPU)


def test_a_missing_corpus_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        train(tiny_recipe(), tmp_path / "nowhere", tmp_path / "out", CPU)
    assert not (tmp_path / "out").exists()


def test_what_is_kept_is_the_running_mean_of_the_weights(corpus: Path, tmp_path: Path) -> None:
    for share in (0.0, 0.9):
        recipe = tiny_recipe(epochs=1)
        out = train(replace(recipe, optimisation=replace(recipe.optimisation, average=share)), corpus, tmp_path / str(share), CPU)
        last, state = load_file(out / "last.safetensors"), torch.load(out / "state.pt", weights_only=True)
        same = {name for name in last if torch.equal(last[name], state["network"][name].half())}
        assert (same == last.keys()) == (share == 0.0)


def test_bfloat16_products_train_too(corpus: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(epochs=1)
    train(replace(recipe, optimisation=replace(recipe.optimisation, precision="bfloat16")), corpus, tmp_path, CPU)
    assert math.isfinite(float(curve(tmp_path)[0]["validation_loss"]))


@pytest.mark.parametrize("warmup", [1, 6, 1000])
def test_a_warm_up_as_long_as_the_training_still_trains(corpus: Path, tmp_path: Path, warmup: int) -> None:
    recipe = tiny_recipe()
    how = replace(recipe.optimisation, warmup_steps=warmup)
    rows = curve(train(replace(recipe, optimisation=how), corpus, tmp_path, CPU))
    assert 0 < float(rows[0]["learning_rate"]) <= how.phases[0].learning_rates[0]
    assert rows[0]["validation_loss"] != rows[1]["validation_loss"]


@pytest.mark.parametrize("size", [1, 3, 128])
def test_validation_loss_is_the_mean_over_all_tokens_whatever_the_batches(size: int) -> None:
    built = translator(VARIANTS["paper"])
    pairs = [Pair(tuple(some_ids(n % 4 + 2, 11, n)), tuple(some_ids(n % 5 + 2, 10, n))) for n in range(11)]
    losses = []
    with torch.inference_mode():
        for pair in pairs:
            logits = built(torch.tensor([pair.source]), torch.tensor([pair.target[:-1]]))[0].double().numpy()
            for row, id_ in zip(logits, pair.target[1:], strict=True):
                losses.append(np.log(np.exp(row).sum()) - row[id_])
    assert validation_loss(built, pairs, CPU, size) == pytest.approx(float(np.mean(losses)), abs=1e-6)
