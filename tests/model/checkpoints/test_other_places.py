"""Paths one level too high, adapters and recordings: each says what is there and what to open instead."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from model.checkpoints import loader
from model.errors import CheckpointError, FolderAbove, MissingFile, NotACheckpoint, NothingToOpen, OnlyAnAdapter, SeveralFiles
from tests.networks import save_checkpoint
from tests.reference import CPU, GOLDEN


def library_folder(path: Path) -> None:
    """What is looked at of a folder of the transformers library: its files."""
    path.mkdir(parents=True)
    (path / "config.json").write_text('{"model_type": "bert"}')
    save_file({"weight": torch.ones(2, 2)}, path / "model.safetensors")


def trainer(path: Path) -> None:
    for step in (1000, 500, 1500, 2000):
        library_folder(path / f"checkpoint-{step}")
        torch.save({"state": {}}, path / f"checkpoint-{step}" / "optimizer.pt")
    torch.save({"a": 1}, path / "training_args.bin")
    (path / "runs" / "events").mkdir(parents=True)


def cache(path: Path) -> None:
    library_folder(path / "snapshots" / "0abc")
    (path / "refs").mkdir()
    (path / "refs" / "main").write_text("0abc")


def sentences(path: Path) -> None:
    library_folder(path / "0_Transformer")
    (path / "1_Pooling").mkdir()
    (path / "1_Pooling" / "config.json").write_text("{}")
    (path / "modules.json").write_text("[]")


def adapter(path: Path) -> None:
    (path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "base_model_name_or_path": "org/base"}))
    save_file({"base_model.q_proj.lora_A.weight": torch.ones(2, 2)}, path / "adapter_model.safetensors")


def without_config(path: Path) -> None:
    save_file({"encoder.weight": torch.ones(2, 2)}, path / "model.safetensors")
    (path / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": {}}))


PLACES: dict[str, tuple[Callable[[Path], object], type[CheckpointError], str]] = {
    "a Trainer’s output": (
        trainer,
        FolderAbove,
        r"with one: checkpoint-500, checkpoint-1000, checkpoint-1500, … \(\+1\)\.",
    ),
    "a model in a Hub’s cache": (cache, FolderAbove, r"folders with one: snapshots/0abc\. Open"),
    "a Hub’s cache": (lambda path: cache(path / "models--a--b"), FolderAbove, "with one: models--a--b/snapshots/0abc"),
    "sentence-transformers": (sentences, FolderAbove, r"folders with one: 0_Transformer\. Open one of them"),
    "a folder of our checkpoints": (lambda path: save_checkpoint(path / "ours"), FolderAbove, "with one: ours"),
    "an adapter": (adapter, OnlyAnAdapter, r"holds an adapter, .* and not that network: it belongs to org/base\. Merge"),
    "a folder without config.json": (without_config, MissingFile, r"config\.json is missing\. Needed: config\.json, model"),
    "an empty folder": (
        lambda path: None,
        NothingToOpen,
        "holds nothing that can be opened. A folder needs config.json",
    ),
    "texts": (lambda path: (path / "notes.txt").write_text("a"), NothingToOpen, "holds nothing that can be opened"),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_place_without_a_network_says_what_it_is(name: str, tmp_path: Path) -> None:
    """All of them said "spec.json is missing … Restore the file"."""
    make, kind, sentence = PLACES[name]
    make(tmp_path)
    for opens in (lambda: loader.load(tmp_path, {}, CPU), lambda: loader.inspect(tmp_path, {})):
        with pytest.raises(kind, match=sentence) as refused:
            opens()
        assert type(refused.value) is kind


def test_what_a_trainer_keeps_beside_the_weights_is_no_second_network(tmp_path: Path) -> None:
    (tmp_path / "mine.pt").write_bytes((GOLDEN / "001_tiny_a.pt").read_bytes())
    for name in ("optimizer.pt", "scheduler.pt", "rng_state_0.pth", "training_args.bin"):
        torch.save({"a": torch.ones(2, 2)}, tmp_path / name)
    assert loader.inspect(tmp_path, {"n_heads": "1"}).layout == "torch-lm"
    torch.save({"a": torch.ones(2, 2)}, tmp_path / "other.pt")
    with pytest.raises(SeveralFiles, match=r"\(mine\.pt, other\.pt\)"):
        loader.inspect(tmp_path, {})


def test_a_trace_is_no_checkpoint_and_says_how_it_is_shown(tmp_path: Path) -> None:
    from model.inference.run import run
    from model.requests.request import Decoding, RunRequest
    from model.trace import serialization

    save_checkpoint(tmp_path / "ours")
    found = loader.load(tmp_path / "ours", {}, CPU)
    trace = run(found, RunRequest("ours", "a dog", decoding=Decoding(max_length=2)), CPU, "CPU")
    for name in ("run.trace.safetensors", "renamed.pt"):
        (tmp_path / name).write_bytes(serialization.to_bytes(trace))
        with pytest.raises(NotACheckpoint, match=r"It is: a trace, the record of a finished run, which python -m model view shows"):
            loader.inspect(tmp_path / name, {})
