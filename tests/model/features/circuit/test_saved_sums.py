"""Saved sums: what a trace file holds of a score and a token is what was computed, and an opened trace answers with it."""

import json
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from model.engine.api import Receive
from model.engine.local import LocalEngine
from model.engine.trace_engine import TRACE_PREFIX, with_traces
from model.errors import BadTrace, RecordedRun, UnknownHead, WireError
from model.features.circuit import saved_sums
from model.features.circuit.logit_parts import logit_sum
from model.features.circuit.saved_sums import cell_to_save, check, logit_of, score_of, sums_to_save
from model.features.circuit.score_parts import score_sum
from model.features.circuit.sums import LogitSum, ScoreSum, Why, Writes
from model.requests.questions import Question
from model.requests.request import RunRequest
from model.trace import serialization
from model.trace.types import Trace
from tests.model.features.circuit.test_sums import made
from tests.runs import CPU, SPECS, request

CROSS = "decoder.0.1.cross"


def asked(minus: Any = None, rival: Any = "runner-up") -> tuple[Why, Writes]:
    return Why(request(SPECS["paper"]), CROSS, 1, 1, 2, minus), Writes(request(SPECS["paper"]), 1, rival)


def answer(question: Why | Writes) -> ScoreSum | LogitSum:
    found, trace = made("paper")
    match question:
        case Why():
            return score_sum(found.network, trace, question)
        case Writes():
            return logit_sum(found.network, trace, question)


def saved(*questions: Why | Writes) -> Trace:
    return replace(made("paper")[1], sums=json.loads(json.dumps(sums_to_save(questions, answer))))


def same(one: Any, other: Any) -> None:
    assert vars(one).keys() == vars(other).keys()
    for name, value in vars(one).items():
        np.testing.assert_array_equal(getattr(other, name), value)


def test_what_was_saved_is_read_to_the_last_bit() -> None:
    for minus, rival in ((None, "runner-up"), ("mean", None), (0, 4)):
        trace = saved(*(questions := asked(minus, rival)))
        same(answer(questions[0]), score_of(trace.sums["why"]))
        same(answer(questions[1]), logit_of(trace.sums["writes"]))
        again = serialization.from_bytes(serialization.to_bytes(trace))
        same(answer(questions[0]), score_of(again.sums["why"]))


def test_an_opened_trace_answers_with_what_was_saved_and_with_nothing_else(tmp_path: Any) -> None:
    engine = with_traces(LocalEngine(tmp_path, CPU), tmp_path)
    name = engine.ask(Receive(serialization.to_bytes(saved(*asked())), "run.trace.safetensors"))
    assert name.startswith(TRACE_PREFIX)
    run, (why, writes) = RunRequest(name, ""), asked()
    same(answer(why), engine.ask(replace(why, request=run)))
    same(answer(writes), engine.ask(replace(writes, request=run)))
    resolved = engine.ask(replace(writes, request=run)).minus
    same(answer(writes), engine.ask(replace(writes, request=run, minus=resolved)))
    for other in (replace(why, key=1), replace(why, minus="mean"), replace(writes, token=0), replace(writes, minus=None)):
        with pytest.raises(RecordedRun):
            engine.ask(cast(Question[Any], replace(other, request=run)))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda sums: sums["why"].pop("matrix"),
        lambda sums: sums["why"]["matrix"].pop(),
        lambda sums: sums["why"].update(matrix="x"),
        lambda sums: sums["why"]["parts_key"][0].update(kind="nobody"),
        lambda sums: sums["why"].update(score="1"),
        lambda sums: sums["writes"].update(parts=3),
        lambda sums: sums["writes"]["parts"][0].pop("value"),
        lambda sums: sums.update(other={}),
    ],
)
def test_damaged_sums_are_one_sentence(tmp_path: Any, spoil: Any) -> None:
    sums = json.loads(json.dumps(dict(saved(*asked()).sums)))
    spoil(sums)
    bad = replace(made("paper")[1], sums=sums)
    with pytest.raises(WireError):
        check(bad)
    with pytest.raises(BadTrace):
        with_traces(LocalEngine(tmp_path, CPU), tmp_path).ask(Receive(serialization.to_bytes(bad), "run.trace.safetensors"))


def test_what_is_not_known_or_too_large_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sums_to_save([replace(asked()[0], head=9), asked()[1]], answer).keys() == {"writes"}
    monkeypatch.setattr(saved_sums, "MOST_BYTES", 2000)
    assert sums_to_save(asked(), answer) == {}


def test_without_a_chosen_cell_it_is_the_strongest_of_the_row() -> None:
    attention = made("paper")[1].at(CROSS)
    weights = attention.head(1)
    assert cell_to_save(attention, 1, 1, 2) == (1, 2)
    assert cell_to_save(attention, 1, 1) == (1, int(weights[1].argmax()))
    assert cell_to_save(attention, 1) == (len(weights) - 1, int(weights[-1].argmax()))
    assert cell_to_save(attention, 1, 99, 1) == cell_to_save(attention, 1)
    with pytest.raises(UnknownHead):
        cell_to_save(attention, 9)
