"""Followers of a class without browsers: plain sockets that read server-sent events and fetch pictures."""

import asyncio
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from urllib.parse import SplitResult, urlsplit

import httpx
import psutil

from benchmarks import steps as steps_of_a_lecturer
from benchmarks.load.classroom import seconds_of
from benchmarks.servers import ROOT, Served, serving
from benchmarks.timing import Row

LECTURE = """---
title: Load
language: en
minutes: 1
models: multi30k-de-en
---

"""
STEP = "Words of one step.\n\nview: /explore?text=Im+Park+spielt+ein+alter+Mann+Gitarre.&site=decoder.0.{layer}.cross&head={head}\n"

PEOPLE = (300, 1000)
AIMS = {300: 0.5, 1000: 1.0}
"""Aims for the 95th percentile of the time from a step change to its picture, in seconds."""

STEPS, BETWEEN_SECONDS = 12, 3.0
JOIN_SECONDS = 5.0
PATIENCE = 60.0


@dataclass
class Follower:
    """One student.

    Attributes:
        joined: seconds from its start until the present step came.
        heard, drawn: by step, the times at which the event came, and the bytes of its picture.
    """

    joined: float = math.nan
    heard: dict[int, float] = field(default_factory=dict)
    drawn: dict[int, float] = field(default_factory=dict)


def measure(repeats: int) -> Iterator[Row]:
    """Step changes of a class of 300 and of 1,000; once, since each has thousands of turns in itself."""
    with tempfile.TemporaryDirectory() as room:
        steps = [STEP.format(layer=number % 3, head=number % 8) for number in range(STEPS + 1)]
        Path(room, "load.en.md").write_text(LECTURE + "\n---\n\n".join(steps), encoding="utf-8")
        for people in PEOPLE:
            with serving(ROOT / "app.py", HEADLIGHT_LECTURES=room, HEADLIGHT_CLASSES=room) as app:
                yield from asyncio.run(_attended(app, people))
    yield from steps_of_a_lecturer.measure()


async def _attended(app: Served, people: int) -> list[Row]:
    """Everybody joins within 5 s; then the lecturer changes the step, and all fetch the new picture at the same time."""
    process, address = psutil.Process(app.pid), app.address.rstrip("/")
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as lecturer:
        await lecturer.get("/hold/load.en")
        room = (await lecturer.post("/class", json={"lecture": "load.en"})).raise_for_status().json()
        await asyncio.sleep(5)  # until all views are prepared
        before, cpu = process.memory_info().rss, seconds_of(process)
        followers = [Follower() for _ in range(people)]
        tasks = [
            asyncio.create_task(_follow(address, room["code"], one, JOIN_SECONDS * number / people))
            for number, one in enumerate(followers)
        ]
        await _until(lambda: all(not math.isnan(one.joined) for one in followers))
        joined_cpu, after = seconds_of(process), process.memory_info().rss
        changed: dict[int, float] = {}
        for step in range(1, STEPS + 1):
            changed[step] = time.perf_counter()
            (await lecturer.post(f"/class/{room['code']}/steer", json={"step": step})).raise_for_status()
            await asyncio.sleep(BETWEEN_SECONDS)
        await _until(lambda: all(STEPS in one.drawn for one in followers))
        used = seconds_of(process) - joined_cpu
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    heard = [at - changed[step] for one in followers for step, at in one.heard.items()]
    drawn = [at - changed[step] for one in followers for step, at in one.drawn.items()]
    skipped = people * STEPS - len(drawn)
    aim = f"median {1000 * _part(drawn, 10):.0f} ms; aim p95 ≤ {1000 * AIMS.get(people, 0.5):.0f} ms; {skipped} skipped"
    memory = f"{(after - before) / people / 1e3:.0f} kB beside {before / 1e6:.0f} MB of the process"
    return [
        Row(f"{people:,} students: join within 5 s, p95", 1000 * _part([one.joined for one in followers], 19)),
        Row(f"{people:,} students: step change → event, p95", 1000 * _part(heard, 19)),
        Row(f"{people:,} students: step change → picture fetched by all, p95", 1000 * _part(drawn, 19), note=aim),
        Row(f"{people:,} students: CPU of a student who joins", 1000 * (joined_cpu - cpu) / people),
        Row(f"{people:,} students: CPU of a student at a step change", 1000 * used / people / STEPS),
        Row(f"{people:,} students: memory of a student", math.nan, note=memory),
    ]


def _part(values: list[float], twentieth: int) -> float:
    """The 95th percentile for 19, the median for 10."""
    return quantiles(values, n=20)[twentieth - 1]


async def _until(done: Callable[[], bool]) -> None:
    """Waits until a condition holds.

    Raises:
        TimeoutError: it does not hold in time.
    """
    async with asyncio.timeout(PATIENCE):
        while not done():
            await asyncio.sleep(0.05)


async def _follow(address: str, code: str, follower: Follower, wait: float) -> None:
    """Joins after `wait` seconds, then fetches the picture of each step as soon as its event comes, nothing ahead."""
    await asyncio.sleep(wait)
    began, where = time.perf_counter(), urlsplit(address)
    events, sender = await asyncio.open_connection(where.hostname, where.port, limit=2**20)
    try:
        sender.write(f"GET /class/{code}/events HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
        while data := await events.readuntil(b"\n\n"):
            if b"event: step" not in data:
                continue
            step = json.loads(data.partition(b"data: ")[2].partition(b"\n")[0])
            heard = time.perf_counter()
            await _fetch(where, f"/headlight/view/{step['view']}")
            if math.isnan(follower.joined):
                follower.joined = time.perf_counter() - began
            else:
                follower.heard[step["step"]], follower.drawn[step["step"]] = heard, time.perf_counter()
    finally:
        sender.close()


async def _fetch(where: SplitResult, path: str) -> None:
    """Fetches a picture over a new connection: a browser's idle one is closed between two steps."""
    reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=2**20)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {where.netloc}\r\nConnection: close\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
    finally:
        writer.close()
