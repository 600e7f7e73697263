"""Training speed: target tokens per second on the CPU and, where there is one, on CUDA; and the time of a small training."""

import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from accelerate import Accelerator

from benchmarks.timing import Row
from model.features.training import recipes, records
from model.features.training.data import Batch, Pair, collate
from model.features.training.recipes import Recipe
from model.features.training.train import PRECISIONS, step, train
from model.transformer.build import build

VOCABULARIES = (7853, 5893)
"""Vocabulary sizes of the German → English recipe."""

WORDS = range(8, 19)
"""Range of words in a caption, without start and end tokens; captions of Multi30k have about 13."""


def measure(repeats: int) -> Iterator[Row]:
    """Measures steps of the German → English recipe on made-up captions, each device in a process of its own."""
    baseline: float | None = None
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            tokens, seconds = pool.submit(steps, recipes.load("multi30k-de-en"), device, 4 * repeats).result()
        name = torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
        yield Row(
            f"a step of multi30k-de-en on {name}",
            1000 * seconds,
            None if baseline is None else seconds / baseline,
            f"{tokens / seconds:,.0f} target tokens a second",
        )
        baseline = seconds
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool.submit(whole, recipes.load("reverse-digits")).result()


def whole(recipe: Recipe) -> Row:
    """Measures one whole training on the CPU, of a task that needs no corpus."""
    with tempfile.TemporaryDirectory() as folder:
        cpu, began = time.process_time(), time.perf_counter()
        train(recipe, None, Path(folder), torch.device("cpu"))
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return Row(f"{recipe.name}, trained from nothing on the CPU", 1000 * seconds, note=f"{cpu:.0f} s of CPU time")


def steps(recipe: Recipe, device: str, repeats: int) -> tuple[int, float]:
    """Trains repeatedly on one batch, after two steps that do not count.

    Returns:
        The target tokens of the batch, and the median seconds of a step.
    """
    how = recipe.optimisation
    accelerator = Accelerator(mixed_precision=PRECISIONS[how.precision], cpu=device == "cpu")
    course = records.begin(build(recipe.spec(VOCABULARIES)), how, repeats, accelerator)
    batch = made_up(how.sentences_per_batch).to(accelerator.device)
    seconds = []
    for turn in range(repeats + 2):
        began = time.perf_counter()
        step(course, batch, how, accelerator)  # it returns the loss, so the device has finished
        if turn >= 2:
            seconds.append(time.perf_counter() - began)
    return batch.predicted, statistics.median(seconds)


def made_up(sentences: int) -> Batch:
    """A batch of captions of random words."""
    draws = random.Random(0)

    def caption(vocab: int) -> tuple[int, ...]:
        return (2, *(draws.randrange(4, vocab) for _ in range(draws.choice(WORDS))), 3)

    return collate([Pair(*map(caption, VOCABULARIES)) for _ in range(sentences)])
