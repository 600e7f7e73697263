"""`python -m benchmarks.film FILE.webp`: the film that opens the README, of a sentence that is typed into Explore.

The frames and their times are those of a real browser; nothing is drawn or moved afterwards.
"""

import base64
import io
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from PIL import Image
from playwright.sync_api import Page

from benchmarks.browsers import browsing
from benchmarks.servers import ROOT, serving

BEFORE, TYPED = "ein hund", "zwei hunde spielen im schnee ."
KEY_MS, WORD_MS, LAST_MS = 110, 350, 2500
VIEW = {"width": 1180, "height": 740}
WIDTH = 900
MOST_BYTES = 2_000_000
QUALITIES = (80, 65, 50, 35, 20)


@dataclass
class _Film:
    """Frames as they are painted: the time in seconds, and the picture."""

    frames: list[tuple[float, Image.Image]] = field(default_factory=list)

    def take(self, data: str, seconds: float) -> None:
        """Keeps one frame."""
        shown = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")
        self.frames.append((seconds, shown.resize((WIDTH, round(WIDTH * shown.height / shown.width)), Image.Resampling.LANCZOS)))

    def webp(self) -> bytes:
        """The film as WebP, as good as fits into MOST_BYTES."""
        pictures, times = [picture for _at, picture in self.frames], [at for at, _picture in self.frames]
        spans = [max(20, round(1000 * (after - at))) for at, after in pairwise(times)] + [LAST_MS]
        for quality in QUALITIES:
            out = io.BytesIO()
            pictures[0].save(
                out, "WEBP", save_all=True, append_images=pictures[1:], duration=spans, loop=0, quality=quality, method=6
            )
            if out.tell() <= MOST_BYTES:
                break
        return out.getvalue()


def recorded(page: Page) -> _Film:
    """The film of typing into a page that shows Explore."""
    film, client = _Film(), page.context.new_cdp_session(page)

    def on_frame(frame: dict[str, Any]) -> None:
        film.take(frame["data"], frame["metadata"]["timestamp"])
        client.send("Page.screencastFrameAck", {"sessionId": frame["sessionId"]})

    field_ = page.get_by_role("textbox", name="Input sentence")
    field_.focus()
    client.on("Page.screencastFrame", on_frame)
    client.send("Page.startScreencast", {"format": "jpeg", "quality": 95})
    page.wait_for_timeout(600)
    field_.select_text()
    for word in TYPED.split():
        field_.press_sequentially(f"{word} ", delay=KEY_MS)
        page.wait_for_timeout(WORD_MS)
    page.wait_for_timeout(LAST_MS)
    client.send("Page.stopScreencast")
    return film


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
def main(file: Path) -> None:
    """Records the film and writes it to FILE."""
    with browsing() as browser, serving(ROOT / "app.py") as app:
        page = browser.context().new_page()
        page.set_viewport_size({"width": VIEW["width"], "height": VIEW["height"]})
        page.goto(f"{app.address}?model=multi30k-de-en&text={BEFORE.replace(' ', '+')}")
        page.locator(".hl[data-drawing=lines][data-layout]").wait_for(timeout=120_000)
        page.locator("p[role=note] button").click()
        page.locator("[data-testid=stSidebarCollapseButton] button").evaluate("button => button.click()")
        page.wait_for_timeout(2000)
        film = recorded(page)
    data = film.webp()
    file.write_bytes(data)
    click.echo(f"{len(film.frames)} frames, {len(data) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
