"""Snapshots of a training: each is a model of its own name, loaded as safely as any checkpoint, and not all stay in memory."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.__main__ import main
from model.checkpoints import loader, native
from model.checkpoints.layouts.given_answers import TextsOf
from model.engine.api import Describe, Inspect, ModelInfo, Models, Run
from model.engine.local import LocalEngine
from model.errors import DamagedFile, HeadlightError, MissingFile, ShapeMismatch, UnknownModel
from model.requests.request import RunRequest
from model.requests.snapshots import Losses, at_step, without_step
from model.sharing.caches import Budget
from model.trace.serialization import from_bytes
from tests.networks import VARIANTS, network, save_checkpoint, save_film, translate

CPU = torch.device("cpu")
STEPS = (0, 1, 2, 4, 8)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("made")
    save_film(found / "film", STEPS)
    save_checkpoint(found / "plain")
    return found


@pytest.fixture
def shelf(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


def info(engine: LocalEngine, name: str) -> ModelInfo:
    return next(one for one in engine.ask(Models()).models if one.name == name)


def test_the_list_says_which_snapshots_and_losses_there_are(shelf: Path) -> None:
    engine = LocalEngine(shelf, CPU)
    assert [one.name for one in engine.ask(Models()).models] == ["film", "plain"], "snapshots are no lines of their own"
    assert info(engine, "film").snapshots == STEPS
    assert info(engine, "film").losses == (Losses(2, 4.0, 3.5), Losses(4, 3.0, 2.5), Losses(6, 2.0, 1.5))
    assert (info(engine, "plain").snapshots, info(engine, "plain").losses) == ((), ())


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a@000128", ("a", 128)),
        ("a", ("a", None)),
        ("a@b@7", ("a@b", 7)),
        ("@7", ("@7", None)),
        ("a@", ("a@", None)),
        ("a@٣", ("a@٣", None)),
    ],
)
def test_a_name_with_a_step_is_read(name: str, parts: tuple[str, int | None]) -> None:
    assert without_step(name) == parts
    assert at_step("a", 128) == "a@000128"


@pytest.mark.parametrize("step", STEPS)
def test_a_snapshot_runs_with_its_own_weights(shelf: Path, step: int) -> None:
    kept = network(VARIANTS["paper"], seed=step)
    for parameter in kept.parameters():
        parameter.data = parameter.data.half().float()  # as they are stored
    trace = LocalEngine(shelf, CPU).ask(Run(RunRequest(at_step("film", step), "w4 w5 w6", target=(2, 5, 6))))
    assert trace.logits is not None
    notes = translate(kept, torch.tensor([trace.tokens["source"].ids]), torch.tensor([[2, 5, 6]]))  # type: ignore[arg-type]
    np.testing.assert_allclose(trace.logits, notes["logits"][0].numpy(), atol=1e-5)
    assert trace.model["name"] == at_step("film", step)


def test_each_snapshot_has_a_fingerprint_of_its_own(shelf: Path) -> None:
    engine = LocalEngine(shelf, CPU)
    found = {engine.ask(Run(RunRequest(at_step("film", step), "w4"))).model["fingerprint"] for step in STEPS}
    assert len(found) == len(STEPS)


def test_a_snapshot_is_described_and_inspected(shelf: Path) -> None:
    engine = LocalEngine(shelf, CPU)
    assert engine.ask(Describe("film@000004")).title == "Tiny @ 4"
    assert engine.ask(Inspect("film@000004")).missing == ()


@pytest.mark.parametrize("name", ["film@000003", "film@4", "plain@000000", "nobody@000000", "../film@000000", "film@000004/.."])
def test_a_snapshot_that_is_not_there_is_one_sentence(shelf: Path, name: str) -> None:
    engine = LocalEngine(shelf, CPU)
    with pytest.raises(UnknownModel, match="No model is called") as found:
        engine.ask(Run(RunRequest(name, "w4")))
    if name == "film@000003":
        assert "film@000000, film@000001, film@000002, film@000004" in str(found.value)


@pytest.mark.parametrize("damage", ["cut", "foreign", "gone"])
def test_a_damaged_snapshot_leaves_the_others_alone(shelf: Path, damage: str) -> None:
    path = shelf / "film" / "snapshots" / "000002.safetensors"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:100])
    elif damage == "foreign":
        torch.save({"a": torch.ones(1)}, path)
    else:
        path.unlink()
    engine = LocalEngine(shelf, CPU)
    with pytest.raises((DamagedFile, ShapeMismatch, UnknownModel)):
        engine.ask(Run(RunRequest("film@000002", "w4")))
    assert engine.ask(Run(RunRequest("film@000004", "w4"))).steps
    assert not info(engine, "film").problem


def test_settings_are_refused_as_for_the_whole_folder(shelf: Path) -> None:
    with pytest.raises(HeadlightError, match="contain all settings"):
        LocalEngine(shelf, CPU).ask(Run(RunRequest("film@000004", "w4", settings=(("n_heads", "8"),))))


def test_only_so_many_snapshots_stay_loaded(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load(path: Path, settings: object, device: torch.device, texts_of: TextsOf, *more: Any) -> object:
        loaded.append(path.stem)
        return true_load(path, {}, device, texts_of, *more)

    true_load = loader.load
    monkeypatch.setattr(loader, "load", load)
    size = sum(p.nbytes for p in LocalEngine(shelf, CPU).checkpoint("plain").network.parameters())
    engine = LocalEngine(shelf, CPU, cache_bytes=0, budget=Budget(2 * size))
    loaded.clear()
    for step in (0, 1, 0, 2, 0, 1):
        engine.ask(Run(RunRequest(at_step("film", step), "w4")))
    assert loaded == ["000000", "000001", "000002", "000001"], "the one unused for longest went"


@pytest.mark.parametrize("curve", ["", "epoch,step\n1,2\n", "epoch,step,train_loss,validation_loss\n1,x,2,3\n", "\x00", None])
def test_a_curve_that_cannot_be_read_is_no_curve(shelf: Path, curve: str | None) -> None:
    path = shelf / "film" / "curve.csv"
    path.unlink()
    if curve is not None:
        path.write_text(curve, encoding="utf-8")
    assert native.losses(shelf / "film") == ()


def test_foreign_files_beside_snapshots_are_left_alone(shelf: Path) -> None:
    for name in ("notes.txt", "best.safetensors", "000010.part", "12.safetensors"):
        (shelf / "film" / "snapshots" / name).write_text("x")
    assert native.snapshot_steps(shelf / "film") == STEPS


def test_the_command_line_takes_a_snapshot_by_name_and_by_path(shelf: Path) -> None:
    out = shelf / "run.trace.safetensors"
    expected = LocalEngine(shelf, CPU).ask(Run(RunRequest("film@000001", "w4 w5")))
    for name in (f"{shelf}/film@1", f"{shelf}/film/snapshots/000001.safetensors"):
        assert main(["run", name, "--source", "w4 w5", "--out", str(out), "--device", "cpu"]) == 0
        found = from_bytes(out.read_bytes())
        assert found.model["fingerprint"] == expected.model["fingerprint"]
        assert found.tokens == expected.tokens
    with pytest.raises(UnknownModel, match="film@000000, film@000001, film@000002, film@000004"):
        loader.locate("film@3", shelf)
    with pytest.raises(MissingFile):
        loader.locate("plain@3", shelf)
