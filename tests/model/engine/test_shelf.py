"""The folder of checkpoints: what changes in it is noticed, and its errors tell visitors nothing about where it is."""

import shutil
from pathlib import Path

import pytest
import torch

from model.engine.base import RunRequest
from model.engine.local import LocalEngine
from model.errors import DamagedFile, MissingFile, UnknownModel, from_json
from tests.networks import save_checkpoint
from tests.reference import GOLDEN

CPU = torch.device("cpu")


def test_a_folder_that_is_repaired_is_used_without_a_restart(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a")
    weights = (tmp_path / "a" / "model.safetensors").read_bytes()
    (tmp_path / "a" / "model.safetensors").unlink()
    engine = LocalEngine(tmp_path, CPU)
    with pytest.raises(MissingFile):
        engine.run(RunRequest("a", "w4"))
    with pytest.raises(MissingFile):
        engine.inspect("a")
    assert engine.models()[0].problem
    (tmp_path / "a" / "model.safetensors").write_bytes(weights)
    assert not engine.models()[0].problem
    assert engine.inspect("a").missing == ()
    assert engine.run(RunRequest("a", "w4")) is engine.run(RunRequest("a", "w4"))


def test_weights_that_were_trained_on_give_another_run(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a")
    engine = LocalEngine(tmp_path, CPU)
    first, inspected = engine.run(RunRequest("a", "w4", "w5")), engine.inspect("a")
    assert engine.inspect("a") is inspected
    shutil.rmtree(tmp_path / "a")
    save_checkpoint(tmp_path / "a", seed=1)
    second = engine.run(RunRequest("a", "w4", "w5"))
    assert second.model["fingerprint"] != first.model["fingerprint"]
    assert engine.inspect("a") is not inspected


def test_errors_name_files_as_the_folder_does(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a")
    (tmp_path / "a" / "spec.json").write_text("{")
    (tmp_path / "b.pt").write_bytes((GOLDEN / "000_tiny_a.pt").read_bytes())
    (tmp_path / "spec.json").write_text('{"source_vocab": "nowhere.txt"}')
    engine = LocalEngine(tmp_path, CPU)
    for problem in (info.problem for info in engine.models()):
        assert str(tmp_path) not in str(from_json(problem))
    with pytest.raises(DamagedFile) as caught:
        engine.inspect("a")
    assert caught.value.fields["path"] == str(Path("a", "spec.json"))
    with pytest.raises(UnknownModel):
        engine.inspect("../a")


def test_networks_of_files_with_settings_are_kept_up_to_a_number_of_bytes(tmp_path: Path) -> None:
    engine = LocalEngine(tmp_path, CPU, variant_bytes=1)
    name = engine.receive((GOLDEN / "001_tiny_a.pt").read_bytes(), "lm.pt")
    first = engine.checkpoint(name, (("n_heads", "2"),))
    assert engine.checkpoint(name, (("n_heads", "2"),)) is first, "the last one stays, however large"
    engine.checkpoint(name, (("n_heads", "1"),))
    assert engine.checkpoint(name, (("n_heads", "2"),)) is not first
    roomy = LocalEngine(tmp_path, CPU)
    name = roomy.receive((GOLDEN / "001_tiny_a.pt").read_bytes(), "lm.pt")
    first = roomy.checkpoint(name, (("n_heads", "2"),))
    roomy.checkpoint(name, (("n_heads", "1"),))
    assert roomy.checkpoint(name, (("n_heads", "2"),)) is first
