"""A class: so many people open the page, then click on heads, as fast as is asked and not as fast as is answered."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

import psutil

from benchmarks.load.visitor import Failed, Visitor, visiting
from benchmarks.servers import Served


@dataclass(frozen=True)
class Class:
    """What is done.

    Attributes:
        people: who join.
        joining: seconds in which they all come.
        pace: clicks a second of all together, given the seconds of the clicks at the paces before; None: it is over.
        seconds: of each pace.
        seed: of who sits where.
    """

    people: int = 300
    joining: float = 10.0
    pace: Callable[[Mapping[float, list[float]]], float | None] = lambda before: None if before else 30.0
    seconds: float = 20.0
    seed: int = 0


@dataclass(frozen=True)
class Measured:
    """What came of it. Seconds are those from the moment that the thing was due.

    Attributes:
        joins: seconds of each.
        clicks: seconds of each, by pace.
        errors: of those that failed, what was said.
        cpu_of_joins, cpu_of_clicks: seconds that the server computed for all of them.
        bytes_before, bytes_after: the server's resident memory when one was there, and when all were.
    """

    joins: list[float]
    clicks: dict[float, list[float]]
    errors: list[str]
    cpu_of_joins: float
    cpu_of_clicks: float
    bytes_before: int
    bytes_after: int


async def attend(app: Served, plan: Class) -> Measured:
    """Lets a class use a server: all come, then they click. The page that they come to has been opened before."""
    process, errors = psutil.Process(app.pid), list[str]()
    async with AsyncExitStack() as stay:
        first = await stay.enter_async_context(visiting(app.address))
        await first.join()
        await first.select(SITES[0], 1)
        before, cpu = process.memory_info().rss, seconds_of(process)
        people: list[Visitor] = []

        async def come(number: int) -> None:
            visitor = await stay.enter_async_context(visiting(app.address))
            await visitor.join()
            people.append(visitor)

        joins = await _paced(plan.people, plan.people / plan.joining, come, errors)
        joined, after = seconds_of(process), process.memory_info().rss
        idle = asyncio.Queue[Visitor]()
        for visitor in random.Random(plan.seed).sample(people, len(people)):
            idle.put_nowait(visitor)

        async def click(number: int) -> None:
            visitor = await idle.get()
            try:
                await visitor.select(SITES[number % len(SITES)], number % HEADS)
            finally:
                idle.put_nowait(visitor)

        clicks: dict[float, list[float]] = {}
        while (pace := plan.pace(clicks)) is not None:
            clicks[pace] = await _paced(round(pace * plan.seconds), pace, click, errors)
        return Measured(joins, clicks, errors, joined - cpu, seconds_of(process) - joined, before, after)


SITES = [f"{stack}.0.{layer}.{kind}" for stack, kind in (("encoder", "self"), ("decoder", "cross")) for layer in range(3)]
HEADS = 8
"""Of the model that the app opens with."""


async def _paced(count: int, pace: float, once: Callable[[int], Awaitable[None]], errors: list[str]) -> list[float]:
    """Begins `count` things, `pace` a second, whether or not those before have ended; the seconds of each that did not fail."""
    seconds: list[float] = []
    began = time.perf_counter()

    async def due(number: int) -> None:
        at = began + number / pace
        await asyncio.sleep(at - time.perf_counter())
        try:
            await once(number)
        except (Failed, OSError) as error:
            errors.append(str(error))
        else:
            seconds.append(time.perf_counter() - at)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(due(number))
    return seconds


def seconds_of(process: psutil.Process) -> float:
    """Seconds that a process has computed."""
    times = process.cpu_times()
    return float(times.user + times.system)
