"""Progress of a decode: after each step the tokens written so far, and nothing where nobody asks."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from model.checkpoints.loader import lowered
from model.inference.run import run, run_in
from model.requests.request import Decoding, Method
from model.trace.progress import Progress
from model.trace.types import Trace
from tests.runs import CPU, SPECS, checkpoint, request

PAPER = SPECS["paper"]


def heard(decoding: Decoding, target: str | None = None, name: str = "paper") -> tuple[Trace, list[Progress]]:
    """A run, and what it reported."""
    found, reports = checkpoint(SPECS[name], seed=3), list[Progress]()
    asked = replace(request(SPECS[name]), decoding=decoding, target=target)
    return run(found, asked, CPU, "cpu", report=lambda make: reports.append(make())), reports


@pytest.mark.parametrize("method", ["greedy", "sample"])
def test_each_token_is_reported_when_it_is_chosen(method: Method) -> None:
    trace, reports = heard(Decoding(method, max_length=7))
    ids = tuple(step.chosen.id for step in trace.steps)
    texts = tuple(step.chosen.text for step in trace.steps)
    assert [report.ids for report in reports] == [ids[:count] for count in range(len(ids) + 1)], (
        "first the encoder, then each token"
    )
    assert [report.texts for report in reports] == [texts[:count] for count in range(len(ids) + 1)]
    assert {report.most for report in reports} == {7}
    assert all(later.seconds >= earlier.seconds > 0 for earlier, later in pairwise(reports))


def test_a_beam_search_reports_its_best_hypothesis_so_far() -> None:
    trace, reports = heard(Decoding("beam", max_length=6, beam_size=3))
    assert [report.ids for report in reports[:1]] == [()]
    del reports[0]
    assert len(reports) == 6
    assert reports[-1].ids == tuple(step.chosen.id for step in trace.steps)
    for count, report in enumerate(reports, 1):
        level = [node for node in trace.tree if node.step == count - 1 and node.fate != "pruned"]
        assert report.ids[-1] == max(level, key=lambda node: node.total).id
        assert len(report.ids) == count


@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_the_most_that_can_be_written_is_bounded_by_the_positions(method: Method) -> None:
    _, reports = heard(Decoding(method, max_length=1000, beam_size=2))
    assert {report.most for report in reports} == {PAPER.writer.max_positions}
    trace, reports = heard(Decoding(method, max_length=1000, beam_size=2), name="language model")
    prompt = len(trace.tokens["source"]) - len(trace.steps)
    assert {report.most for report in reports} == {SPECS["language model"].writer.max_positions + 1 - prompt}


def test_a_given_target_reports_nothing() -> None:
    assert heard(Decoding(), target="w4 w5")[1] == []


def test_the_float32_run_beside_a_lower_precision_reports_nothing() -> None:
    found, reports = checkpoint(PAPER), list[Progress]()
    asked = replace(request(PAPER), precision="bfloat16", keep=())
    trace = run_in(found, lowered(found, "bfloat16"), asked, CPU, "cpu", report=lambda make: reports.append(make()))
    assert len(reports) == 1 + len(trace.steps) > 1


@pytest.mark.parametrize(("method", "name"), [("greedy", "paper"), ("sample", "language model"), ("beam", "paper")])
def test_the_trace_so_far_is_what_the_finished_run_recorded_up_to_there(method: Method, name: str) -> None:
    whole, reports = heard(Decoding(method, max_length=6, beam_size=2), name=name)
    parts = [(progress, progress.so_far()) for progress in reports if progress.so_far]  # made after the run went on
    assert len(parts) >= len(whole.steps)
    if name == "paper":
        first = parts[0][1]
        assert {site.stack for site in first.attention} == {"encoder"}, "the encoder's maps come before the first token"
        assert len(first.tokens["target"]) == 1
    for progress, part in parts[-3:]:
        assert [step.chosen.id for step in part.steps] == list(progress.ids)
        if progress.ids != tuple(step.chosen.id for step in whole.steps[: len(progress.ids)]):
            continue  # of a beam search: another beginning was the best
        for site, own in part.attention.items():
            there = whole.attention[site]
            rows, keys = own.mask.shape
            np.testing.assert_array_equal(own.weights, there.weights[:, :rows, :keys])
            np.testing.assert_array_equal(own.mask, there.mask[:rows, :keys])


def test_a_rate_counts_tokens_by_the_second() -> None:
    assert Progress((1, 2, 3), ("a", "b", "c"), 9, 0.5).rate == 6
    assert Progress((1,), ("a",), 9, 0.0).rate > 0
