"""Long inputs: a fused run is the written-out one, and maps made of q and k are those that the formula gives."""

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from model.errors import TooManyTokens
from model.inference import inputs
from model.requests.edits import Silence
from model.requests.inputs import RandomFeatures
from model.requests.request import Decoding, RunRequest
from model.trace import serialization
from model.trace.lazy_attention import LazyAttention
from model.trace.types import UNWRITTEN, Array, Trace
from model.transformer.attention import attend, attend_fused, softmax_uniform, softmax_zeros
from tests.runs import SPECS, checkpoint, request, traced

SOFTMAXES = {"uniform": softmax_uniform, "zeros": softmax_zeros}


def some(empty_rows: Any = "uniform", heads: int = 3, queries: int = 7, keys: int = 9, width: int = 4) -> LazyAttention:
    """Random queries and keys under a random mask; the third query may look nowhere."""
    rng = np.random.default_rng(0)
    mask = rng.random((queries, keys)) < 0.6
    mask[:, 0], mask[2] = True, False
    q, k = (rng.normal(size=(heads, size, width)).astype(np.float32) for size in (queries, keys))
    return LazyAttention(q, k, mask, 0.7, empty_rows)


def by_the_formula(made: LazyAttention) -> Array:
    """[head, query, key] in float64, a cell at a time."""
    heads, queries, keys = made.shape
    weights = np.zeros(made.shape)
    for head, query in np.ndindex(heads, queries):
        scores = {key: made.scale * float(made.q[head, query] @ made.k[head, key]) for key in range(keys) if made.mask[query, key]}
        total = sum(np.exp(score) for score in scores.values())
        for key in range(keys):
            empty = 1 / keys if made.empty_rows == "uniform" else 0.0
            weights[head, query, key] = empty if not scores else np.exp(scores[key]) / total if key in scores else 0.0
    return weights


@pytest.mark.parametrize("empty_rows", ["uniform", "zeros"])
def test_unwritten_weights_are_the_formulas(empty_rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = some(empty_rows)
    np.testing.assert_allclose(made[:], by_the_formula(made), atol=1e-6)
    whole = np.asarray(made)
    monkeypatch.setattr("model.trace.lazy_attention.BLOCK", 20)
    np.testing.assert_allclose(made[:], whole, atol=1e-7)


@pytest.mark.parametrize(
    "index",
    [0, -1, (1, 3), (2, 6, 8), (2, slice(1, 4), 5), (slice(None), 2, slice(4, None)), ([0, 2], 3), (0, [1, 1, 6]), slice(1, 2)],
)
def test_unwritten_weights_are_indexed_like_an_array(index: Any) -> None:
    made = some()
    np.testing.assert_allclose(made[index], np.asarray(made)[index], atol=1e-7)


def test_unwritten_weights_take_little_more_memory_than_the_answer() -> None:
    made = some(heads=2, queries=3000, keys=2000)
    tracemalloc.start()
    answer = made[1]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert answer.flags.c_contiguous
    assert most < 1.8 * answer.nbytes


def test_unwritten_weights_can_do_what_an_array_can() -> None:
    made = some()
    whole = np.asarray(made)
    assert (made.shape, made.ndim, made.dtype, len(made)) == (whole.shape, 3, whole.dtype, 3)
    assert made.max() == whole.max()
    np.testing.assert_array_equal([head.sum() for head in made], [head.sum() for head in whole])
    np.testing.assert_array_equal(made.astype(np.float64), whole.astype(np.float64))
    with pytest.raises(IndexError):
        made[3]


def test_what_is_not_a_number_stays_one() -> None:
    made = some()
    q = made.q.copy()
    q[1, 4, 0] = np.nan
    weights = replace(made, q=q)[:]
    assert np.isnan(weights[1, 4]).any()
    assert np.isfinite(weights[[0, 2]]).all()


@pytest.mark.parametrize("softmax", SOFTMAXES)
def test_the_fused_context_is_the_written_out_one(softmax: str) -> None:
    made, generator = some(), torch.Generator().manual_seed(0)
    q, k, allowed = (torch.from_numpy(array)[None] for array in (made.q, made.k, made.mask))
    v = torch.randn(1, 3, 9, 5, generator=generator)
    written = attend(q.double(), k.double(), v.double(), allowed[:, None], 0.7, SOFTMAXES[softmax]).context
    fused = attend_fused(q, k, v, allowed[:, None], 0.7, SOFTMAXES[softmax])
    torch.testing.assert_close(fused.double(), written, rtol=1e-5, atol=1e-5)


def both_ways(name: str, monkeypatch: pytest.MonkeyPatch, asked: RunRequest) -> tuple[Trace, Trace]:
    """The same run, written out and as a long one."""
    found = checkpoint(SPECS[name])
    written = traced(found, asked)
    monkeypatch.setattr(inputs, "LONG", 0)
    return written, traced(found, asked)


@pytest.mark.parametrize("method", ["greedy", "beam"])
@pytest.mark.parametrize("name", SPECS)
def test_a_long_run_shows_what_a_written_out_run_shows(name: str, method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = replace(
        request(SPECS[name]), keep=("hidden", "context", "output"), decoding=Decoding(method, max_length=5, beam_size=2)
    )
    written, long = both_ways(name, monkeypatch, asked)
    assert UNWRITTEN in long.missing
    assert UNWRITTEN not in written.missing
    assert long.tokens == written.tokens
    for site, attention in long.attention.items():
        assert isinstance(attention.weights, LazyAttention)
        ran = written.attention[site]
        np.testing.assert_array_equal(attention.mask, ran.mask)
        for tensor in ("weights", "context", "output"):
            np.testing.assert_allclose(getattr(attention, tensor), getattr(ran, tensor), atol=1e-5, err_msg=f"{site} {tensor}")
    for state, values in written.hidden.items():
        np.testing.assert_allclose(long.hidden[state], values, atol=1e-4, err_msg=state)


def test_a_long_run_can_be_silenced(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = replace(request(SPECS["paper"], (Silence("encoder.0.1.self", (1,)),)), keep=("hidden",))
    written, long = both_ways("paper", monkeypatch, asked)
    np.testing.assert_allclose(long.hidden["encoder.0.1"], written.hidden["encoder.0.1"], atol=1e-5)


def test_scores_that_are_asked_for_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _, asked = both_ways("paper", monkeypatch, request(SPECS["paper"]))
    assert asked.at("encoder.0.0.self").scores is not None
    assert isinstance(asked.at("encoder.0.0.self").weights, np.ndarray)


def test_more_than_may_be_kept_is_refused_before_anything_runs() -> None:
    found = checkpoint(SPECS["attention alone"])
    spec = replace(SPECS["attention alone"].writer, max_positions=9000)
    found = replace(found, info=replace(found.info, spec=replace(found.info.spec, encoder=spec)))
    with pytest.raises(
        TooManyTokens,
        match=r"The longest text .* 9,000 tokens, but the limit is 8,192: scores and weights of 4 heads would take 2\.4 GB",
    ):
        traced(found, RunRequest("tiny", RandomFeatures(9000), keep=("scores",)))


def test_a_long_runs_bytes_hold_queries_and_keys_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = checkpoint(SPECS["attention alone"])
    spec = replace(SPECS["attention alone"].writer, max_positions=1000)
    found = replace(found, info=replace(found.info, spec=replace(found.info.spec, encoder=spec)))
    trace = traced(found, RunRequest("tiny", RandomFeatures(900), source_valid=700))
    needed = sum(getattr(a, name).nbytes for a in trace.attention.values() for name in ("q", "k"))
    assert needed <= trace.nbytes <= 1.1 * needed
    weights = trace.at("encoder.0.1.self").weights
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    assert not weights[:, :, 700:].any()


def test_a_long_run_travels_without_its_weights_and_is_the_same_there(monkeypatch: pytest.MonkeyPatch) -> None:
    written, long = both_ways("uneven", monkeypatch, replace(request(SPECS["uneven"]), keep=()))
    sent = serialization.to_bytes(long)
    again = serialization.from_bytes(sent)
    assert b"encoder.0.0.self/weights" not in sent
    whole = serialization.from_bytes(serialization.to_bytes(serialization.written_out(long)))
    assert UNWRITTEN in again.missing
    assert UNWRITTEN not in whole.missing
    for site, attention in long.attention.items():
        np.testing.assert_array_equal(again.attention[site].weights, attention.weights)
        np.testing.assert_array_equal(whole.attention[site].weights, attention.weights)
        assert isinstance(whole.attention[site].weights, np.ndarray)
        np.testing.assert_allclose(attention.weights, written.attention[site].weights, atol=1e-5)
