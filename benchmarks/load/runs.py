"""Thirty people press Run at the same moment, on different sentences and two models; for comparison, the same work one by one."""

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
"""Two models, with words of their vocabularies."""


@dataclass(frozen=True)
class Measured:
    """The results.

    Attributes:
        alone: seconds for all runs, one after the other.
        together: seconds that each person waited when all pressed at once.
        errors: messages in place of answers.
    """

    alone: float
    together: list[float]
    errors: list[str]


def measure(people: int = PEOPLE) -> Measured:
    """Measures both, each on an app of its own, so that neither finds results of the other in a cache."""
    with ExitStack() as servers:
        first, second = (servers.enter_context(serving(ROOT / "app.py")) for _ in range(2))
        alone, errors = asyncio.run(_press(first.address, people, at_once=False))
        together, more = asyncio.run(_press(second.address, people, at_once=True))
    return Measured(sum(alone), together, errors + more)


def sentence(person: int) -> tuple[str, str]:
    """A model and a sentence for one person; all sentences have the same number of words."""
    model, text = list(MODELS.items())[person % len(MODELS)]
    words, turn = text.split(), person // len(MODELS)
    return model, " ".join((words[turn % len(words) :] + words[: turn % len(words)])[:WORDS])


async def _press(address: str, people: int, at_once: bool) -> tuple[list[float], list[str]]:
    """The seconds that each person waited, and the messages in place of answers. Each model has run once before."""
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
