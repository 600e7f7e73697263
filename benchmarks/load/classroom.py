"""A class: many people open the page, then click on heads at a given pace, without waiting for earlier clicks to be answered."""

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
    """The settings of the test.

    Attributes:
        people: number of people.
        joining: seconds within which all of them join.
        pace: the next pace in clicks per second, given the durations of clicks at earlier paces; None: the test is over.
        seconds: duration of each pace.
        seed: seed of the random choices.
    """

    people: int = 300
    joining: float = 10.0
    pace: Callable[[Mapping[float, list[float]]], float | None] = lambda before: None if before else 30.0
    seconds: float = 20.0
    seed: int = 0


@dataclass(frozen=True)
class Measured:
    """The results. Durations are counted from the moment at which a join or click was due.

    Attributes:
        joins: seconds of each join.
        clicks: seconds of each click, by pace.
        errors: messages of those that failed.
        cpu_of_joins, cpu_of_clicks: CPU seconds of the server for all of them.
        bytes_before, bytes_after: the server's resident memory with one person, and with all.
    """

    joins: list[float]
    clicks: dict[float, list[float]]
    errors: list[str]
    cpu_of_joins: float
    cpu_of_clicks: float
    bytes_before: int
    bytes_after: int


async def attend(app: Served, plan: Class) -> Measured:
    """Runs the test against a server: everybody joins, then everybody clicks. The page was opened once before."""
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
    """Starts `count` actions, `pace` per second, without waiting for earlier ones; returns the seconds of those that succeeded."""
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
    """CPU seconds of a process so far."""
    times = process.cpu_times()
    return float(times.user + times.system)
