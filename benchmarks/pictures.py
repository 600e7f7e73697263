"""The pictures of README and of pages of docs/, taken again from the app as it is: `python -m benchmarks.pictures [NAME …]`.

Each is one page in a Chromium, opened by its link. They are written to docs/images; without a name all of them.
"""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

import click
import torch
from playwright.sync_api import Page, sync_playwright

from benchmarks import images
from benchmarks.browsers import FLAGS, chromium
from benchmarks.servers import ROOT, serving
from tests.captioners import saved_captioner
from viz.features.lectures.script import library

FOLDER = ROOT / "docs" / "images"
AT_REST = "[data-testid=stApp][data-test-script-state=notRunning]"
DRAWN = ".hl canvas, .hl svg, .js-plotly-plot"
QUIET_MS = 1500
"""A page is at rest if no drawing moves and no script runs for so long."""

PLACES = "all => all.map(node => [node.dataset.layout, JSON.stringify(node.getBoundingClientRect())])"


@dataclass(frozen=True)
class Picture:
    """One picture.

    Attributes:
        page: path of the page, as in docs/links.md; empty: Explore; or a lecture that is held.
        size: of the window.
        parameters: of the link.
        opens: title of the part that is opened first, or of the lecture's step; empty: none.
        own: a folder of the networks that are made here, whose weights are random, is the only one that the app has.
    """

    page: str
    size: tuple[int, int]
    scheme: Literal["light", "dark"] = "light"
    parameters: dict[str, str] = field(default_factory=dict)
    opens: str = ""
    own: bool = False

    def link(self, address: str) -> str:
        """The link that opens it."""
        if self.page == HELD:
            steps = [step.title for step in library.load(LECTURE).steps if not step.needs]  # a pair has one place
            return f"{address}{self.page}#{steps.index(self.opens) + 1}"
        return f"{address}{self.page}?{urlencode({'lang': 'en', **self.parameters})}"


STAGE = {"clock": "computation", "stage": "decoder.0.2.cross/weights", "site": "decoder.0.2.cross", "head": "4", "query": "3"}
HIDDEN = {"site": "encoder.0.1.self", "head": "2", "query": "123", "edit": "forbid key=95..97,109..111"}
TODAY = {"model": "captions-lm", "text": "a little girl in a pink dress is holding a", "decode": "greedy", "max": "6"}
ONE_CELL = {"site": "decoder.0.2.self", "head": "1", "query": "9", "key": "8"}
CAPTIONED = {"model": "captioner", "site": "decoder.0.1.cross", "query": "3", "max": "8"}
LECTURE = "today.en"
HELD = f"hold/{LECTURE}"
"""The page of a lecturer, which runs no script."""

PICTURES = {
    "explore": Picture("", (1440, 900)),
    "step": Picture("step", (1280, 800), "dark", {"step": "3"}),
    "stages": Picture("step", (1280, 1100), parameters=STAGE),
    "masks": Picture("masks", (1280, 900)),
    "positions": Picture("positions", (1280, 900), "dark"),
    "beam": Picture("step", (1440, 900), parameters={"decode": "beam"}),
    "training": Picture("training", (1440, 900), parameters={"model": "reverse-digits", "snapshot": "2032"}),
    "cache": Picture("step", (1280, 1900), parameters={"model": "captions-lm"}, opens="The cache: what is kept"),
    "windows": Picture("masks", (1280, 2100), parameters={"model": "captions-lm"}, opens="Windows, prefixes and packed"),
    "rotary": Picture("positions", (1280, 1180), parameters={**TODAY, **ONE_CELL}),
    "shared": Picture("", (1280, 800), parameters=TODAY),
    "tiles": Picture(HELD, (1280, 720), opens="A larger score comes"),
    "lecture": Picture(HELD, (1280, 720), opens="What the answer attends to"),
    "smollm2": Picture("whatif", (1280, 860), parameters={"model": "smollm2"}),
    "images": Picture("whatif", (1280, 860), parameters={"model": "vit", **HIDDEN}, own=True),
    "captioner": Picture("", (1280, 1360), parameters=CAPTIONED, own=True),
    "latents": Picture(HELD, (1280, 720), opens="The vector, and what is made of it"),
    "minilm": Picture("", (1280, 860), parameters={"model": "minilm", "site": "encoder.0.0.self", "head": "2"}),
}


OF_IMAGES = images.Size("vit", 6, 6, 96, (224, 16))
"""The network of the picture `images`."""


def save_captioner(folder: Path) -> None:
    """Writes a small captioner whose random weights differ enough to be seen in its cross-attention."""
    made = saved_captioner(folder, "vit-gpt2")
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if name.endswith("crossattention.q_attn.weight"):
                weight.mul_(8)
    made.save_pretrained(folder)


def take(page: Page, picture: Picture, address: str, file: Path) -> None:
    """Opens one picture's page, waits until it is at rest, and saves it."""
    page.set_viewport_size({"width": picture.size[0], "height": picture.size[1]})
    page.emulate_media(color_scheme=picture.scheme, reduced_motion="reduce")
    page.goto(picture.link(address), wait_until="domcontentloaded")
    if picture.page == HELD:
        page.reload()  # another step of the lecture that is open is no other page
        page.locator(".sheet:not([inert]) .drawing").first.wait_for()
        page.wait_for_timeout(QUIET_MS)
        page.screenshot(path=file)
        return
    page.locator(DRAWN).first.wait_for()
    if picture.opens:
        page.get_by_text(picture.opens).click()
    before = None
    while (now := page.locator(".hl, .js-plotly-plot").evaluate_all(PLACES)) != before or page.locator(".waiting").count():
        before = now
        page.wait_for_timeout(QUIET_MS)
        page.locator(AT_REST).wait_for()
    page.screenshot(path=file)


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(PICTURES)))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=FOLDER, help="folder of the pictures")
def main(names: tuple[str, ...], out: Path) -> None:
    """Takes the pictures again."""
    out.mkdir(parents=True, exist_ok=True)
    wanted = names or tuple(PICTURES)
    with tempfile.TemporaryDirectory() as room, sync_playwright() as playwright:
        images.save(Path(room) / "vit", OF_IMAGES, sharp=6)
        save_captioner(Path(room) / "captioner")
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page()
        page.set_default_timeout(120_000)
        for own, environment in ((False, {}), (True, {"HEADLIGHT_CHECKPOINTS": room})):
            group = [name for name in wanted if PICTURES[name].own is own]
            if not group:
                continue
            with serving(ROOT / "app.py", **environment) as served:
                for name in group:
                    take(page, PICTURES[name], served.address, out / f"{name}.png")
                    click.echo(out / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
