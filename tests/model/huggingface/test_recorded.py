"""Architectures without a row: run as a whole by the library, recorded by what they compute, and refused what they cannot do."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.functional import unfold

from model.checkpoints import loader
from model.engine.api import Explain, Export, Run
from model.engine.local import LocalEngine
from model.errors import (
    BadSetting,
    CannotChange,
    CannotMeasure,
    DamagedFile,
    HeadlightError,
    UnknownTensor,
    UnsoundFile,
    UnsupportedModel,
)
from model.features.what_if.questions import Heads
from model.huggingface import library, loading
from model.huggingface.checks import check_sizes
from model.huggingface.folder import read_json, with_settings
from model.huggingface.loaded import Foreign
from model.inference.run import run
from model.requests.edits import Silence
from model.requests.inputs import Features
from model.requests.request import Decoding, RunRequest
from model.trace.checks import check
from model.trace.serialization import from_bytes, to_bytes
from model.trace.types import Trace
from tests import folders
from tests.recorded_folders import SOURCE, saved

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shelf with a decoder, an encoder-decoder and a network of images."""
    path = tmp_path_factory.mktemp("shelf")
    for name in ("gpt_neo", "fsmt", "vit", "mpnet"):
        saved(path / name, name)
    return path


def asked(name: str, **more: Any) -> RunRequest:
    return RunRequest(name, SOURCE, **{"decoding": Decoding(max_length=4), **more})


def test_a_decoder_writes_what_the_library_writes(engine: LocalEngine, shelf: Path) -> None:
    trace = engine.ask(Run(asked("gpt_neo")))
    from transformers import AutoModelForCausalLM

    own = AutoModelForCausalLM.from_pretrained(shelf / "gpt_neo", attn_implementation="eager")
    written = own.generate(torch.tensor([SOURCE]), max_new_tokens=4, do_sample=False, use_cache=False)[0].tolist()
    assert list(trace.tokens["source"].ids) == written
    read = torch.tensor([written[:-1]])
    with torch.inference_mode():
        wanted = own(read, output_attentions=True)
    for attention, map_ in zip(trace.attention.values(), wanted.attentions, strict=True):
        np.testing.assert_allclose(attention.weights, map_[0].numpy(), rtol=0, atol=1e-6)
    assert trace.logits is not None
    np.testing.assert_allclose(trace.logits, wanted.logits[0].numpy(), rtol=0, atol=1e-5)
    assert trace.steps[-1].chosen.id == written[-1]


def test_its_sites_are_named_by_their_modules(engine: LocalEngine) -> None:
    trace = engine.ask(Run(asked("fsmt")))
    assert list(map(str, trace.attention))[-2:] == ["decoder.0.1.self", "decoder.0.1.cross"]
    assert trace.module("decoder.0.1.cross") == "model.decoder.layers.1.encoder_attn"
    assert trace.recorded is not None
    assert not trace.of_program
    assert {site.origin for site in trace.recorded.sites.values()} == {"computed"}
    notes = " ".join(map(str, trace.model["notes"]))
    assert "Its attention was recognized by what was computed" in notes
    assert "differ by at most 0e+00 from those that the library itself returns" in notes


@pytest.mark.parametrize("name", ["gpt_neo", "fsmt", "mpnet"])
def test_its_trace_opens_again(engine: LocalEngine, name: str) -> None:
    trace = engine.ask(Run(asked(name)))
    again = from_bytes(to_bytes(trace))
    check(again)
    assert again.recorded == trace.recorded
    assert again.steps == trace.steps
    assert again.tokens == trace.tokens


def test_a_beam_search_shows_the_hypothesis_that_was_asked_for(engine: LocalEngine) -> None:
    decoding = Decoding(method="beam", beam_size=3, max_length=4)
    first, second = (engine.ask(Run(asked("fsmt", decoding=replace(decoding, hypothesis=index)))) for index in (0, 1))
    assert first.tree
    assert first.tokens["target"].ids != second.tokens["target"].ids
    for trace in (first, second):
        forced = engine.ask(Run(asked("fsmt", target=trace.tokens["target"].ids[:-1], decoding=Decoding(max_length=0))))
        shown, fed = trace.at("decoder.0.1.self").weights, forced.at("decoder.0.1.self").weights
        np.testing.assert_allclose(shown, fed, rtol=0, atol=1e-6)


def test_padding_is_not_attended_to(engine: LocalEngine) -> None:
    trace = engine.ask(Run(asked("mpnet", source_pad_to=10)))
    attention = trace.at("encoder.0.0.self")
    assert attention.weights.shape[1:] == (10, 10)
    assert not attention.weights[:, :, len(SOURCE) :].any()
    assert not attention.mask[:, len(SOURCE) :].any()


def test_what_is_kept_is_what_was_asked_for(engine: LocalEngine) -> None:
    bare, kept = (engine.ask(Run(asked("mpnet", keep=keep))).at("encoder.0.0.self") for keep in ((), ("qkv", "context")))
    assert bare.q is None
    assert kept.v is not None
    assert kept.context is not None
    np.testing.assert_allclose(kept.weights @ kept.v, kept.context, atol=1e-6)


def test_nothing_in_it_can_be_changed_or_measured(engine: LocalEngine) -> None:
    silenced = asked("gpt_neo", edits=(Silence(site="decoder.0.0.self", head=(0,)),))
    with pytest.raises(CannotChange, match="does not go through the library’s attention interface"):
        engine.ask(Run(silenced))
    with pytest.raises(CannotMeasure, match="does not go through the library’s attention interface"):
        engine.ask(Heads(asked("gpt_neo")))
    with pytest.raises(UnknownTensor, match="does not go through the library’s attention interface"):
        engine.ask(Explain(asked("gpt_neo"), "decoder.0.0.self", 0, 1, 0))
    with pytest.raises(BadSetting, match="float32"):
        engine.ask(Run(asked("gpt_neo", precision="bfloat16")))
    with pytest.raises(HeadlightError, match="cannot be exported"):
        engine.ask(Export("gpt_neo"))


def test_patches_of_an_image_are_put_where_they_belong(shelf: Path) -> None:
    found = loader.load(shelf / "vit", {}, CPU)
    assert isinstance(found, Foreign)
    image = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(3))
    rows = unfold(image, 8, stride=8)[0].T  # PyTorch's own order of patches: row by row, each [channel, height, width]
    trace = run(found, RunRequest("vit", Features(tuple(map(tuple, rows.tolist())))), CPU, "CPU")
    library: Any = found.network.library
    with torch.inference_mode():
        wanted = library(pixel_values=image, output_attentions=True).attentions
    for attention, map_ in zip(trace.attention.values(), wanted, strict=True):
        np.testing.assert_allclose(attention.weights, map_[0].numpy(), rtol=0, atol=1e-6)
    assert any("an image of 4 × 4 patches" in str(note) for note in trace.model["notes"])
    assert found.info.examples == ("16 0",)


def test_another_number_of_patches_is_refused(engine: LocalEngine) -> None:
    with pytest.raises(BadSetting, match="16 rows"):
        engine.ask(Run(RunRequest("vit", "9 0")))


def test_a_missing_tensor_is_not_drawn_at_random(shelf: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(shelf / "mpnet", tmp_path / "mpnet")
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if name.endswith("q.weight"))
    save_file({key: value for key, value in weights.items() if key != name}, folder / "model.safetensors")
    with pytest.raises(HeadlightError, match=r"it lacks .*q\.weight"):
        loader.load(folder, {}, CPU)


def test_a_tensor_without_a_place_is_not_left_out_in_silence(shelf: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(shelf / "mpnet", tmp_path / "mpnet")
    weights = load_file(folder / "model.safetensors")
    save_file(weights | {"encoder.layer.0.adapter.weight": torch.ones(3, 4)}, folder / "model.safetensors")
    with pytest.raises(UnsupportedModel, match=r"adapter\.weight, which has no place in mpnet"):
        loader.load(folder, {}, CPU)


def test_the_width_of_an_expert_is_no_number_of_experts(tmp_path: Path) -> None:
    check_sizes(with_settings(tmp_path, {"model_type": "qwen2_moe", "shared_expert_intermediate_size": 5632}, {}))
    with pytest.raises(DamagedFile, match="num_experts is 5,632"):
        check_sizes(with_settings(tmp_path, {"model_type": "qwen2_moe", "num_experts": 5632}, {}))


def test_an_infinite_setting_is_read_as_the_library_writes_it(tmp_path: Path) -> None:
    config = library.config_of("llama", {})
    config.time_step_limit = (0.0, float("inf"))
    config.save_pretrained(tmp_path)
    assert read_json(tmp_path / "config.json")["time_step_limit"] == [0.0, float("inf")]


@pytest.mark.parametrize("setting", [{"num_hidden_layers": 10**9}, {"vocab_size": 10**12}, {"block_sizes": [1] * 5000}])
def test_absurd_sizes_are_refused_before_anything_is_built(shelf: Path, tmp_path: Path, setting: dict[str, Any]) -> None:
    folder = shutil.copytree(shelf / "mpnet", tmp_path / "mpnet")
    folders.change_config(folder, **setting)
    with pytest.raises(DamagedFile, match="not a whole number up to"):
        loader.load(folder, {}, CPU)


def test_code_beside_it_is_not_run(shelf: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(shelf / "mpnet", tmp_path / "mpnet")
    (folder / "modeling_own.py").write_text(f"open({str(folder / 'opened')!r}, 'w')\nclass Own: pass\n")
    folders.change_config(folder, auto_map={"AutoModel": "modeling_own.Own", "AutoConfig": "modeling_own.Own"})
    assert any("auto_map" in str(note) for note in loader.load(folder, {}, CPU).notes)
    assert not (folder / "opened").exists()


def test_a_run_names_the_modules(engine: LocalEngine) -> None:
    notes = engine.ask(Run(asked("mpnet"))).model["notes"]
    assert any("in: encoder.layer.0.attention.attn, encoder.layer.1.attention.attn" in str(note) for note in notes)


@pytest.mark.parametrize("name", ["gpt_neo", "fsmt", "vit", "mpnet"])
def test_an_inspection_tells_of_the_network_without_loading_or_running_it(
    shelf: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was loaded as a whole, and a short input was run."""
    opened = loaded(shelf / name, {})
    given = dict[str, Tensor]()
    real = library.filled

    def filled(kind: Any, config: Any, weights: dict[str, Tensor], *how: Any) -> Any:
        given.update(weights)
        return real(kind, config, weights, *how)

    monkeypatch.setattr(library, "filled", filled)
    monkeypatch.setattr(loading, "probed", lambda *_: pytest.fail("it was run"))
    monkeypatch.setattr(loading, "looks_back_only", lambda *_: pytest.fail("it was run"))
    found = loader.inspect(shelf / name, {})
    assert sum(tensor.untyped_storage().nbytes() for tensor in given.values()) == 4 * len(given), "one number for each"
    assert {each.name for each in found.tensors} == set(given)
    assert all(each.mean is not None for each in found.tensors)
    assert found.parameters == sum(parameter.numel() for parameter in opened.network.parameters())
    told = {stack: found.spec[stack] for stack in opened.info.spec.stacks}
    assert {stack: (own["layers"], own["attention"]["heads"], own["vocab"]) for stack, own in told.items()} == {
        stack: (own.layers, own.attention.heads, own.vocab) for stack, own in opened.info.spec.stacks.items()
    }, "what config.json says is what a run shows"
    assert any("found when it is opened" in str(note) for note in found.notes)


def loaded(path: Path, settings: dict[str, str]) -> Any:
    return loader.load(path, settings, CPU)


@pytest.mark.parametrize("opens", [loader.inspect, loaded])
@pytest.mark.parametrize("setting", ["num_hidden_layers", "num_hidden_groups"])
def test_no_more_layers_are_built_or_run_than_the_file_has_tensors(
    tmp_path: Path, opens: Any, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """900 shared layers of albert fit every fixed limit, and took minutes."""
    saved(tmp_path / "albert", "albert")
    folders.change_config(tmp_path / "albert", **{setting: 900})
    monkeypatch.setattr(library, "outline", lambda *_: pytest.fail("it was built"))
    with pytest.raises(UnsoundFile, match=rf"{setting} is 900, but its weight files hold only \d+ tensors"):
        opens(tmp_path / "albert", {})


def test_a_recording_of_a_row_is_refused_as_a_trace(engine: LocalEngine) -> None:
    """A trace may have recorded sites beside steps only if its spec says that its network has no row."""
    trace = engine.ask(Run(asked("gpt_neo")))
    spec = {name: value for name, value in trace.model["spec"].items() if name != "recorded"}
    changed: Trace = replace(trace, model={**trace.model, "spec": spec})
    with pytest.raises(HeadlightError, match="hands it out itself"):
        check(changed)
