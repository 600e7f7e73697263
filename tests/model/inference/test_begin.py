"""Continuing from chosen tokens: a decode generates them first, and goes on as the network does after them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from model.checkpoints.native import Checkpoint
from model.errors import BadSetting, TokenOutOfRange, TooManyTokens
from model.requests.request import Decoding, RunRequest
from model.trace.types import Trace
from tests import runs

TRANSLATOR, WRITER = runs.checkpoint(runs.SPECS["paper"]), runs.checkpoint(runs.SPECS["language model"])
BOTH = pytest.mark.parametrize("found", [TRANSLATOR, WRITER], ids=["translation", "language model"])


def asked(begin: tuple[int, ...] = (), **decoding: object) -> RunRequest:
    settings = {"max_length": 6} | decoding
    return RunRequest("tiny", "w4 w6 w5", decoding=Decoding(**settings), begin=begin)  # type: ignore[arg-type]  # settings of Decoding


def written(trace: Trace) -> list[int]:
    return [step.chosen.id for step in trace.steps]


@BOTH
@pytest.mark.parametrize("count", [1, 3, 6])
def test_a_decode_that_begins_with_the_models_own_tokens_is_the_decode_without_them(found: Checkpoint, count: int) -> None:
    free = runs.traced(found, asked())
    again = runs.traced(found, asked(tuple(written(free)[:count])))
    runs.assert_same(again, free)
    for own, other in zip(again.steps, free.steps, strict=True):
        assert own.chosen.log_probability == pytest.approx(other.chosen.log_probability, abs=1e-5)
        assert [c.id for c in own.candidates] == [c.id for c in other.candidates]


def forced_row(found: Checkpoint, ids: list[int]) -> np.ndarray:
    """The logits after the tokens `ids`, which the network is fed at once: [vocab]."""
    if found is TRANSLATOR:
        request = RunRequest("tiny", "w4 w6 w5", target=(found.info.spec.start_id or 0, *ids))
    else:
        prompt = runs.traced(found, asked(max_length=0)).tokens["source"].ids
        request = RunRequest("tiny", (*prompt, *ids), decoding=Decoding(max_length=0))
    logits = runs.traced(found, request).logits
    assert logits is not None
    return np.asarray(logits[-1], dtype=np.float64)


@BOTH
def test_another_first_token_is_followed_by_what_the_network_chooses_after_it(found: Checkpoint) -> None:
    """Each further token is worked out by teacher forcing: the largest logit after all tokens before it."""
    first = runs.traced(found, asked()).steps[0]
    other = next(c.id for c in first.candidates if c.id not in (first.chosen.id, found.info.spec.end_id))
    trace = runs.traced(found, asked((other,)))
    ids = [other]
    while len(ids) < 6 and ids[-1] != found.info.spec.end_id:
        allowed = forced_row(found, ids)
        allowed[list(found.info.spec.suppressed)] = -np.inf
        ids.append(int(allowed.argmax()))
    assert written(trace) == ids
    for place, step in enumerate(trace.steps):
        row = forced_row(found, ids[:place])
        assert step.chosen.log_probability == pytest.approx(row[step.chosen.id] - np.log(np.exp(row).sum()), abs=1e-4)


@BOTH
@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
def test_every_method_begins_with_the_chosen_tokens(found: Checkpoint, method: str) -> None:
    trace = runs.traced(found, asked((7, 8), method=method, beam_size=3))
    assert written(trace)[:2] == [7, 8]
    assert trace.request["begin"] == (7, 8)
    if method == "beam":
        first = [node for node in trace.tree if node.step < 2]
        assert [node.id for node in first] == [7, 8], "all hypotheses share the chosen tokens"
        assert len({node.id for node in trace.tree if node.step == 2}) > 1
        assert all(before.step <= after.step for before, after in pairwise(trace.tree))


def test_beam_search_that_begins_with_its_own_first_token_finds_what_it_found() -> None:
    free = runs.traced(TRANSLATOR, asked(method="beam", beam_size=1))
    again = runs.traced(TRANSLATOR, asked(tuple(written(free)[:2]), method="beam", beam_size=1))
    assert written(again) == written(free)


def test_a_chosen_end_token_ends_the_decode() -> None:
    end = TRANSLATOR.info.spec.end_id or 0
    assert written(runs.traced(TRANSLATOR, asked((7, end)))) == [7, end]
    assert written(runs.traced(TRANSLATOR, asked((7, end), method="beam"))) == [7, end]


def test_what_cannot_be_begun_is_refused_in_words() -> None:
    end = TRANSLATOR.info.spec.end_id or 0
    with pytest.raises(BadSetting, match="begin"):
        replace(asked((7,)), target="w5")
    with pytest.raises(BadSetting, match=r"begin.*at most 6"):
        asked((7,) * 7)
    with pytest.raises(
        TokenOutOfRange,
        match=r"^The beginning of the output \(begin\) has the id 9999, but the ids of",
    ):
        runs.traced(TRANSLATOR, asked((9999,)))
    with pytest.raises(TokenOutOfRange, match="has the id -1, but the ids"):
        runs.traced(TRANSLATOR, asked((-1,)))
    with pytest.raises(BadSetting, match="end token"):
        runs.traced(TRANSLATOR, asked((end, 7)))
    with pytest.raises(BadSetting, match="generates nothing"):
        runs.traced(runs.checkpoint(runs.SPECS["encoder alone"]), asked((7,)))
    with pytest.raises(TooManyTokens, match=r"^The beginning of the output \(begin\) has 900 ids, but there is room for"):
        runs.traced(TRANSLATOR, asked((7,) * 900, max_length=900))


def test_chosen_tokens_come_back_from_json() -> None:
    assert RunRequest.from_json(asked((7, 8)).to_json()) == asked((7, 8))
