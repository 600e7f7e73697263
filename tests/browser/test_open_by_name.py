"""A model by its name in a browser: what a download takes, its progress, a stop, the picture, and all of it without the Hub."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from tests import folders, opened
from tests.browser.patience import expect
from tests.browser.servers import APP, free_port, started
from tests.browser.visits import drawing, has_parameters, overflow, rest
from tests.hub_server import COMMIT, Hub, Repo, contents, serving
from tests.patience import HANG_S

pytestmark = pytest.mark.browser

NAME = "openai-community/gpt2"
PINNED = f"hub:{NAME}@{COMMIT}"
FIELD = "Path, name or address of a model"
HALF = 2**18


@dataclass(frozen=True)
class Place:
    """The app of somebody whose Hub is that of the tests."""

    address: str
    hub: Hub
    home: Path


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder, home = tmp_path_factory.mktemp("gpt2"), tmp_path_factory.mktemp("home")
    words = folders.byte_pairs()
    folders.save(folder, "gpt2", vocab_size=words.get_vocab_size(), n_positions=128, n_embd=96)
    words.save(str(folder / "tokenizer.json"))
    whole = contents(folder)
    weights = whole["model.safetensors"]
    repos = {
        NAME: Repo(whole),
        "wrong/hash": Repo(whole, announced={"model.safetensors": bytes(len(weights))}),
    }
    hub = Hub(repos, old={"gpt2": NAME})
    with serving(hub):
        variables = {"HF_ENDPOINT": hub.url, "HF_HOME": str(home), "HEADLIGHT_HUB": "", "HF_HUB_OFFLINE": "", "HF_TOKEN": ""}
        variables["HEADLIGHT_MODELS"] = os.environ["HEADLIGHT_MODELS"]
        address, process = started(APP, free_port(), tmp_path_factory.mktemp("served"), **variables)
        yield Place(address, hub, home)
        process.kill()
        process.wait(timeout=HANG_S)


def ask(page: Page, text: str) -> None:
    """Types into the field of the dialog, or of the page Checkpoint."""
    field = page.get_by_role("textbox", name=FIELD)
    field.fill(text)
    field.press("Enter")


def open_dialog(page: Page) -> None:
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="Open a model…").click()


def test_from_a_name_to_a_picture_in_three_actions_and_without_the_hub_in_two(there: Place, watched: Page) -> None:
    page, hub = watched, there.hub
    shutil.rmtree(there.home / "hub", ignore_errors=True)
    hub.breaks, hub.holds, hub.fails, hub.asked = 0, False, {}, []
    page.set_viewport_size({"width": 1440, "height": 1000})
    page.goto(f"{there.address}/?{urlencode({'model': 'reverse-digits'})}", wait_until="domcontentloaded")
    rest(page)
    open_dialog(page)  # one
    ask(page, "gpt2")  # two
    facts = page.locator("dl.facts")
    for fact in (" in 4 files", "mit", "2 × 3", "float32"):
        expect(facts).to_contain_text(fact)
    assert not any("model.safetensors" in path for _method, path, *_rest in hub.asked), "nothing was downloaded"

    hub.breaks, hub.holds = HALF, True
    page.get_by_role("button", name="Download").click()  # three
    expect(page.locator("progress")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    going_on = page.get_by_role("button", name="Continue: download the other")
    expect(going_on).to_be_visible()
    expect(page.get_by_role("textbox", name=FIELD)).to_have_value("gpt2")

    hub.breaks, hub.holds, hub.asked = 0, False, []
    going_on.click()
    has_parameters(page, model=PINNED)
    drawing(page, "atlas").locator("canvas").first.wait_for()
    rest(page)
    (span,) = [span for method, path, _t, span in hub.asked if method == "GET" and "model.safetensors" in path]
    begun = int(span.removeprefix("bytes=").removesuffix("-"))
    assert begun >= HALF, "it goes on where it was"
    assert begun % HALF == 0  # the library asks again by itself while a connection brings nothing
    expect(page.get_by_role("combobox", name="Model")).to_have_value(NAME)

    hub.fails, hub.asked = {"/": 503}, []  # from here on nobody answers
    page.goto(f"{there.address}/masks?{urlencode({'model': 'hub:gpt2', 'text': 'the dog dogs'})}", wait_until="domcontentloaded")
    has_parameters(page, model=PINNED)  # an unpinned link gets the commit
    rest(page)
    expect(page.get_by_text("There is no usable model")).to_have_count(0)

    page.goto(f"{there.address}/?{urlencode({'model': 'reverse-digits'})}", wait_until="domcontentloaded")
    rest(page)
    open_dialog(page)  # one
    rest(page)
    page.locator(".st-key-model-list").get_by_role("button", name=NAME).click()  # two
    has_parameters(page, model=PINNED)
    drawing(page, "atlas").locator("canvas").first.wait_for()
    rest(page)
    assert not hub.asked


@pytest.mark.thorough
def test_checkpoint_begins_with_the_field_and_says_what_failed_and_the_way_out(there: Place, watched: Page) -> None:
    page, hub = watched, there.hub
    page.set_viewport_size({"width": 1440, "height": 1000})
    page.goto(f"{there.address}/checkpoint", wait_until="domcontentloaded")
    rest(page, drawn="[data-testid=stFileUploaderDropzone]")
    expect(page.get_by_text("parameters", exact=True)).to_have_count(0)  # of a model that nobody asked for
    for typed, status, said in (
        ("two words", 200, "No model is called “two words”"),
        ("nobody/nothing", 200, "The Hub shows no model “nobody/nothing”"),
        ("another/model", 503, "it has an internal error; try again later"),
    ):
        hub.fails = {} if status == 200 else {"/api/models/": status}
        ask(page, typed)
        expect(page.get_by_text(said)).to_be_visible()
    hub.fails = {}
    ask(page, "wrong/hash")
    page.get_by_role("button", name="Download").click()
    expect(page.get_by_text("does not have the hash that the Hub announces")).to_be_visible()
    rest(page)
    for width in (1024, 390):
        page.set_viewport_size({"width": width, "height": 900})
        rest(page)
        assert overflow(page) <= 0, f"at {width} px"


@pytest.mark.thorough
def test_what_was_typed_as_a_path_is_one(there: Place, watched: Page, tmp_path: Path) -> None:
    folders.save(tmp_path / "tiny-gpt2", "gpt2")
    page = watched
    page.goto(f"{there.address}/checkpoint", wait_until="domcontentloaded")
    rest(page, drawn="[data-testid=stFileUploaderDropzone]")
    ask(page, f'"{tmp_path / "tiny-gpt2"}"')
    expect(page.locator(".st-key-open-in-explore button")).to_be_visible()
    expect(page.locator(".st-key-model-list").get_by_role("button", name="tiny-gpt2")).to_be_visible()


@pytest.mark.thorough
def test_a_file_that_is_dropped_on_the_dialog_is_shown_by_the_page(there: Place, watched: Page, tmp_path: Path) -> None:
    page, file = watched, tmp_path / "vit.trace.safetensors"
    file.write_bytes(opened.file(opened.program()))
    page.goto(f"{there.address}/masks?{urlencode({'model': 'reverse-digits'})}", wait_until="domcontentloaded")
    rest(page)
    open_dialog(page)
    page.get_by_role("dialog").locator("input[type=file]").set_input_files(file)
    expect(page.get_by_text("A recorded run, opened from a trace file.")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("combobox", name="Model")).to_have_value("vit")
