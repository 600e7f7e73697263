"""Folders of the transformers library on every page of the app."""

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from tokenizers import Tokenizer

from model.engine.api import Receive, Run
from model.engine.local import LocalEngine
from model.inference.pictures import EXAMPLE
from model.requests.edits import Forbid
from model.requests.request import RunRequest
from tests import folders
from tests.app.visiting import EVERY_PAGE, PAGES, Visitor
from tests.pictures import colors, file_of, png, saved_with_processor
from tests.recorded_folders import saved
from viz.features.print import run_archive
from viz.labels import tokens

TOKENIZERS = {
    "bert": folders.word_pieces,
    "gpt2": folders.byte_pairs,
    "marian": folders.sentence_pieces,
    "t5": folders.sentence_pieces,
}


def save(folder: Path, family: str, tokenizer: Tokenizer | None) -> None:
    """A folder as the library saves it; None: without a tokenizer, so that it runs on ids."""
    size = {} if tokenizer is None else {"vocab_size": max(folders.VOCAB, tokenizer.get_vocab_size())}
    folders.save(folder, family, **size)
    if tokenizer is not None:
        tokenizer.save(str(folder / "tokenizer.json"))


@pytest.mark.parametrize("words", [True, False], ids=["words", "ids"])
@pytest.mark.parametrize("family", TOKENIZERS)
def test_every_page_draws_every_kind_of_folder(shelf: Path, family: str, words: bool) -> None:
    save(shelf / family, family, TOKENIZERS[family]() if words else None)
    text = "the dogs play" if words else "4 5 6"
    visitor = Visitor(model=family, text=text, max="5")
    for page in EVERY_PAGE:
        visitor.go(page)
        assert visitor.problems == [], page
        has_no_table = page == "positions" and family == "t5"
        assert visitor.drawn or page not in PAGES or has_no_table, page
    visitor.go("explore")
    trace = LocalEngine(shelf, torch.device("cpu")).ask(Run(RunRequest(family, text, decoding=visitor.view.request().decoding)))
    assert visitor.tokens("source") == tokens.strip(trace.tokens["source"])
    for method in ("sample", "beam") if trace.steps else ():
        visitor.choose("method", method)
        visitor.go("step")
        assert visitor.problems == [], method
        assert visitor.drawn, method
        visitor.go("explore")


def test_a_network_that_only_reads_is_not_said_to_generate(shelf: Path) -> None:
    save(shelf / "bert", "bert", folders.word_pieces())
    visitor = Visitor(model="bert", text="the dogs play")
    visitor.go("whatif")
    assert "generated without the edits" not in visitor.words
    assert "there is no output whose probability could change" in visitor.words
    assert not [choice for choice in visitor.app.get("button_group") if "Edges" in str(choice)]
    visitor.go("explore")
    assert "not what the model makes of it" in visitor.words
    assert "chooses a word" not in visitor.words


@pytest.mark.parametrize(("name", "text", "module"), [("fsmt", "4 6 5", "encoder_attn"), ("beit", "16 0", "attention")])
def test_every_page_of_an_architecture_without_a_row_draws_or_says_why_not(shelf: Path, name: str, text: str, module: str) -> None:
    saved(shelf / name, name)
    visitor = Visitor(model=name, text=text, max="4")
    for page in EVERY_PAGE:
        visitor.go(page)
        assert visitor.problems == [], page
        assert visitor.drawn or page not in PAGES or page in ("positions", "whatif"), page
    visitor.go("whatif")
    assert any("no head can be silenced" in each.value for each in visitor.app.info)
    visitor.go("explore")
    assert any(module in each.value.replace("\\", "") for each in visitor.app.caption)


@pytest.mark.parametrize(("name", "text"), [("gemma2", "4 6 5"), ("gpt_oss", "4 6 5"), ("vit", "16 0")])
def test_every_page_of_an_architecture_whose_layers_were_found_draws(shelf: Path, name: str, text: str) -> None:
    saved(shelf / name, name)
    visitor = Visitor(model=name, text=text, max="4")
    for page in EVERY_PAGE:
        visitor.go(page)
        assert visitor.problems == [], page
        assert visitor.drawn or page not in PAGES or page == "positions", page
    visitor.go("circuit")
    assert [each for each in visitor.problems if "so neither are the parts that wrote its scores and logits" in each]
    visitor.go("whatif")
    assert visitor.drawn
    assert not any("no head can be silenced" in each.value for each in visitor.app.info)


def test_a_folder_in_bfloat16_runs_so_on_every_page_and_in_float32_on_request(shelf: Path) -> None:
    made: Any = folders.save(shelf / "llama", "llama")
    made.to(torch.bfloat16).save_pretrained(shelf / "llama")
    visitor = Visitor(model="llama", text="4 6 5", max="4")
    for page in EVERY_PAGE:
        visitor.go(page)
        assert visitor.problems == [], page
        assert visitor.drawn or page not in PAGES or page == "positions", page
    visitor.go("explore")
    assert any("bfloat16 · not compared with float32" in each.value for each in visitor.app.caption)
    visitor.choose("precision", "float32")
    assert visitor.problems == []
    assert not any("bfloat16" in each.value for each in visitor.app.caption)


def test_an_image_that_is_sent_is_read_by_the_model_that_is_shown_or_the_page_says_that_it_reads_none(shelf: Path) -> None:
    saved_with_processor(shelf / "vit", "vit")
    save(shelf / "bert", "bert", folders.word_pieces())
    visitor = Visitor("checkpoint", model="bert")
    visitor.app.file_uploader[0].upload("photo.png", png(40, 30))
    visitor._run()
    assert visitor.problems == [
        "This is an image file, which bert cannot read. Open a model that can, such as a ViT folder, and drop the file again."
    ]
    visitor = Visitor("explore", model="vit")
    assert visitor.view.text == EXAMPLE
    dropped = visitor.app.file_uploader[0]  # drops anywhere on the page end there
    dropped.upload("photo.png", png(40, 30))
    visitor._run()
    assert visitor.problems == []
    assert visitor.view.text.startswith("image-")
    assert visitor.view.text != EXAMPLE
    assert "<b>photo.png</b> <small>30 × 40 px · read as 32 × 32 px, patches: 4 × 4, each 8 × 8 px</small>" in visitor.words
    scene = visitor.scene("overlay")  # the page stays: it has no page Checkpoint to show
    assert (scene["patches"], scene["query"]) == ({"rows": 4, "columns": 4, "added": 1}, 0)
    trace = LocalEngine(shelf, torch.device("cpu")).ask(Run(RunRequest("vit", visitor.view.text)))
    assert trace.image is not None
    visitor.go("positions")
    assert "Learned positions: 17 vectors of 32 numbers, one for each position." in visitor.words
    assert visitor.scene("cells")["first"]
    visitor.go("explore")
    assert visitor.tokens("source") == tokens.strip(trace.tokens["source"])


def test_a_bad_image_is_refused_where_it_is_dropped_and_the_page_keeps_its_image(shelf: Path) -> None:
    saved_with_processor(shelf / "vit", "vit")
    visitor = Visitor("whatif", model="vit")
    shown = visitor.view
    visitor.app.file_uploader[0].upload("notes.png", b"no image at all")
    visitor._run()
    assert visitor.problems == [
        "The image notes.png cannot be read: it is not an image of one of these kinds: PNG, JPEG, WEBP, GIF, BMP. "
        "Choose another one, or save it again as PNG or JPEG."
    ]
    assert visitor.view == shown
    assert visitor.scene("overlay")
    frames = [Image.fromarray(colors(20, 30, seed)) for seed in range(3)]
    visitor.app.file_uploader[0].upload("many.gif", file_of(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    visitor._run()
    assert visitor.problems == []
    assert any(each.value == r"The file holds 3 images\, of which the first was read\." for each in visitor.app.caption)


def test_brushed_patches_are_hidden_in_the_run_and_in_its_link(shelf: Path) -> None:
    saved_with_processor(shelf / "vit", "vit")
    visitor = Visitor("whatif", model="vit", text=EXAMPLE, edit="forbid key=5..8", off="")
    scene = visitor.scene("overlay")
    assert (scene["hidden"], scene["hides"]) == ([5, 6, 7, 8], True)
    assert visitor.url["edit"] == "forbid key=5..8"
    visitor.go("explore")
    assert visitor.problems == []
    assert visitor.scene("overlay")["hidden"] == [5, 6, 7, 8]
    request = RunRequest("vit", EXAMPLE, edits=(Forbid(key=(5, 6, 7, 8)),))
    trace = LocalEngine(shelf, torch.device("cpu")).ask(Run(request))
    assert not any(one.weights[:, :, 5:9].any() for one in trace.attention.values())
    visitor = Visitor("explore", model="vit", text=EXAMPLE, reading="rollout")
    assert visitor.problems == []
    assert visitor.scene("overlay")["name"].startswith("Rollout")


def test_an_archive_brings_its_image_where_only_the_archive_is(shelf: Path) -> None:
    saved_with_processor(shelf / "vit", "vit")
    engine = LocalEngine(shelf, torch.device("cpu"))
    trace = engine.ask(Run(RunRequest("vit", engine.ask(Receive(png(seed=23), "far.png")))))
    packed = run_archive.archive(trace, run_archive.ArchivedCell(trace.last_cross().site, 1, 3))
    visitor = Visitor("checkpoint")
    visitor.app.file_uploader[0].upload("run.zip", packed)
    visitor._run()
    visitor.go("explore")
    assert visitor.problems == []
    assert visitor.scene("overlay")["patches"] == {"rows": 4, "columns": 4, "added": 1}
    assert "<b>far.png</b> <small>70 × 50 px · read as 32 × 32 px" in visitor.words
    assert "Recorded run of vit: “far.png”." in visitor.words.replace("\\", "")


def test_a_link_without_its_image_asks_for_the_file_and_shows_the_drawn_scene(shelf: Path) -> None:
    saved_with_processor(shelf / "vit", "vit")
    visitor = Visitor("explore", model="vit", text="image-0123456789abcdef")
    (said,) = visitor.problems
    assert "image-0123456789abcdef" in said
    assert said.endswith("Open the same file again.")
    assert visitor.stale
    assert visitor.scene("overlay")["patches"]["rows"] == 4


def test_a_run_that_the_library_ends_is_a_sentence_on_the_page(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was an incident number, and a traceback in the log."""
    from transformers.models.bert.modeling_bert import BertEmbeddings

    save(shelf / "bert", "bert", None)
    true: Any = BertEmbeddings.forward

    def forward(self: Any, input_ids: Any, *given: Any, **named: Any) -> Any:
        if input_ids.shape[1] == 5:
            raise ValueError("five is too many")
        return true(self, input_ids, *given, **named)

    monkeypatch.setattr(BertEmbeddings, "forward", forward)
    visitor = Visitor(model="bert", text="4 5 6 7 8")
    assert any("failed inside a library that it uses: ValueError: five is too many." in text for text in visitor.problems)
    visitor.type("text", "4 5 6")
    assert visitor.problems == []
