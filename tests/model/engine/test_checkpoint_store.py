"""The folder of checkpoints: what changes in it is noticed, and its errors tell visitors nothing about where it is."""

import csv
import gc
import shutil
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO

import pytest
import torch

from model import known_models
from model.checkpoints import loader
from model.engine import model_cache
from model.engine.api import Describe, Explain, Inspect, Models, Receive, Run
from model.engine.local import LocalEngine
from model.engine.model_cache import ModelKey
from model.errors import DamagedFile, HeadlightError, MissingFile, NoRoom, UnknownModel, from_json
from model.requests.request import Precision, RunRequest, Settings
from model.requests.snapshots import at_step
from model.sharing.caches import Budget
from model.transformer.stacks import EncoderDecoder
from tests import folders
from tests.networks import save_checkpoint, save_film
from tests.patience import HANG_S
from tests.reference import GOLDEN
from tests.runs import for_session

CPU = torch.device("cpu")
LOWER: tuple[Precision, Precision] = ("bfloat16", "float16")


def test_a_folder_that_is_repaired_is_used_without_a_restart(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a")
    weights = (tmp_path / "a" / "model.safetensors").read_bytes()
    (tmp_path / "a" / "model.safetensors").unlink()
    engine = LocalEngine(tmp_path, CPU)
    with pytest.raises(MissingFile):
        engine.ask(Run(RunRequest("a", "w4")))
    with pytest.raises(MissingFile):
        engine.ask(Inspect("a"))
    assert engine.ask(Models()).models[0].problem
    (tmp_path / "a" / "model.safetensors").write_bytes(weights)
    assert not engine.ask(Models()).models[0].problem
    assert engine.ask(Inspect("a")).missing == ()
    assert engine.ask(Run(RunRequest("a", "w4"))) is engine.ask(Run(RunRequest("a", "w4")))


def test_weights_that_were_trained_on_give_another_run(tmp_path: Path, local: LocalEngine) -> None:
    first, inspected = local.ask(Run(RunRequest("tiny", "w4", "w5"))), local.ask(Inspect("tiny"))
    assert local.ask(Inspect("tiny")) is inspected
    shutil.rmtree(tmp_path / "tiny")
    save_checkpoint(tmp_path / "tiny", seed=1)
    second = local.ask(Run(RunRequest("tiny", "w4", "w5")))
    assert second.model["fingerprint"] != first.model["fingerprint"]
    assert local.ask(Inspect("tiny")) is not inspected


def other_weights(folder: Path) -> None:
    """Puts other weights in the place of those of a checkpoint."""
    shutil.rmtree(folder)
    save_checkpoint(folder, seed=1)


def test_a_run_on_old_weights_was_cached_for_the_new_ones_that_came_while_it_computed(tmp_path: Path, local: LocalEngine) -> None:
    request = RunRequest("tiny", "w4", "w5")
    network, begun, go_on = local.checkpoint("tiny").network, threading.Event(), threading.Event()
    assert isinstance(network, EncoderDecoder)
    encode = network.encode

    def slow(*args: Any) -> Any:
        begun.set()
        assert go_on.wait(HANG_S)
        return encode(*args)

    network.encode = slow  # type: ignore[method-assign, assignment]
    with ThreadPoolExecutor(2) as pool:
        old = pool.submit(for_session("a", local.ask), Run(request))
        assert begun.wait(HANG_S)
        other_weights(tmp_path / "tiny")
        new = pool.submit(for_session("b", local.ask), Run(request))
        while len(local.scheduler._queue._in_flight) < 2:
            assert not new.done(), "it was given the run of the old weights"
            threading.Event().wait(0.001)
        go_on.set()
        expected = LocalEngine(tmp_path, CPU).ask(Run(request))
        assert new.result(HANG_S).model["fingerprint"] == expected.model["fingerprint"] != old.result(HANG_S).model["fingerprint"]
    assert local.ask(Run(request)) is new.result()
    assert local.ask(Explain(request, "decoder.0.0.cross", 0, 0, 0))


def test_weights_that_were_replaced_while_they_were_loaded_are_loaded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path / "a")
    load, replaced = loader.load, list[Path]()

    def replacing(path: Path, *others: Any) -> Any:
        found = load(path, *others)
        if not replaced:
            replaced.append(path)
            other_weights(path)
        return found

    engine = LocalEngine(tmp_path, CPU)
    with monkeypatch.context() as patched:
        patched.setattr(loader, "load", replacing)
        assert engine.ask(Describe("a")).parameters
    assert replaced
    assert engine.checkpoint("a").fingerprint == LocalEngine(tmp_path, CPU).checkpoint("a").fingerprint


def another_title(spec: Path) -> None:
    spec.write_text(spec.read_text(encoding="utf-8").replace('"Tiny"', '"Other"'), encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "change"),
    [("spec.json", another_title), ("tokenizer.json", lambda path: path.write_text(path.read_text(encoding="utf-8") + " "))],
    ids=["spec.json", "tokenizer.json"],
)
def test_a_snapshot_did_not_notice_that_another_file_of_its_folder_changed(
    tmp_path: Path, file: str, change: Callable[[Path], object]
) -> None:
    save_film(tmp_path / "film", (0, 1))
    engine, request = LocalEngine(tmp_path, CPU), RunRequest(at_step("film", 1), "w4")
    first = engine.ask(Run(request))
    assert engine.ask(Run(request)) is first
    change(tmp_path / "film" / file)
    second = engine.ask(Run(request))
    assert second.model["fingerprint"] != first.model["fingerprint"]
    assert second.model["title"] == ("Other" if file == "spec.json" else "Tiny")


@pytest.mark.slow
def test_a_known_model_has_the_title_that_its_authors_gave_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(known_models.FOLDER, str(tmp_path))
    for place in (tmp_path / "minilm", tmp_path / "copy"):
        folders.save(place, "bert")
    engine = LocalEngine(tmp_path, torch.device("cpu"))
    found = {name: engine.ask(Describe(name)).title for name in ("minilm", "copy")}
    assert found == {"minilm": "all-MiniLM-L6-v2", "copy": "copy"}


def test_a_known_model_is_found_by_its_name_unless_the_folder_has_one_of_that_name(
    local: LocalEngine, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, own = tmp_path_factory.mktemp("known"), local.checkpoint("tiny").fingerprint
    save_checkpoint(known, seed=1)
    monkeypatch.setattr(known_models, "fetched", lambda: {"known": known, "tiny": known})
    assert [info.name for info in local.ask(Models()).models] == ["known", "tiny"]
    assert local.checkpoint("known").fingerprint != own == local.checkpoint("tiny").fingerprint


def test_errors_name_files_as_the_folder_does(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a")
    (tmp_path / "a" / "spec.json").write_text("{")
    (tmp_path / "b.pt").write_bytes((GOLDEN / "000_tiny_a.pt").read_bytes())
    (tmp_path / "spec.json").write_text('{"source_vocab": "nowhere.txt"}')
    engine = LocalEngine(tmp_path, CPU)
    for problem in (info.problem for info in engine.ask(Models()).models):
        assert str(tmp_path) not in str(from_json(problem))
    with pytest.raises(DamagedFile) as caught:
        engine.ask(Inspect("a"))
    assert caught.value.fields["path"] == str(Path("a", "spec.json"))
    with pytest.raises(UnknownModel):
        engine.ask(Inspect("../a"))


def test_a_folder_whose_diagnosis_ended_in_an_error_was_opened_again_for_each_rerun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path / "a")
    (tmp_path / "a" / "spec.json").write_text("{}", encoding="utf-8")
    opened, inspect = list[Path](), loader.inspect

    def counted(path: Path, *more: Any) -> Any:
        opened.append(path)
        return inspect(path, *more)

    monkeypatch.setattr(loader, "inspect", counted)
    engine, depths = LocalEngine(tmp_path, CPU), list[int]()
    for _rerun in range(3):
        with pytest.raises(HeadlightError) as caught:
            engine.ask(Inspect("a"))
        depths.append(len(caught.traceback))
    assert len(opened) == 1
    assert depths[1] == depths[2], "the cached error collects the frames of its callers"
    (tmp_path / "a" / "spec.json").unlink()
    with pytest.raises(MissingFile):
        engine.ask(Inspect("a"))
    assert len(opened) == 2


def test_networks_of_files_with_settings_are_kept_up_to_a_number_of_bytes(tmp_path: Path) -> None:
    engine = LocalEngine(tmp_path, CPU, budget=Budget(1))
    name = engine.ask(Receive((GOLDEN / "001_tiny_a.pt").read_bytes(), "lm.pt"))
    first = engine.checkpoint(name, (("n_heads", "2"),))
    assert engine.checkpoint(name, (("n_heads", "2"),)) is first, "the last one stays, however large"
    engine.checkpoint(name, (("n_heads", "1"),))
    assert engine.checkpoint(name, (("n_heads", "2"),)) is not first
    roomy = LocalEngine(tmp_path, CPU)
    name = roomy.ask(Receive((GOLDEN / "001_tiny_a.pt").read_bytes(), "lm.pt"))
    first = roomy.checkpoint(name, (("n_heads", "2"),))
    roomy.checkpoint(name, (("n_heads", "1"),))
    assert roomy.checkpoint(name, (("n_heads", "2"),)) is first


def test_a_network_that_had_to_go_is_loaded_again_and_lists_need_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(("a", "b")):
        save_checkpoint(tmp_path / name, seed=number)
    engine = LocalEngine(tmp_path, CPU, budget=Budget(1))
    listed, first = engine.ask(Models()).models, weakref.ref(engine.checkpoint("a"))
    newest = engine.checkpoint("b")
    gc.collect()
    assert first() is None, "the newest network stays, however large, and no other"
    assert engine.checkpoint("b") is newest
    loads, load = list[Path](), loader.load

    def counted(path: Path, *others: Any) -> Any:
        loads.append(path)
        return load(path, *others)

    monkeypatch.setattr(loader, "load", counted)
    assert engine.ask(Models()).models == listed
    assert engine.ask(Describe("a")) == listed[0]
    assert not loads, "a list of models loads the networks that had to go"
    engine.checkpoint("a")
    assert len(loads) == 1


def test_the_network_of_a_checkpoint_that_was_deleted_or_replaced_is_let_go_by_the_next_list(tmp_path: Path) -> None:
    for number, name in enumerate(("deleted", "replaced", "stays")):
        save_checkpoint(tmp_path / name, seed=number)
    engine = LocalEngine(tmp_path, CPU)
    engine.ask(Models())
    networks = {name: weakref.ref(engine.checkpoint(name).network) for name in ("deleted", "replaced", "stays")}
    shutil.rmtree(tmp_path / "deleted")
    other_weights(tmp_path / "replaced")
    assert [info.name for info in engine.ask(Models()).models] == ["replaced", "stays"]
    gc.collect()
    assert {name for name, network in networks.items() if network() is None} == {"deleted", "replaced"}


def test_the_losses_of_a_training_are_read_again_when_they_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(tmp_path / "a")
    (curve := tmp_path / "a" / "curve.csv").write_text("step,train_loss,validation_loss\n100,2.5,3\n", encoding="utf-8")
    engine, reader, read = LocalEngine(tmp_path, CPU), csv.DictReader, list[str]()

    def counted(file: TextIO) -> Any:
        read.append(file.name)
        return reader(file)

    monkeypatch.setattr(csv, "DictReader", counted)
    for losses in (2.5,), (2.5, 2.25), ():
        for _turn in range(3):
            (info,) = engine.ask(Models()).models
            assert tuple(one.training for one in info.losses) == losses
        if len(losses) == 1:
            with curve.open("a", encoding="utf-8") as file:
                file.write("200,2.25,2.75\n")
        elif losses:
            curve.unlink()
    assert len(read) == 2


def test_the_network_of_older_files_is_freed(tmp_path: Path, local: LocalEngine) -> None:
    older = weakref.ref(local.checkpoint("tiny").network)
    other_weights(tmp_path / "tiny")
    local.checkpoint("tiny")
    gc.collect()
    assert older() is None


def test_a_network_is_converted_to_a_precision_once(local: LocalEngine) -> None:
    lowered, half = (local.checkpoint("tiny", precision=precision) for precision in LOWER)
    assert local.checkpoint("tiny", precision="bfloat16") is lowered
    assert [next(each.network.parameters()).dtype for each in (lowered, half)] == [torch.bfloat16, torch.float16]
    assert local.checkpoint("tiny", precision="float32") is local.checkpoint("tiny") is not lowered


def test_only_a_lack_of_memory_is_told_as_one_and_the_next_try_may_load(
    local: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = loader.load
    failures: list[RuntimeError] = [torch.OutOfMemoryError("out of memory"), RuntimeError("a mistake of ours")]

    def failing(*asked: Any) -> Any:
        if failures:
            raise failures.pop(0)
        return load(*asked)

    monkeypatch.setattr(loader, "load", failing)
    with pytest.raises(NoRoom):
        local.checkpoint("tiny")
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        local.checkpoint("tiny")
    assert local.checkpoint("tiny") is local.checkpoint("tiny")


@pytest.mark.parametrize(
    ("name", "settings", "error", "stays"),
    [
        ("a", (), MissingFile(path="a", needed="spec.json"), True),
        ("a", (), NoRoom(model="a"), False),
        ("upload-1a2b3c4d5e6f7081", (), MissingFile(path="a", needed="spec.json"), False),
        ("a", (("source_vocab", "words-1a2b3c4d5e6f7081"),), MissingFile(path="a", needed="spec.json"), False),
        ("a", (), None, False),
    ],
)
def test_an_error_that_may_go_away_is_not_kept(name: str, settings: Settings, error: HeadlightError | None, stays: bool) -> None:
    assert model_cache._stays(ModelKey(name, settings, ()), error) is stays
