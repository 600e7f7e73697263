"""Decoding: what is drawn has the probabilities that its settings promise, and searches rank as they say."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from model.inference.beam_search import Hypothesis, beam
from model.inference.decoding import Writer, certain, forced, greedy, log_probabilities_of, sampler, write
from model.requests.request import Decoding
from model.trace.beam_tree import Node, hypotheses, path
from model.trace.steps import Step
from model.trace.types import Array
from tests.runs import CPU

PROBABILITIES = np.array([0.05, 0.4, 0.02, 0.25, 0.08, 0.15, 0.05])
"""Of seven tokens, in no order, two of them equal."""

DRAWS = 1500
CHI_SQUARE = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 5: 20.52, 6: 22.46}
"""The value that chi-square stays below in 999 of 1000 cases, by degrees of freedom: the tables' 0.001 column."""


def exact(temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> Array:
    """The distribution that a draw has, worked out token by token."""
    heated = PROBABILITIES ** (1 / temperature)
    heated /= heated.sum()
    ranked = sorted(range(len(heated)), key=lambda token: -heated[token])  # of equal ones the first
    kept = ranked[:top_k] if top_k else ranked
    whole = sum(heated[token] for token in kept)
    found, held = np.zeros(len(heated)), 0.0
    for token in kept:
        if held >= top_p:
            break
        found[token] = heated[token]
        held += heated[token] / whole
    return np.asarray(found / found.sum())


def drawn(decoding: Decoding, draws: int) -> list[int]:
    return list(sampler(decoding)(torch.tensor(PROBABILITIES).log().float().expand(draws, -1)))


def chi_square(counts: Array, expected: Array) -> tuple[float, int]:
    """How far draws are from a distribution, and its degrees of freedom; a token that it does not have is infinitely far."""
    there = expected > 0
    wanted = counts.sum() * expected[there]
    distance = float(((counts[there] - wanted) ** 2 / wanted).sum())
    return np.inf if counts[~there].any() else distance, max(1, int(there.sum()) - 1)


SETTINGS: list[dict[str, Any]] = [
    *({"temperature": t} for t in (0.3, 0.7, 1.0, 2.5)),
    *({"top_k": k} for k in (2, 3, 5)),
    *({"top_p": p} for p in (0.5, 0.66, 0.9)),
    {"temperature": 2.0, "top_k": 4},
    {"temperature": 0.6, "top_p": 0.8},
    {"top_k": 4, "top_p": 0.7},
    {"temperature": 1.7, "top_k": 5, "top_p": 0.75},
]


@pytest.mark.parametrize("asked", SETTINGS, ids=str)
def test_tokens_are_drawn_with_the_probabilities_that_the_settings_promise(asked: dict[str, Any]) -> None:
    """They fit the distribution of their own settings and, so that this can fail, that of no other settings."""
    counts = np.bincount(drawn(Decoding("sample", seed=3, **asked), DRAWS), minlength=len(PROBABILITIES))
    own = exact(**asked)
    distance, freedom = chi_square(counts, own)
    assert distance < CHI_SQUARE[freedom]
    for other in [{}, *SETTINGS]:
        if not np.allclose(expected := exact(**other), own):
            distance, freedom = chi_square(counts, expected)
            assert distance > CHI_SQUARE[freedom], other


def test_a_temperature_near_zero_draws_the_likeliest_token() -> None:
    assert set(drawn(Decoding("sample", temperature=0.01), 30)) == {1}


def test_one_of_the_likeliest_one_is_no_draw() -> None:
    assert set(drawn(Decoding("sample", top_k=1), 50)) == {1}
    assert set(drawn(Decoding("sample", top_p=0.01), 50)) == {1}


def test_more_of_the_likeliest_than_there_are_tokens_are_all_of_them() -> None:
    assert drawn(Decoding("sample", top_k=1000), 200) == drawn(Decoding("sample"), 200)


def test_the_same_seed_draws_the_same_and_another_seed_something_else() -> None:
    first, again, other = (drawn(Decoding("sample", seed=seed), 100) for seed in (5, 5, 6))
    assert first == again != other


def test_a_draw_goes_on_from_the_draw_before() -> None:
    assert len(set(drawn(Decoding("sample", seed=5), 100))) > 3


def test_draws_of_one_run_are_not_those_of_torch_at_large() -> None:
    torch.manual_seed(1)
    first = drawn(Decoding("sample", seed=5), 30)
    torch.manual_seed(2)
    torch.rand(7)
    assert drawn(Decoding("sample", seed=5), 30) == first


def test_where_numbers_are_nan_the_draw_is_the_greedy_choice() -> None:
    broken = torch.tensor([[-1.0, float("nan"), -0.5]])
    assert list(sampler(Decoding("sample"))(broken)) == list(greedy(broken)) == [1]


def test_a_row_draws_only_when_its_token_is_asked_for() -> None:
    """Rows behind a wrong guess are dropped: had they drawn, the text after them would depend on the guess."""
    choose, rows = sampler(Decoding("sample", seed=5)), torch.tensor(PROBABILITIES).log().float().expand(40, -1)
    assert [next(choose(rows)) for _ in range(40)] == list(sampler(Decoding("sample", seed=5))(rows))


def test_a_draw_leaves_what_the_page_shows_as_it_was() -> None:
    given = torch.tensor(PROBABILITIES).log().float()[None]
    before = given.clone()
    list(sampler(Decoding("sample", temperature=0.5, top_k=2, top_p=0.6))(given))
    assert torch.equal(given, before)


def table(rows: dict[tuple[int, ...], list[float]], otherwise: list[float]) -> Callable[[Tensor, int], Tensor]:
    """A network that gives tokens written the next one's probabilities by a table; it asks for what is new alone."""

    def read(ids: Tensor, start: int) -> Tensor:
        whole = [[rows.get(tuple(row[1 : end + 1]), otherwise) for end in range(start, len(row))] for row in ids.tolist()]
        return torch.tensor(whole).log()

    return read


END = 2


def writer(limit: int = 99, suppressed: tuple[int, ...] = (), vocabulary: str = "abE") -> Writer:
    return Writer(lambda ids: [vocabulary[id_] for id_ in ids], (END,), suppressed, limit)


def search(
    read: Callable[[Tensor, int], Tensor], size: int = 2, max_length: int = 5, **of_writer: Any
) -> tuple[list[Hypothesis], list[list[int]]]:
    selected: list[list[int]] = []
    found, _tree = beam(
        read, lambda rows: selected.append(rows.tolist()), lambda _: None, (9,), size, max_length, writer(**of_writer), CPU
    )
    return found, selected


def test_hypotheses_are_ranked_by_their_mean_log_probability_and_not_by_their_sum() -> None:
    """The end at once has 0.3; a and the end have 0.5 · 0.5, which is less, but a mean of 0.5 a token."""
    found, _ = search(table({(): [0.6, 0.1, 0.3], (0,): [0.2, 0.3, 0.5]}, [0.8, 0.1, 0.1]))
    assert [h.ids for h in found] == [(9, 0, 2), (9, 2)]
    assert found[0].log_probability == pytest.approx(np.log(0.6 * 0.5))
    assert found[1].log_probability == pytest.approx(np.log(0.3))
    assert found[0].mean_log_probability == pytest.approx(np.log(0.6 * 0.5) / 2)


def test_beam_search_tells_after_each_step_what_it_would_return_there() -> None:
    """The end at once has ended, so it is told and not a, which is likelier."""
    read, told = table({(): [0.6, 0.1, 0.3], (0,): [0.2, 0.3, 0.5]}, [0.8, 0.1, 0.1]), list[Hypothesis]()
    beam(read, lambda _: None, lambda _: None, (9,), 2, 5, writer(), CPU, told.append)
    assert [h.ids for h in told] == [search(read, max_length=most)[0][0].ids for most in range(1, len(told) + 1)]
    assert [h.ids for h in told] == [(9, 2), (9, 0, 2)]


def test_the_prompt_alone_has_a_mean_of_its_own() -> None:
    assert Hypothesis((9,), log_probability=-3.0).mean_log_probability == -3.0


def test_beam_search_ends_when_as_many_hypotheses_have_ended_as_it_follows() -> None:
    found, selected = search(table({}, [0.5, 0.2, 0.3]), size=2, max_length=9)
    assert [h.ids for h in found] == [(9, 0, 2), (9, 2)]
    assert selected == [[0, 0]]


def test_beam_search_tells_the_cache_which_rows_go_on() -> None:
    """After b the network is sure, after a it is not: both beginnings go on from the second row."""
    rows = {(): [0.55, 0.44, 0.01], (0,): [0.3, 0.3, 0.4], (1,): [0.49, 0.5, 0.01]}
    _, selected = search(table(rows, [0.1, 0.1, 0.8]), size=2, max_length=3)
    assert selected[:2] == [[0, 0], [1, 1]]


def test_beam_search_reads_what_is_new_alone_and_counts_the_rows_of_its_steps() -> None:
    starts: list[tuple[int, int]] = []
    inner = table({}, [0.6, 0.3, 0.1])

    def read(ids: Tensor, start: int) -> Tensor:
        starts.append((start, ids.shape[1]))
        return inner(ids, start)

    found, _ = search(read, size=1, max_length=3)
    assert starts == [(0, 1), (1, 2), (2, 3)]
    assert [step.computed for step in found[0].steps] == starts
    assert [step.index for step in found[0].steps] == [0, 1, 2]


def test_beam_search_goes_on_behind_the_whole_prompt_and_the_tokens_that_were_given() -> None:
    rows = {(): [0.9, 0.05, 0.05], (9,): [0.1, 0.2, 0.7], (9, 1): [0.1, 0.1, 0.8]}
    found, _tree = beam(table(rows, [0.2, 0.2, 0.6]), lambda _: None, lambda _: None, (9, 9), 2, 4, writer(), CPU, begin=(1,))
    assert found[0].ids == (9, 9, 1, 2)
    assert found[0].log_probability == pytest.approx(np.log(0.2 * 0.8))
    assert all(h.ids[:3] == (9, 9, 1) for h in found)


def test_beam_search_stops_at_the_last_position_and_ranks_what_has_not_ended() -> None:
    found, _ = search(table({}, [0.6, 0.3, 0.1]), size=2, max_length=9, limit=3)
    assert [h.ids for h in found] == [(9, 0, 0, 0), (9, 0, 0, 1)]


def test_beam_search_writes_no_suppressed_token_and_shows_its_probability() -> None:
    found, _ = search(table({}, [0.6, 0.3, 0.1]), size=2, max_length=2, suppressed=(0,))
    assert all(0 not in h.ids for h in found)
    assert found[0].steps[0].candidates[0].id == 0
    assert found[0].steps[0].candidates[0].log_probability == pytest.approx(np.log(0.6))


def test_beam_search_follows_no_impossible_continuation() -> None:
    found, _ = search(table({}, [1.0, 0.0, 0.0]), size=2, max_length=3)
    assert [h.ids for h in found] == [(9, 0, 0, 0)]


def test_the_sum_of_a_hypothesis_goes_on_from_its_own_beginning() -> None:
    rows = {(): [0.55, 0.44, 0.01], (0,): [0.3, 0.3, 0.4], (1,): [0.49, 0.5, 0.01]}
    for size in (1, 2, 3):
        found, _ = search(table(rows, [0.1, 0.1, 0.8]), size=size, max_length=3)
        for h in found:
            assert h.log_probability == pytest.approx(sum(step.chosen.log_probability for step in h.steps), abs=1e-6)


def decoded(rows: dict[tuple[int, ...], list[float]], prompt: tuple[int, ...] = (9,), max_length: int = 9, **of: Any) -> list[Step]:
    return followed(table(rows, [0.2, 0.1, 0.7]), prompt, max_length, writer(**of))


def followed(
    read: Callable[[Tensor, int], Tensor], prompt: tuple[int, ...], max_length: int, writer: Writer, **of: Any
) -> list[Step]:
    """The steps of a greedy decode whose passes `read` computes."""
    steps: list[Step] = []
    passes = write(prompt, greedy, max_length, writer, CPU, on_steps=steps.extend, **of)
    with suppress(StopIteration):
        asked = next(passes)
        while True:
            asked = passes.send(read(*asked))
    return steps


ABE = {(): [0.6, 0.3, 0.1], (0,): [0.1, 0.8, 0.1], (0, 1): [0.1, 0.2, 0.7]}


def test_a_decode_takes_what_is_chosen_and_goes_on_behind_it_until_the_end() -> None:
    steps = decoded(ABE)
    assert [step.chosen.id for step in steps] == [0, 1, 2]
    assert [step.chosen.text for step in steps] == ["a", "b", "E"]
    assert [step.chosen.log_probability for step in steps] == pytest.approx(list(np.log([0.6, 0.8, 0.7])))
    assert [step.index for step in steps] == [0, 1, 2]
    assert [step.computed for step in steps] == [(0, 1), (1, 2), (2, 3)]


def test_a_token_behind_the_end_token_in_the_vocabulary_ends_no_text() -> None:
    behind = [0.1, 0.1, 0.1, 0.7]
    steps = followed(table({}, behind), (9,), 3, writer(vocabulary="abEc"))
    assert [step.chosen.id for step in steps] == [3, 3, 3]
    found, _ = search(table({}, behind), size=1, max_length=3, vocabulary="abEc")
    assert [h.ids for h in found] == [(9, 3, 3, 3)]


def test_a_decode_reads_its_whole_prompt_once() -> None:
    assert [step.computed for step in decoded({(9, 9): [0.6, 0.3, 0.1]}, prompt=(9, 9, 9), max_length=2)] == [(0, 3), (3, 4)]


def test_a_decode_writes_as_many_tokens_as_it_may_and_fits() -> None:
    assert len(decoded(ABE, max_length=2)) == 2
    assert len(decoded(ABE, limit=2)) == 2
    assert len(decoded(ABE, max_length=0)) == 0


def test_a_decode_writes_no_suppressed_token_and_shows_its_probability() -> None:
    (step,) = decoded(ABE, max_length=1, suppressed=(0,))
    assert step.chosen.id == 1
    assert [candidate.id for candidate in step.candidates] == [0, 1, 2]
    assert step.candidates[0].log_probability == pytest.approx(np.log(0.6))


def test_of_equally_likely_tokens_the_first_is_greedy() -> None:
    assert list(greedy(torch.tensor([[-2.0, -1.0, -1.0], [-1.0, -2.0, -3.0]]))) == [1, 0]


def test_a_step_shows_the_eight_likeliest_tokens_the_best_first() -> None:
    log_probabilities = torch.tensor([0.02, 0.3, 0.08, 0.1, 0.05, 0.04, 0.16, 0.12, 0.07, 0.06]).log()
    rows = torch.stack([log_probabilities, log_probabilities.flip(0)])
    step, other = writer(vocabulary="abcdefghij").steps((3, 4), (5, 0), rows, ((4, 5), (5, 6)))
    assert "".join(candidate.text for candidate in step.candidates) == "bghdcije"
    assert "".join(candidate.text for candidate in other.candidates) == "idcghbaf"
    assert (other.index, other.chosen.id, other.chosen.text, other.computed) == (4, 0, "a", (5, 6))
    assert (step.index, step.chosen.id, step.chosen.text, step.computed) == (3, 5, "f", (4, 5))
    assert step.chosen.log_probability == pytest.approx(np.log(0.04))


def test_given_tokens_are_steps_of_their_own_and_the_last_one_is_compared_alone() -> None:
    read = table(ABE, [0.2, 0.1, 0.7])
    steps = forced(read, (9, 0, 1), writer(), CPU, last=END)
    assert [(step.index, step.chosen.id, step.computed) for step in steps] == [(0, 0, (0, 1)), (1, 1, (1, 2)), (2, 2, (2, 3))]
    assert [step.chosen.log_probability for step in steps] == pytest.approx(list(np.log([0.6, 0.8, 0.7])))
    assert len(forced(read, (9, 0, 1), writer(), CPU)) == 2
    assert [step.chosen.id for step in forced(read, (9, 0), writer(), CPU, last=0)] == [0, 0]


def test_under_a_softmax_over_the_batch_every_token_is_certain() -> None:
    assert torch.equal(certain(torch.randn(2, 3)), torch.zeros(2, 3))


def test_log_probabilities_are_float32_whatever_the_logits_are() -> None:
    logits = torch.tensor([[1.0, 2.0, 4.0]], dtype=torch.float16)
    found = log_probabilities_of(logits)
    assert found.dtype == torch.float32
    assert found.exp().sum().item() == pytest.approx(1.0, abs=1e-6)
    assert (found[0, 2] - found[0, 1]).item() == pytest.approx(2.0)


def test_each_node_of_the_tree_has_the_id_of_its_own_text() -> None:
    rows = {(): [0.55, 0.44, 0.01], (0,): [0.3, 0.3, 0.4], (1,): [0.49, 0.5, 0.01]}
    _, tree = beam(table(rows, [0.1, 0.1, 0.8]), lambda _: None, lambda _: None, (9,), 2, 4, writer(), CPU)
    assert len({node.id for node in tree}) == 3
    for node in tree:
        assert node.text == "abE"[node.id]
        assert node.mean == pytest.approx(node.total / (node.step + 1))


def test_the_path_to_a_node_begins_with_the_first_token_and_ends_with_its_own() -> None:
    parents, ranks = [-1, -1, 0, 1, 2], [-1, 2, 1, -1, 0]
    tree = [
        Node(index, parent, 0, "a", -1.0, -1.0, "kept", rank)
        for index, (parent, rank) in enumerate(zip(parents, ranks, strict=True))
    ]
    assert path(tree, 4) == (0, 2, 4)
    assert path(tree, 3) == (1, 3)
    assert path(tree, 0) == (0,)
    assert path(tree, -1) == ()
    assert hypotheses(tree) == (4, 2, 1)
