"""A draft changes how often the network is called, and nothing of what a run writes or records."""

import threading
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from model.checkpoints.loader import lowered
from model.engine.scheduling.scheduler import Scheduler
from model.inference.calls import Call, computed
from model.inference.decoding import DOUBTFUL, LONGEST, Draft
from model.inference.run import run, run_in
from model.requests.edits import Silence
from model.requests.request import Decoding, RunRequest
from model.trace.progress import Report, report_nothing
from model.trace.types import Trace
from tests import runs
from tests.patience import HANG_S
from tests.runs import CPU, SPECS, assert_same

LENGTH = 12


class Counted:
    """Answers calls, and counts the positions that each of them computed."""

    def __init__(self) -> None:
        self.queries: list[int] = []

    def __call__(self, call: Call) -> Tensor:
        self.queries.append(call.queries)
        answer = computed(call)
        following = None if call.then is None else call.then(answer)
        return answer if following is None else self(following)

    @property
    def decoded(self) -> list[int]:
        """Positions of the calls that wrote."""
        return self.queries[1:]


def written(trace: Trace) -> tuple[int, ...]:
    return tuple(step.chosen.id for step in trace.steps)


def drafted(name: str, asked: RunRequest, earlier: tuple[int, ...], report: Report = report_nothing) -> tuple[Trace, Counted]:
    counted = Counted()
    return run(checkpoint(SPECS[name]), asked, CPU, "cpu", counted, report=report, earlier=earlier), counted


def long_request(name: str, method: str = "greedy") -> RunRequest:
    """A decode; sampled, it is long in most of the random networks and rarely repeats a token."""
    decoding = Decoding(method, max_length=LENGTH, seed=2, temperature=3.0)  # type: ignore[arg-type]
    return replace(runs.request(SPECS[name]), decoding=decoding)


TRANSLATES = "paper"
checkpoint = cache(runs.checkpoint)
WRITES = [name for name, spec in SPECS.items() if spec.output is not None and spec.decoder is not None and spec.writer.vocab]


@pytest.mark.parametrize("method", ["greedy", "sample"])
@pytest.mark.parametrize("name", WRITES)
def test_whatever_is_guessed_the_run_writes_and_records_the_same(name: str, method: str) -> None:
    asked = long_request(name, method)
    plain = run(checkpoint(SPECS[name]), asked, CPU, "cpu")
    own = written(plain)
    wrong_in_the_middle = (*own[:3], (own[3] + 1) % 9 if len(own) > 3 else 5, *own[4:])
    one_missing = (*own[:2], *own[3:])
    for earlier in (own, wrong_in_the_middle, one_missing, own[::-1], own * 3, (5, 4, 6) * 9, own[:1] * 20):
        found, _ = drafted(name, asked, earlier)
        assert_same(found, plain)


def test_a_right_guess_is_checked_in_one_pass() -> None:
    plain, slow = drafted(TRANSLATES, long_request(TRANSLATES, "sample"), ())
    found, fast = drafted(TRANSLATES, long_request(TRANSLATES, "sample"), written(plain))
    assert slow.decoded == [1] * len(plain.steps)
    assert len(fast.decoded) <= 4, fast.decoded  # a token that occurs twice may lead one guess astray
    assert sum(fast.decoded) >= len(plain.steps)
    assert found.model["drafted"] > len(plain.steps) / 2
    assert "drafted" not in plain.model


def test_nothing_is_guessed_with_edits_or_where_a_pass_computes_something_else() -> None:
    paper, memory = SPECS[TRANSLATES], next(spec for spec in SPECS.values() if spec.decoder and spec.decoder.wiring == "memory")
    assert paper.decoder
    asked = long_request(TRANSLATES)
    cases = [(paper, replace(asked, edits=(Silence("encoder.0.0.self", (0,)),))), (memory, asked)]
    cases += [(replace(paper, decoder=replace(paper.decoder, causal=False)), asked)]
    cases += [(replace(paper, decoder=replace(paper.decoder, decode_positions="zero")), asked)]
    for spec, request in cases:
        slow, fast = Counted(), Counted()
        plain = run(checkpoint(spec), request, CPU, "cpu", slow)
        found = run(checkpoint(spec), request, CPU, "cpu", fast, earlier=written(plain))
        assert fast.queries == slow.queries
        assert "drafted" not in found.model


def test_in_a_lower_precision_nothing_is_guessed() -> None:
    full = checkpoint(SPECS[TRANSLATES])
    counted = Counted()
    run_in(full, lowered(full, "bfloat16"), long_request(TRANSLATES), CPU, "cpu", counted, earlier=tuple(range(4, 9)) * 3)
    assert max(counted.decoded) == 1 or set(counted.queries) <= {1, counted.queries[0]}


def test_each_picture_of_a_run_that_decodes_has_as_many_rows_as_tokens_were_read() -> None:
    asked = long_request(TRANSLATES, "sample")
    own = written(drafted(TRANSLATES, asked, ())[0])
    seen: list[tuple[int, int]] = []

    def look(make: object) -> None:
        progress = make()  # type: ignore[operator]
        trace = progress.so_far()
        if trace.logits is not None:
            seen.append((len(trace.logits), len(trace.tokens["target"])))

    drafted(TRANSLATES, asked, (*own[:5], *own[6:]), look)
    assert seen
    assert all(rows == tokens - 1 for rows, tokens in seen), seen


def test_drafted_runs_of_several_callers_are_batched_and_stay_apart() -> None:
    asked = [replace(long_request(TRANSLATES, "sample"), source=text) for text in ("w4 w6 w5", "w7 w4", "w5 w5 w6 w8 w4", "w8")]
    plain = [run(checkpoint(SPECS[TRANSLATES]), one, CPU, "cpu") for one in asked]
    found: list[Trace | Exception] = [ValueError("never ran")] * len(asked)
    shared, scheduler, began = checkpoint(SPECS[TRANSLATES]), Scheduler(gather=5.0).start(), threading.Barrier(len(asked))
    guesses = [written(plain[0]), written(plain[1])[:4], (5, 4, 6) * 5, ()]

    def caller(index: int) -> None:
        def work(ask: object, report: Report) -> Trace:
            began.wait(HANG_S)
            return run(shared, asked[index], CPU, "cpu", ask, earlier=guesses[index])  # type: ignore[arg-type]

        found[index] = scheduler.do(index, work)

    threads = [threading.Thread(target=caller, args=(index,)) for index in range(len(asked))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    scheduler.close()
    assert any(size > 1 for size in scheduler.batches)
    for one, other in zip(found, plain, strict=True):
        assert_same(one, other)


def test_a_draft_goes_on_where_the_newest_two_tokens_are_and_else_the_newest_one_nearest_to_the_last_guess() -> None:
    dropped: list[int] = []
    draft = Draft((4, 5, 6, 5, 7, 8, 9, 5), dropped.append)
    assert draft.after([1], 10) == [4, 5, 6, 5, 7, 8, 9, 5], "first the whole text"
    draft.settle(3)  # 4 5 6 were chosen, then another token than 5
    assert dropped == [5]
    assert draft.after([5, 6, 7], 10) == [8, 9, 5]
    draft.settle(0)
    assert draft.after([3, 7, 4, 5], 10) == [6, 5, 7, 8, 9, 5]  # back to the only "4 5"
    draft.settle(0)
    assert draft.after([5, 9], 1) == [5]
    draft.settle(1)
    assert draft.after([9, 5, 8], 10) == [9, 5]
    assert draft.confirmed == 4


def test_a_token_that_the_earlier_text_does_not_have_replaced_one_of_it() -> None:
    draft = Draft(range(20))
    assert draft.after([99], 10) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    draft.settle(2)  # 0 1 were chosen, then 55 instead of 2
    assert draft.after([99, 0, 1, 55], 10) == [3, 4, 5, 6], "behind the one that was replaced, and not many"
    draft.settle(0)  # 56 was chosen instead of 3, too
    assert draft.after([99, 0, 1, 55, 56], 10) == [4, 5, 6, 7]


def test_of_several_places_a_guess_begins_at_the_one_nearest_to_the_last() -> None:
    draft = Draft((5, 1, 5, 2, 5, 3, 5, 4))
    assert draft.after([9], 4) == [5, 1, 5, 2]
    draft.settle(4)  # and 7 came next
    assert draft.after([2, 7], 2) == [3, 5]
    draft.settle(0)
    assert draft.after([7, 5], 1) == [3], "the 5 just before"
    draft.settle(0)
    assert draft.after([7, 5], 1) == [3], "and not the last one"


def test_a_draft_of_nothing_guesses_nothing() -> None:
    draft = Draft()
    assert draft.after([1], 10) == draft.after([1, 2], 10) == []


def test_the_prompt_of_a_large_network_is_read_by_itself_so_that_its_first_token_is_seen_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, network = long_request(TRANSLATES, "sample"), checkpoint(SPECS[TRANSLATES]).network
    plain, _ = drafted(TRANSLATES, asked, ())
    size = sum(parameter.numel() for parameter in network.parameters())
    first = []
    for most in (size, size - 1):
        monkeypatch.setattr("model.inference.decoding.QUICK", most)
        found, counted = drafted(TRANSLATES, asked, written(plain))
        assert_same(found, plain)
        first.append(counted.decoded[0])
    assert first == [len(plain.steps), 1]


def test_scores_are_said_to_be_missing_only_where_a_decoder_was_read_in_steps_or_with_guesses() -> None:
    asked = replace(long_request(TRANSLATES, "sample"), keep=("scores",))
    note = "attention/decoder.*/scores"
    one = replace(asked, decoding=replace(asked.decoding, max_length=1))
    plain, _ = drafted(TRANSLATES, asked, ())
    alone, _ = drafted(TRANSLATES, one, ())
    guessed, counted = drafted(TRANSLATES, asked, written(plain))
    assert len(counted.decoded) < len(plain.steps)
    assert [note in trace.missing for trace in (plain, alone, guessed)] == [True, False, True]


def test_after_a_wrong_guess_the_next_ones_are_shorter_until_one_holds() -> None:
    draft = Draft(range(100))
    lengths = []
    for newest, confirmed in ((-1, 3), (30, 0), (40, 8), (60, 16)):
        lengths.append(len(draft.after([-1, newest], 100)))
        draft.settle(confirmed)
    assert lengths == [LONGEST, DOUBTFUL, DOUBTFUL, LONGEST]


@pytest.mark.parametrize(("most", "expected"), [(0, 0), (-3, 0), (3, 3), (100, LONGEST)])
def test_a_guess_is_never_longer_than_is_allowed(most: int, expected: int) -> None:
    draft = Draft(range(50))
    assert len(draft.after([0], most)) == expected
    draft.settle(expected)
    assert len(draft.after([0, 1], most)) == expected


def test_rows_on_trial_are_forgotten_by_the_cache() -> None:
    from model.trace.types import Site
    from model.transformer.cache import KVCache

    cache, own, cross = KVCache(), Site("decoder", 0, 0, "self"), Site("decoder", 0, 0, "cross")
    kept = torch.arange(10.0).view(1, 1, 5, 2)
    for site in (own, cross):
        cache.keys_and_values(site, lambda: (kept, -kept))
    cache.forget(2)
    new = torch.full((1, 1, 1, 2), 9.0)
    k, v = cache.keys_and_values(own, lambda: (new, new))
    assert k.tolist() == torch.cat([kept[:, :, :3], new], 2).tolist()
    assert v[0, 0, :, 0].tolist() == [0, -2, -4, 9]
    assert cache.keys_and_values(cross, lambda: (new, new))[0].shape == (1, 1, 5, 2)
