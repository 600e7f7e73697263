"""A network of sounds on every page of the app: what it heard stands in place of the sentence box, and plays on Explore."""

from pathlib import Path

import pytest
import torch

from model.engine.api import Run
from model.engine.local import LocalEngine
from model.inference.sounds import EXAMPLE
from model.requests.request import Decoding, RunRequest
from tests import folders
from tests.app.visiting import EVERY_PAGE, PAGES, Visitor
from tests.sounds import saved_listener, sound_file, tones, wav
from viz.labels import tokens

CROSS = "decoder.0.2.cross"


def test_every_page_draws_a_sound_and_explore_plays_it(shelf: Path) -> None:
    saved_listener(shelf / "whisper")
    visitor = Visitor(model="whisper", max="8")
    for page in EVERY_PAGE:
        visitor.go(page)
        assert visitor.problems == [], page
        assert visitor.drawn or page not in PAGES or page == "positions", page
    visitor.go("explore")
    assert visitor.view.text == EXAMPLE
    assert "Computed tones, 2.0 s" in visitor.words
    scene = visitor.scene("sound")
    trace = LocalEngine(shelf, torch.device("cpu")).ask(Run(RunRequest("whisper", EXAMPLE, decoding=Decoding(max_length=8))))
    assert (scene["site"], scene["head"], scene["seconds"]) == (CROSS, 0, 2.0)
    assert scene["rows"] == tokens.queries(trace, trace.at(CROSS))
    assert any("the heads that the model’s folder names" in each.value for each in visitor.app.caption)


def test_a_sound_that_is_dropped_is_heard_or_the_page_says_why_not(shelf: Path) -> None:
    saved_listener(shelf / "whisper", alignment_heads=None)
    visitor = Visitor("explore", model="whisper", max="8", head="3")
    visitor.app.file_uploader[0].upload("hello.wav", wav(1.3))  # drops anywhere on the page end there
    visitor._run()
    assert visitor.problems == []
    assert visitor.view.text.startswith("sound-")
    assert visitor.view.text != EXAMPLE
    assert "<b>A sound of 1.3 s</b> <small>read as 2 s, frames: 200, each with frequency bands: 80</small>" in visitor.words
    assert visitor.scene("sound")["seconds"] == pytest.approx(1.3)
    said = [each.value for each in visitor.app.caption if "names no heads" in each.value]
    assert said and "Cross-attention, layer 3, head 4" in said[0]  # noqa: PT018


def test_a_sound_for_a_model_that_reads_none_and_a_bad_sound_are_told(shelf: Path) -> None:
    folders.save(shelf / "bert", "bert")
    visitor = Visitor("checkpoint", model="bert")
    visitor.app.file_uploader[0].upload("hello.wav", wav())
    visitor._run()
    assert visitor.problems == [
        "This is an audio file, which bert cannot read. Open a model that can, such as a Whisper folder, and drop the file again."
    ]
    visitor.app.file_uploader[0].upload("empty.wav", sound_file(tones(0)))
    visitor._run()
    assert visitor.problems == [
        "The sound empty.wav cannot be read: it contains no samples. Choose another one, or save it again as WAV or FLAC."
    ]


def test_a_link_to_a_sound_that_is_not_here_says_so(shelf: Path) -> None:
    saved_listener(shelf / "whisper")
    visitor = Visitor("explore", model="whisper", text="sound-0123456789abcdef")
    assert visitor.problems == [
        "The sound sound-0123456789abcdef is not available: a link names a sound but does not contain it. Open the same file again."
    ]
