"""On a GPU: the same runs, sums and effects as on the CPU, lower types, too little memory. Skipped where there is no CUDA."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.engine.api import Describe, Explain, Gauges, Models, Receive, Run
from model.engine.local import CHECKPOINTS, LocalEngine
from model.errors import OutOfMemory
from model.features.circuit.sums import Why, Writes
from model.features.what_if.questions import Heads
from model.requests.edits import Silence
from model.requests.request import KEEP, Decoding, Precision, RunRequest
from model.trace.types import Trace
from tests.folders import save
from tests.pictures import png, saved_with_processor
from tests.runs import arrays

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA here")

BUNDLED = sorted(path.name for path in CHECKPOINTS.iterdir() if (path / "model.safetensors").is_file())
NEAR = 1e-4
"""Most difference of a value from the CPU's, divided by the largest of its array: both float32, summed in other orders."""


@pytest.fixture(scope="module")
def gpu() -> Iterator[LocalEngine]:
    yield from an_engine(CHECKPOINTS, "cuda")


@pytest.fixture(scope="module")
def cpu() -> Iterator[LocalEngine]:
    yield from an_engine(CHECKPOINTS, "cpu")


def an_engine(folder: Path, device: str) -> Iterator[LocalEngine]:
    made = LocalEngine(folder, torch.device(device), cache_bytes=0)
    yield made
    made.scheduler.close()


def example(engine: LocalEngine, model: str, **changes: Any) -> RunRequest:
    """A request for a bundled model's first example that records everything."""
    info = engine.ask(Describe(model))
    return replace(RunRequest(model, info.examples[0], decoding=Decoding(max_length=12), keep=KEEP), **changes)


def difference(found: Trace, expected: Trace) -> float:
    """The largest difference of two runs' arrays, each divided by the largest number of its array."""
    assert found.tokens == expected.tokens
    ours, theirs = arrays(found), arrays(expected)
    assert ours.keys() == theirs.keys()
    worst = 0.0
    for name, wanted in theirs.items():
        assert (np.isfinite(ours[name]) == np.isfinite(wanted)).all(), name
        there = np.isfinite(wanted)
        if wanted.dtype == bool:
            assert (ours[name] == wanted).all(), name
        elif there.any():
            away = np.abs(ours[name][there].astype(float) - wanted[there]).max()
            worst = max(worst, float(away / max(1.0, np.abs(wanted[there]).max())))
    return worst


def test_the_device_is_named(gpu: LocalEngine) -> None:
    assert gpu.ask(Models()).device == f"CUDA · {torch.cuda.get_device_name(0)}"
    assert gpu.ask(Gauges())["device_bytes"] == torch.cuda.memory_allocated(0)


@pytest.mark.parametrize("model", BUNDLED)
def test_a_run_records_what_the_cpu_records(gpu: LocalEngine, cpu: LocalEngine, model: str) -> None:
    asked = example(cpu, model)
    away = difference(gpu.ask(Run(asked)), cpu.ask(Run(asked)))
    print(f"{model}: {away:.1e} from the CPU")
    assert away <= NEAR


@pytest.mark.parametrize("model", BUNDLED)
def test_an_edited_run_records_what_the_cpu_records(gpu: LocalEngine, cpu: LocalEngine, model: str) -> None:
    asked = example(cpu, model)
    site = str(next(iter(cpu.ask(Run(asked)).attention)))
    edited = replace(asked, edits=(Silence(site, (0,)),))
    assert difference(gpu.ask(Run(edited)), cpu.ask(Run(edited))) <= NEAR


@pytest.mark.parametrize("method", ["sample", "beam"])
def test_a_seed_draws_the_tokens_that_it_draws_on_the_cpu(gpu: LocalEngine, cpu: LocalEngine, method: Any) -> None:
    asked = example(cpu, "multi30k-de-en", decoding=Decoding(method, max_length=12, seed=3, beam_size=3))
    assert difference(gpu.ask(Run(asked)), cpu.ask(Run(asked))) <= NEAR


def test_a_long_input_computes_its_weights_when_they_are_read(gpu: LocalEngine, cpu: LocalEngine) -> None:
    asked = RunRequest("captions-lm", " ".join(["a man plays guitar ."] * 20), decoding=Decoding(max_length=0))
    longest = cpu.ask(Describe("captions-lm")).max_source
    words = asked.source.split() if isinstance(asked.source, str) else []
    asked = replace(asked, source=" ".join(words[: longest - 2]))
    assert difference(gpu.ask(Run(asked)), cpu.ask(Run(asked))) <= NEAR


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("model", BUNDLED)
def test_a_lower_precision_says_how_far_it_is(gpu: LocalEngine, cpu: LocalEngine, model: str, precision: Precision) -> None:
    """The difference that the trace states is that from the float32 run of the same tokens on this device."""
    found = gpu.ask(Run(example(gpu, model, precision=precision)))
    weights = [attention.weights[...] for attention in found.attention.values()]
    rows = np.concatenate([w.sum(-1).ravel() for w in weights])
    assert np.isfinite(rows).all()
    assert np.abs(rows[rows != 0] - 1).max() < (2e-2 if precision == "bfloat16" else 3e-3)
    print(f"{model} {precision}: {found.model['from_float32']}")


def test_many_at_once_get_what_each_gets_alone(gpu: LocalEngine) -> None:
    sentences = [
        " ".join(words[: 3 + index % (len(words) - 3)])
        for index, words in enumerate([gpu.ask(Describe("multi30k-de-en")).examples[0].split()] * 16)
    ]
    asked = [example(gpu, "multi30k-de-en", source=text) for text in sentences]
    alone = [gpu.ask(Run(request)) for request in asked]
    with ThreadPoolExecutor(len(asked)) as pool:
        together = list(pool.map(gpu.ask, map(Run, asked)))
    assert max(map(difference, together, alone)) <= NEAR


def test_sums_cells_and_effects_hold_on_the_gpu(gpu: LocalEngine, cpu: LocalEngine) -> None:
    asked = example(gpu, "multi30k-de-en")
    cell = gpu.ask(Explain(asked, "decoder.0.1.cross", 2, 3, 4))
    assert cell.largest_difference <= cell.tolerance
    why = gpu.ask(Why(asked, "decoder.0.1.cross", 2, 3, 4))
    assert why.difference <= why.tolerance
    wrote = gpu.ask(Writes(asked, 3, "runner-up"))
    assert wrote.difference <= wrote.tolerance
    np.testing.assert_allclose(wrote.values, cpu.ask(Writes(asked, 3, "runner-up")).values, atol=1e-3)
    ours, theirs = gpu.ask(Heads(asked, ("without",))), cpu.ask(Heads(asked, ("without",)))
    assert ours.without is not None
    assert theirs.without is not None
    np.testing.assert_allclose(ours.without, theirs.without, atol=1e-3)


def test_a_folder_of_a_library_and_an_image_run(tmp_path: Path) -> None:
    save(tmp_path / "llama", "llama")
    saved_with_processor(tmp_path / "vit", "vit")
    for name in ("llama", "vit"):
        traces = []
        for device in ("cuda", "cpu"):
            for engine in an_engine(tmp_path, device):
                source = (4, 9, 5, 11) if name == "llama" else engine.ask(Receive(png(), "image.png"))
                traces.append(engine.ask(Run(RunRequest(name, source, decoding=Decoding(max_length=3), keep=KEEP))))
        assert difference(*traces) <= NEAR


def test_a_full_gpu_refuses_a_run_and_one_with_room_for_one_answers_all_that_ask_at_once() -> None:
    """A GPU of which others have taken nearly all memory, as a shared one."""
    for engine in an_engine(CHECKPOINTS, "cuda"):
        words = (str(example(engine, "multi30k-de-en").source) + " ") * 8
        asked = [example(engine, "multi30k-de-en", source=" ".join(words.split()[: 40 + index])) for index in range(32)]
        before = [engine.ask(Run(request)) for request in asked]
        taken = _take_all(256 * 2**20)
        try:
            with pytest.raises(OutOfMemory):
                engine.ask(Run(asked[0]))
            while sum(map(len, taken)) > 156 * 2**20:  # room for a run, and not for what all of them record
                taken.pop()
            torch.cuda.empty_cache()
            with ThreadPoolExecutor(len(asked)) as pool:
                answers = list(pool.map(engine.ask, map(Run, asked)))
        finally:
            taken.clear()
            torch.cuda.set_per_process_memory_fraction(1.0)
        assert max(map(difference, answers, before)) <= NEAR
        assert difference(engine.ask(Run(asked[-1])), before[-1]) <= NEAR


def _take_all(left: int) -> list[torch.Tensor]:
    """Takes what is free of the process's memory and `left` bytes more, which are then all that it may have."""
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved(0) + left) / total)
    taken: list[torch.Tensor] = []
    for size in (2**18, 2**12, 2**9):
        while True:
            try:
                taken.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
            except torch.OutOfMemoryError:
                break
    return taken[::-1]
