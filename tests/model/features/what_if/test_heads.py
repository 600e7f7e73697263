"""What heads are for, against runs one by one and against formulas written here."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest

from model.errors import CannotMeasure
from model.features.what_if.heads import _orders
from model.features.what_if.questions import Heads, Measure
from model.inference.run import run
from model.requests.edits import Allow, Silence
from model.requests.request import Decoding, RunRequest
from model.trace.types import Site, sites
from tests.model.features.conftest import answered, asked, one_by_one, tiny
from tests.networks import LANGUAGE_MODELS, TRANSLATORS
from tests.runs import CPU, SPECS


@pytest.mark.parametrize("name", [*TRANSLATORS, *LANGUAGE_MODELS])
def test_heads_in_one_batch_are_heads_one_by_one(name: str) -> None:
    effects, there = answered(name, Heads(asked())), sites(SPECS[name])
    base = one_by_one(name, {})
    np.testing.assert_allclose(effects.log_probabilities, base, atol=1e-5)
    for row, head in enumerate(effects.heads):
        site = Site.parse(head.site)
        others = set(range(there[site])) - {head.head}
        np.testing.assert_allclose(base + effects.without[row], one_by_one(name, {site: {head.head}}), atol=1e-5)
        if others:
            np.testing.assert_allclose(base + effects.alone[row], one_by_one(name, {site: others}), atol=1e-5)
    for row, site in enumerate(there):
        silent = one_by_one(name, {site: set(range(there[site]))})
        np.testing.assert_allclose(base + effects.none[row], silent, atol=1e-5)


@pytest.mark.parametrize("name", [*TRANSLATORS, *LANGUAGE_MODELS])
def test_heads_silenced_by_their_mean_are_the_edit_one_by_one(name: str) -> None:
    effects, zeros = (answered(name, Heads(asked(), ("without",), by=by)) for by in ("mean", "zeros"))
    base = one_by_one(name, {})
    for row, head in enumerate(effects.heads):
        alone = one_by_one(name, {Site.parse(head.site): {head.head}}, by="sentence")
        np.testing.assert_allclose(base + effects.without[row], alone, atol=1e-5, err_msg=str(head))
    assert not np.allclose(effects.without, zeros.without, atol=1e-4)


def test_a_mean_leaves_out_the_padding_of_the_source() -> None:
    padded, plain = (answered("paper", Heads(asked(source_pad_to=size), ("without",), by="mean")) for size in (9, None))
    np.testing.assert_allclose(padded.without, plain.without, atol=1e-5)


@pytest.mark.parametrize("name", ["paper", "uneven", "language model"])
def test_shares_are_the_mean_over_all_orders(name: str) -> None:
    effects, there = answered(name, Heads(asked())), sites(SPECS[name])
    for site, count in there.items():
        everyone = set(range(count))
        expected = np.zeros((count, len(effects.tokens)))
        for order in permutations(range(count)):
            for place, head in enumerate(order):
                before, after = (everyone - set(order[:end]) for end in (place, place + 1))
                expected[head] += one_by_one(name, {site: after}) - one_by_one(name, {site: before})
        rows = [row for row, head in enumerate(effects.heads) if head.site == str(site)]
        np.testing.assert_allclose(effects.share[rows], expected / factorial(count), atol=1e-5)


def test_estimated_shares_add_up_and_lie_within_their_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = answered("uneven", Heads(asked()))
    monkeypatch.setattr("model.features.what_if.heads.MOST_EXACT", 2)  # the encoder's three heads are then sampled
    sampled, again, other = (answered("uneven", Heads(asked(), permutations=64, seed=seed)) for seed in (0, 0, 1))
    for row, site in enumerate(sampled.sites):
        own = [index for index, head in enumerate(sampled.heads) if head.site == site]
        np.testing.assert_allclose(sampled.share[own].sum(axis=0), -sampled.none[row], atol=1e-5)
    three = [index for index, head in enumerate(sampled.heads) if head.site.startswith("encoder")]
    one = [index for index, head in enumerate(sampled.heads) if head.site.startswith("decoder")]
    assert (sampled.total_share_error[three] > 0).all()
    assert not sampled.share_error[one].any()
    apart = np.abs((sampled.share - exact.share).sum(axis=1))
    assert (apart[three] <= 4 * sampled.total_share_error[three]).all()
    np.testing.assert_array_equal(sampled.share, again.share)
    assert not np.array_equal(sampled.share[three], other.share[three])
    orders = _orders(4, 8, seed=0)
    assert orders[1::2] == [order[::-1] for order in orders[::2]], "a draw and its reverse are one sample"


@pytest.mark.parametrize("name", ["paper", "language model"])
def test_batches_are_split_to_fit_into_memory_and_give_the_same_numbers(name: str) -> None:
    sizes = list[tuple[int, int]]()
    whole = answered(name, Heads(asked()))
    small = answered(name, Heads(asked()), most_bytes=1, on_count=lambda done, of: sizes.append((done, of)))
    assert [done for done, _ in sizes] == list(range(sizes[0][1] + 1)), "the cost first, then one copy at a time"
    np.testing.assert_allclose(small.share, whole.share, atol=1e-5)


@pytest.mark.parametrize("measures", [("without",), ("alone",), ("share",), ("without", "alone"), ("without", "alone", "share")])
def test_the_number_of_copies_is_told_before_they_are_fed(measures: tuple[Measure, ...]) -> None:
    fed, question = list[tuple[int, int]](), Heads(asked(), measures)
    answered("uneven", question, on_count=lambda done, of: fed.append((done, of)))
    assert question.copies(sites(SPECS["uneven"]).values()) == fed[-1][1]
    assert Heads(asked()).copies([9] * 30) == 1 + 30 * 511
    assert Heads(asked(), ("share",), permutations=32).copies([12]) == 1 + 1 + 32 * 11


def test_what_is_asked_for_is_measured_and_no_more() -> None:
    calls: list[tuple[int, int]] = []
    effects = answered("paper", Heads(asked(), ("without",)), on_count=lambda *count: calls.append(count))
    assert effects.alone is effects.share is effects.none is None
    copies = len(effects.heads) + 1
    assert calls == [(0, copies), (copies, copies)]


def test_the_target_is_what_the_run_writes_where_none_is_given() -> None:
    for name in ("paper", "language model"):
        request = asked(target=None)
        trace, effects = run(tiny(name), request, CPU, "cpu"), answered(name, Heads(request, ("without",)))
        assert effects.ids == tuple(step.chosen.id for step in trace.steps)
        assert effects.tokens == tuple(step.chosen.text for step in trace.steps)
        np.testing.assert_allclose(effects.log_probabilities, [s.chosen.log_probability for s in trace.steps], atol=1e-5)


def test_a_prompt_alone_is_its_own_target() -> None:
    request = asked(target=None, decoding=Decoding(max_length=0))
    trace = run(tiny("language model"), request, CPU, "cpu")
    effects = answered("language model", Heads(request, ("without",)))
    assert effects.ids == trace.tokens["source"].ids[1:]
    assert effects.first == 1


def test_edits_of_the_run_hold_in_every_copy() -> None:
    silent = Silence("decoder.0.1.cross", (1,))
    effects = answered("paper", Heads(asked(edits=(silent,)), ("without",)))
    base = one_by_one("paper", {Site.parse("decoder.0.1.cross"): {1}})
    np.testing.assert_allclose(effects.log_probabilities, base, atol=1e-5)
    row = next(i for i, head in enumerate(effects.heads) if silent.covers(str(head.site), head.head))
    np.testing.assert_allclose(effects.without[row], 0, atol=1e-6)


def test_a_token_that_an_edit_lets_be_seen_is_fed() -> None:
    request = asked(edits=(Allow(kind="self", stack="decoder"),))
    trace, effects = run(tiny("paper"), request, CPU, "cpu"), answered("paper", Heads(request, ("without",)))
    np.testing.assert_allclose(effects.log_probabilities, [step.chosen.log_probability for step in trace.steps], atol=1e-5)


@pytest.mark.parametrize("name", ["encoder alone", "attention alone", "memory"])
def test_a_network_that_writes_nothing_at_once_is_refused_in_words(name: str) -> None:
    request = RunRequest("tiny", "w4 w5") if name != "attention alone" else RunRequest("tiny", "3 1")
    with pytest.raises(CannotMeasure):
        answered(name, Heads(request))


def test_a_target_without_tokens_is_refused_in_words() -> None:
    with pytest.raises(CannotMeasure, match="no token"):
        answered("paper", Heads(asked(target=(2,))))


def test_every_head_stands_in_the_json_with_its_numbers() -> None:
    effects = answered("paper", Heads(asked()))
    found = effects.to_json()
    assert [(one["site"], one["head"]) for one in found["heads"]] == [(one.site, one.head) for one in effects.heads]
    for row, one in enumerate(found["heads"]):
        for name in ("without", "alone", "share"):
            assert one[name] == pytest.approx(getattr(effects, name)[row].sum())
            assert len(one[f"{name}_tokens"]) == len(effects.tokens)
    assert found["log_probability"] == pytest.approx(effects.log_probabilities.sum())
