"""A key of a lecturer until the next view is painted, in a real browser, with a small model and with one of GPT-2's size."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

from playwright.sync_api import Page

from benchmarks.browsers import browsing
from benchmarks.servers import ROOT, serving
from benchmarks.slow_model import MODEL, save_slow_model
from benchmarks.timing import Row

AIM_MS = 100
KEYS, BETWEEN_MS = 16, 600

LECTURE = """---
title: Steps
language: en
minutes: 1
models: {model}
---

"""
SMALL = "view: /explore?text=Im+Park+spielt+ein+alter+Mann+Gitarre.&site=decoder.0.{layer}.cross&head={head}\n"
LARGE = "view: /explore?text=w{word}+w5+w6+w7+w8+w9+w10+w11&max=4&decode=greedy&site=decoder.0.{layer}.self&head={head}\n"

WATCH = """() => {
  window.painted = [];
  const parts = () => [...document.querySelectorAll(".sheet:not([inert]) .drawing")].flatMap(({ shadowRoot }) => shadowRoot ?? []);
  addEventListener("keydown", ({ key, timeStamp }) => {
    const before = document.body.dataset.shown;
    const look = () => {
      const drawn = parts().flatMap((part) => [...part.querySelectorAll("canvas")]).filter((each) => each.checkVisibility());
      const waits = document.body.dataset.shown === before || !drawn.length || drawn.some(({ width }) => width === 300);
      if (waits) return requestAnimationFrame(look); // a canvas that was not drawn yet is 300 wide
      const after = new MessageChannel(); // its message comes after the frame was painted
      after.port1.onmessage = () => window.painted.push(performance.now() - timeStamp);
      after.port2.postMessage(0);
    };
    if (key === "PageDown") requestAnimationFrame(look);
  }, { capture: true });
}"""


def measure() -> Iterator[Row]:
    """Key → painted of prepared steps, and how long the first view of the large model takes to be prepared."""
    with tempfile.TemporaryDirectory() as room:
        Path(room, "checkpoints").mkdir()
        save_slow_model(Path(room, "checkpoints", MODEL))
        small = [SMALL.format(layer=number % 3, head=number % 8) for number in range(KEYS + 1)]
        large = [LARGE.format(word=4 + number, layer=number % 12, head=number % 12) for number in range(KEYS // 2 + 1)]
        Path(room, "small.en.md").write_text(LECTURE.format(model="multi30k-de-en") + "\n---\n\n".join(small), encoding="utf-8")
        Path(room, "large.en.md").write_text(LECTURE.format(model=MODEL) + "\n---\n\n".join(large), encoding="utf-8")
        yield from _held(room, "small.en", "a small model", KEYS)
        yield from _held(room, "large.en", "a model of 500 MB", KEYS // 2, HEADLIGHT_CHECKPOINTS=str(Path(room, "checkpoints")))


def _held(room: str, name: str, what: str, keys: int, **environment: str) -> Iterator[Row]:
    with serving(ROOT / "app.py", HEADLIGHT_LECTURES=room, HEADLIGHT_CLASSES=room, **environment) as app, browsing() as browser:
        page = browser.context().new_page()
        page.set_viewport_size({"width": 1024, "height": 768})
        page.add_init_script(f"({WATCH})()")
        began = time.perf_counter()
        page.goto(f"{app.address}hold/{name}")
        page.locator(".sheet:not([inert]) [data-layout]").first.wait_for(timeout=120_000)
        yield Row(f"{what}: opened → first view painted", 1000 * (time.perf_counter() - began))
        times = _pressed(page, keys)
    note = f"aim {AIM_MS} ms; {len(times)} of {keys} keys"
    yield Row(f"{what}: key → next view painted, median", median(times), note=note)
    yield Row(f"{what}: key → next view painted, p95", quantiles(times, n=20, method="inclusive")[18], note=note)


def _pressed(page: Page, keys: int) -> list[float]:
    """Milliseconds of each key. The keys come when the next view is prepared, as in a talk."""
    for key in range(keys):
        page.locator(f"body[data-ahead='{key + 1}']").wait_for(timeout=120_000)
        page.wait_for_timeout(BETWEEN_MS)
        page.keyboard.press("PageDown")
    page.wait_for_timeout(BETWEEN_MS)
    found: list[float] = page.evaluate("window.painted")
    return found
