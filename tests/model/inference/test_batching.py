"""A batch is several runs at once: nothing that a run records or answers depends on what is computed beside it."""

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from model.checkpoints.native import Checkpoint
from model.engine.scheduling.scheduler import Scheduler
from model.errors import OutOfMemory
from model.inference import batching
from model.inference.batching import Batch
from model.inference.calls import Ask, Call, computed
from model.inference.run import run
from model.requests.edits import Forbid, Silence
from model.requests.request import Decoding, RunRequest
from model.trace.types import Trace
from model.transformer.attention import Run
from model.transformer.masks import Mask
from model.transformer.stacks import EncoderDecoder
from tests import runs
from tests.patience import HANG_S
from tests.runs import CPU, SPECS, assert_same, checkpoint

TEXTS = ("w4 w6 w5 w9", "w4", "w7 w5", "w8 w8 w8 w4 w5 w6 w7", "w7 w5")


def some_requests(name: str) -> list[RunRequest]:
    """Requests of unequal lengths: decodes, one with a silenced head, a beam, a draw, padding, and given targets."""
    spec = SPECS[name]
    plain = runs.request(spec)
    if not spec.writer.vocab:
        return [plain, replace(plain, source=replace(plain.source, rows=plain.source.rows[:2]))]  # type: ignore[type-var,union-attr]
    asked = [replace(plain, source=text) for text in TEXTS]
    site = f"{'encoder' if spec.encoder else 'decoder'}.0.0.self"
    asked.append(replace(plain, source=TEXTS[3], edits=(Silence(site, (0,)),)))
    if spec.output is not None and spec.decoder is not None:
        asked += [replace(plain, decoding=Decoding(method, max_length=4, seed=3, beam_size=3)) for method in ("sample", "beam")]
    if spec.encoder is not None:
        asked += [replace(plain, source=TEXTS[1], source_pad_to=6), replace(plain, source_valid=2), replace(plain, source_valid=0)]
    if spec.encoder is not None and spec.decoder is not None and spec.decoder.wiring == "standard":
        asked += [replace(plain, source=text, target=text) for text in TEXTS[:4]]
        asked.append(replace(plain, target=(spec.pad_id or 0, 5, 6)))
    return asked


def at_once(
    found: Checkpoint, asked: Sequence[RunRequest], together: Callable[..., Any] = batching.together, ahead: Sequence[int] = ()
) -> list[Trace | Exception]:
    """All requests, as runs that start together and ask one scheduler, which waits for all of them however busy the machine is.

    Args:
        ahead: how many calls each run makes by itself before, as if it had begun earlier than the others; (): none.
    """
    scheduler = Scheduler(most_running=len(asked), together=together, gather=60.0)
    answers: list[Trace | Exception] = [ValueError("never ran")] * len(asked)
    all_began = threading.Barrier(len(set(asked)))  # else a run of one call has ended before the thread of the next one starts
    begun: set[RunRequest] = set()

    def work(request: RunRequest, ask: Ask) -> Trace:
        if request not in begun:  # one that had too little memory begins again
            begun.add(request)
            all_began.wait(HANG_S)
        left = ahead[asked.index(request)] if ahead else 0

        def answered(call: Call) -> Tensor:
            nonlocal left
            while left > 0:
                left, answer = left - 1, computed(call)
                following = None if call.then is None else call.then(answer)
                if following is None:
                    return answer
                call = following
            return ask(call)

        return run(found, request, CPU, "cpu", answered)

    def one(index: int) -> None:
        try:
            answers[index] = scheduler.do(asked[index], lambda ask, report: work(asked[index], ask))
        except Exception as error:
            answers[index] = error

    threads = [threading.Thread(target=one, args=(index,)) for index in range(len(asked))]
    for thread in threads:
        thread.start()
    while scheduler.waiting < len(set(asked)):
        time.sleep(0.001)
    scheduler.start()
    for thread in threads:
        thread.join(HANG_S)
    scheduler.close()
    return answers


@pytest.mark.parametrize("name", SPECS)
def test_a_batch_gives_each_run_what_it_gets_alone(name: str) -> None:
    found, asked = checkpoint(SPECS[name]), some_requests(name)
    sizes: list[int] = []

    def counted(calls: Sequence[Call]) -> list[Any]:
        sizes.append(len(calls))
        return batching.together(calls)

    answers = at_once(found, asked, counted)
    for request, answer in zip(asked, answers, strict=True):
        assert_same(answer, runs.traced(found, request))
    assert max(sizes) > (0 if name == "memory" else 1)


WRITES = [name for name, spec in SPECS.items() if spec.decoder and spec.output and spec.writer.vocab and name != "memory"]
"""Networks that write and are batched while they do."""


@pytest.mark.parametrize("name", WRITES)
def test_runs_that_began_at_different_times_are_batched_and_each_gets_what_it_gets_alone(name: str) -> None:
    spec, mixed = SPECS[name], list[set[int]]()
    found, plain = checkpoint(spec), replace(runs.request(spec), decoding=Decoding("sample", max_length=9, seed=3))
    asked = [replace(plain, source=text) for text in (*TEXTS[:4], "w9 w8")]
    asked += [replace(asked[0], edits=(Silence(f"{stack}.0.0.self", (0,)),)) for stack in spec.stacks]
    asked.append(replace(asked[1], edits=(Forbid("decoder.0.0.self", query=(3, 4), key=(1,)),)))
    asked += [
        replace(asked[3], decoding=Decoding("beam", max_length=6, beam_size=2)),
        replace(asked[2], decoding=Decoding("greedy")),
    ]

    def counted(calls: Sequence[Call]) -> list[Any]:
        if len(starts := {call.start for call in calls}) > 1:
            mixed.append(starts)
        batch = Batch(calls)
        return (
            batch.answers() if batch.hides_padding() else [computed(call) for call in calls]
        )  # an error of a batch is one of a run

    answers = at_once(found, asked, counted, ahead=[1 + 3 * index % 5 for index in range(len(asked))])
    for request, answer in zip(asked, answers, strict=True):
        assert_same(answer, runs.traced(found, request))
    assert spec.decoder is not None
    assert bool(mixed) == (not spec.decoder.positions.startswith("rotary"))


def test_what_a_run_cannot_do_is_said_to_it_alone() -> None:
    found = checkpoint(SPECS["paper"])
    wrong = replace(runs.request(SPECS["paper"]), target=" ".join(["w5"] * 40))
    right = runs.request(SPECS["paper"])
    refused, answered = at_once(found, [wrong, right])
    assert "has 42 tokens, but the limit is 17" in str(refused)
    assert_same(answered, runs.traced(found, right))


@pytest.mark.parametrize(("most", "lost"), [(4, 0), (1, 0), (0, 5)])
def test_a_batch_too_large_for_the_device_is_halved_and_the_one_that_does_not_fit_alone_is_refused(
    monkeypatch: pytest.MonkeyPatch, most: int, lost: int
) -> None:
    found, plain = checkpoint(SPECS["paper"]), runs.request(SPECS["paper"])
    asked = [replace(plain, source=f"{text} w{number % 4 + 4}") for number, text in enumerate(TEXTS)]
    expected = [runs.traced(found, request) for request in asked]
    assert isinstance(found.network, EncoderDecoder)
    decode = found.network.decode

    def cramped(ids: Any, memory: Any, mask: Any, run: Any, start: int = 0) -> Any:
        logits = decode(ids, memory, mask, run, start)  # everything was recorded by the time memory runs out
        if len(ids) > most:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return logits

    monkeypatch.setattr(found.network, "decode", cramped)
    answers = at_once(found, asked)
    assert sum(isinstance(answer, OutOfMemory) for answer in answers) == lost
    for answer, whole in zip(answers, expected, strict=True):
        if not lost:
            assert_same(answer, whole)


def test_when_a_half_is_tried_nothing_holds_the_memory_of_the_whole_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    found, plain = checkpoint(SPECS["paper"]), runs.request(SPECS["paper"])
    assert isinstance(found.network, EncoderDecoder)
    decode, tried = found.network.decode, list[weakref.ref[Tensor]]()

    def cramped(ids: Tensor, memory: Tensor, mask: Mask, run: Run, start: int = 0) -> Tensor:
        assert not [alive for ref in tried if (alive := ref()) is not None]
        logits = decode(ids, memory, mask, run, start)
        if len(ids) > 1:
            tried.append(weakref.ref(logits))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return logits

    monkeypatch.setattr(found.network, "decode", cramped)
    for answer in at_once(found, [replace(plain, source=text, target="w4") for text in TEXTS[:4]]):
        assert isinstance(answer, Trace), answer
    assert len(tried) == 3


@pytest.mark.parametrize("after", [1, 5, 40])
def test_memory_that_runs_out_while_results_are_handed_out_leaves_no_half_of_them(
    monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    found, plain = checkpoint(SPECS["paper"]), runs.request(SPECS["paper"])
    asked = [replace(plain, source=text) for text in TEXTS[:4]]
    expected = [runs.traced(found, request) for request in asked]
    part, failed, left = Batch._part, list[int](), [after]

    def cramped(self: Batch, index: int, name: str, value: Tensor) -> Tensor:
        left[0] -= 1
        if not left[0] and len(self.calls) > 1:
            failed.append(index)
            raise torch.OutOfMemoryError("CUDA out of memory")
        return part(self, index, name, value)

    monkeypatch.setattr(Batch, "_part", cramped)
    for answer, whole in zip(at_once(found, asked), expected, strict=True):
        assert_same(answer, whole)
    assert failed


def test_a_cpu_without_memory_says_so_too() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**50)
    assert batching.is_out_of_memory(caught.value)
    assert not batching.is_out_of_memory(RuntimeError("CUDA error: device-side assert triggered"))


def test_the_keys_of_the_source_are_joined_once_while_the_same_runs_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step padded and joined them again, for every layer."""
    joins, padded = list[int](), batching._padded

    def counted(parts: Sequence[Tensor], axis: int, before: Sequence[int] | None = None) -> Tensor:
        if axis == 2 and before is None:  # keys or values of cross-attention
            joins.append(len(parts))
        return padded(parts, axis, before)

    monkeypatch.setattr(batching, "_padded", counted)
    spec = SPECS["paper"]
    asked = [replace(runs.request(spec), source=text, decoding=Decoding(max_length=4)) for text in TEXTS[:3]]
    answers = at_once(checkpoint(spec), asked)
    assert all(isinstance(answer, Trace) and len(answer.steps) > 1 for answer in answers)
    layers = spec.decoder.layers if spec.decoder is not None else 0
    assert joins.count(3) == 2 * layers


@pytest.mark.parametrize("ahead", [(), (0, 1)], ids=["in step", "one step apart"])
def test_a_mask_is_in_memory_once_for_all_layers(ahead: tuple[int, ...]) -> None:
    found = checkpoint(SPECS["paper"])
    asked = [replace(runs.request(SPECS["paper"]), source=text) for text in TEXTS[:2]]
    alone = [run(found, one, CPU, "cpu") for one in asked]
    for trace, other in zip([*alone, *at_once(found, asked, ahead=ahead)], [*alone, *alone], strict=True):
        assert isinstance(trace, Trace)
        assert_same(trace, other)
        for kind in ("encoder.0.{}.self", "decoder.0.{}.self", "decoder.0.{}.cross"):
            first, second = trace.at(kind.format(0)), trace.at(kind.format(1))
            assert np.shares_memory(first.mask, second.mask)
            assert first.mask_padding is not None
            assert np.shares_memory(first.mask_padding, second.mask_padding)
        assert not np.shares_memory(trace.at("decoder.0.0.self").weights, trace.at("decoder.0.1.self").weights)
