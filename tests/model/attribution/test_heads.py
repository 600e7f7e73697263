"""What heads are for, against runs one by one and against formulas written here."""

from dataclasses import replace
from itertools import permutations
from math import factorial

import numpy as np
import pytest

from model.attribution.questions import Heads
from model.attribution.results import HeadEffects
from model.checkpoints.native import Checkpoint
from model.errors import CannotMeasure
from model.inference.interventions import sites
from model.inference.run import run
from model.spec.edits import Allow, Silence
from model.spec.network import ModelSpec
from model.spec.request import Decoding, RunRequest
from model.trace.types import Array, Site
from tests.model.attribution.conftest import Answering, answered
from tests.networks import LANGUAGE_MODELS, TRANSLATORS
from tests.runs import CPU, SPECS, checkpoint

TARGET = (2, 5, 7, 4, 6)


def asked(spec: ModelSpec, **changes: object) -> RunRequest:
    request = RunRequest("tiny", "w4 w6 w5 w9", TARGET, Decoding(max_length=5))
    return replace(request, **changes)  # type: ignore[arg-type]


def one_by_one(found: Checkpoint, request: RunRequest, silenced: dict[Site, set[int]]) -> Array:
    """Log-probabilities of the target in a run of its own, as the run tells them."""
    edits = tuple(Silence(str(site), (head,)) for site, heads in silenced.items() for head in sorted(heads))
    if found.info.spec.encoder is None:
        assert isinstance(request.target, tuple)
        source = found.tokenizers["source"].encode(str(request.source), "source").ids
        request = replace(request, source=(*source, *request.target), target=None, decoding=Decoding(max_length=0))
    trace = run(found, replace(request, edits=edits), CPU, "cpu")
    count = len(TARGET) if found.info.spec.encoder is None else len(TARGET) - 1  # a start token is fed, not measured
    return np.array([step.chosen.log_probability for step in trace.steps[-count:]])


@pytest.mark.parametrize("name", [*TRANSLATORS, *LANGUAGE_MODELS])
def test_heads_in_one_batch_are_heads_one_by_one(name: str) -> None:
    found, request = checkpoint(SPECS[name]), asked(SPECS[name])
    effects, there = answered(found, Heads(request)), sites(SPECS[name])
    base = one_by_one(found, request, {})
    np.testing.assert_allclose(effects.log_probabilities, base, atol=1e-5)
    assert effects.without is not None
    assert effects.alone is not None
    assert effects.none is not None
    for row, head in enumerate(effects.heads):
        site = Site.parse(head.site)
        others = set(range(there[site])) - {head.head}
        np.testing.assert_allclose(base + effects.without[row], one_by_one(found, request, {site: {head.head}}), atol=1e-5)
        if others:
            np.testing.assert_allclose(base + effects.alone[row], one_by_one(found, request, {site: others}), atol=1e-5)
    for row, site in enumerate(there):
        silent = one_by_one(found, request, {site: set(range(there[site]))})
        np.testing.assert_allclose(base + effects.none[row], silent, atol=1e-5)


@pytest.mark.parametrize("name", ["paper", "uneven", "language model"])
def test_shares_are_the_mean_over_all_orders(name: str) -> None:
    found, request = checkpoint(SPECS[name]), asked(SPECS[name])
    effects, there = answered(found, Heads(request)), sites(SPECS[name])
    assert effects.share is not None
    for site, count in there.items():
        everyone = set(range(count))
        expected = np.zeros((count, len(effects.tokens)))
        for order in permutations(range(count)):
            for place, head in enumerate(order):
                before, after = (everyone - set(order[:end]) for end in (place, place + 1))
                expected[head] += one_by_one(found, request, {site: after}) - one_by_one(found, request, {site: before})
        rows = [row for row, head in enumerate(effects.heads) if head.site == str(site)]
        np.testing.assert_allclose(effects.share[rows], expected / factorial(count), atol=1e-5)


def shares_add_up(effects: HeadEffects) -> None:
    assert effects.share is not None
    assert effects.none is not None
    for row, site in enumerate(effects.sites):
        own = [index for index, head in enumerate(effects.heads) if head.site == site]
        np.testing.assert_allclose(effects.share[own].sum(axis=0), -effects.none[row], atol=1e-5)


def test_estimated_shares_add_up_and_lie_within_their_errors(monkeypatch: pytest.MonkeyPatch, ask: Answering) -> None:
    spec = SPECS["uneven"]
    found, request = checkpoint(spec), asked(spec)
    exact = ask(found, Heads(request))
    monkeypatch.setattr("model.attribution.heads.MOST_EXACT", 2)  # the encoder's three heads are then sampled
    sampled = ask(found, Heads(request, permutations=64))
    shares_add_up(exact)
    shares_add_up(sampled)
    three = [index for index, head in enumerate(sampled.heads) if head.site.startswith("encoder")]
    one = [index for index, head in enumerate(sampled.heads) if head.site.startswith("decoder")]
    assert (sampled.total_share_error[three] > 0).all()
    assert not sampled.share_error[one].any()
    apart = np.abs((sampled.share - exact.share).sum(axis=1))
    assert (apart[three] <= 4 * sampled.total_share_error[three]).all()
    np.testing.assert_array_equal(sampled.share, ask(found, Heads(request, permutations=64)).share)
    assert not np.array_equal(sampled.share[three], ask(found, Heads(request, permutations=64, seed=1)).share[three])


@pytest.mark.parametrize("name", ["paper", "language model"])
def test_batches_are_split_to_fit_into_memory_and_give_the_same_numbers(name: str, ask: Answering) -> None:
    found, request, sizes = checkpoint(SPECS[name]), asked(SPECS[name]), list[tuple[int, int]]()
    whole = ask(found, Heads(request))
    small = ask(found, Heads(request), most_bytes=1, on_count=lambda done, of: sizes.append((done, of)))
    assert [done for done, _ in sizes] == list(range(sizes[0][1] + 1)), "the cost first, then one copy at a time"
    np.testing.assert_allclose(small.share, whole.share, atol=1e-5)


def test_what_is_asked_for_is_measured_and_no_more(ask: Answering) -> None:
    calls: list[tuple[int, int]] = []
    effects = ask(
        checkpoint(SPECS["paper"]), Heads(asked(SPECS["paper"]), ("without",)), on_count=lambda *count: calls.append(count)
    )
    assert effects.alone is effects.share is effects.none is None
    copies = len(effects.heads) + 1
    assert calls == [(0, copies), (copies, copies)]


def test_the_target_is_what_the_run_writes_where_none_is_given(ask: Answering) -> None:
    for name in ("paper", "language model"):
        found, request = checkpoint(SPECS[name]), asked(SPECS[name], target=None)
        trace = run(found, request, CPU, "cpu")
        effects = ask(found, Heads(request, ("without",)))
        assert effects.ids == tuple(step.chosen.id for step in trace.steps)
        assert effects.tokens == tuple(step.chosen.text for step in trace.steps)
        np.testing.assert_allclose(effects.log_probabilities, [s.chosen.log_probability for s in trace.steps], atol=1e-5)


def test_a_prompt_alone_is_its_own_target(ask: Answering) -> None:
    found = checkpoint(SPECS["language model"])
    request = asked(SPECS["language model"], target=None, decoding=Decoding(max_length=0))
    trace = run(found, request, CPU, "cpu")
    effects = ask(found, Heads(request, ("without",)))
    assert effects.ids == trace.tokens["source"].ids[1:]
    assert effects.first == 1


def test_edits_of_the_run_hold_in_every_copy(ask: Answering) -> None:
    spec = SPECS["paper"]
    found, silent = checkpoint(spec), (Silence("decoder.0.1.cross", (1,)),)
    effects = ask(found, Heads(asked(spec, edits=silent), ("without",)))
    base = one_by_one(found, asked(spec), {Site.parse("decoder.0.1.cross"): {1}})
    np.testing.assert_allclose(effects.log_probabilities, base, atol=1e-5)
    row = next(i for i, head in enumerate(effects.heads) if silent[0].covers(str(head.site), head.head))
    np.testing.assert_allclose(effects.without[row], 0, atol=1e-6)


def test_a_token_that_an_edit_lets_be_seen_is_fed(ask: Answering) -> None:
    found, request = checkpoint(SPECS["paper"]), asked(SPECS["paper"], edits=(Allow(kind="self", stack="decoder"),))
    trace = run(found, request, CPU, "cpu")
    effects = ask(found, Heads(request, ("without",)))
    np.testing.assert_allclose(effects.log_probabilities, [step.chosen.log_probability for step in trace.steps], atol=1e-5)


@pytest.mark.parametrize("name", ["encoder alone", "attention alone", "memory"])
def test_a_network_that_writes_nothing_at_once_is_refused_in_words(name: str, ask: Answering) -> None:
    request = RunRequest("tiny", "w4 w5") if name != "attention alone" else RunRequest("tiny", "3 1")
    with pytest.raises(CannotMeasure):
        ask(checkpoint(SPECS[name]), Heads(request))


def test_a_target_without_tokens_is_refused_in_words(ask: Answering) -> None:
    with pytest.raises(CannotMeasure, match="no token"):
        ask(checkpoint(SPECS["paper"]), Heads(asked(SPECS["paper"], target=(2,))))


def test_every_head_stands_in_the_json_with_its_numbers(ask: Answering) -> None:
    effects = ask(checkpoint(SPECS["paper"]), Heads(asked(SPECS["paper"])))
    found = effects.to_json()
    assert [(one["site"], one["head"]) for one in found["heads"]] == [(one.site, one.head) for one in effects.heads]
    for row, one in enumerate(found["heads"]):
        for name in ("without", "alone", "share"):
            assert one[name] == pytest.approx(getattr(effects, name)[row].sum())
            assert len(one[f"{name}_tokens"]) == len(effects.tokens)
    assert found["log_probability"] == pytest.approx(effects.log_probabilities.sum())
