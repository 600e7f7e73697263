"""A small class at a real app, spoken to as browsers speak: everybody sees what they asked for, and nothing of the others."""

import asyncio
from contextlib import AsyncExitStack

from benchmarks.load.visitor import Visitor, visiting
from benchmarks.servers import Served

PEOPLE = 12


def test_people_who_run_and_click_at_once_see_their_own_and_nothing_else(app: Served) -> None:
    async def attend() -> None:
        async with AsyncExitStack() as stay:
            people = [
                await stay.enter_async_context(visiting(app.address, model=("first", "second")[number % 2], max="6"))
                for number in range(PEOPLE)
            ]
            await asyncio.gather(*(person.join() for person in people))
            await asyncio.gather(*(person.type(_sentence(number)) for number, person in enumerate(people)))
            for number, person in enumerate(people):
                assert person.tokens("source")[1:-1] == _sentence(number).split()
            await asyncio.gather(*(person.select("decoder.0.1.cross", number % 2) for number, person in enumerate(people)))
            for number, person in enumerate(people):
                _sees(person, number)

    asyncio.run(attend())


def _sentence(number: int) -> str:
    return " ".join(f"w{4 + (number * step) % 6}" for step in range(1, 5)) + " w4" * (number // 6)


def _sees(person: Visitor, number: int) -> None:
    selection = person.scene("atlas")["selection"]
    assert (selection["site"], selection["head"]) == ("decoder.0.1.cross", number % 2)
    assert person.tokens("source")[1:-1] == _sentence(number).split()
    assert person.said == []


def test_who_comes_by_a_link_while_others_run_sees_what_it_says(app: Served) -> None:
    async def come(head: int) -> None:
        async with visiting(app.address, model="first", text="w5 w6", site="encoder.0.1.self", head=str(head)) as visitor:
            await visitor.join()
            assert visitor.scene("atlas")["selection"]["head"] == head
            assert visitor.tokens("source")[1:-1] == ["w5", "w6"]

    async def all_of_them() -> None:
        await asyncio.gather(*(come(number % 2) for number in range(PEOPLE)))

    asyncio.run(all_of_them())


def test_a_stranger_is_told_what_is_too_long(app: Served) -> None:
    async def come() -> None:
        async with visiting(app.address, model="first", text="w4", decode="beam", beam="32", max="1000") as visitor:
            await visitor.join()
            assert visitor.said == [
                (
                    "This decoding could write 32,000 tokens in all its hypotheses, and this server accepts at most 2,048. "
                    "Ask for fewer new tokens or a smaller beam."
                )
            ]

    asyncio.run(come())
