"""Weights that are no probabilities are recorded, named, and opened: rows that do not sum to 1, NaN, numbers below 0."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import headlight
from model.trace import trace_files, unusual
from model.trace.types import Trace
from tests.record.test_record_forms import ALLOWED, BATCH, HEADS, QUERIES, K, Q, V, joined

SCORES = Q @ K.mT
NO_SCORE = torch.zeros(BATCH, HEADS, QUERIES, 1)


def opened(recording: headlight.Recording) -> Trace:
    return trace_files.read_bytes(recording.to_bytes(), "x.trace.safetensors")


def sink(scores: Tensor) -> Tensor:
    return torch.cat([scores, NO_SCORE], -1).softmax(-1)[..., :-1]


def sink_first(scores: Tensor) -> Tensor:
    return torch.cat([NO_SCORE, scores], -1).softmax(-1)[..., 1:]


def softmax1(scores: Tensor) -> Tensor:
    exponentials = scores.exp()
    return exponentials / (1 + exponentials.sum(-1, keepdim=True))


def gated(scores: Tensor) -> Tensor:
    return scores.softmax(-1) * torch.sigmoid(Q.sum(-1, keepdim=True))


def doubled(scores: Tensor) -> Tensor:
    return scores.softmax(-1) * 2


def masked_afterwards(scores: Tensor) -> Tensor:
    return scores.softmax(-1).masked_fill(~ALLOWED, 0.0)


def less_their_mean(scores: Tensor) -> Tensor:
    weights = scores.softmax(-1)
    return weights - weights.mean(-1, keepdim=True)


UNUSUAL = [sink, sink_first, softmax1, gated, doubled, masked_afterwards, less_their_mean]


@pytest.mark.parametrize("program", UNUSUAL, ids=lambda program: program.__name__)
def test_rows_that_do_not_sum_to_1_are_recorded_named_and_opened(program: Callable[[Tensor], Tensor]) -> None:
    with headlight.record(example=1) as recording:
        joined(program(Q @ K.mT) @ V)
    assert recording.notes[0].startswith("Rows do not sum to 1")
    assert recording.notes[0].endswith(": program.0.0.unknown.")
    trace = opened(recording)
    assert list(map(str, trace.model["notes"])) == recording.notes
    (own,) = trace.attention.values()
    np.testing.assert_allclose(own.weights, program(SCORES)[1], atol=1e-6)
    said = " ".join(str(each) for head in range(HEADS) for each in unusual.about_head(own, head))
    assert "not to 1" in said
    assert ("below 0" in " ".join(recording.notes)) == (program is less_their_mean) == ("colors begin at 0" in said)


def test_rows_that_sum_to_1_are_not_named() -> None:
    with headlight.record() as recording:
        joined((Q @ K.mT).masked_fill(~ALLOWED, -math.inf).softmax(-1) @ V)
    assert recording.notes == []
    assert [unusual.about_head(own, 0) for own in opened(recording).attention.values()] == [()]
    assert headlight.FROM_ONE == unusual.FROM_ONE


def test_memory_and_text_may_be_weighed_apart() -> None:
    def program() -> Tensor:
        exponentials = (Q @ K.mT).exp()
        weights = exponentials / exponentials.sum(-1, keepdim=True)
        return joined(weights[..., :2] @ V[..., :2, :] + weights[..., 2:] @ V[..., 2:, :])

    with headlight.record() as recording:
        program()
    wanted = SCORES.softmax(-1)[0]
    for own, part in zip(opened(recording).attention.values(), (wanted[..., :2], wanted[..., 2:]), strict=True):
        np.testing.assert_allclose(own.weights, part, atol=1e-6)


def one_head_masked_whole(scores: Tensor) -> Tensor:
    hidden = torch.zeros_like(scores, dtype=torch.bool)
    hidden[:, 1] = True
    return scores.masked_fill(hidden, -math.inf).softmax(-1)


def one_row_masked_whole(scores: Tensor) -> Tensor:
    hidden = torch.zeros(QUERIES, scores.shape[-1], dtype=torch.bool)
    hidden[2] = True
    return scores.masked_fill(hidden, -math.inf).softmax(-1)


def divided_by_nothing(scores: Tensor) -> Tensor:
    weights = scores.softmax(-1) * torch.tensor([1.0, 0.0, 1.0]).view(HEADS, 1, 1)
    return weights / weights.sum(-1, keepdim=True)


def an_infinite_score(scores: Tensor) -> Tensor:
    scores = scores.clone()
    scores[:, 1, 3, 0] = math.inf
    return scores.softmax(-1)


def a_broken_query(scores: Tensor) -> Tensor:
    q = Q.clone()
    q[:, 2, 1] = math.nan
    return (q @ K.mT).softmax(-1)


BROKEN: dict[Callable[[Tensor], Tensor], str] = {
    one_head_masked_whole: "head 2: 4 of 4 rows",
    one_row_masked_whole: "head 1: 1 of 4 rows",
    divided_by_nothing: "head 2: 4 of 4 rows",
    an_infinite_score: "head 2: 1 of 4 rows",
    a_broken_query: "head 3: 1 of 4 rows",
}


@pytest.mark.parametrize("program", BROKEN, ids=lambda program: program.__name__)
def test_heads_with_nan_are_named_and_the_others_shown(program: Callable[[Tensor], Tensor]) -> None:
    with headlight.record(keep=["qkv", "context"]) as recording:
        joined(program(Q @ K.mT) @ V)
    assert recording.notes[0].startswith("The program computed NaN or infinite weights: program.0.0.unknown, ")
    assert BROKEN[program] in recording.notes[0]
    (own,) = opened(recording).attention.values()
    np.testing.assert_allclose(own.weights, program(SCORES)[0], atol=1e-6, equal_nan=True)
    bad = [head for head in range(HEADS) if not np.isfinite(own.weights[head]).all()]
    assert [head for head in range(HEADS) if unusual.about_head(own, head)] == bad
    assert "in the rows " in str(unusual.about_head(own, bad[0])[0])


def test_a_recording_of_gpt_oss_opens_with_its_sinks() -> None:
    from transformers import GptOssConfig, GptOssForCausalLM

    config = GptOssConfig(
        vocab_size=40,
        hidden_size=32,
        head_dim=8,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=16,
        num_local_experts=2,
        num_experts_per_tok=1,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    network = GptOssForCausalLM._from_config(config, attn_implementation="eager").eval()
    for layer in network.model.layers:
        torch.nn.init.normal_(layer.self_attn.sinks)
    with torch.no_grad(), headlight.record(network) as recording:
        maps = network(torch.tensor([[5, 9, 4, 7]]), output_attentions=True).attentions
    trace = opened(recording)
    assert "Rows do not sum to 1" in " ".join(map(str, trace.model["notes"]))
    for own, eager in zip(trace.attention.values(), maps, strict=True):
        np.testing.assert_allclose(own.weights, eager[0], atol=1e-6)
