"""Captioners: an image is encoded and a caption written as the library does both, and bad images are refused as everywhere."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from PIL import Image

from model.__main__ import cli
from model.checkpoints import loader
from model.engine.api import Describe, Receive, Run
from model.engine.local import LocalEngine
from model.errors import BadImage, BadSetting
from model.huggingface.network import ForeignCaptioner
from model.inference import pictures
from model.requests.edits import read_edits
from model.requests.request import Decoding, RunRequest
from model.trace.checks import check
from model.trace.serialization import from_bytes, to_bytes
from model.trace.types import Trace
from tests.captioners import CAPTIONERS, END, START, WORDS, network, processor, saved_captioner
from tests.folders import change_config
from tests.pictures import colors, file_of, png

CPU = torch.device("cpu")
CLOSE = 1e-5
LONG = Decoding(max_length=9)
PATCHES = tuple(f"{row},{column}" for row in range(1, 5) for column in range(1, 5))
ADDED = {
    "vit-gpt2": ("[CLS]",),
    "dinov2-bert": ("[CLS]", "[REG1]", "[REG2]", "[REG3]", "[REG4]"),
    "trocr": ("[CLS]", "[DIST]"),
    "blip": ("[CLS]",),
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shelf")
    for name in CAPTIONERS:
        saved_captioner(path / name, name)
    return path


def pixels_of(name: str, data: bytes) -> torch.Tensor:
    """An image's file, opened and prepared by the library."""
    from transformers.image_utils import load_image

    found: torch.Tensor = processor(name)(load_image(Image.open(io.BytesIO(data))), return_tensors="pt")["pixel_values"]
    return found


@torch.inference_mode()
def of_the_library(name: str, data: bytes, ids: tuple[int, ...]) -> dict[str, Any]:
    """Maps by stack and kind, and logits, that the library's own network returns of an image and the ids that it is fed."""
    own, pixels, read = network(name), pixels_of(name, data), torch.tensor([ids])
    if name == "blip":
        seen = own.vision_model(pixel_values=pixels, output_attentions=True)
        said = own.text_decoder(read, encoder_hidden_states=seen.last_hidden_state, output_attentions=True, use_cache=False)
        maps = seen.attentions, said.attentions, said.cross_attentions
    else:
        said = own(pixel_values=pixels, decoder_input_ids=read, output_attentions=True, use_cache=False)
        maps = said.encoder_attentions, said.decoder_attentions, said.cross_attentions
    return dict(zip(("encoder self", "decoder self", "decoder cross"), maps, strict=True)) | {"logits": said.logits}


def same_as_the_library(name: str, trace: Trace, data: bytes) -> None:
    read = trace.tokens["target"].ids[: len(trace.steps)] if trace.request["target"] is None else trace.tokens["target"].ids
    wanted = of_the_library(name, data, read)
    assert trace.logits is not None
    np.testing.assert_allclose(trace.logits, wanted.pop("logits")[0], rtol=0, atol=CLOSE)
    for place, maps in wanted.items():
        found = [each for site, each in trace.attention.items() if f"{site.stack} {site.kind}" == place]
        assert len(found) == len(maps)
        for attention, own in zip(found, maps, strict=True):
            np.testing.assert_allclose(attention.weights, own[0], rtol=0, atol=CLOSE, err_msg=str(attention.site))


@pytest.mark.parametrize("name", CAPTIONERS)
def test_maps_and_logits_of_a_written_caption_are_the_librarys(engine: LocalEngine, name: str) -> None:
    data = png(seed=2)
    trace = engine.ask(Run(RunRequest(name, engine.ask(Receive(data, "cat.png")), decoding=LONG)))
    assert trace.tokens["source"].texts == (*ADDED[name], *PATCHES)
    assert trace.tokens["source"].special == (True,) * len(ADDED[name]) + (False,) * 16
    assert len(trace.attention) == 2 + 2 * 3
    same_as_the_library(name, trace, data)


@pytest.mark.parametrize("name", CAPTIONERS)
def test_a_caption_that_is_given_is_fed(engine: LocalEngine, name: str) -> None:
    data, ids = png(seed=5), (START, 4, 7, 12)
    trace = engine.ask(Run(RunRequest(name, engine.ask(Receive(data, "cat.png")), ids)))
    same_as_the_library(name, trace, data)
    typed = engine.ask(Run(RunRequest(name, engine.ask(Receive(data, "cat.png")), "a house stands")))
    assert typed.tokens["target"].texts == ("[START]", "a", "house", "stands", "[END]")
    assert "unknown" not in typed.model
    lacking = engine.ask(Run(RunRequest(name, typed.request["source"], "a castle stands")))
    assert lacking.model["unknown"] == {"target": "[UNK]"}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CAPTIONERS)
def test_captions_are_those_of_generate(engine: LocalEngine, name: str, seed: int) -> None:
    data, own = png(seed=seed), network(name)
    with torch.inference_mode():
        (wanted,) = own.generate(pixels_of(name, data), max_new_tokens=9, do_sample=False)
    ids = list(wanted.tolist())
    trace = engine.ask(Run(RunRequest(name, engine.ask(Receive(data, "cat.png")), decoding=LONG)))
    assert list(trace.tokens["target"].ids) == ids[: ids.index(END) + 1] if END in ids else ids
    assert len(set(ids)) > 2, "a caption of one word would prove little"


@pytest.mark.parametrize("name", CAPTIONERS)
def test_the_beginning_of_a_caption_can_be_given(engine: LocalEngine, name: str) -> None:
    """A captioner goes on with words that stand before its caption, as BLIP's authors let it."""
    data, own, begin = png(seed=1), network(name), (4, WORDS.index("tree"))
    source = engine.ask(Receive(data, "cat.png"))
    trace = engine.ask(Run(RunRequest(name, source, decoding=LONG, begin=begin)))
    assert trace.tokens["target"].ids[:3] == (START, *begin)
    given = torch.tensor([[START, *begin]])
    said = {"decoder_input_ids": given} if name != "blip" else {"input_ids": torch.cat([given, given[:, :1]], 1)}
    with torch.inference_mode():
        (wanted,) = own.generate(pixels_of(name, data), max_new_tokens=7, do_sample=False, **said)
    assert list(trace.tokens["target"].ids) == list(wanted.tolist())[: len(trace.tokens["target"].ids)]


@pytest.mark.parametrize("name", CAPTIONERS)
def test_beams_and_samples_are_written(engine: LocalEngine, name: str) -> None:
    source = engine.ask(Receive(png(seed=3), "cat.png"))
    beams = engine.ask(Run(RunRequest(name, source, decoding=Decoding(method="beam", beam_size=3, max_length=6))))
    assert beams.tree is not None
    sampled = Decoding(method="sample", temperature=2.0, seed=4, max_length=6)
    one, other = (engine.ask(Run(RunRequest(name, source, decoding=sampled))) for _again in range(2))
    assert one.tokens["target"].ids == other.tokens["target"].ids
    for trace in (beams, one):
        same_as_the_library(name, trace, png(seed=3))


HIDDEN, WORD = 5, 2
"""The patch and the written word that are hidden."""

PARTS = {
    "vit-gpt2": ("encoder.embeddings", "decoder.transformer.h.{layer}.crossattention.c_proj"),
    "dinov2-bert": ("encoder.embeddings", "decoder.bert.encoder.layer.{layer}.crossattention.output.dense"),
    "trocr": ("encoder.embeddings", "decoder.model.decoder.layers.{layer}.encoder_attn.out_proj"),
    "blip": ("vision_model.embeddings", "text_decoder.bert.encoder.layer.{layer}.crossattention.output.dense"),
}
"""The library's modules that make the positions of an image, and that read the context of a layer's cross-attention."""


def silenced(own: Any, name: str) -> dict[str, Any]:
    """The second head of the middle layer's cross-attention gives the projection nothing but zeros."""

    def without(module: Any, given: Any) -> Any:
        return (torch.cat([given[0][..., :8], torch.zeros_like(given[0][..., 8:16]), given[0][..., 16:]], dim=-1),)

    own.get_submodule(PARTS[name][1].format(layer=1)).register_forward_pre_hook(without)
    return {}


def without_a_patch(own: Any, name: str) -> dict[str, Any]:
    """The patch is not there at all: no layer tells positions apart but by what was added to the patches before."""
    place = len(ADDED[name]) + HIDDEN

    def without(module: Any, given: Any, made: Any) -> Any:
        states, *more = made if isinstance(made, tuple) else (made,)
        left = torch.cat([states[:, :place], states[:, place + 1 :]], dim=1)
        return (left, *more) if isinstance(made, tuple) else left

    own.get_submodule(PARTS[name][0]).register_forward_hook(without)
    return {}


def without_a_word(own: Any, name: str) -> dict[str, Any]:
    """The library's own mask of the text hides it."""
    mask = torch.tensor([[position != WORD for position in range(4)]]).long()
    return {"attention_mask" if name == "blip" else "decoder_attention_mask": mask}


EDITED: dict[str, tuple[str, Callable[[Any, str], dict[str, Any]]]] = {
    "a silent head": ("silence site=decoder.0.1.cross head=1", silenced),
    "a hidden patch": ("forbid stack=encoder key={patch}; forbid kind=cross key={patch}", without_a_patch),
    "a hidden word": (f"forbid stack=decoder kind=self key={WORD}", without_a_word),
}


@pytest.mark.parametrize("edit", EDITED)
@pytest.mark.parametrize("name", CAPTIONERS)
def test_an_edit_does_what_the_library_does_so_changed(engine: LocalEngine, name: str, edit: str) -> None:
    data, ids, (text, change) = png(seed=4), (START, 4, 6, 9), EDITED[edit]
    source, edits = engine.ask(Receive(data, "a.png")), read_edits(text.format(patch=len(ADDED[name]) + HIDDEN))
    plain, trace = (engine.ask(Run(RunRequest(name, source, ids, edits=each))) for each in ((), edits))
    own = network(name)
    named = {"input_ids" if name == "blip" else "decoder_input_ids": torch.tensor([ids]), **change(own, name)}
    with torch.inference_mode():
        wanted = own(pixel_values=pixels_of(name, data), **named).logits[0]
    assert trace.logits is not None
    assert plain.logits is not None
    np.testing.assert_allclose(trace.logits, wanted, rtol=0, atol=CLOSE)
    assert not np.allclose(trace.logits, plain.logits, atol=1e-3)


@pytest.mark.parametrize("name", CAPTIONERS)
def test_a_caption_is_written_with_a_silent_head(engine: LocalEngine, name: str) -> None:
    """Each step of an edited decode, with the library's cache, gives what the edited pass over the whole caption gives."""
    source, edits = engine.ask(Receive(png(seed=4), "a.png")), read_edits(EDITED["a silent head"][0])
    trace = engine.ask(Run(RunRequest(name, source, decoding=LONG, edits=edits)))
    again = engine.ask(Run(RunRequest(name, source, trace.tokens["target"].ids, edits=edits)))
    assert trace.logits is not None
    assert again.logits is not None
    np.testing.assert_allclose(trace.logits, again.logits[: len(trace.logits)], rtol=0, atol=CLOSE)


def test_captioners_run_layer_by_layer(shelf: Path) -> None:
    for name in CAPTIONERS:
        assert isinstance(loader.load(shelf / name, {}, CPU).network, ForeignCaptioner)


@pytest.mark.parametrize("name", CAPTIONERS)
def test_its_trace_is_whole_again(engine: LocalEngine, name: str) -> None:
    trace = engine.ask(Run(RunRequest(name, engine.ask(Receive(png(seed=6), "cat.png")), decoding=LONG)))
    again = from_bytes(to_bytes(trace))
    check(again)
    assert again.tokens == trace.tokens
    assert again.image is not None
    assert trace.image is not None
    np.testing.assert_array_equal(again.image, trace.image)
    info = engine.ask(Describe(name))
    assert (info.reads, info.writes, info.examples) == ("image", True, (pictures.EXAMPLE,))


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "huge": (lambda: file_of(Image.new("1", (5_001, 5_000))), "5,001 × 5,000 pixels"),
    "truncated": (lambda: png(200, 200)[:3000], "it ends before its data are complete"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_images_are_refused_in_a_sentence(engine: LocalEngine, kind: str) -> None:
    made, said = BAD[kind]
    with pytest.raises(BadImage, match=said):
        engine.ask(Receive(made(), "bad.png"))


def _animated() -> bytes:
    frames = [Image.fromarray(colors(20, 30, seed)) for seed in range(3)]
    return file_of(frames[0], "GIF", save_all=True, append_images=frames[1:])


def _turned() -> bytes:
    exif: Any = Image.Exif()
    exif[0x0112] = 6
    return file_of(Image.fromarray(colors(40, 20)), "JPEG", exif=exif)


ODD = {
    "1 × 1": lambda: png(1, 1),
    "thin": lambda: png(3, 60),
    "animated": _animated,
    "CMYK": lambda: file_of(Image.fromarray(colors()).convert("CMYK"), "JPEG"),
    "turned": _turned,
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("name", ["vit-gpt2", "blip"])
def test_odd_images_are_read_as_the_library_reads_them(engine: LocalEngine, name: str, kind: str) -> None:
    data = ODD[kind]()
    trace = engine.ask(Run(RunRequest(name, engine.ask(Receive(data, "odd")), (START, 4, 7))))
    same_as_the_library(name, trace, data)
    if kind == "animated":
        assert "The file holds 3 images, of which the first was read." in list(map(str, trace.model["notes"]))


def test_what_an_image_cannot_have_is_refused(engine: LocalEngine) -> None:
    for name in CAPTIONERS:
        with pytest.raises(BadSetting, match="an image has no padding"):
            engine.ask(Run(RunRequest(name, pictures.EXAMPLE, source_valid=3)))


def test_numbers_instead_of_an_image_run(engine: LocalEngine) -> None:
    for name in CAPTIONERS:
        trace = engine.ask(Run(RunRequest(name, "16 0", decoding=LONG)))
        assert trace.image is None
        assert len(trace.tokens["source"]) == 16 + len(ADDED[name])
        with pytest.raises(BadSetting, match="9 rows, and this network reads exactly 16 rows of 192 numbers"):
            engine.ask(Run(RunRequest(name, "9 0")))


def test_the_processor_may_lie_in_a_newer_file(shelf: Path, tmp_path: Path) -> None:
    """The library's processors of captioners write one file for words and images."""
    saved_captioner(tmp_path / "blip", "blip")
    old = tmp_path / "blip" / "preprocessor_config.json"
    (tmp_path / "blip" / "processor_config.json").write_text(f'{{"image_processor": {old.read_text()}}}')
    old.unlink()
    one, other = (
        LocalEngine(path, CPU).ask(Run(RunRequest("blip", pictures.EXAMPLE, decoding=LONG))) for path in (shelf, tmp_path)
    )
    assert one.tokens == other.tokens


def test_a_blip_that_writes_no_captions_is_refused(tmp_path: Path) -> None:
    saved_captioner(tmp_path / "blip", "blip")
    change_config(tmp_path / "blip", architectures=["BlipForImageTextRetrieval"])
    with pytest.raises(Exception, match="reads images and text together"):
        loader.load(tmp_path / "blip", {}, CPU)


def test_the_command_line_writes_a_caption(shelf: Path, tmp_path: Path, engine: LocalEngine) -> None:
    (tmp_path / "cat.png").write_bytes(png())
    out = tmp_path / "cat.trace.safetensors"
    asked = ["run", str(shelf / "vit-gpt2"), "--image", str(tmp_path / "cat.png"), "--max-length", "9", "--out", str(out)]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 0, done.output
    wanted = engine.ask(Run(RunRequest("vit-gpt2", engine.ask(Receive(png(), "cat.png")), decoding=LONG)))
    assert from_bytes(out.read_bytes()).tokens == wanted.tokens
