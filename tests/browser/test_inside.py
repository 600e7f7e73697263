"""Inside the network, in motion: a token moves with the numbers of the run, a play is one entry of the history, films come out."""

import base64
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page

from model.engine.api import Run
from model.requests.request import KEEP, RunRequest
from model.trace import stages
from model.trace.types import Trace
from tests.browser.emulation import a_phone
from tests.browser.patience import expect
from tests.browser.servers import APP
from tests.browser.test_canvas_component import WRITTEN
from tests.browser.test_pages import box, overlap
from tests.browser.visits import TILES, drawing, has_parameters, overflow, rest, until
from tests.known import bundled_engine
from viz.canvas.scenes.motion import MOST_KEYS

pytestmark = pytest.mark.browser

Serve = Callable[[Path], str]
Within = Callable[[str], Page]
MODEL, TEXT = "multi30k-de-en", "Ein Hund spielt im Schnee."
LONG = "Ein alter Mann mit Hut spielt im Park auf einer Bank Gitarre."
SITE, HEAD, ROW = "decoder.0.1.cross", 2, 3

FRAMES = """(data) => new Promise((done, failed) => {
  const film = Object.assign(document.createElement("video"), { muted: true, playbackRate: 4 });
  const frames = () => film.getVideoPlaybackQuality().totalVideoFrames;
  film.onended = () => done([film.videoWidth, film.videoHeight, frames(), length, film.currentTime]);
  let length;
  film.onloadedmetadata = () => { length = film.duration; };
  film.onerror = () => failed(new Error(film.error.message));
  film.src = `data:video/webm;base64,${data}`;
  film.play();
})"""
"""Width, height and number of frames of a film, as this browser decodes it; its length in seconds by its header, and as played."""

COMES = """(node) => new Promise((done) => {
  const seen = new Set();
  const look = () => {
    seen.add(node.dataset.come);
    if (node.querySelector("input[type=range]").value >= 5) return done([...seen].map(Number));
    requestAnimationFrame(look);
  };
  look();
})"""
"""How far the stages had come in the frames until the sixth was done."""


@pytest.fixture(scope="module")
def ran() -> Trace:
    return bundled_engine().ask(Run(RunRequest(MODEL, TEXT, keep=KEEP)))


def inside(serve: Serve, stage: str, **more: str) -> str:
    link = {"model": MODEL, "text": TEXT, "clock": "computation", "stage": stage, "head": str(HEAD)}
    return f"{serve(APP)}/step?{urlencode(link | more)}"


def shapes(page: Page, stage: str) -> list[dict[str, Any]]:
    """The rectangles of a stage in the window."""
    found: list[dict[str, Any]] = drawing(page, "network").evaluate(TILES)
    return [shape for shape in found if shape["stage"] == stage]


def picture(page: Page) -> Locator:
    return drawing(page, "network").locator(".inside > canvas")


def test_each_shape_says_its_numbers_and_a_click_opens_formula_and_code(
    watched: Page, within: Within, serve: Serve, ran: Trace
) -> None:
    watched.set_viewport_size({"width": 1440, "height": 900})
    page = within(inside(serve, f"{SITE}/weights", site=SITE, query=str(ROW)))
    rest(page)
    weights, tip = ran.at(SITE).weights[HEAD, ROW], page.locator(".tip.shown")
    said = []
    for shape in shapes(page, f"{SITE}/weights"):
        page.mouse.move(shape["x"] + shape["width"] / 2, shape["y"] + shape["height"] / 2)
        expect(tip).to_be_visible()
        said.append(
            float(tip.locator("dd").last.inner_text().replace("·10⁻", "e-").translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")))
        )
    assert said == pytest.approx(weights.tolist(), rel=6e-4), "four significant digits of each weight of the run"
    page.evaluate(WRITTEN)
    page.evaluate("dispatchEvent(new Event('resize'))")
    rest(page)
    assert min(weights) < 0.005, "no weight is too small for two decimals"
    wanted = {"<0.01" if weight < 0.005 else f"{weight:.2f}" for weight in weights}
    assert wanted <= {each["text"] for each in page.evaluate("written")}
    (vector,) = shapes(page, f"{SITE}/queries")
    page.mouse.move(vector["x"] + vector["width"] * 4.5 / vector["columns"], vector["y"] + vector["height"] / 2)
    query = ran.at(SITE).q
    assert query is not None
    until(page, lambda: tip.locator("dd").first.inner_text() == "5")
    assert float(tip.locator("dd").last.inner_text().replace("−", "-")) == pytest.approx(query[HEAD, ROW, 4], rel=6e-4)

    page.mouse.click(vector["x"] + 4, vector["y"] + vector["height"] / 2)
    expect(drawing(page, "network")).to_have_attribute("data-stage", f"{SITE}/queries")
    has_parameters(page, stage=f"{SITE}/queries")
    card = page.locator(".st-key-card-stage")
    expect(card.locator(".katex").first).to_be_visible()
    expect(card.get_by_text("Computed in")).to_be_visible()
    drawing(page, "network").get_by_label("Token", exact=True).select_option(str(ROW - 1))
    has_parameters(page, query=str(ROW - 1), stage=f"{SITE}/queries")


def test_it_opens_on_the_numbers_of_the_run_and_what_comes_later_is_drawn_faintly(
    watched: Page, within: Within, serve: Serve, ran: Trace
) -> None:
    page = within(inside(serve, "encoder/tokens", site="encoder.0.0.self", query="2"))
    rest(page)
    for stage in ("encoder/embedding", "encoder/positioned"):
        (vector,) = shapes(page, stage)
        page.mouse.move(vector["x"] + vector["width"] * 4.5 / vector["columns"], vector["y"] + 1)
        true = stages.recorded(ran, stages.find(ran, stage))
        assert true is not None
        said = page.locator(".tip.shown dd").last
        expect(said).to_be_visible()
        assert float(said.inner_text().replace("−", "-")) == pytest.approx(float(true[2, 4]), rel=6e-4)


@pytest.mark.thorough
def test_a_play_moves_stays_one_entry_of_the_history_and_can_be_scrubbed(watched: Page, within: Within, serve: Serve) -> None:
    watched.set_viewport_size({"width": 1440, "height": 900})
    page = within(inside(serve, "encoder/tokens"))
    network, address = drawing(page, "network"), page.url
    network.locator(".play").click()
    assert len(network.evaluate(COMES)) > 2, "it stood still between its stages"
    assert page.url == address, "the page was asked while it played"
    page.keyboard.press("Space")
    stopped = network.get_attribute("data-stage") or ""
    assert stopped != "encoder/tokens"
    has_parameters(page, stage=stopped)
    rest(page)
    page.go_back()  # by the length of the history one could not tell: it has at most 50 entries, and other tests use the tab
    has_parameters(page, stage="encoder/tokens")
    page.go_forward()
    has_parameters(page, stage=stopped)
    rest(page)
    network.locator("input[type=range]").fill("2.5")
    expect(network).to_have_attribute("data-come", "0.50")
    expect(network.locator(".readout")).not_to_be_empty()
    rest(page)


@pytest.mark.thorough
def test_without_motion_there_are_steps(watched: Page, within: Within, serve: Serve) -> None:
    watched.emulate_media(reduced_motion="reduce")
    page = within(inside(serve, "encoder/tokens"))
    network = drawing(page, "network")
    network.locator(".play").click()
    assert network.evaluate(COMES) == [1.0], "something moved"
    network.locator(".play").click()
    rest(page)
    page.keyboard.press("ArrowRight")
    assert network.get_attribute("data-come") == "1.00"
    rest(page)


@pytest.mark.thorough
def test_what_plays_is_exported_as_a_film(watched: Page, within: Within, serve: Serve, tmp_path: Path) -> None:
    page = within(inside(serve, "encoder/ids"))
    network = drawing(page, "network")
    film = network.get_by_role("button", name="Export as a video")
    with page.expect_download() as coming:
        film.click()
        expect(network).to_have_attribute("data-stage", "encoder.0.0.self/queries")
        network.get_by_role("button", name="Stop and save the video").click()
    assert coming.value.suggested_filename == "multi30k-de-en-inside.webm"
    coming.value.save_as(tmp_path / "film.webm")
    data = (tmp_path / "film.webm").read_bytes()
    assert data[:4] == b"\x1a\x45\xdf\xa3", "no EBML file"
    width, height, frames, length, played = page.evaluate(FRAMES, base64.b64encode(data).decode())
    canvas = picture(page).evaluate("node => [node.width, node.height]")
    assert [width, height] == canvas
    assert frames > 5
    assert length == pytest.approx(played, abs=0.5), "the header says how long the film is"
    expect(film).to_be_visible()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "stage", ["encoder/positioned", "encoder.0.0.self/weights", "decoder.0.2.feed_forward/residual", "output/chosen"]
)
def test_nothing_of_the_picture_is_cut_or_covered(watched: Page, within: Within, serve: Serve, stage: str) -> None:
    page = within(inside(serve, stage, text=LONG))
    page.evaluate(WRITTEN)
    for width, height in ((1440, 900), (1024, 768), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        rest(page)
        written = within_the_picture(page)
        assert [each["text"] for each in written if "…" in each["text"]] == [], width
        if stage.endswith("weights"):
            titles = {"Weighted values", "Heads concatenated", "Residual connection"}
            assert titles <= {each["text"] for each in written}, width
            scores = {each["y"]: each["size"] for each in written if each["align"] == "right" and each["size"] > 11}
            assert len(scores) == MOST_KEYS, "the scores are written in a size that can be read"
            assert min(below - above for above, below in pairwise(sorted(scores))) >= min(scores.values()) - 0.1, width
        network, canvas = drawing(page, "network"), box(picture(page))
        assert overflow(page) <= 1, width
        assert canvas["x"] + canvas["width"] <= width
        assert canvas["y"] + canvas["height"] <= height, "the picture ends below the window"
        parts = [box(part) for part in network.locator(".transport > *").filter(visible=True).all()]
        assert not [part for part in parts if overlap(part, canvas)], width
        placed: list[dict[str, Any]] = network.evaluate(TILES)
        inner: Any = [each | {"width": each["width"] - 1, "height": each["height"] - 1} for each in placed]
        over = [(one["stage"], other["stage"]) for one, other in combinations(inner, 2) if overlap(one, other)]
        assert over == [], width
        for shape in placed:
            assert canvas["x"] <= shape["x"], (width, shape)
            assert shape["x"] + shape["width"] <= canvas["x"] + canvas["width"] + 1, (width, shape)
            assert shape["y"] + shape["height"] <= canvas["y"] + canvas["height"], (width, shape)
    if stage.endswith("weights"):
        for _stage in ("context", "output", "residual"):
            page.keyboard.press("ArrowRight")
        rest(page)
        assert "+ Residual connection" in [each["text"] for each in within_the_picture(page)]


def within_the_picture(page: Page) -> list[dict[str, Any]]:
    """What the picture writes, none of which its edges cut."""
    page.evaluate("written.length = 0")
    page.evaluate("dispatchEvent(new Event('resize'))")
    rest(page)
    written: list[dict[str, Any]] = page.evaluate("written.filter(({ drawing }) => drawing === 'network')")
    width = box(picture(page))["width"]
    assert [each["text"] for each in written if each["left"] < 0 or each["right"] > width] == []
    return written


@pytest.mark.thorough
def test_a_phone_follows_a_token_by_fingers(watched: Page, within: Within, serve: Serve) -> None:
    with a_phone(watched):
        page = within(inside(serve, "encoder/tokens"))
        rest(page)
        tokens = shapes(page, "encoder/tokens")
        assert len({(round(token["x"]), round(token["y"])) for token in tokens}) == len(tokens)
        assert min(token["height"] for token in tokens) >= 12, "tokens lay over each other"
        token, canvas, window = tokens[3], box(picture(page)), box(drawing(page, "network").locator(".window"))
        right = box(page.locator(".st-key-card-stage"))["x"] + box(page.locator(".st-key-card-stage"))["width"]
        assert [part["x"] + part["width"] for part in (canvas, window)] == pytest.approx([right] * 2, abs=2)
        page.mouse.click(token["x"] + 10, token["y"] + token["height"] / 2)
        has_parameters(page, query="3")
