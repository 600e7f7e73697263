"""Rollout against a case worked out by hand, and against loops over paths."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from model.trace.rollout import can_be_rolled_out, rollout
from model.trace.types import Array, Attention, Kind, Site, Trace
from tests import traces


def small(**weights: Sequence[Sequence[float]]) -> Trace:
    """A run of one head a site, whose sites are called stack_layer_kind."""
    trace, found = traces.translation(layers=1, heads=1), {}
    for name, rows in weights.items():
        stack, layer, kind = name.split("_")
        site = Site(stack, 0, int(layer), kind)  # type: ignore[arg-type]
        array = np.array(rows, np.float64)
        strips = {"self": ("source",) * 2 if stack == "encoder" else ("target",) * 2, "cross": ("target", "source")}[kind]
        found[site] = Attention(site, *strips, array[None], np.ones_like(array, bool))
    return replace(trace, attention=found)


ENCODER: dict[str, Sequence[Sequence[float]]] = {"encoder_0_self": [[0.5, 0.5], [0, 1]], "encoder_1_self": [[0, 1], [1, 0]]}


def test_the_newest_layer_stands_at_the_left() -> None:
    # ½(W₁ + I) = [¾ ¼; 0 1], ½(W₂ + I) = [½ ½; ½ ½]; the product [½ ½; ½ ½] [¾ ¼; 0 1] = [⅜ ⅝; ⅜ ⅝].
    trace = small(**ENCODER)
    assert rollout(trace, Site("encoder", 0, 0, "self")).tolist() == [[0.75, 0.25], [0, 1]]
    assert rollout(trace, Site("encoder", 0, 1, "self")).tolist() == [[0.375, 0.625], [0.375, 0.625]]


def test_a_decoder_goes_through_its_own_tokens_and_through_the_encoder_to_the_sources() -> None:
    # R = [⅜ ⅝; ⅜ ⅝] as above. Self 1: T = [1 0; ¼ ¾]. Cross 1: T/2, S = ½ C R = [3/16 5/16; 3/16 5/16].
    # Self 2, ½(W + I) = [1 0; ½ ½]: T = [½ 0; 5/16 3/16], S unchanged, since its rows are alike. Cross 2 reads R again.
    trace = small(
        **ENCODER,
        decoder_0_self=[[1, 0], [0.5, 0.5]],
        decoder_0_cross=[[1, 0], [0, 1]],
        decoder_1_self=[[1, 0], [1, 0]],
        decoder_1_cross=[[0, 1], [0.5, 0.5]],
    )
    assert rollout(trace, Site("decoder", 0, 0, "self")).tolist() == [[1, 0], [0.25, 0.75]]
    assert rollout(trace, Site("decoder", 0, 0, "cross")).tolist() == [[3 / 16, 5 / 16]] * 2
    assert rollout(trace, Site("decoder", 0, 1, "self")).tolist() == [[0.5, 0], [0.3125, 0.1875]]
    assert rollout(trace, Site("decoder", 0, 1, "cross")).tolist() == [[9 / 32, 15 / 32]] * 2


def product(left: Array, right: Array) -> Array:
    """A matrix product, term by term."""
    found = np.zeros((left.shape[0], right.shape[1]))
    for i, j in np.ndindex(*found.shape):
        for k in range(left.shape[1]):
            found[i, j] += left[i, k] * right[k, j]
    return found


def mean(attention: Attention) -> Array:
    total = np.zeros(attention.weights.shape[1:])
    for head in attention.weights:
        total += head.astype(np.float64)
    return total / attention.heads


def by_loops(trace: Trace, last: Site) -> Array:
    """One matrix over all tokens, source and target together: [position, token]; each site's step is a matrix too."""
    source, target = trace.at("encoder.0.0.self").weights.shape[1], trace.at("decoder.0.0.self").weights.shape[1]
    parts = {"source": slice(0, source), "target": slice(source, source + target)}
    shares = np.eye(source + target)
    for site, attention in trace.attention.items():
        step = np.eye(source + target)
        rows, columns = parts[attention.query_tokens], parts[attention.key_tokens]
        step[rows, rows] /= 2
        step[rows, columns] += mean(attention) / 2
        shares = product(step, shares)
        if site == last:
            return shares[rows, columns]
    raise AssertionError


@pytest.mark.parametrize("seed", range(2))
def test_every_site_is_as_in_one_large_product(seed: int) -> None:
    trace = traces.translation(source=traces.GERMAN[:5], target=traces.ENGLISH[:5], layers=3, heads=2, seed=seed)
    for site in trace.attention:
        assert rollout(trace, site) == pytest.approx(by_loops(trace, site), abs=1e-12)


def test_what_a_decoder_owes_to_both_strips_sums_to_one() -> None:
    trace = traces.translation(layers=3)
    own, read = (rollout(trace, Site("decoder", 0, 2, kind)) for kind in ("self", "cross"))
    assert own.sum(axis=-1) / 2 + read.sum(axis=-1) == pytest.approx(np.ones(12), abs=1e-6), "the last cross-attention halves T"
    assert (np.triu(own, 1) == 0).all(), "nothing comes from tokens that were not written yet"


def test_a_language_model_and_an_encoder_alone_have_rows_that_sum_to_one() -> None:
    for trace, site in ((traces.language_model(), "decoder.0.1.self"), (traces.encoder_only(), "encoder.0.1.self")):
        assert rollout(trace, Site.parse(site)).sum(axis=-1) == pytest.approx(np.ones(12), abs=1e-6)


def test_a_stack_without_residual_connections_keeps_nothing() -> None:
    trace = small(**ENCODER)
    assert rollout(trace, Site("encoder", 0, 1, "self"), bare=("encoder",)).tolist() == [[0, 1], [0.5, 0.5]]


def test_a_second_pass_goes_on_from_the_first() -> None:
    trace = traces.twice(layers=2)
    first = rollout(trace, Site("decoder", 0, 1, "self"))
    assert not np.allclose(rollout(trace, Site("decoder", 1, 0, "self")), first)
    assert by_loops(trace, Site("decoder", 1, 1, "cross")) == pytest.approx(
        rollout(trace, Site("decoder", 1, 1, "cross")), abs=1e-12
    )


@pytest.mark.parametrize(("kind", "possible"), [("self", True), ("memory", False)])
def test_a_decoder_that_lets_the_encoders_output_ask_cannot_be_followed(kind: Kind, possible: bool) -> None:
    trace = traces.translation(layers=1)
    own = trace.at("decoder.0.0.self")
    site = replace(own.site, kind=kind)
    other = {**trace.attention, site: replace(own, site=site)}
    assert can_be_rolled_out(replace(trace, attention=other), Site("decoder", 0, 0, "cross")) == possible
    assert can_be_rolled_out(replace(trace, attention=other), Site("encoder", 0, 0, "self"))
