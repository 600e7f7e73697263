"""What tokens depended on: leaving out against runs one by one, gradients against finite differences and against completeness."""

from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from model.features.what_if import gradients, words
from model.features.what_if.questions import Words
from model.features.what_if.results import WordEffects, from_bytes, to_bytes
from model.features.what_if.words import MEASURES, mean_correlation, rank_correlations
from model.trace.rollout import rollout
from model.trace.types import Array, Site
from model.transformer.attention import Run
from tests.model.features.conftest import TARGET, answered, asked, tiny
from tests.networks import PAD, language_model, translator
from tests.runs import SPECS, traced

UNKNOWN = 0
SOURCE = tiny("paper").tokenizers["source"].encode("w4 w6 w5 w9", "source").ids


@pytest.fixture(scope="module")
def effects() -> WordEffects:
    """Of the tiny network of the paper."""
    found: WordEffects = answered("paper", Words(asked()))
    return found


def scores(source: tuple[int, ...], target: tuple[int, ...], changed: dict[str, torch.Tensor] | None = None) -> list[float]:
    """Log-probabilities of TARGET, in a pass of the network of its own, where the decoder reads `target`."""
    network, ids = translator(SPECS["paper"]), torch.tensor([source])
    run = Run(interventions={name: lambda value, start, own=own: own for name, own in (changed or {}).items()})
    with torch.inference_mode():
        mask = network.source_mask(ids)
        logits = network.decode(torch.tensor([target[:-1]]), network.encode(ids, mask, run), mask, run)
    return [float(logits[0, i].log_softmax(-1)[token]) for i, token in enumerate(TARGET[1:])]


def vectors(source: tuple[int, ...], target: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """What enters the first layers."""
    network, found = translator(SPECS["paper"]), dict[str, torch.Tensor]()
    with torch.inference_mode():
        mask = network.source_mask(torch.tensor([source]))
        run = Run(record=lambda name, value: found.update({name: value.clone()}))
        network.decode(torch.tensor([target[:-1]]), network.encode(torch.tensor([source]), mask, run), mask, run)
    return {name: value for name, value in found.items() if name.startswith("embedded/")}


def swapped(ids: tuple[int, ...], place: int, by: int) -> tuple[int, ...]:
    return (*ids[:place], by, *ids[place + 1 :])


def test_leaving_out_in_one_batch_is_leaving_out_one_by_one(effects: WordEffects) -> None:
    source, base = SOURCE, np.array(scores(SOURCE, TARGET))
    np.testing.assert_allclose(effects.log_probabilities, base, atol=1e-5)
    assert effects.strips == ("source",) * len(source) + ("target",) * (len(TARGET) - 1)
    for column, (strip, place) in enumerate(zip(effects.strips, effects.positions, strict=True)):
        for name, by in (("unknown", UNKNOWN), ("padding", PAD)):
            own = (swapped(source, place, by), TARGET) if strip == "source" else (source, swapped(TARGET, place, by))
            expected = np.array(scores(*own)) - base
            if strip == "target":
                expected[:place] = np.nan  # the decoder reads it later
            np.testing.assert_allclose(getattr(effects, name)[:, column], expected, atol=1e-5)


def test_gradients_are_finite_differences_and_integrated_gradients_are_complete(effects: WordEffects) -> None:
    source, there = SOURCE, vectors(SOURCE, TARGET)
    for column, (strip, place) in enumerate(zip(effects.strips, effects.positions, strict=True)):
        name, ends = "embedded/encoder" if strip == "source" else "embedded/decoder", list[list[float]]()
        for factor in (1.001, 0.999):
            moved = there[name].clone()
            moved[0, place] *= factor
            ends.append(scores(source, TARGET, there | {name: moved}))
        expected = (np.array(ends[0]) - ends[1]) / 0.002  # how F changes as the vector grows: its gradient times the vector
        own = effects.gradient[:, column]
        np.testing.assert_allclose(own[~np.isnan(own)], expected[~np.isnan(own)], atol=5e-3)
    baseline = vectors((UNKNOWN,) * len(source), (UNKNOWN,) * len(TARGET))
    difference = np.array(scores(source, TARGET)) - scores(source, TARGET, baseline)
    np.testing.assert_allclose(effects.difference, difference, atol=1e-4)
    np.testing.assert_allclose(np.nansum(effects.integrated, axis=1), difference, rtol=0.011)
    np.testing.assert_allclose(effects.residue, difference - np.nansum(effects.integrated, axis=1), atol=1e-4)
    assert effects.baseline == "the unknown token"


def test_what_stands_beside_is_the_row_that_wrote_the_token(effects: WordEffects) -> None:
    trace = traced(tiny("paper"), asked())
    sources = [i for i, strip in enumerate(effects.strips) if strip == "source"]
    cross = np.mean([trace.at(f"decoder.0.{layer}.cross").weights.mean(axis=0) for layer in (0, 1)], axis=0)
    np.testing.assert_allclose(effects.attention[:, sources], cross[: len(effects.tokens)], atol=1e-6)
    np.testing.assert_allclose(np.nansum(effects.attention, axis=1), 2, atol=1e-5)
    expected = rollout(trace, Site.parse("decoder.0.1.cross"))
    np.testing.assert_allclose(effects.rollout[:, sources], expected[: len(effects.tokens)], atol=1e-6)
    np.testing.assert_allclose(np.nansum(effects.rollout, axis=1), 1, atol=1e-5)


def test_a_language_model_depends_on_its_strip_alone() -> None:
    effects = answered("language model", Words(asked()))
    prompt = tiny("language model").tokenizers["source"].encode("w4 w6 w5 w9", "source").ids
    whole, network = (*prompt, *TARGET), language_model(SPECS["language model"])
    assert effects.strips == ("source",) * (len(whole) - 1)
    assert effects.first == len(prompt)
    with torch.inference_mode():
        own, base = (network(torch.tensor([ids])).log_softmax(-1) for ids in (swapped(whole, 1, UNKNOWN), whole))
    expected = [float(own[0, row, whole[row + 1]] - base[0, row, whole[row + 1]]) for row in range(len(prompt) - 1, len(whole) - 1)]
    np.testing.assert_allclose(effects.unknown[:, 1], expected, atol=1e-5)

    def hidden(mask: torch.Tensor, start: int) -> torch.Tensor:
        return mask & (torch.arange(len(whole)) != 1)

    sites = [f"attention/decoder.0.{layer}.self/mask" for layer in range(len(network.layers))]
    with torch.inference_mode():
        left_out = network(torch.tensor([swapped(whole, 1, PAD)]), Run(interventions=dict.fromkeys(sites, hidden))).log_softmax(-1)
    expected = [
        float(left_out[0, row, whole[row + 1]] - base[0, row, whole[row + 1]]) for row in range(len(prompt) - 1, len(whole) - 1)
    ]
    np.testing.assert_allclose(effects.padding[:, 1], expected, atol=1e-5, err_msg="padding is hidden, too")
    np.testing.assert_allclose(np.nansum(effects.rollout, axis=1), 1, atol=1e-5)
    assert np.isnan(effects.unknown[0, len(prompt) :]).all()


def test_rank_correlations_compare_amounts(effects: WordEffects) -> None:
    found = rank_correlations(effects, "source")
    assert found.shape == (len(effects.tokens), len(MEASURES), len(MEASURES))
    np.testing.assert_allclose(np.diagonal(found, axis1=1, axis2=2), 1)
    own = np.array([strip == "source" for strip in effects.strips])
    ranks = [np.abs(getattr(effects, name)[2, own]).argsort().argsort() for name in ("unknown", "attention")]
    n, apart = len(ranks[0]), ((ranks[0] - ranks[1]) ** 2).sum()
    first, second = MEASURES.index("unknown"), MEASURES.index("attention")
    assert found[2, first, second] == pytest.approx(1 - 6 * apart / (n * (n * n - 1)))
    assert mean_correlation(effects, "unknown", "attention", "source") == pytest.approx(found[:, first, second].mean())


def test_gradients_of_one_point_at_a_time_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradients, "TOLERANCE", 0.2)  # a few points are enough
    all_, alone = (answered("paper", Words(asked()), **place) for place in ({}, {"most_bytes": 1}))
    np.testing.assert_allclose(alone.integrated, all_.integrated, atol=1e-4)


def test_integrals_that_are_not_found_are_left_out_and_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradients, "MOST_POINTS", 3 * gradients.PARTS * gradients.POINTS)
    effects = answered("paper", Words(asked()))
    unsettled = np.isnan(effects.integrated).all(axis=1)
    assert unsettled.any()
    assert np.isnan(effects.residue[unsettled]).all()
    assert f"not found for {unsettled.sum()} of {len(effects.tokens)} target tokens: with 24 points" in str(
        effects.missing["integrated"]
    )
    column = MEASURES.index("integrated")
    assert np.isnan(rank_correlations(effects)[unsettled, column]).all(), "and no correlation is computed from them"
    assert (np.abs(effects.residue[~unsettled]) <= 0.01 * np.abs(effects.difference[~unsettled])).all()
    assert from_bytes(WordEffects, to_bytes(effects)).missing == effects.missing
    assert effects.to_json()["missing"]["integrated"] == str(effects.missing["integrated"])


def test_errors_that_cancel_out_by_chance_are_no_integral(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two halves that miss their differences by +9 and −9."""

    def cancelling(self: gradients._Integral, tokens: Array) -> None:
        self.points = gradients.MOST_POINTS
        self.sums[:] = 0
        self.sums[:, :, 0] = np.diff(self._scores, axis=0)
        self.sums[0, :, 0] += 9
        self.sums[1, :, 0] -= 9

    monkeypatch.setattr(gradients._Integral, "measure", cancelling)
    effects = answered("paper", Words(asked()))
    assert np.isnan(effects.integrated).all()


@given(arrays(np.float64, (5, 3), elements=st.floats(0, 100)), st.floats(0.01, 10))
def test_what_is_not_halved_lacks_little(lacking: Array, allowed: float) -> None:
    worst = gradients._worst(lacking, np.full(3, allowed))
    assert (lacking[~worst].sum(axis=0) < allowed).all()
    assert worst.any() or (lacking.sum(axis=0) < allowed).all()


def test_without_unknown_token_and_padding_the_end_token_is_the_baseline() -> None:
    """Not zeros: near zero, layers of RMSNorm change at every scale, and no integral is found."""
    spec = replace(SPECS["language model"], unk_id=None, pad_id=None)
    example: Any = SimpleNamespace(source=None)
    assert words._baseline(spec, example) == ({"decoder": spec.end_id}, "the end token")


def test_each_words_integral_has_converged_and_says_how_far(effects: WordEffects) -> None:
    """Against a sum over many points in float64: no word is off by more than the share that is allowed."""
    network, points = deepcopy(translator(SPECS["paper"])).double(), 400
    begin, end = (
        {name: value.double() for name, value in vectors(*ids).items()}
        for ids in (((UNKNOWN,) * len(SOURCE), (UNKNOWN,) * len(TARGET)), (SOURCE, TARGET))
    )
    shares = ((torch.arange(points, dtype=torch.float64) + 0.5) / points)[:, None, None]
    leaves = {name: torch.lerp(begin[name], end[name], shares).requires_grad_() for name in end}
    run = Run(interventions={name: lambda value, start, own=own: own for name, own in leaves.items()})
    source, target = torch.tensor([SOURCE]).expand(points, -1), torch.tensor([TARGET[:-1]]).expand(points, -1)
    mask = network.source_mask(source)
    scores = network.decode(target, network.encode(source, mask, run), mask, run).log_softmax(-1)
    rows = []
    for token, id_ in enumerate(TARGET[1:]):
        slopes = torch.autograd.grad(scores[:, token, id_].mean(), list(leaves.values()), retain_graph=True)
        parts = [(slope.sum(dim=0) * (end[name] - begin[name])[0]).sum(dim=1) for name, slope in zip(leaves, slopes, strict=True)]
        rows.append(torch.cat(parts).numpy())
    expected = np.stack(rows)
    later = np.isnan(effects.integrated)
    largest = np.nanmax(np.abs(effects.integrated), axis=1, keepdims=True)
    np.testing.assert_array_equal(np.isnan(effects.integrated_change), later)
    assert np.nanmax(np.abs(effects.integrated - expected) / largest) <= 0.01
    assert (effects.largest_change <= gradients.TOLERANCE + 1e-9).all()
