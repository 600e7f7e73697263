"""What a run changes it changes for itself alone, in a batch, a beam search or a long input as by itself."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from model.checkpoints.native import Checkpoint
from model.errors import TooManyTokens
from model.inference import batching, inputs, run
from model.inference.calls import Call
from model.inference.calls import alone as by_itself
from model.inference.inputs import needs_weights
from model.inference.recorder import Recorder
from model.requests.inputs import RandomFeatures
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace.types import UNWRITTEN, Array, Trace
from model.transformer.attention import Intervention, Run
from model.transformer.cache import KVCache
from model.transformer.stacks import EncoderDecoder
from tests.networks import VARIANTS, translator
from tests.runs import SPECS, arrays, checkpoint, request, traced

LENGTHS = (6, 3, 5)


def adding(number: float) -> Intervention:
    return lambda value, start: value + number * (1 + torch.arange(start, start + value.shape[-2])[:, None])


def hide_first(mask: Tensor, start: int, everything: bool = False) -> Tensor:
    """The first key is hidden from the second head: all of them where `everything`."""
    heads = mask.repeat(1, 2, 1, 1)
    heads[:, 1, :, : None if everything else 1] = False
    return heads


def encoded(found: EncoderDecoder, length: int, changes: dict[str, Intervention]) -> tuple[Call, Recorder]:
    recorder = Recorder(KEEP)
    ids = torch.tensor([[2, *range(4, 3 + length)]])
    return Call(found, Run(recorder, changes, KVCache()), ids, found.source_mask(ids)), recorder


CHANGES: list[dict[str, Intervention]] = [
    *({f"attention/encoder.0.0.self/{name}": adding(0.3)} for name in ("q", "k", "v", "scores", "weights", "context", "output")),
    *({name: adding(0.3)} for name in ("hidden/encoder.0.0", "embedded/encoder", "positions/encoder")),
    {"attention/encoder.0.1.self/mask": hide_first},
    {"attention/encoder.0.1.self/mask": partial(hide_first, everything=True)},
    {"attention/encoder.0.1.self/scores": lambda scores, start: scores.new_full(scores.shape, -torch.inf)},
    {"attention/encoder.0.1.self/mask_padding": lambda mask, start: mask & (torch.arange(mask.shape[-1]) > 0)},
    {},
]


def test_each_run_of_a_batch_is_changed_as_it_is_alone() -> None:
    found = translator(VARIANTS["paper"])
    for changes in CHANGES:
        others: list[dict[str, Intervention]] = [{"attention/encoder.0.0.self/q": adding(-1.0)}, changes, {}]
        alone = [encoded(found, length, own) for length, own in zip(LENGTHS, others, strict=True)]
        batch = [encoded(found, length, own) for length, own in zip(LENGTHS, others, strict=True)]
        with torch.inference_mode():
            expected = [by_itself(call) for call, _ in alone]
            answers = batching.together([call for call, _ in batch])
        for (call, ours), answer, (_, theirs), own in zip(batch, answers, alone, expected, strict=True):
            assert isinstance(answer, Tensor), (changes, answer)
            torch.testing.assert_close(answer, own, rtol=1e-5, atol=1e-5, equal_nan=True)
            kept = theirs.arrays()
            for name, array in ours.arrays().items():
                np.testing.assert_allclose(array, kept[name], rtol=1e-5, atol=1e-5, err_msg=name)
            assert call.ids.shape[1] == ours.arrays()["attention/encoder.0.1.self/mask"].shape[-1]


Changing = Callable[[dict[str, Intervention]], None]


@pytest.fixture
def changing(monkeypatch: pytest.MonkeyPatch) -> Changing:
    """Makes every request change the given values."""

    def change(changes: dict[str, Intervention]) -> None:
        monkeypatch.setattr(run, "Run", lambda record, _none, *rest, **more: Run(record, changes, *rest, **more))
        monkeypatch.setattr(run, "needs_weights", lambda _none: needs_weights(changes))

    return change


def rows(trace: Trace) -> dict[str, Array]:
    return {name: array for name, array in arrays(trace).items() if not name.endswith(("mask", "mask_padding", "mask_causal"))}


NAMES = [f"attention/decoder.0.0.{site}" for site in ("self/k", "self/scores", "cross/weights", "cross/v")]


@pytest.mark.parametrize("name", [*NAMES, "positions/decoder", "hidden/decoder.0.0"])
def test_every_hypothesis_of_a_beam_is_changed_as_its_target_is_when_forced(name: str, changing: Changing) -> None:
    found, asked = checkpoint(replace(SPECS["paper"], end_id=None)), request(SPECS["paper"])
    changing({name: lambda value, start: adding(0.2)(value, start) * (1 + torch.arange(value.shape[-1]))})
    searched = traced(found, replace(asked, decoding=Decoding("beam", max_length=4, beam_size=3)))
    given = replace(asked, target=searched.tokens["target"].ids[: len(searched.steps)])
    changed = traced(found, given)
    changing({})
    plain = traced(found, given)
    assert len(searched.steps) == 4
    assert searched.logits is not None
    assert changed.logits is not None
    assert plain.logits is not None
    np.testing.assert_allclose(searched.logits, changed.logits, atol=1e-4)
    assert not np.allclose(changed.logits, plain.logits, atol=1e-4)


@pytest.mark.parametrize("name", ["cross/q", "cross/scores", "cross/weights", "cross/context", "memory/k", "memory/output"])
def test_a_decoder_that_lays_its_mask_over_the_source_is_changed(name: str, changing: Changing) -> None:
    found, asked = checkpoint(SPECS["memory"]), request(SPECS["memory"])
    before, path = traced(found, asked), f"decoder.0.0.{name}"
    changing({f"attention/{path}": lambda value, start: value + 0.2 * torch.arange(value.shape[-1])})
    after = traced(found, asked)
    site, _, tensor = path.rpartition("/")
    old, new = (getattr(trace.at(site), tensor) for trace in (before, after))
    np.testing.assert_allclose(new[..., :1, :], old[..., :1, :] + 0.2 * np.arange(old.shape[-1]), rtol=1e-5, atol=1e-5)
    assert not np.array_equal(after.hidden["decoder.0.1"], before.hidden["decoder.0.1"])


@pytest.mark.parametrize("name", ["scores", "weights", "mask", "mask_padding"])
def test_a_long_run_whose_weights_are_changed_is_written_out(
    name: str, changing: Changing, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, asked = checkpoint(SPECS["paper"]), replace(request(SPECS["paper"]), keep=())
    monkeypatch.setattr(inputs, "LONG", 1)
    assert UNWRITTEN in traced(found, asked).missing
    seen = list[str]()

    def look(value: Tensor, start: int) -> Tensor:
        seen.append(name)
        return value

    changing({f"attention/encoder.0.1.self/{name}": look})
    trace = traced(found, asked)
    assert UNWRITTEN not in trace.missing
    assert isinstance(trace.at("encoder.0.0.self").weights, np.ndarray)
    assert seen == [name]


@pytest.mark.parametrize("name", ["q", "k", "v", "context", "output"])
def test_a_long_run_is_changed_in_the_fused_kernel_as_it_is_written_out(
    name: str, changing: Changing, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, asked = checkpoint(SPECS["paper"]), replace(request(SPECS["paper"]), keep=("hidden",))
    changing({f"attention/encoder.0.1.self/{name}": adding(0.3)})
    written = traced(found, asked)
    monkeypatch.setattr(inputs, "LONG", 1)
    fused = traced(found, asked)
    assert UNWRITTEN in fused.missing
    np.testing.assert_allclose(fused.hidden["encoder.0.1"], written.hidden["encoder.0.1"], atol=1e-4)
    ours, theirs = (trace.at("encoder.0.1.self").weights for trace in (fused, written))
    np.testing.assert_allclose(np.asarray(ours), theirs, atol=1e-5)
    assert not needs_weights([f"attention/encoder.0.1.self/{name}"])


def too_long(found: Checkpoint) -> Checkpoint:
    spec = replace(SPECS["attention alone"].writer, max_positions=20_000)
    return replace(found, info=replace(found.info, spec=replace(found.info.spec, encoder=spec)))


def test_a_changed_run_too_long_to_be_written_out_says_so_before_it_runs(changing: Changing) -> None:
    changing({"attention/encoder.0.0.self/mask": hide_first})
    with pytest.raises(TooManyTokens, match=r"weights of 4 heads would take 4\.0 GB; more fit where they are not changed"):
        traced(too_long(checkpoint(SPECS["attention alone"])), RunRequest("tiny", RandomFeatures(16_384)))
