"""Badly behaved clients beside well-behaved ones on one engine host: the cached runs of the latter must stay quick."""

import asyncio
import io
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from benchmarks.enter import SENTENCE
from benchmarks.servers import ROOT, serving_engine
from model.features.serving.http.protocol import RECEIVE
from model.requests.request import Decoding, RunRequest

GOOD, BAD = "multi30k-de-en", "bad-tokenizer"
"""A model for everybody, and one with a tokenizer that crashes on a long word."""

PATIENCE = 120.0
"""Seconds after which an answer counts as lost."""

TEXT_BYTES, PICKLE_STEPS, GONE_SECONDS = 2 * 10**6, 1_500_000, 0.05


@dataclass(frozen=True)
class Plan:
    """The settings of the test.

    Attributes:
        people: number of well-behaved clients: each asks for a cached run, waits for it and for `between` seconds, and asks again.
        between: seconds between two requests of a client.
        idle: seconds in which only well-behaved clients are there, before the others come.
        seconds: seconds in which the others come.
        pace: number of the others per second.
        pickle_steps: number of instructions in a slow pickle.
    """

    people: int = 4
    between: float = 0.25
    idle: float = 15.0
    seconds: float = 60.0
    pace: float = 1.0
    pickle_steps: int = PICKLE_STEPS


@dataclass
class Measured:
    """The results.

    Attributes:
        idle, beside: seconds of each cached run, without and beside the badly behaved clients.
        replies: counts of HTTP statuses that these got, by kind; 0: they did not wait for an answer.
        errors: errors in place of cached runs.
    """

    idle: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    replies: dict[str, Counter[int]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


def measure(plan: Plan = Plan()) -> Measured:
    """Runs the test on a host of its own."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / GOOD).symlink_to(ROOT / "checkpoints" / GOOD)
        save_bad_tokenizer(folder / BAD)
        with serving_engine(folder) as host:
            return asyncio.run(attend(host.address, plan))


async def attend(address: str, plan: Plan) -> Measured:
    """Runs both kinds of clients against a host with the models GOOD and BAD."""
    found = Measured()
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE, limits=httpx.Limits(max_connections=None)) as client:
        people = [_Person(client, number) for number in range(plan.people)]
        for person in people:
            await person.ask()  # the one time that it is computed
        found.idle = await _pass(people, plan.between, asyncio.sleep(plan.idle), found.errors)
        others = _others(client, plan, found.replies)
        found.beside = await _pass(people, plan.between, others, found.errors)
    return found


class _Person:
    """A well-behaved client, which asks for the same sentence again and again.

    Args:
        number: number of the client; each has another sentence.
    """

    def __init__(self, client: httpx.AsyncClient, number: int) -> None:
        words = SENTENCE.split()
        self._client, self._body = client, RunRequest(GOOD, " ".join(words[number:] + words[:number])).to_json()

    async def ask(self) -> float:
        """Asks once; returns the seconds until the answer."""
        began = time.perf_counter()
        reply = await self._client.post("/v1/run", json=self._body)
        reply.raise_for_status()
        return time.perf_counter() - began


async def _pass(people: list[_Person], between: float, meanwhile: Awaitable[None], errors: list[str]) -> list[float]:
    """Seconds of each cached run that was asked for until `meanwhile` was over."""
    seconds: list[float] = []
    over = asyncio.Event()

    async def go_on(person: _Person) -> None:
        while not over.is_set():
            try:
                seconds.append(await person.ask())
            except httpx.HTTPError as error:
                errors.append(f"{type(error).__name__}: {error}")
            await asyncio.sleep(between)

    async with asyncio.TaskGroup() as group:
        for person in people:
            group.create_task(go_on(person))
        await meanwhile
        over.set()
    return seconds


async def _others(client: httpx.AsyncClient, plan: Plan, replies: dict[str, Counter[int]]) -> None:
    """Sends badly behaved requests, each kind in turn, without waiting for the answers to earlier ones."""
    kinds = (_slow_pickle, _long_text, _bad_tokenizer, _dead_tab)
    began = time.perf_counter()

    async def come(number: int) -> None:
        await asyncio.sleep(began + number / plan.pace - time.perf_counter())
        kind = kinds[number % len(kinds)]
        status = await kind(client, number, plan)
        replies.setdefault(kind.__name__.lstrip("_"), Counter())[status] += 1

    async with asyncio.TaskGroup() as group:
        for number in range(round(plan.pace * plan.seconds)):
            group.create_task(come(number))
        await asyncio.sleep(plan.seconds)


async def _slow_pickle(client: httpx.AsyncClient, number: int, plan: Plan) -> int:
    """Uploads a file whose pickle runs for seconds without doing anything."""
    data = await asyncio.to_thread(slow_pickle, plan.pickle_steps + number)
    reply = await client.post(RECEIVE, params={"name": f"slow-{number}.pt"}, content=data)
    return reply.status_code


async def _long_text(client: httpx.AsyncClient, number: int, plan: Plan) -> int:
    text = f"{number} {SENTENCE} " * (TEXT_BYTES // len(SENTENCE))
    return (await client.post("/v1/run", json={"model": GOOD, "source": text})).status_code


async def _bad_tokenizer(client: httpx.AsyncClient, number: int, plan: Plan) -> int:
    request = RunRequest(BAD, "x" * (1500 - number % 1000))
    return (await client.post("/v1/run", json=request.to_json())).status_code


async def _dead_tab(client: httpx.AsyncClient, number: int, plan: Plan) -> int:
    """Asks for a long beam search and disconnects at once."""
    request = RunRequest(GOOD, f"{SENTENCE} {number}", decoding=Decoding("beam", max_length=90, beam_size=32))
    try:
        async with asyncio.timeout(GONE_SECONDS):
            return (await client.post("/v1/run", json=request.to_json())).status_code
    except TimeoutError:
        return 0


def slow_pickle(steps: int) -> bytes:
    """A checkpoint of one small tensor, whose pickle first pushes and pops None `steps` times."""
    saved, slow = io.BytesIO(), io.BytesIO()
    torch.save({"weight": torch.zeros(2)}, saved)
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(slow, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            target.writestr(name, data[:2] + b"N0" * steps + data[2:] if name.endswith("data.pkl") else data)
    return slow.getvalue()


def save_bad_tokenizer(folder: Path) -> None:
    """Saves a small model of the transformers library whose tokenizer's pattern crashes on a row of x."""
    from transformers import BertConfig, BertModel  # takes seconds

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=3, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, max_position_embeddings=128
    )
    BertModel(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "x": 1, "a": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("(x+x+)+y"), "isolated")
    tokenizer.save(str(folder / "tokenizer.json"))
