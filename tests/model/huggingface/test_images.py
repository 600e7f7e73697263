"""Networks of images: prepared and computed as the library does both, and refused what their folders do not say."""

import io
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from PIL import Image
from safetensors.numpy import load_file

from model.__main__ import cli
from model.checkpoints import loader
from model.engine.api import Describe, Receive, Run, Tensors
from model.engine.local import LocalEngine
from model.errors import BadImage, BadSetting, HeadlightError, UnknownImage, UnknownTensor, WireError
from model.huggingface.families import TOWERS
from model.huggingface.loaded import Foreign
from model.huggingface.network import ForeignViewer
from model.inference import pictures
from model.inference.run import run
from model.requests.edits import Forbid, Silence
from model.requests.request import RunRequest
from model.trace.checks import check
from model.trace.serialization import from_bytes, to_bytes
from model.trace.types import Array, ImageFacts, Trace, image_facts
from tests.folders import change_config
from tests.pictures import PROCESSORS, colors, file_of, png, processor, saved_with_processor
from tests.recorded_folders import saved
from viz.canvas.scenes import overlay

CPU = torch.device("cpu")
CLOSE = 1e-6


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shelf")
    for name in PROCESSORS:
        saved_with_processor(path / name, name)
    return path


def of_the_library(folder: Path, data: bytes, **more: Any) -> tuple[Any, torch.Tensor]:
    """What the library returns of an image's file, opened and prepared by itself, and its `pixel_values`."""
    from transformers import AutoModel
    from transformers.image_utils import load_image

    pixels = processor(folder.name)(load_image(Image.open(io.BytesIO(data))), return_tensors="pt")["pixel_values"]
    own = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        return own(pixel_values=pixels, output_attentions=True, output_hidden_states=True, **more), pixels


def same_maps(trace: Trace, wanted: Any) -> None:
    assert len(trace.attention) == len(wanted.attentions)
    for attention, map_ in zip(trace.attention.values(), wanted.attentions, strict=True):
        np.testing.assert_allclose(attention.weights, map_[0].numpy(), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", PROCESSORS)
def test_learned_positions_are_the_table_that_is_added_to_the_patches(engine: LocalEngine, shelf: Path, name: str) -> None:
    """DINOv2 fits its table to the size of an image, so no row of it is added as it is."""
    (stored,) = (table for key, table in load_file(shelf / name / "model.safetensors").items() if "position_embedding" in key)
    asked = Tensors(name, names=("positions/encoder",))
    if name.startswith("dinov2"):
        with pytest.raises(UnknownTensor):
            engine.ask(asked)
        return
    assert np.array_equal(engine.ask(asked)["positions/encoder"], stored.reshape(-1, stored.shape[-1]))


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize("name", PROCESSORS)
def test_maps_and_states_are_the_librarys(engine: LocalEngine, shelf: Path, name: str, kind: str) -> None:
    data = file_of(Image.fromarray(colors()), kind)
    wanted, pixels = of_the_library(shelf / name, data)
    trace = engine.ask(Run(RunRequest(name, engine.ask(Receive(data, "cat.png")), keep=("hidden",))))
    same_maps(trace, wanted)
    for state, own in zip(trace.hidden.values(), wanted.hidden_states[1:], strict=True):
        np.testing.assert_allclose(state, own[0].numpy(), rtol=0, atol=1e-5)
    own = processor(name)(Image.fromarray(np.asarray(Image.open(io.BytesIO(data)))), do_rescale=False, do_normalize=False)
    assert trace.image is not None
    np.testing.assert_array_equal(trace.image, np.moveaxis(np.asarray(own["pixel_values"][0]), 0, -1))
    assert trace.image.shape[:2] == tuple(pixels.shape[2:])


NAMES = {
    "vit": ("[CLS]",),
    "deit": ("[CLS]", "[DIST]"),
    "dinov2": ("[CLS]",),
    "dinov2_with_registers": ("[CLS]", "[REG1]", "[REG2]", "[REG3]", "[REG4]"),
    "clip_vision_model": ("[CLS]",),
    "siglip_vision_model": (),
}


@pytest.mark.parametrize(("name", "added"), NAMES.items())
def test_positions_are_named(engine: LocalEngine, name: str, added: tuple[str, ...]) -> None:
    side = 3 if name == "dinov2" else 4  # its positions are fitted to the crop that its folder asks for
    tokens = engine.ask(Run(RunRequest(name, engine.ask(Receive(png(), "a.png"))))).tokens["source"]
    assert tokens.texts == (*added, *(f"{row},{column}" for row in range(1, side + 1) for column in range(1, side + 1)))
    assert tokens.special == (True,) * len(added) + (False,) * side**2
    assert tokens.ids == ()


def between(wanted: int, found: int) -> Array:
    """[wanted, found]: a triangle over all pixels that become one (bilinear, with antialias)."""
    scale = max(found / wanted, 1.0)
    middles = (np.arange(wanted) + 0.5) * found / wanted
    weights = np.maximum(0, 1 - np.abs(np.arange(found) + 0.5 - middles[:, None]) / scale)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("height", [21, 50])
def test_dinov3_reads_colors_that_are_scaled_before_they_are_resized(engine: LocalEngine, shelf: Path, height: int) -> None:
    from transformers import DINOv3ViTConfig, DINOv3ViTModel

    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_register_tokens": 2}
    own = DINOv3ViTModel(DINOv3ViTConfig(image_size=32, patch_size=8, **sizes)).eval()
    own.save_pretrained(folder := shelf / "dinov3")
    settings = {"image_processor_type": "DINOv3ViTImageProcessorFast", "size": {"height": 32, "width": 24}, "resample": 2}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    image = colors(height, 70)
    trace = engine.ask(Run(RunRequest("dinov3", engine.ask(Receive(file_of(Image.fromarray(image)), "a.png")))))
    resized = np.einsum("ij,jkc,lk->cil", between(32, height), image / 255, between(24, 70))
    assert trace.image is not None
    np.testing.assert_allclose(trace.image, 255 * np.moveaxis(resized, 0, -1), rtol=0, atol=0.501)
    mean, std = (np.reshape(numbers, (3, 1, 1)) for numbers in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    own.set_attn_implementation("eager")
    with torch.inference_mode():
        same_maps(trace, own(pixel_values=torch.tensor((resized - mean) / std).float()[None], output_attentions=True))
    assert trace.tokens["source"].texts[:4] == ("[CLS]", "[REG1]", "[REG2]", "1,1")


def test_a_hidden_patch_is_one_that_the_library_masks(engine: LocalEngine, shelf: Path) -> None:
    data, hidden = png(seed=4), 6
    valid = torch.ones(1, 17, dtype=torch.long)
    valid[0, hidden] = 0
    wanted, _pixels = of_the_library(shelf / "vit", data, attention_mask=valid)
    source = engine.ask(Receive(data, "a.png"))
    trace = engine.ask(Run(RunRequest("vit", source, edits=(Forbid(key=(hidden,)),))))
    same_maps(trace, wanted)
    assert not trace.at("encoder.0.1.self").weights[:, :, hidden].any()


def test_a_head_can_be_silenced(engine: LocalEngine) -> None:
    source = engine.ask(Receive(png(), "a.png"))
    plain = engine.ask(Run(RunRequest("vit", source, keep=("hidden", "context"))))
    silenced = (Silence(site="encoder.0.0.self", head=(1,)),)
    edited = engine.ask(Run(RunRequest("vit", source, keep=("hidden", "context"), edits=silenced)))
    assert not np.allclose(plain.hidden["encoder.0.0"], edited.hidden["encoder.0.0"])
    context = edited.at("encoder.0.0.self").context
    assert context is not None
    assert not context[1].any()


def test_random_features_run_as_before(engine: LocalEngine, shelf: Path) -> None:
    trace = engine.ask(Run(RunRequest("vit", "16 0")))
    assert trace.image is None
    assert len(trace.tokens["source"]) == 17
    with pytest.raises(BadSetting, match="9 rows, and this network reads exactly 16 rows of 192 numbers"):
        engine.ask(Run(RunRequest("vit", "9 0")))


def test_what_an_image_cannot_have_is_refused(engine: LocalEngine) -> None:
    source = engine.ask(Receive(png(), "a.png"))
    with pytest.raises(BadSetting, match="an image has no padding"):
        engine.ask(Run(RunRequest("vit", source, source_valid=3)))
    with pytest.raises(BadSetting, match="an encoder alone generates nothing"):
        engine.ask(Run(RunRequest("vit", source, target="a")))


def test_an_image_that_is_not_here_is_asked_for(engine: LocalEngine) -> None:
    with pytest.raises(UnknownImage, match=r"a link names an image but does not contain it\. Open the same file again"):
        engine.ask(Run(RunRequest("vit", "image-0123456789abcdef")))


def test_equal_files_have_one_name_and_bad_ones_none(engine: LocalEngine) -> None:
    assert engine.ask(Receive(png(), "a.png")) == engine.ask(Receive(png(), "b.png")) == pictures.keep(png(), "c")
    with pytest.raises(BadImage, match=r"cat\.png cannot be read: it is not an image"):
        engine.ask(Receive(b"no image", "cat.png"))


@pytest.mark.parametrize(("height", "width"), [(1, 1), (3, 40), (300, 4000)])
def test_small_and_thin_images_run(engine: LocalEngine, shelf: Path, height: int, width: int) -> None:
    data = png(height, width)
    wanted, _pixels = of_the_library(shelf / "deit", data)
    same_maps(engine.ask(Run(RunRequest("deit", engine.ask(Receive(data, "a.png"))))), wanted)


def test_of_an_animation_the_first_image_is_read(engine: LocalEngine, shelf: Path) -> None:
    frames = [Image.fromarray(colors(20, 30, seed)) for seed in range(3)]
    data = file_of(frames[0], "GIF", save_all=True, append_images=frames[1:])
    trace = engine.ask(Run(RunRequest("vit", engine.ask(Receive(data, "a.gif")))))
    wanted, _pixels = of_the_library(shelf / "vit", data)
    same_maps(trace, wanted)
    assert "The file holds 3 images, of which the first was read." in list(map(str, trace.model["notes"]))


def test_the_image_travels_in_the_trace(engine: LocalEngine) -> None:
    trace = engine.ask(Run(RunRequest("deit", engine.ask(Receive(png(), "a.png")))))
    again = from_bytes(to_bytes(trace))
    check(again)
    assert again.image is not None
    assert trace.image is not None
    np.testing.assert_array_equal(again.image, trace.image)
    assert again.tokens == trace.tokens


def test_an_image_of_another_size_in_a_trace_is_refused(engine: LocalEngine) -> None:
    trace = engine.ask(Run(RunRequest("deit", engine.ask(Receive(png(), "a.png")))))
    with pytest.raises(WireError, match="not of the size that its network reads"):
        check(replace(trace, image=colors(8, 8)))
    strip = trace.tokens["source"]
    with pytest.raises(WireError, match="not the patches of its image"):
        check(replace(trace, tokens={"source": replace(strip, texts=strip.texts[::-1])}))
    model = {**trace.model, "spec": {**trace.model["spec"], "encoder": {**trace.model["spec"]["encoder"], "image": None}}}
    with pytest.raises(WireError, match="its network reads none"):
        check(replace(trace, model=model))


def _changed(folder: Path, name: str, text: str | None) -> Foreign:
    """A folder whose settings of images are others; None: it has none."""
    saved(folder, name)
    if text is not None:
        (folder / "preprocessor_config.json").write_text(text)
    found = loader.load(folder, {}, CPU)
    assert isinstance(found, Foreign)
    assert isinstance(found.network, ForeignViewer)
    return found


VIT = {"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 32}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, r"the folder has no preprocessor_config\.json"),
        ("{", r"preprocessor_config\.json cannot be read"),
        (json.dumps({"image_processor_type": "MyProcessor", "auto_map": {"AutoImageProcessor": "code.My"}}), "MyProcessor"),
        (json.dumps(VIT | {"size": {"height": 10**9, "width": 32}}), r"a side of 1000000000 pixels; allowed are .* 1 to 1,024"),
        (json.dumps(VIT | {"size": 24}), "the shape 3 × 24 × 24, but the network reads 3 × 32 × 32"),
        (json.dumps(VIT | {"image_mean": ["a"]}), "image_mean .* which is not a number"),
    ],
)
def test_a_folder_that_does_not_say_how_opens_and_refuses_images(tmp_path: Path, text: str | None, said: str) -> None:
    found = _changed(tmp_path / "vit", "vit", text)
    with pytest.raises(HeadlightError, match=said):
        run(found, RunRequest("vit", pictures.keep(png(), "a.png")), CPU, "CPU")


def test_names_of_older_versions_are_read(tmp_path: Path) -> None:
    settings = {"feature_extractor_type": "ViTFeatureExtractor", "size": 32, "resample": 2, "do_normalize": True, "do_resize": True}
    found = _changed(tmp_path / "vit", "vit", json.dumps(settings))
    trace = run(found, RunRequest("vit", pictures.keep(png(), "a.png")), CPU, "CPU")
    assert trace.image is not None
    assert trace.image.shape == (32, 32, 3)


def test_what_pools_the_patches_after_the_last_states_is_left_out_and_said(shelf: Path) -> None:
    found = loader.load(shelf / "siglip_vision_model", {}, CPU)
    assert isinstance(found, Foreign)
    said = " ".join(map(str, found.notes))
    assert "head.attention.in_proj_weight" in said
    assert found.info.spec.encoder is not None
    assert found.info.spec.encoder.layers == 2, "its attention over the patches is no layer of the encoder"


@pytest.mark.parametrize("name", TOWERS)
def test_of_a_folder_with_a_network_of_texts_the_one_of_images_runs(tmp_path: Path, name: str) -> None:
    from transformers import AutoModel
    from transformers.image_utils import load_image
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    texts, images = {"vocab_size": 60, "max_position_embeddings": 16}, {"image_size": 32, "patch_size": 8}
    config = CONFIG_MAPPING[name](text_config=sizes | texts, vision_config=sizes | images)
    own: Any = AutoModel.from_config(config, attn_implementation="eager").eval()
    own.save_pretrained(tmp_path)
    processor(f"{name}_vision_model").save_pretrained(tmp_path)
    pixels = processor(f"{name}_vision_model")(load_image(Image.open(io.BytesIO(png()))), return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        wanted = own.vision_model(pixel_values=pixels, output_attentions=True)
    found = loader.load(tmp_path, {}, CPU)
    same_maps(run(found, RunRequest("both", pictures.keep(png(), "a.png")), CPU, "CPU"), wanted)
    said = " ".join(map(str, loader.inspect(tmp_path, {}).notes))
    assert "a network of images and one of texts" in said
    assert "text_model.embeddings.position_embedding.weight" in said


def test_an_architecture_with_unknown_tokens_is_recorded_as_before(tmp_path: Path) -> None:
    saved(tmp_path / "beit", "beit")
    found = loader.load(tmp_path / "beit", {}, CPU)
    assert not isinstance(found.network, ForeignViewer)
    with pytest.raises(BadSetting, match="numbers, because this network has no embedding"):
        run(found, RunRequest("beit", pictures.keep(png(), "a.png")), CPU, "CPU")


def test_the_command_line_reads_an_image(shelf: Path, tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(png())
    out = tmp_path / "cat.trace.safetensors"
    done = CliRunner().invoke(cli, ["run", str(shelf / "vit"), "--image", str(tmp_path / "cat.png"), "--out", str(out)])
    assert done.exit_code == 0, done.output
    wanted, _pixels = of_the_library(shelf / "vit", png())
    same_maps(from_bytes(out.read_bytes()), wanted)
    missing = CliRunner().invoke(cli, ["run", str(shelf / "vit"), "--image", str(tmp_path / "dog.png")])
    assert isinstance(missing.exception, HeadlightError)
    both = CliRunner().invoke(cli, ["run", str(shelf / "vit"), "--image", str(tmp_path / "cat.png"), "--source", "16 0"])
    assert isinstance(both.exception, BadSetting)


def test_what_lies_over_the_image_is_the_softmax_in_double_precision(engine: LocalEngine) -> None:
    source = engine.ask(Receive(png(seed=3), "a.png"))
    trace = engine.ask(Run(RunRequest("vit", source, keep=("qkv",))))
    for site, attention in trace.attention.items():
        assert attention.q is not None
        assert attention.k is not None
        q, k = attention.q.astype(np.float64), attention.k.astype(np.float64)
        scores = np.einsum("hqd,hkd->hqk", q, k) / np.sqrt(q.shape[-1])
        exact = np.exp(scores - scores.max(-1, keepdims=True))
        exact /= exact.sum(-1, keepdims=True)
        for head, token in product(range(attention.heads), (0, 6, 16)):
            row = overlay.over_patches(trace, attention.head(head), token, column=False)
            np.testing.assert_allclose(row.ravel(), exact[head, token, 1:], rtol=0, atol=CLOSE, err_msg=str(site))
            column = overlay.over_patches(trace, attention.head(head), token, column=True)
            np.testing.assert_allclose(column.ravel(), exact[head, 1:, token], rtol=0, atol=CLOSE, err_msg=str(site))


@pytest.mark.parametrize("name", PROCESSORS)
def test_the_processor_prepares_an_image_once(shelf: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = loader.load(shelf / name, {}, CPU)
    assert isinstance(found, Foreign)
    assert found.images is not None
    calls, called = list[object](), type(found.images.processor).__call__

    def counted(*given: Any, **more: Any) -> Any:
        calls.append(given)
        return called(*given, **more)

    monkeypatch.setattr(type(found.images.processor), "__call__", counted)
    run(found, RunRequest(name, pictures.keep(png(), "a.png")), CPU, "CPU")
    assert len(calls) == 1


def test_the_trace_says_which_image_it_read(engine: LocalEngine) -> None:
    trace = engine.ask(Run(RunRequest("deit", engine.ask(Receive(png(40, 30, seed=11), "C:/cats/cat.png")))))
    assert image_facts(from_bytes(to_bytes(trace))) == ImageFacts("cat.png", 30, 40)
    with pytest.raises(WireError, match="says what image it read, and holds none"):
        check(replace(trace, image=None))


def test_networks_of_images_open_on_one_that_is_drawn_here(engine: LocalEngine) -> None:
    info = engine.ask(Describe("vit"))
    assert (info.reads, info.examples) == ("image", (pictures.EXAMPLE,))
    trace = engine.ask(Run(RunRequest("vit", info.examples[0])))
    assert image_facts(trace) == ImageFacts("", 320, 240)
    made = processor("vit")(pictures.drawn_scene(), do_rescale=False, do_normalize=False, input_data_format="channels_last")
    assert trace.image is not None
    np.testing.assert_array_equal(trace.image, np.moveaxis(np.asarray(made["pixel_values"][0]), 0, -1))


def test_a_list_of_models_says_what_it_reads(engine: LocalEngine, shelf: Path) -> None:
    info = engine.ask(Describe("vit"))
    assert info.problem == {}
    assert info.spec["encoder"]["image"] == {"rows": 4, "columns": 4, "side": 8, "channels": 3, "added": ("[CLS]",)}
    assert info.max_source == 17


def test_a_configuration_of_another_size_does_not_open(tmp_path: Path) -> None:
    saved_with_processor(tmp_path / "vit", "vit")
    change_config(tmp_path / "vit", image_size=64)
    with pytest.raises(HeadlightError, match="position_embeddings"):
        loader.load(tmp_path / "vit", {}, CPU)
