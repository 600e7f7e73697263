"""Soak test: the requests of twenty minutes of a class without the pauses; compares the app's memory before and after."""

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
"""How often each person does each action in these minutes. A person who leaves comes again."""

WARM_UP = {"click": 4, "sentence": 30, "leave": 2}
"""How often each does so before memory is measured: with this many sentences, the app's caches of runs are full."""

SITES = [f"{stack}.0.{layer}.{kind}" for stack, kind in (("encoder", "self"), ("decoder", "cross")) for layer in range(2)]
HEADS = 4
"""Of both models."""

AT_A_TIME = 4


@dataclass(frozen=True)
class Measured:
    """The results.

    Attributes:
        asked: number of script runs after the warm-up.
        bytes_before, bytes_after: the server's resident memory after the warm-up and at the end.
        errors: messages in place of answers.
    """

    asked: int
    bytes_before: int
    bytes_after: int
    errors: list[str]


async def endure(app: Served, often: Mapping[str, int] = OFTEN, warm_up: Mapping[str, int] = WARM_UP) -> Measured:
    """Runs the test against a server. The warm-up fills the app's caches, which are bounded.

    Args:
        often: how often each person does each action.
        warm_up: the same, before memory is measured.
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
        address: address of the app.
        number: number of the person, which decides the model.
    """

    def __init__(self, address: str, number: int) -> None:
        self._address, self._model = address, list(MODELS)[number % len(MODELS)]
        self._stay = AsyncExitStack()
        self._visitor: Visitor | None = None
        self.errors: list[str] = []
        self.lock = asyncio.Lock()

    async def come(self) -> None:
        """Opens a new session; closes the old one."""
        await self.leave()
        self._visitor = await self._stay.enter_async_context(visiting(self._address, model=self._model))
        await self._visitor.join()

    async def leave(self) -> None:
        """Closes the session."""
        await self._stay.aclose()

    async def do(self, what: str, choice: random.Random) -> None:
        """Does one action."""
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
    """Does all actions of a class, a few people at a time, in random order; returns their number."""
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
