"""Folders that are complete and look unusual: wrapped names, settings of form, classes without an output layer.

Each runs, and its numbers are those of the library's own network.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn

from model.checkpoints import loader
from model.errors import OtherWeights, UnsupportedModel
from model.huggingface import library
from model.inference.run import run
from model.requests.request import Decoding, RunRequest
from model.trace.types import Trace
from tests import folders
from tests.recorded_folders import saved

CPU = torch.device("cpu")
SOURCE = (4, 6, 5, 8, 9)


def renamed(folder: Path, change: Any) -> None:
    path = folder / "model.safetensors"
    save_file({change(name): tensor for name, tensor in load_file(path).items()}, path)


def traced(folder: Path) -> Trace:
    """The run of a folder; a translator gets a target."""
    found = loader.load(folder, {}, CPU)
    target = (1, 4, 6) if found.info.spec.encoder and found.info.spec.decoder else None
    return run(found, RunRequest("tiny", SOURCE, target, Decoding(max_length=0)), CPU, "CPU")


def assert_the_librarys(folder: Path, own: Any) -> None:
    """Maps and last states, or logits, of a folder are those of a network of the library."""
    with torch.inference_mode():
        wanted = own(torch.tensor([SOURCE]), output_attentions=True, output_hidden_states=True)
    trace = traced(folder)
    for attention, one in zip(trace.attention.values(), wanted.attentions, strict=True):
        np.testing.assert_allclose(attention.weights, one[0].numpy(), rtol=0, atol=2e-6)
    if trace.logits is not None:
        np.testing.assert_allclose(np.asarray(trace.logits), wanted.logits[0].numpy(), rtol=0, atol=2e-5)


def layer(name: str, wrapper: str) -> str:
    for place in ("layer.0.", "h.0.", "layers.0.", "block.0."):
        name = name.replace(place, f"{place}{wrapper}.")
    return name


WRAPPERS: dict[str, Any] = {
    "module.": lambda name: f"module.{name}",
    "_orig_mod.": lambda name: f"_orig_mod.{name}",
    "model.": lambda name: f"model.{name}",
    "student.": lambda name: f"student.{name}",
    "_fsdp_wrapped_module.": lambda name: "_fsdp_wrapped_module." + layer(name, "_fsdp_wrapped_module"),
    "_checkpoint_wrapped_module.": lambda name: layer(name, "_checkpoint_wrapped_module"),
    "module.inside": lambda name: layer(name, "module"),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_wrapped_names_are_those_of_the_network(family: str, wrapper: str, tmp_path: Path) -> None:
    own = folders.save(tmp_path, family)
    renamed(tmp_path, WRAPPERS[wrapper])
    assert_the_librarys(tmp_path, own)
    found = loader.inspect(tmp_path, {})
    assert {tensor.status for tensor in found.tensors} <= {"matched", "unneeded"}
    assert found.prefix.startswith(wrapper.removesuffix("inside")) or (family, wrapper) == ("llama", "model.")


def test_an_architecture_without_a_row_may_be_wrapped_too(tmp_path: Path) -> None:
    own, _kind = saved(tmp_path, "cohere")
    renamed(tmp_path, lambda name: f"module._orig_mod.{layer(name, '_checkpoint_wrapped_module')}")
    assert_the_librarys(tmp_path, own)


def test_a_tensor_that_is_missing_is_named_with_what_is_there(tmp_path: Path) -> None:
    """It said "check the answers you gave", where nobody had given one."""
    folders.save(tmp_path, "bert")
    renamed(tmp_path, lambda name: name.replace("attention.self.query", "attention.self.q"))
    with pytest.raises(OtherWeights) as refused:
        loader.load(tmp_path, {}, CPU)
    assert "it lacks encoder.layer.0.attention.self.query.bias; … (+3); it has encoder.layer.0.attention.self.q.bias" in str(
        refused.value
    )
    assert str(refused.value).endswith("that were saved together, or save both again with save_pretrained.")


def test_pruned_heads_are_named(tmp_path: Path) -> None:
    folders.save(tmp_path, "bert")
    folders.change_config(tmp_path, pruned_heads={"0": [1]})
    for opens in (lambda: loader.load(tmp_path, {}, CPU), lambda: loader.inspect(tmp_path, {})):
        with pytest.raises(UnsupportedModel, match=r"heads were pruned from its layers \(pruned_heads in its config\.json\)"):
            opens()
    folders.change_config(tmp_path, pruned_heads={})
    assert loader.inspect(tmp_path, {}).parameters


def test_an_adapter_beside_a_network_is_not_applied_without_a_word(tmp_path: Path) -> None:
    folders.save(tmp_path, "bert")
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    for notes in (loader.load(tmp_path, {}, CPU).notes, loader.inspect(tmp_path, {}).notes):
        assert any("The adapter of adapter_config.json is not applied" in str(note) for note in notes)


FORM: tuple[dict[str, Any], ...] = (
    {"return_dict": False, "torchscript": True},
    {"torch_dtype": "torch.float32"},
    {"torch_dtype": "auto", "dtype": "torch.bfloat16", "use_bfloat16": True},
    {"chunk_size_feed_forward": 3, "gradient_checkpointing": True},
    {"output_attentions": True, "output_hidden_states": True, "use_return_dict": False},
)


@pytest.mark.parametrize("form", FORM, ids=lambda form: next(iter(form)))
@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_a_setting_of_form_changes_nothing(family: str, form: dict[str, Any], tmp_path: Path) -> None:
    """Some were refused with the advice not to change them; with one a run ended in an error of the library."""
    folders.save(tmp_path, family)
    plain = traced(tmp_path)
    folders.change_config(tmp_path, **form)
    for one, other in zip(traced(tmp_path).attention.values(), plain.attention.values(), strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)


WITHOUT_OUTPUT = {
    "LlamaModel": "llama",
    "MistralModel": "mistral",
    "Qwen2Model": "qwen2",
    "Qwen3Model": "qwen3",
    "GPTNeoXModel": "gpt_neox",
    "T5EncoderModel": "t5",
    "MT5EncoderModel": "mt5",
    "LlamaForSequenceClassification": "llama",
    "LlamaForQuestionAnswering": "llama",
    "Qwen2ForTokenClassification": "qwen2",
    "T5ForTokenClassification": "t5",
}


def saved_by(folder: Path, name: str, family: str, **changes: Any) -> nn.Module:
    """A folder that a class of the library saved, with numbers that tell heads apart."""
    torch.manual_seed(3)
    config = library.config_of(family, folders.SETTINGS[family] | changes)
    made = getattr(transformers, name)._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    made.save_pretrained(folder)
    network: nn.Module = made
    return network


@pytest.mark.parametrize("name", WITHOUT_OUTPUT)
def test_a_class_without_an_output_layer_is_opened_as_what_it_is(name: str, tmp_path: Path) -> None:
    """They "lacked lm_head.weight", which such a class has not."""
    made: Any = saved_by(tmp_path, name, WITHOUT_OUTPUT[name])
    assert_the_librarys(tmp_path, made if name.endswith("Model") else getattr(made, made.base_model_prefix))
    found = loader.load(tmp_path, {}, CPU)
    assert found.info.spec.decoder is None
    assert any(f"It was saved by {name}, which has no output layer" in str(note) for note in found.notes)
    assert not loader.inspect(tmp_path, {}).missing


@pytest.mark.parametrize("name", ["BartForCausalLM", "MarianForCausalLM"])
def test_a_decoder_of_a_translator_alone_writes(name: str, tmp_path: Path) -> None:
    own = saved_by(tmp_path, name, "bart" if name.startswith("Bart") else "marian")
    assert_the_librarys(tmp_path, own)


def test_a_class_without_an_output_layer_writes_where_that_layer_is_the_embedding(tmp_path: Path) -> None:
    saved_by(tmp_path, "GPT2Model", "gpt2")
    assert traced(tmp_path).logits is not None
