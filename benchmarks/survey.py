"""A survey: what its statistics cost beside their runs, what it keeps in memory, and how fast a stored one is read."""

import asyncio
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from playwright.sync_api import Page

from benchmarks.browsers import Browser, browsing
from benchmarks.handling import TOUCHED, frames
from benchmarks.load import p95
from benchmarks.load.visitor import visiting
from benchmarks.recording import ROOT
from benchmarks.servers import HERE, serving
from benchmarks.timing import Row, in_turns, ratio
from benchmarks.visiting import rest, tab
from model.checkpoints.native import Checkpoint
from model.engine.local import LocalEngine
from model.features.survey import tables
from model.features.survey.answers import AT_ONCE
from model.features.survey.questions import MeasuredTexts, MeasureTexts, Text
from model.features.survey.statistics import added, empty
from model.features.survey.survey import BATCH
from model.features.survey.texts import bundled
from model.inference.calls import Ask
from model.inference.run import run
from model.measures.catalogue import MEASURES
from model.measures.of_run import measured
from model.requests.network import AttentionSpec, ModelSpec, StackSpec
from model.requests.request import Decoding, RunRequest
from model.trace.progress import Report
from tests.runs import checkpoint

CPU = torch.device("cpu")
MODEL, TEXTS = "multi30k-de-en", 200
CAPTIONS, LARGE, STORED = f"{TEXTS} captions, 72 heads, measured", "12 × 12 heads, 128 tokens, measured", "a stored survey read"
MEMORY = "memory after 10,000 texts, beside 1,000"
MOVED, DRAWN = "20,000 queries and keys moved", "20,000 queries and keys moved, each frame drawn by plotly"
CACHED, BESIDE = "a visitor's cached run on the page", "a visitor's cached run beside a survey of 1,000 texts"
BETWEEN_SECONDS = 0.25
OPEN_MS = 8000
"""So long a page is watched while it opens."""
EMPTY, LINE, DOTS = "an empty Streamlit page", "a survey's page: its first line", "a survey's page: the dots of a stored survey"
SEEN = """globalThis.seen = {};
const look = () => {
  const roots = [document];
  for (const root of roots) for (const { shadowRoot } of root.querySelectorAll("*")) if (shadowRoot) roots.push(shadowRoot);
  for (const selector of ["[data-testid=stHtml]", "[data-testid=stCaptionContainer]", ".hl[data-drawing=dots] .dot"]) {
    if (roots.some((root) => root.querySelector(selector))) seen[selector] ??= performance.now();
  }
  requestAnimationFrame(look);
};
requestAnimationFrame(look);"""
"""Notes in each frame what is there for the first time, in milliseconds since the navigation began."""
PLANE = "/survey?model=multi30k-de-en&text=Ein+Hund+l%C3%A4uft.&site=encoder.0.2.self&head=3"
PLOTLY_ALONE = "globalThis.headlightMovesDots = true;"
"""Keeps the page's script that moves a copy of the dots from starting."""


def measure(repeats: int) -> Iterator[Row]:
    """The baseline of each ratio is the same runs in the same batches without a measure; that of the moving picture is a number of
    frames per second.

    Raises:
        NoBrowser: there is no Chromium here; everything else has been measured then.
    """
    engine = LocalEngine(ROOT / "checkpoints", CPU, cache_bytes=0)
    texts = bundled(MODEL).items[:TEXTS]
    cases = {f"{TEXTS} captions, run": lambda: _run(engine, texts), CAPTIONS: lambda: _measured(engine, texts)}
    yield from in_turns(cases, repeats)
    large = _large()
    ids = tuple(int(id_) for id_ in np.random.default_rng(0).integers(4, 900, 128))
    fed = partial(run, large, RunRequest("large", ids, decoding=Decoding(max_length=0)), CPU, "")
    yield from in_turns({"12 × 12 heads, 128 tokens, run": fed, LARGE: lambda: measured(fed())}, repeats)
    sizes = [_peak(count) for count in (1000, 10_000)]
    yield Row(MEMORY, float("nan"), sizes[1] / sizes[0], f"{sizes[1] / 1024:.0f} MB beside {sizes[0] / 1024:.0f} MB")
    stored = ROOT / "checkpoints" / MODEL / "survey.parquet"
    yield from (replace(row, ratio=float("nan")) for row in in_turns({STORED: lambda: tables.read(stored)}, repeats))
    with browsing() as browser, serving(ROOT / "app.py") as served:
        with serving(HERE / "empty_app.py") as empty, tab(browser, SEEN) as page:
            yield from _opened(page, served.address, empty.address, repeats)
        yield from _beside(browser, served.address, 10 * repeats)
        yield _moved(browser, served.address, MOVED)
        yield _moved(browser, served.address, DRAWN, PLOTLY_ALONE)


def _opened(page: Page, address: str, empty: str, repeats: int) -> Iterator[Row]:
    """How long a page takes until it shows something: an empty one, and that of a stored survey. Files come from the cache."""
    pages = ((EMPTY, empty, "[data-testid=stHtml]"), (LINE, address, "[data-testid=stCaptionContainer]"), (DOTS, address, ".dot"))
    found: dict[str, list[float]] = {case: [] for case, _address, _selector in pages}
    for turn in range(-1, repeats):
        for own in dict.fromkeys((empty, address)):
            page.goto(own if own == empty else f"{address}survey?model={MODEL}&text=Hund")
            page.wait_for_timeout(OPEN_MS)
            seen = {selector.rpartition(" ")[2]: when for selector, when in page.evaluate("seen").items()}
            for case, of, selector in pages:
                if of == own and turn >= 0:
                    found[case].append(seen[selector])
    for case, times in found.items():
        yield Row(case, statistics.median(times), None if case == EMPTY else ratio(times, found[EMPTY]))


def _beside(browser: Browser, address: str, runs: int) -> Iterator[Row]:
    """Cached runs of a visitor, who shows one of two sentences in turn: alone, then while another one surveys a thousand texts."""
    with ThreadPoolExecutor(1) as thread, tab(browser) as page:  # Playwright has an event loop of its own in this thread
        alone = thread.submit(asyncio.run, _cached(address, runs)).result()
        page.goto(f"{address}survey?model={MODEL}&text=Hund")
        page.locator(".st-key-survey-start").wait_for(state="attached", timeout=120_000)
        rest(page)
        page.locator("summary", has_text="Make a survey").click()
        most = page.locator(".st-key-survey-most input")
        most.fill("1000")
        most.press("Enter")
        rest(page)
        page.locator(".st-key-survey-start button").click()
        page.locator(".st-key-survey-stop button").wait_for(timeout=120_000)
        beside = thread.submit(asyncio.run, _cached(address, runs)).result()
        told = page.locator(".st-key-survey-progress").inner_text().partition(", time")[0]
        page.locator(".st-key-survey-stop button").click(timeout=10_000)  # a survey that has ended measured nothing
    for case, own in ((CACHED, alone), (BESIDE, beside)):
        ratio = None if own is alone else statistics.median(own) / statistics.median(alone)
        yield Row(case, 1000 * statistics.median(own), ratio, "" if own is alone else told)
    yield Row(f"{BESIDE}, p95", 1000 * p95(beside), p95(beside) / p95(alone))
    yield Row(f"{BESIDE}, longest", 1000 * max(beside), note=f"alone {1000 * max(alone):.0f} ms")


async def _cached(address: str, runs: int) -> list[float]:
    """Seconds from Enter to the end of the script, of runs that the engine has kept."""
    found = list[float]()
    async with visiting(address, model=MODEL) as visitor:
        await visitor.join()
        for turn in range(-2, runs):
            began = time.perf_counter()
            await visitor.type(("Ein Hund läuft.", "Eine Frau singt.")[turn % 2])
            if turn >= 0:
                found.append(time.perf_counter() - began)
            await asyncio.sleep(BETWEEN_SECONDS)
    return found


def _moved(browser: Browser, address: str, case: str, *scripts: str) -> Row:
    """Reads a head in as many texts as make 20,000 dots, and moves their picture with the pointer."""
    with tab(browser, TOUCHED, *scripts) as page:
        page.set_default_timeout(180_000)
        page.goto(address.rstrip("/") + PLANE)
        most = page.locator(".st-key-survey-read-most input")
        most.fill(str(most.get_attribute("max")))
        most.press("Enter")
        page.wait_for_timeout(3000)  # until the script has run with it
        page.locator(".st-key-survey-read-start button").click()
        area = page.locator(".st-key-survey-plane-chart .nsewdrag").first
        area.wait_for()
        area.scroll_into_view_if_needed()
        page.wait_for_timeout(3000)
        plotted = "document.querySelector('.st-key-survey-plane-chart .js-plotly-plot')._fullData"
        count = page.evaluate(f"{plotted}.reduce((sum, {{ _length }}) => sum + _length, 0)")
        page.locator(".st-key-survey-plane-chart .modebar-btn[data-val=pan]").first.click()
        box = area.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        row = frames(case, page, lambda turn: page.mouse.move(x + 9 * abs(turn % 40 - 20) - 90, y + 4 * abs(turn % 40 - 20) - 40))
        page.mouse.up()
        return replace(row, note=f"{row.note}; {count:,} dots")


def _measured(engine: LocalEngine, texts: Sequence[Text]) -> None:
    """Measures texts batch after batch, as a survey does."""
    for first in range(0, len(texts), BATCH):
        engine.ask(MeasureTexts(MODEL, texts=tuple(texts[first : first + BATCH]), first=first))


def _run(engine: LocalEngine, texts: Sequence[Text]) -> None:
    """Runs the same texts in the same batches, and measures nothing."""
    model = engine.checkpoint(MODEL, ())
    for first in range(0, len(texts), BATCH):
        question = MeasureTexts(MODEL, texts=tuple(texts[first : first + BATCH]), first=first)

        def work(ask: Ask, _report: Report, question: MeasureTexts = question) -> None:
            requests = [text.request(question, (), encoder=True) for text in question.texts]
            with ThreadPoolExecutor(AT_ONCE) as threads:
                for _trace in threads.map(lambda request: run(model, request, CPU, "", ask), requests):
                    pass

        engine.scheduler.do(question, work)


def _large() -> Checkpoint:
    """A language model of the size of GPT-2 small with random weights and a small vocabulary."""
    stack = StackSpec(
        vocab=1000, d_model=768, layers=12, attention=AttentionSpec(heads=12, head_dim=64), hidden=3072, max_positions=256
    )
    return checkpoint(ModelSpec(encoder=None, decoder=stack))


def _peak(count: int) -> int:
    """Most memory in KiB of a process that adds up the values of so many texts."""
    code = f"from benchmarks.survey import add; add({count})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return int(done.stdout)


def add(count: int) -> None:
    """Adds up random values of texts in batches of 32, and prints the peak of this process's memory in KiB."""
    own, chance = empty({"encoder.0.0.self": 72}), np.random.default_rng(0)
    for first in range(0, count, 32):
        values = chance.random((min(32, count - first), 72, len(MEASURES))).astype(np.float32)
        own = added(own, MeasuredTexts("", own.sites, values, np.full(len(values), 9), {}), first)
    sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
