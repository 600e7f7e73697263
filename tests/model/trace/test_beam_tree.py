"""Beam search's tree: hypotheses have the probabilities that the network gives their tokens, and maps of their own."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch

from model.errors import UnknownHypothesis
from model.inference.beam_search import beam
from model.inference.cell import explain_cell
from model.inference.decoding import Writer
from model.requests.request import Decoding, RunRequest
from model.trace.beam_tree import hypotheses, path
from model.trace.types import Attention, Trace
from tests.runs import CPU, SPECS, checkpoint, request, traced

WRITERS = [name for name, spec in SPECS.items() if spec.output is not None and spec.start_id is not None]
FORCED = [name for name in WRITERS if name != "memory"]
"""A decoder that lays the target's mask over the source cannot be given several tokens at once."""

SIZE = 4


@cache
def shown(name: str, hypothesis: int = 0, seed: int = 0) -> Trace:
    spec = SPECS[name]
    decoding = Decoding("beam", max_length=6, beam_size=SIZE, hypothesis=hypothesis)
    return traced(checkpoint(spec, seed), replace(request(spec), decoding=decoding))


def rescored(name: str, trace: Trace, seed: int = 0) -> Trace:
    """The same tokens, given instead of searched for: no cache, no beam."""
    spec = SPECS[name]
    if spec.encoder is None:
        given = RunRequest("tiny", trace.tokens["source"].ids, decoding=Decoding(max_length=0), keep=request(spec).keep)
    else:
        given = replace(request(spec), target=trace.tokens["target"].ids)
    return traced(checkpoint(spec, seed), given)


def all_shown(name: str) -> Iterator[tuple[int, Trace]]:
    for rank in range(len(hypotheses(shown(name).tree))):
        yield rank, shown(name, rank)


@pytest.mark.parametrize("name", FORCED)
def test_every_hypothesis_has_the_log_probability_that_teacher_forcing_gives_it(name: str) -> None:
    for rank, trace in all_shown(name):
        last = hypotheses(trace.tree)[rank]
        places = path(trace.tree, last)
        steps = rescored(name, trace).steps[-len(places) :]
        assert [trace.tree[place].id for place in places] == [step.chosen.id for step in steps]
        for place, step in zip(places, steps, strict=True):
            assert trace.tree[place].log_probability == pytest.approx(step.chosen.log_probability, abs=1e-4)
        assert trace.tree[last].total == pytest.approx(sum(step.chosen.log_probability for step in steps), abs=1e-4)


@pytest.mark.parametrize("name", FORCED)
def test_every_hypothesis_shows_its_own_rows(name: str) -> None:
    for _rank, trace in all_shown(name):
        again = rescored(name, trace)
        assert trace.logits is not None
        assert again.logits is not None
        np.testing.assert_allclose(trace.logits, again.logits[: len(trace.logits)], atol=2e-5)
        for site, attention in trace.attention.items():
            same_rows(attention, again.attention[site])


def same_rows(ours: Attention, theirs: Attention) -> None:
    _heads, rows, keys = ours.weights.shape
    np.testing.assert_allclose(ours.weights, theirs.weights[:, :rows, :keys], atol=1e-5)
    for name in ("q", "context"):
        found, expected = getattr(ours, name), getattr(theirs, name)
        np.testing.assert_allclose(found, expected[:, : found.shape[1]], atol=2e-5, err_msg=name)


def test_beams_were_reordered_so_that_these_tests_can_fail() -> None:
    crossed = 0
    for name in WRITERS:
        tree = shown(name).tree
        for place in hypotheses(tree):
            steps = path(tree, place)
            places_in_step = [[p for p in range(len(tree)) if tree[p].step == tree[at].step].index(at) for at in steps]
            crossed += len(set(places_in_step)) > 1
    assert crossed > 10


@pytest.mark.parametrize("name", WRITERS)
def test_the_tree_is_whole(name: str) -> None:
    tree = shown(name).tree
    ranked = hypotheses(tree)
    assert [tree[place].rank for place in ranked] == list(range(len(ranked)))
    assert all(tree[one].mean >= tree[other].mean for one, other in pairwise(ranked))
    for place, node in enumerate(tree):
        before = tree[node.parent].total if node.parent >= 0 else 0.0
        assert node.parent < place
        assert node.total == pytest.approx(before + node.log_probability, abs=1e-5)
        if node.parent >= 0:
            assert tree[node.parent].fate == "kept", "nothing grows on what was pruned or has ended"
            assert tree[node.parent].step == node.step - 1
    for step in range(max(node.step for node in tree) + 1):
        here = [node for node in tree if node.step == step]
        kept = [node.total for node in here if node.fate == "kept"]
        assert len(kept) <= SIZE
        assert len(here) <= 2 * SIZE
        end = SPECS[name].end_id
        dropped = [node.total for node in here if node.fate == "pruned" and node.id != end]
        assert not kept or not dropped or min(kept) >= max(dropped)


def test_the_tree_is_that_of_a_search_worked_out_by_hand() -> None:
    """Two tokens, a and b, and the end: after a the end is likely, after b it is not."""
    rows = {(): [0.6, 0.3, 0.1], (0,): [0.06, 0.24, 0.7], (1,): [0.5, 0.4, 0.1]}

    def read(ids: torch.Tensor, start: int) -> torch.Tensor:
        found = [rows.get(tuple(row[1:].tolist()), [0.1, 0.1, 0.8]) for row in ids]
        return torch.tensor(found).log()[:, None]

    writer = Writer(lambda ids: ["abE"[id_] for id_ in ids], ends=(2,), suppressed=(), limit=9)
    found, tree = beam(read, lambda rows: None, lambda lineages: None, (9,), 2, 5, writer, CPU)
    told = [(node.step, node.parent, node.text, round(float(np.exp(node.total)), 3), node.fate, node.rank) for node in tree]
    assert told == [
        (0, -1, "a", 0.6, "kept", -1),
        (0, -1, "b", 0.3, "kept", -1),
        (0, -1, "E", 0.1, "pruned", -1),
        (1, 0, "E", 0.42, "finished", 0),
        (1, 1, "a", 0.15, "kept", -1),
        (1, 0, "b", 0.144, "kept", -1),
        (1, 1, "b", 0.12, "pruned", -1),
        (2, 4, "E", 0.12, "finished", 1),
        (2, 5, "E", 0.115, "finished", 2),
        *told[9:],
    ]
    assert {fate for *_rest, fate, _rank in told[9:]} <= {"kept", "pruned"}
    assert [h.ids for h in found] == [(9, 0, 2), (9, 1, 0, 2), (9, 0, 1, 2)]


def test_a_search_that_is_cut_off_ranks_what_was_in_the_beam() -> None:
    spec = replace(SPECS["paper"], end_id=None)
    trace = traced(checkpoint(spec), replace(request(spec), decoding=Decoding("beam", max_length=3, beam_size=3)))
    assert {trace.tree[place].fate for place in hypotheses(trace.tree)} == {"kept"}
    assert [len(path(trace.tree, place)) for place in hypotheses(trace.tree)] == [3, 3, 3]


def test_a_hypothesis_that_there_is_not_is_answered_in_a_sentence() -> None:
    count = len(hypotheses(shown("paper").tree))
    with pytest.raises(
        UnknownHypothesis, match=f"There is no hypothesis 63: those of this beam search are numbered from 0 to {count - 1}"
    ):
        shown("paper", 63)


@pytest.mark.parametrize("name", WRITERS)
def test_the_arithmetic_of_cells_agrees_in_every_hypothesis(name: str) -> None:
    network = checkpoint(SPECS[name]).network
    rng = np.random.default_rng(0)
    for _rank, trace in all_shown(name):
        for site, attention in trace.attention.items():
            head, query, key = (int(rng.integers(size)) for size in attention.weights.shape)
            cell = explain_cell(network, trace, str(site), head, query, key)
            assert cell.agrees, (site, head, query, key, cell.largest_difference)
            assert abs(cell.weight - attention.weights[head, query, key]) < 1e-6


def test_other_decodes_have_no_tree() -> None:
    assert traced(checkpoint(SPECS["paper"]), request(SPECS["paper"])).tree == ()
