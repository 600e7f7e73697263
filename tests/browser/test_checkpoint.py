"""The page Checkpoint in a real browser: a file is sent, asked about and seen; what is no checkpoint is refused in a sentence."""

import base64
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page

from model.engine.api import Receive, Run
from model.engine.local import LocalEngine
from model.requests.request import RunRequest
from tests.browser.patience import expect
from tests.browser.servers import ROOT
from tests.browser.visits import chips, drawing, hovered_weight, overflow, rest, tile_of, tiles
from tests.known import bundled_engine
from tests.reference import GOLDEN

pytestmark = pytest.mark.browser

FILE = GOLDEN / "000_tiny_a.pt"
CHOSEN = {"Number of encoder heads": "2", "Number of decoder heads": "2", "Number of passes through the decoder": "2"}
TYPED = {"Source padding id": "1", "Target padding id": "1"}
USUAL = {"Start token id": "2", "End token id": "3"}
TOLD = (
    ("bos_id", "2"),
    ("decoder_heads", "2"),
    ("decoder_passes", "2"),
    ("encoder_heads", "2"),
    ("eos_id", "3"),
    ("source_pad_id", "1"),
    ("target_pad_id", "1"),
)


@pytest.fixture
def page(watched: Page, serve: Callable[[Path], str]) -> Page:
    watched.set_viewport_size({"width": 1440, "height": 1500})
    watched.goto(f"{serve(ROOT / 'app.py')}/checkpoint?model=reverse-digits", wait_until="domcontentloaded")
    rest(watched, drawn="[data-testid=stFileUploaderDropzone]")
    return watched


def choose(page: Page, label: str, answer: str) -> None:
    page.get_by_role("combobox", name=label, exact=True).click()
    page.get_by_role("option", name=answer, exact=True).click()


def test_a_file_is_sent_its_questions_are_answered_and_its_heads_are_seen(page: Page, tmp_path: Path) -> None:
    page.locator("input[type=file]").first.set_input_files(FILE)
    expect(page.get_by_text("90 of 90 names are known.")).to_be_visible()
    rest(page)
    for label, answer in CHOSEN.items():
        choose(page, label, answer)
    for label, answer in (TYPED | USUAL).items():
        page.get_by_role("textbox", name=label, exact=True).fill(answer)
    page.get_by_role("button", name="Apply these answers", exact=True).click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download as a folder with these answers").click()
    assert saved.value.suggested_filename == "000_tiny_a.zip"
    with zipfile.ZipFile(saved.value.path()) as archive:
        archive.extractall(tmp_path)
    page.locator(".st-key-open-in-explore button").click()
    drawing(page, "atlas").locator("canvas").first.wait_for()
    rest(page)

    engine = LocalEngine(tmp_path, torch.device("cpu"))
    name = engine.ask(Receive(FILE.read_bytes(), FILE.name))
    trace = engine.ask(Run(RunRequest(name, (2, 0, 4, 5, 6, 7, 3), settings=TOLD)))
    exported = engine.ask(Run(RunRequest("000_tiny_a", (2, 0, 4, 5, 6, 7, 3))))
    assert all((exported.at(site).weights == each.weights).all() for site, each in trace.attention.items())
    expect(chips(page, "source")).to_have_text(list(trace.tokens["source"].texts))
    expect(chips(page, "target")).to_have_text(list(trace.tokens["target"].texts))
    assert {tile["site"] for tile in tiles(page)} == {str(site) for site in trace.attention}
    for site in ("encoder.0.1.self", "decoder.1.1.cross"):
        true = trace.at(site).head(1)[2, 3]
        assert hovered_weight(page, tile_of(page, site, 1), 2, 3) == pytest.approx(true, abs=0.004)


@pytest.mark.thorough
def test_a_document_is_refused_in_a_sentence_and_the_next_file_is_taken_and_nothing_is_wider_than_its_room(page: Page) -> None:
    document = {"name": "paper.pt", "mimeType": "application/octet-stream", "buffer": b"%PDF-1.7\n" + bytes(64)}
    page.locator("input[type=file]").first.set_input_files(document)  # type: ignore[arg-type]  # a FilePayload
    expect(page.get_by_text("Headlight opens safetensors files")).to_be_visible()
    rest(page)
    nothing_is_wider_than_its_room(page)


@pytest.mark.thorough
def test_a_file_too_large_to_be_sent_is_answered_in_words_and_opened_by_its_path(page: Page, tmp_path: Path) -> None:
    large = tmp_path / "large.pt"
    large.touch()
    os.truncate(large, 129 * 2**20)
    expect(page.get_by_test_id("stMetricLabel").get_by_text("parameters", exact=True)).to_be_visible()
    page.locator("input[type=file]").first.set_input_files(large)
    said = page.get_by_text("large.pt is 129 MB, but an upload may be at most 128 MB")
    expect(said).to_be_visible()
    expect(page.get_by_text("parameters", exact=True)).to_have_count(0)
    path = page.get_by_role("textbox", name="Path, name or address of a model")
    path.fill(str(FILE))
    path.press("Enter")
    expect(page.get_by_text("90 of 90 names are known.")).to_be_visible()
    expect(said).to_have_count(0)


def nothing_is_wider_than_its_room(page: Page) -> None:
    page.locator("input[type=file]").first.set_input_files(GOLDEN / "002_tiny_decoder_layer.pt")
    expect(page.get_by_text("Layers or an attention module")).to_be_visible()
    for width in (1024, 390):
        page.set_viewport_size({"width": width, "height": 900})
        rest(page)
        assert overflow(page) <= 0, f"at {width} px"


DROP = """([name, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name));
  const place = document.querySelector("[data-testid=stMain]");
  const tell = (kind) => place.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
  const refused = tell("dragover");
  const hint = document.querySelector(".headlight-drop")?.textContent;
  tell("drop");
  return [refused, hint, document.querySelectorAll(".headlight-drop").length];
}"""
"""Drops a file beside the uploaders: whether the browser would open it, the hint while it is dragged, and the hints left."""


@pytest.mark.thorough
def test_a_file_dropped_on_any_page_becomes_its_card_with_a_grid_of_heads_and_its_attention_one_click_away(
    page: Page, serve: Callable[[Path], str]
) -> None:
    for path in ("masks", "lecture"):
        page.goto(f"{serve(ROOT / 'app.py')}/{path}?model=reverse-digits", wait_until="domcontentloaded")
        page.locator(".st-key-dropped input[type=file]").wait_for(state="attached")
        rest(page)
        told = page.evaluate(DROP, [f"{path}.pt", base64.b64encode(FILE.read_bytes()).decode()])
        assert told == [False, "Drop a checkpoint to open it", 0]
        expect(page.get_by_text("90 of 90 names are known.")).to_be_visible()
        page.wait_for_url("**/checkpoint?**")
    page.goto(f"{serve(ROOT / 'app.py')}/checkpoint?model=reverse-digits", wait_until="domcontentloaded")
    rest(page, drawn=".head-grid td")
    trace = bundled_engine().ask(Run(RunRequest("reverse-digits", "3141")))
    expect(page.locator(".head-grid td")).to_have_count(sum(each.heads for each in trace.attention.values()))
    layers, heads = {(site.stack, site.layer) for site in trace.attention}, {each.heads for each in trace.attention.values()}
    size = page.get_by_test_id("stMetric").filter(has_text="Layers × heads").get_by_test_id("stMetricValue")
    expect(size).to_have_text(f"{len(layers)} × {max(heads)}")
    page.get_by_role("button", name="Show its attention").click()
    drawing(page, "atlas").locator("canvas").first.wait_for()
