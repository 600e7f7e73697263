"""How alike heads are, and how much one varies, against plain computations; heads in order by their likeness."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from model.features.survey.agreement import FARTHEST, Compared, clustered, compared
from model.trace.types import Array, Trace
from tests.traces import translation

WORDS = "<sos> eins zwei drei vier <eos>".split()
TRACE = translation(WORDS, [*WORDS, "<eos>"], layers=2, heads=2, seed=1)


def rows_of(trace: Trace, site: str, head: int) -> Array:
    own = trace.at(site)
    found: Array = np.asarray(own.weights[head], np.float64)[own.mask.sum(axis=1) >= 2]
    return found


def test_two_heads_are_as_far_apart_as_scipy_says() -> None:
    found = compared(TRACE)
    heads = [(str(site), head) for site, own in TRACE.attention.items() for head in range(own.heads)]
    for one, (site, head) in enumerate(heads):
        for other, (site_, head_) in enumerate(heads):
            alike = site.split(".")[0] == site_.split(".")[0] and site.split(".")[3] == site_.split(".")[3]
            assert found.pairs[one, other] == alike
            if alike:
                rows = zip(rows_of(TRACE, site, head), rows_of(TRACE, site_, head_), strict=True)
                plain = np.mean([jensenshannon(a, b, base=2) ** 2 for a, b in rows])
                assert found.divergence[one, other] == pytest.approx(plain, abs=1e-6)
    assert np.isnan(found.mean_divergence[~found.pairs.astype(bool)]).all()


def test_the_variation_of_a_head_is_that_of_its_profiles_over_texts() -> None:
    traces = [translation(WORDS, [*WORDS, "<eos>"], layers=2, heads=2, seed=seed) for seed in range(3)]
    sums = compared(traces[0]) + compared(traces[1]) + compared(traces[2])
    profiles = []
    for trace in traces:
        rows = rows_of(trace, "encoder.0.1.self", 1)
        profile = np.zeros(2 * FARTHEST + 1)
        for query in range(len(rows)):
            for key in range(rows.shape[1]):
                profile[FARTHEST + key - query] += rows[query, key] / len(rows)
        profiles.append(profile)

    def entropy(parts: Array) -> float:
        return float(-sum(part * np.log(part) for part in parts if part > 0))

    plain = entropy(np.mean(profiles, axis=0)) - np.mean([entropy(profile) for profile in profiles])
    assert sums.variation[3] == pytest.approx(plain, abs=1e-6)
    assert (compared(TRACE) + compared(TRACE)).variation == pytest.approx(0, abs=1e-9)


def test_all_rows_of_a_long_text_are_compared() -> None:
    words = [f"w{number}" for number in range(100)]
    long = translation(words, words, layers=1, heads=2)
    weights = np.asarray(long.at("encoder.0.0.self").weights, np.float64)
    plain = np.mean([jensenshannon(a, b, base=2) ** 2 for a, b in zip(*weights, strict=True)])
    assert compared(long).divergence[0, 1] == pytest.approx(plain, abs=1e-6)


def test_a_run_without_any_choice_compares_nothing() -> None:
    found = compared(replace(TRACE, attention={site: replace(own, mask=own.mask & False) for site, own in TRACE.attention.items()}))
    assert not found.pairs.any()
    assert np.isnan(found.variation).all()


def test_sums_travel_as_arrays() -> None:
    found = compared(TRACE)
    again = Compared.of(found.arrays())
    assert all(np.array_equal(again.arrays()[name], own) for name, own in found.arrays().items())


def test_heads_that_are_alike_stand_side_by_side() -> None:
    places = np.array([0.0, 5.0, 0.1, 5.1, 0.2, 5.2])
    order = clustered(np.abs(places[:, None] - places[None, :]))
    assert sorted(order[:3]) in ([0, 2, 4], [1, 3, 5])
    assert clustered(np.zeros((2, 2))) == [0, 1]
