"""Thirty people press Run on different sentences at the same moment, on two models; beside it, the same work one by one."""

import asyncio
import time
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass

from benchmarks.enter import SENTENCE
from benchmarks.load.visitor import Failed, Visitor, visiting
from benchmarks.servers import ROOT, serving

PEOPLE = 30
WORDS = 12
MODELS = {
    "multi30k-de-en": SENTENCE,
    "tatoeba-en-zh": "the old man and his two friends want to read a good book about the house near the river this year",
}
"""Two models, and words that each has learned."""


@dataclass(frozen=True)
class Measured:
    """What came of it.

    Attributes:
        alone: seconds of all the work, one run after the other.
        together: seconds that each person waited, all having pressed at once.
        errors: what was said instead of an answer.
    """

    alone: float
    together: list[float]
    errors: list[str]


def measure(people: int = PEOPLE) -> Measured:
    """Both, each on an app of its own, so that neither finds what the other has computed."""
    with ExitStack() as servers:
        first, second = (servers.enter_context(serving(ROOT / "app.py")) for _ in range(2))
        alone, errors = asyncio.run(_press(first.address, people, at_once=False))
        together, more = asyncio.run(_press(second.address, people, at_once=True))
    return Measured(sum(alone), together, errors + more)


def sentence(person: int) -> tuple[str, str]:
    """A model and a sentence of as many words as any other's."""
    model, text = list(MODELS.items())[person % len(MODELS)]
    words, turn = text.split(), person // len(MODELS)
    return model, " ".join((words[turn % len(words) :] + words[: turn % len(words)])[:WORDS])


async def _press(address: str, people: int, at_once: bool) -> tuple[list[float], list[str]]:
    """Seconds that each waited, and what was said instead of an answer. Before it counts each model has run once."""
    errors: list[str] = []
    async with AsyncExitStack() as stay:
        there: list[Visitor] = []
        for person in range(people):
            visitor = await stay.enter_async_context(visiting(address, model=sentence(person)[0]))
            await visitor.join()
            there.append(visitor)

        async def run(person: int) -> float:
            began = time.perf_counter()
            try:
                await there[person].type(sentence(person)[1])
            except Failed as error:
                errors.append(str(error))
            errors.extend(there[person].said)
            return time.perf_counter() - began

        everybody = range(people)
        seconds = await asyncio.gather(*map(run, everybody)) if at_once else [await run(person) for person in everybody]
        errors += [str(person) for person in everybody if _read(there[person]) != sentence(person)[1].split()]
    return list(seconds), errors


def _read(visitor: Visitor) -> list[str]:
    return visitor.tokens("source")[1:-1]
