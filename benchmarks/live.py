"""Explore while somebody types: key → painted at a pause, server CPU of a pause, thirty people at once, tokens as they come."""

import asyncio
import json
import re
import statistics
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psutil
import torch
from playwright.sync_api import Page

from benchmarks.app_resources import cpu
from benchmarks.browsers import Browser, browsing
from benchmarks.enter import SENTENCE, STRIPS, WATCH, line_of
from benchmarks.load.visitor import NO_HEADERS, Visitor, visiting
from benchmarks.servers import HERE, ROOT, NoProxy, serving, serving_processes
from benchmarks.slow_model import MODEL as SLOW
from benchmarks.slow_model import save_slow_model
from benchmarks.timing import Row
from model.engine.api import Run
from model.engine.local import CHECKPOINTS, LocalEngine
from model.requests.request import Decoding, RunRequest

MODEL = "multi30k-de-en"
WORDS = (12, 50)
PAUSE_MS = 120
"""The default of HEADLIGHT_LIVE."""

PAUSES = 5
"""Pauses in typing one sentence."""

PEOPLE, QUESTIONS = 30, 6
BETWEEN_SECONDS = 0.5
"""Between two pauses of one person: faster than the second after which the page's script is told."""

HALF = PEOPLE // 2
CROWD = f"{PEOPLE} people who type at once, p95"
PROCESSES = f"{PEOPLE} people who type at once, two processes, p95"
FIRST = "first of 60 tokens painted, GPT-2's size"
LONGEST = "longest time between two frames while 60 tokens come"


def measure(repeats: int) -> Iterator[Row]:
    """Types into warm apps.

    Raises:
        NoBrowser: there is no Chromium here.
    """
    with browsing() as browser, serving(ROOT / "app.py") as app, serving(HERE / "one_line.py") as line:
        for words in WORDS:
            yield from _keys(browser, f"{app.address}?model=multi30k-de-en", words, 4 * repeats)
        yield _cpu_of_a_pause(browser, app.address, psutil.Process(app.pid), 10 * repeats)
        one_line = statistics.median(line_of(browser, line.address, repeats))
    with serving(ROOT / "app.py") as app:
        alone, *rows = _people(app.address)
        yield from (alone, *rows)
    yield _two_processes(alone)
    with TemporaryDirectory() as folder:
        save_slow_model(Path(folder) / SLOW)
        with browsing() as browser, serving(ROOT / "app.py", HEADLIGHT_CHECKPOINTS=folder) as app:
            yield from _tokens(browser, app.address, Path(folder), one_line, repeats)


def sentence(words: int, turn: int) -> str:
    """A new sentence of so many words."""
    known = SENTENCE.split()
    return " ".join(known[(turn + place) % len(known)] for place in range(words))


def _opened(browser: Browser, address: str) -> Page:
    page = browser.context().new_page()
    page.add_init_script(WATCH)
    page.goto(address)
    page.wait_for_function(f"globalThis.headlightWatch?.text('{STRIPS}')", timeout=120_000)
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    return page


def _keys(browser: Browser, address: str, words: int, turns: int) -> Iterator[Row]:
    """Milliseconds from a key press to the last stroke of its picture, without the pause."""
    page = _opened(browser, f"{address}?model={MODEL}")
    field, found = page.locator("[data-testid=stTextInput] input").last, list[float]()
    for turn in range(turns + 2):
        field.fill(sentence(words, turn))
        page.wait_for_timeout(1500)  # its picture, and the script
        page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
        before = json.dumps(page.evaluate(f"headlightWatch.text('{STRIPS}')"))
        page.evaluate(f"headlightWatch.start(() => headlightWatch.text('{STRIPS}') !== {before})")
        field.press("End")
        field.press_sequentially("s")
        page.wait_for_function("headlightWatch.spans !== null", timeout=60_000)
        found.append(page.evaluate("headlightWatch.spans.painted") - PAUSE_MS)
    page.context.close()
    found = found[2:]
    yield Row(f"key → painted at a pause, {words} words", statistics.median(found), note="the model included, the pause not")
    yield Row(f"key → painted at a pause, {words} words, p95", _p95(found))


def _cpu_of_a_pause(browser: Browser, address: str, app: psutil.Process, turns: int) -> Row:
    """CPU of the app for a pause in typing, with that of the model alone for the same sentences; each is typed word by word."""
    page = _opened(browser, f"{address}?model={MODEL}")
    field = page.locator("[data-testid=stTextInput] input").last
    texts = [sentence(8 + turn % PAUSES, turn // PAUSES) + " x" for turn in range(turns)]
    field.fill("eine frau")
    page.wait_for_timeout(2000)
    before = cpu(app)
    for text in texts:
        field.fill(text)
        page.wait_for_timeout(1000 * BETWEEN_SECONDS)
    taken = (cpu(app) - before) / turns
    page.context.close()
    engine = LocalEngine(CHECKPOINTS, torch.device("cpu"))
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, (psutil.cpu_count() or 2) // 2))  # as the app
    engine.ask(Run(RunRequest(MODEL, "eine frau")))
    began = time.process_time()
    for text in texts:
        engine.ask(Run(RunRequest(MODEL, text)))
    alone = (time.process_time() - began) / turns
    torch.set_num_threads(threads)
    return Row("server CPU of a pause", 1000 * taken, taken / alone, f"ratio to the model alone, {1000 * alone:.0f} ms")


def _two_processes(alone: Row) -> Row:
    """Thirty people at two processes of the app behind a proxy, relative to one person at one process."""
    try:
        with serving_processes() as proxy:
            span = 1000 * _p95(asyncio.run(_typing(proxy.address, PEOPLE)))
    except NoProxy as error:
        return Row(PROCESSES, float("nan"), note=str(error))
    return Row(PROCESSES, span, span / alone.milliseconds, "of one alone at one process; every picture was checked")


def _people(address: str) -> Iterator[Row]:
    """One person who types alone, fifteen and thirty at once."""
    alone, half, all_ = (_p95(asyncio.run(_typing(address, people))) for people in (1, HALF, PEOPLE))
    yield Row("a person who types alone, p95", 1000 * alone, note="question → last frame, without a browser")
    yield Row(f"{HALF} people who type at once, p95", 1000 * half, half / alone, "of one alone")
    yield Row(CROWD, 1000 * all_, all_ / alone, "of one alone; every picture was checked")


async def _typing(address: str, people: int) -> list[float]:
    """Seconds of each question of so many people, all with sentences of their own.

    Raises:
        AssertionError: an answer was about another sentence.
    """
    async with AsyncExitStack() as stay:
        clients = [
            await stay.enter_async_context(httpx.AsyncClient(base_url=address, timeout=120, trust_env=False)) for _ in range(people)
        ]
        there = []
        for client in clients:
            cookies = (await client.get("")).cookies.items()  # a proxy says in one where the visitor belongs
            headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies)} if cookies else NO_HEADERS
            there.append(await stay.enter_async_context(visiting(address, headers, model=MODEL)))
            await there[-1].join()

        async def type_(person: int, path: str) -> list[float]:
            spans, client = [], clients[person]
            await asyncio.sleep(BETWEEN_SECONDS * person / people)
            for turn in range(QUESTIONS):
                text = f"{people} {person} {sentence(10 + turn, person)}"  # one more word at each pause
                began = time.perf_counter()
                answer = await client.post(path, json={"text": text}, headers={"sec-fetch-site": "same-origin"})
                spans.append(time.perf_counter() - began)
                assert (found := drawn_texts(answer.content)) == {text}, (found, text)
                await asyncio.sleep(max(0.0, BETWEEN_SECONDS - spans[-1]))
            return spans

        each = await asyncio.gather(*(type_(person, _path(visitor)) for person, visitor in enumerate(there)))
        return [span for spans in each for span in spans]


def drawn_texts(answer: bytes) -> set[str]:
    """The sentences that the drawings in an answer of the live route are about."""
    return {json.loads(text) for text in re.findall(rb'"live": \{"text": ("(?:[^"\\]|\\.)*")', answer)}


def _path(visitor: Visitor) -> str:
    """The address that a page's script asks."""
    told: dict[str, str] = json.loads(visitor.drawing("live").element.bidi_component.json)
    return told["path"]


def _tokens(browser: Browser, address: str, folder: Path, line: float, repeats: int) -> Iterator[Row]:
    """A network of GPT-2's size that writes 60 tokens: when the first is painted, and the longest frame while they come."""
    page = _opened(browser, f"{address}?model={SLOW}&max=2&decode=greedy&text=w4")
    page.goto(f"{address}?model={SLOW}&max=60&decode=greedy&text=w4")
    page.wait_for_timeout(1000)
    page.locator(".waiting").wait_for(state="detached", timeout=120_000)
    field, spans, gaps = page.locator("[data-testid=stTextInput] input").last, list[float](), list[float]()
    written = f"headlightWatch.count('{STRIPS} .chip[data-probability]')"
    for turn in range(repeats):
        page.wait_for_timeout(1500)
        field.fill(f"w5 w6 w{7 + turn}")
        page.evaluate(f"headlightWatch.first(() => 0 < {written} && {written} < 60)")
        field.press("Enter")
        page.wait_for_function("headlightWatch.firstAt !== null", timeout=60_000)
        spans.append(page.evaluate("headlightWatch.firstAt"))
        page.wait_for_function(f"{written} === 60", polling=200, timeout=120_000)  # not in each frame, whose time is measured
        gaps.append(page.evaluate("headlightWatch.longest()"))
        page.locator(".waiting").wait_for(state="detached", timeout=60_000)
    page.context.close()
    step = _one_step(folder)
    median = statistics.median(spans)
    yield Row(FIRST, median, median / (step + line), "of one step and a page of one line")
    yield Row(LONGEST, statistics.median(gaps))


def _one_step(folder: Path) -> float:
    """Milliseconds of a run that writes one token."""
    engine = LocalEngine(folder, torch.device("cpu"))
    spans = []
    for turn in range(6):
        began = time.perf_counter()
        engine.ask(Run(RunRequest(SLOW, f"w5 w6 w{50 + turn}", decoding=Decoding(max_length=1))))
        spans.append(1000 * (time.perf_counter() - began))
    return statistics.median(spans[1:])


def _p95(spans: list[float]) -> float:
    return statistics.quantiles(spans, n=20, method="inclusive")[-1] if len(spans) > 1 else spans[0]
