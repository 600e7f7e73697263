"""Twenty minutes of a class, compressed to what it asks for: what the app's process holds before and after."""

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import dataclass

import psutil

from benchmarks.enter import Served
from benchmarks.load.classroom import HEADS, SITES
from benchmarks.load.runs import MODELS, WORDS
from benchmarks.load.visitor import Failed, Visitor, visiting

MINUTES = 20
PEOPLE = 30
CLICKS_A_MINUTE, SENTENCES_A_MINUTE, LEAVING_A_MINUTE = 6, 1, 0.5
"""Of each person. Who leaves comes again."""

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


async def endure(app: Served, minutes: float = MINUTES, warm_up: float = MINUTES) -> Measured:
    """Lets a class use a server for so long. The warm-up fills what the app keeps, which is bounded.

    Args:
        minutes: of a class, not of a clock.
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
        asked = await _pass(seats, minutes, seed=1)
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


async def _pass(seats: list[_Seat], minutes: float, seed: int) -> int:
    """Minutes of a class, a few people at a time, in an order drawn at random; how many things were done."""
    choice = random.Random(seed)
    often = {"click": CLICKS_A_MINUTE, "sentence": SENTENCES_A_MINUTE, "leave": LEAVING_A_MINUTE}
    todo = [(seat, what) for what, rate in often.items() for seat in seats for _ in range(round(rate * minutes))]
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
