"""A folder runs as it was trained or not at all: edited settings, tensors without a place, and what may be left over."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from model import __main__ as command_line
from model.checkpoints import loader
from model.errors import IncompleteWeights, UnsupportedModel
from model.huggingface import library
from model.inference.run import run
from model.requests.request import Decoding, RunRequest
from tests import folders
from tests.foreign_folders import DECODER, FACTORS

CPU = torch.device("cpu")
EDITED = {
    "gemma2": (
        "gemma",
        {},
        r"sets attn_logit_softcapping=50\.0, .*: this changes what is computed, and gemma ignores it",
    ),
    "granite": (
        "llama",
        FACTORS,
        r"sets attention_multiplier=0\.3, embedding_multiplier=3\.0, logits_scaling=2\.0, … \(\+1\): "
        "this changes what is computed, and llama ignores it",
    ),
    "cohere": ("llama", {"logit_scale": 0.5}, "sets logit_scale=0.5"),
    "phi3": ("llama", {"partial_rotary_factor": 0.5}, "sets partial_rotary_factor=0.5"),
}
"""Architectures by what their folder's model_type was edited to, what they were made with, and what the refusal says."""


def edited(folder: Path, own: str, **changes: Any) -> Path:
    """A folder of an architecture that is not run here, with an edited config.json; None takes a setting away."""
    config = library.config_of(own, DECODER | EDITED.get(own, ("", {}))[1])
    torch.manual_seed(7)
    made = library.CLASSES["decoder"]._model_mapping[type(config)]._from_config(config)
    made.save_pretrained(folder)
    settings = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps({name: value for name, value in settings.items() if value is not None}))
    return folder


def refused(folder: Path) -> str:
    """The one sentence that a run and an inspection end with."""
    said = []
    for opens in (lambda: loader.load(folder, {}, CPU), lambda: loader.inspect(folder, {})):
        with pytest.raises(UnsupportedModel) as error:
            opens()
        said.append(str(error.value))
    assert said[0] == said[1]
    assert "\n" not in said[0]
    return said[0]


@pytest.mark.parametrize("own", ["gemma2", "granite"])
def test_a_config_edited_to_another_architecture_ran_with_wrong_maps(own: str, tmp_path: Path) -> None:
    kind, _made_with, sentence = EDITED[own]
    said = refused(edited(tmp_path / "kept", own, model_type=kind))
    saved_by = json.loads((tmp_path / "kept" / "config.json").read_text())["architectures"][0]
    assert f"contradicts itself: model_type is {kind}, but {saved_by}, which saved it, belongs to {own}" in said
    with pytest.raises(UnsupportedModel, match=sentence):
        loader.load(edited(tmp_path / "whole", own, model_type=kind, architectures=None), {}, CPU)


@pytest.mark.parametrize("own", ["cohere", "phi3"])
def test_other_architectures_edited_are_refused_too(own: str, tmp_path: Path) -> None:
    kind, _made_with, sentence = EDITED[own]
    with pytest.raises((UnsupportedModel, IncompleteWeights)) as error:
        loader.load(edited(tmp_path / own, own, model_type=kind, architectures=None), {}, CPU)
    assert sentence in str(error.value)


def test_tensors_betray_an_architecture_whose_settings_were_taken_away(tmp_path: Path) -> None:
    gone = ("attn_logit_softcapping", "final_logit_softcapping", "layer_types", "query_pre_attn_scalar", "sliding_window")
    folder = edited(tmp_path / "gemma2", "gemma2", model_type="gemma", architectures=None, **dict.fromkeys(gone))
    first = "model.layers.0.post_feedforward_layernorm.weight"
    assert f"its weights contain {first}" in refused(folder)
    assert ", … (+1), which have no place in gemma" in refused(folder)


def test_a_folder_that_does_not_say_what_saved_it_says_so(tmp_path: Path) -> None:
    folders.save(tmp_path / "bert", "bert")
    assert not any("the class that saved it" in str(note) for note in loader.inspect(tmp_path / "bert", {}).notes)
    folders.change_config(tmp_path / "bert", architectures=None)
    assert any("the class that saved it" in str(note) for note in loader.inspect(tmp_path / "bert", {}).notes)


@pytest.mark.parametrize(
    "changes", [{"attn_logit_softcapping": 50.0}, {"attention_multiplier": 0.2}, {"qk_norm": True}, {"use_alibi": True}]
)
def test_a_setting_that_the_class_does_not_read_and_that_changes_maps_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    folders.save(tmp_path / "llama", "llama")
    folders.change_config(tmp_path / "llama", **changes)
    (name,) = changes
    assert f"sets {name}" in refused(tmp_path / "llama")


def test_settings_that_say_nothing_are_left_alone(tmp_path: Path) -> None:
    """As the files of real models have them: switched off, of training, or translated by the library itself."""
    folders.save(tmp_path / "llama", "llama")
    neutral = {"attn_logit_softcapping": None, "logits_scaling": 1.0, "use_alibi": False, "position_embedding_type": "absolute"}
    folders.change_config(
        tmp_path / "llama", **neutral, rope_theta=10000.0, rope_scaling=None, pretraining_tp=1, gradient_checkpointing=True
    )
    assert loader.inspect(tmp_path / "llama", {}).parameters


def test_a_class_that_somebody_wrote_may_have_saved_it(tmp_path: Path) -> None:
    folders.save(tmp_path / "bert", "bert")
    folders.change_config(tmp_path / "bert", architectures=["MyClassifier"])
    assert loader.inspect(tmp_path / "bert", {}).parameters
    folders.save(tmp_path / "mt5", "mt5")
    folders.change_config(tmp_path / "mt5", architectures=["T5ForConditionalGeneration"])
    assert loader.inspect(tmp_path / "mt5", {}).parameters


def extended(folder: Path, family: str, **tensors: torch.Tensor) -> Path:
    folders.save(folder, family)
    path = folder / "model.safetensors"
    save_file(load_file(path) | {name: value.contiguous() for name, value in tensors.items()}, path)
    return folder


LEFT_OVER: dict[str, tuple[str, dict[str, torch.Tensor], str]] = {
    "a head for masked words": ("bert", {"cls.predictions.bias": torch.zeros(40)}, "an output head after the network"),
    "numbers of positions": ("roberta", {"embeddings.position_ids": torch.arange(22)[None]}, "the numbers of the positions"),
    "a mask in each layer": ("gpt2", {"transformer.h.0.attn.bias": torch.ones(1, 1, 20, 20).tril()}, "a mask"),
    "what a mask hides with": ("gpt2", {"transformer.h.0.attn.masked_bias": torch.tensor(-1e4)}, "a mask"),
    "a table that is never read": (
        "t5",
        {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": torch.ones(8, 3)},
        "used by no class of the library",
    ),
    "rotary waves": (
        "llama",
        {"model.layers.0.self_attn.rotary_emb.inv_freq": 10000.0 ** -(torch.arange(0, 8, 2) / 8)},
        "computed by the network itself",
    ),
}


@pytest.mark.parametrize("name", LEFT_OVER)
def test_what_is_left_over_is_named_on_the_page_and_in_the_trace(name: str, tmp_path: Path) -> None:
    family, extra, what = LEFT_OVER[name]
    folder = extended(tmp_path / family, family, **extra)
    found = loader.load(folder, {}, CPU)
    target = (2, 3) if family == "t5" else None
    trace = run(found, RunRequest("x", (4, 5), target, decoding=Decoding(max_length=0)), CPU, "cpu")
    for notes in (loader.inspect(folder, {}).notes, trace.model["notes"]):
        note = next(said for said in map(str, notes) if said.startswith("Not used"))
        assert what in note
        assert all(tensor in note for tensor in extra)


HARMFUL: dict[str, tuple[str, dict[str, torch.Tensor]]] = {
    "an adapter": ("bert", {"encoder.layer.0.adapter.weight": torch.ones(3, 24)}),
    "LoRA": ("llama", {"model.layers.0.self_attn.q_proj.lora_A.weight": torch.ones(2, 24)}),
    "distances": ("bert", {"encoder.layer.0.attention.self.distance_embedding.weight": torch.ones(39, 8)}),
    "other rotary waves": ("llama", {"model.layers.0.self_attn.rotary_emb.inv_freq": 500.0 ** -(torch.arange(0, 8, 2) / 8)}),
    "a mask of a window": ("gpt2", {"transformer.h.0.attn.bias": torch.ones(1, 1, 20, 20).tril().triu(-3)}),
    "other positions": ("roberta", {"embeddings.position_ids": torch.arange(22).flip(0)[None]}),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_a_tensor_without_a_place_was_passed_over(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    family, extra = HARMFUL[name]
    folder = extended(tmp_path / family, family, **extra)
    said = refused(folder)
    assert f"its weights contain {next(iter(extra))}, which has no place in {family}" in said
    assert command_line.main(["inspect", str(folder)]) == 1
    assert capsys.readouterr().err == f"{said}\n"
