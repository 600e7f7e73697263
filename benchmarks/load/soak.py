"""Twenty minutes of a class, compressed to what it asks for: what the app's process holds before and after."""

import asyncio
import random
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

import psutil

from benchmarks.load.runs import MODELS, WORDS
from benchmarks.load.visitor import Failed, Visitor, visiting
from benchmarks.servers import Served

MINUTES, PEOPLE = 20, 30
OFTEN = {"click": 6 * MINUTES, "sentence": MINUTES, "leave": MINUTES // 2}
"""What each person does within the minutes. Who leaves comes again."""

WARM_UP = {"click": 4, "sentence": 30, "leave": 2}
"""What each does before memory is looked at: with so many sentences, all that the app keeps of runs is full."""

SITES = [f"{stack}.0.{layer}.{kind}" for stack, kind in (("encoder", "self"), ("decoder", "cross")) for layer in range(2)]
HEADS = 4
"""Of both models."""

AT_A_TIME = 4


@dataclass(frozen=True)
class Measured:
    """What came of it.

    Attributes:
        asked: script runs that were asked for after the warm-up.
        bytes_before, bytes_after: the server's resident memory after the warm-up and at the end.
        errors: what was said instead of an answer.
    """

    asked: int
    bytes_before: int
    bytes_after: int
    errors: list[str]


async def endure(app: Served, often: Mapping[str, int] = OFTEN, warm_up: Mapping[str, int] = WARM_UP) -> Measured:
    """Lets a class use a server. The warm-up fills what the app keeps, which is bounded.

    Args:
        often: how often each person does what.
        warm_up: the same before memory is looked at.
    """
    process = psutil.Process(app.pid)
    async with AsyncExitStack() as stay:
        seats = [_Seat(app.address, person) for person in range(PEOPLE)]
        for seat in seats:
            stay.push_async_callback(seat.leave)
            await seat.come()
        await _pass(seats, warm_up, seed=0)
        before = process.memory_info().rss
        asked = await _pass(seats, often, seed=1)
        return Measured(asked, before, process.memory_info().rss, [error for seat in seats for error in seat.errors])


class _Seat:
    """One person of the class.

    Args:
        address: of the app.
        number: of the person, who reads one of the models.
    """

    def __init__(self, address: str, number: int) -> None:
        self._address, self._model = address, list(MODELS)[number % len(MODELS)]
        self._stay = AsyncExitStack()
        self._visitor: Visitor | None = None
        self.errors: list[str] = []
        self.lock = asyncio.Lock()

    async def come(self) -> None:
        await self.leave()
        self._visitor = await self._stay.enter_async_context(visiting(self._address, model=self._model))
        await self._visitor.join()

    async def leave(self) -> None:
        await self._stay.aclose()

    async def do(self, what: str, choice: random.Random) -> None:
        """One thing that people do."""
        assert self._visitor is not None
        try:
            if what == "click":
                await self._visitor.select(choice.choice(SITES), choice.randrange(HEADS))
            elif what == "sentence":
                await self._visitor.type(" ".join(choice.sample(MODELS[self._model].split(), WORDS)))
            else:
                await self.come()
        except Failed as error:
            self.errors.append(str(error))
        self.errors += self._visitor.said


async def _pass(seats: list[_Seat], often: Mapping[str, int], seed: int) -> int:
    """All that a class does, a few people at a time, in an order drawn at random; how many things that were."""
    choice = random.Random(seed)
    todo = [(seat, what) for what, times in often.items() for seat in seats for _ in range(times)]
    choice.shuffle(todo)
    turns, asked = iter(todo), len(todo)

    async def work() -> None:
        for seat, what in turns:
            async with seat.lock:
                await seat.do(what, choice)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_A_TIME):
            group.create_task(work())
    return asked
