"""Pruning and edges, against runs one by one."""

import numpy as np
import pytest
import torch

from model.errors import BadSetting, UnknownSite
from model.features.what_if.questions import Edges, Order, Prune
from model.trace.types import Site, sites
from model.transformer.attention import Run
from tests.model.features.conftest import TARGET, answered, asked, one_by_one, tiny
from tests.networks import translator
from tests.runs import SPECS


@pytest.mark.parametrize("order", ["least", "most"])
@pytest.mark.parametrize("name", ["paper", "language model"])
def test_each_step_silences_the_head_that_costs_least_or_most_now(name: str, order: Order) -> None:
    pruned = answered(name, Prune(asked(), order))
    silent: dict[Site, set[int]] = {site: set() for site in sites(SPECS[name])}
    left = {(site, head) for site, heads in sites(SPECS[name]).items() for head in range(heads)}
    choose = max if order == "least" else min
    np.testing.assert_allclose(pruned.curve[0], one_by_one(name, {}), atol=1e-5)
    for step, head in enumerate(pruned.order, start=1):
        tried = {each: one_by_one(name, silent | {each[0]: silent[each[0]] | {each[1]}}) for each in left}
        own = Site.parse(head.site), head.head
        best = choose(values.sum() for values in tried.values())
        assert tried[own].sum() == pytest.approx(best, abs=1e-5)
        np.testing.assert_allclose(pruned.curve[step], tried[own], atol=1e-5)
        silent[own[0]].add(own[1])
        left.remove(own)
    assert not left


def test_the_quick_order_is_of_heads_that_were_measured_now() -> None:
    name = "modern, tied"
    pruned, everything = (answered(name, Prune(asked(), every=every)) for every in (False, True))
    silent: dict[Site, set[int]] = {site: set() for site in sites(SPECS[name])}
    for step, head in enumerate(pruned.order, start=1):
        silent[Site.parse(head.site)].add(head.head)
        np.testing.assert_allclose(pruned.curve[step], one_by_one(name, silent), atol=1e-5)
    assert sorted(pruned.order) == sorted(everything.order)
    assert pruned.order[0] == everything.order[0], "all are measured before the first"


def test_the_curve_says_where_it_breaks() -> None:
    pruned = answered("paper", Prune(asked(target=None)))
    assert tuple(pruned.likeliest[0]) == pruned.ids, "it writes greedily what it is fed"
    first = pruned.breaks_at
    assert first is not None
    assert all(tuple(row) == pruned.ids for row in pruned.likeliest[:first])
    assert tuple(pruned.likeliest[first]) != pruned.ids
    assert pruned.to_json()["totals"] == pytest.approx(pruned.curve.sum(axis=1))


def test_an_edge_of_the_decoder_is_closed_for_the_row_that_writes_the_token() -> None:
    spec, token = SPECS["paper"], 2
    effects = answered("paper", Edges(asked(), token))
    network, source = translator(spec), tiny("paper").tokenizers["source"].encode("w4 w6 w5 w9", "source").ids

    def scored(name: str, query: slice, key: int) -> float:
        def closed(mask: torch.Tensor, start: int) -> torch.Tensor:
            mask = mask.clone()
            mask[:, :, query, key] = False
            return mask

        ids, run = torch.tensor([source]), Run(interventions={name: closed})
        mask = network.source_mask(ids)
        with torch.inference_mode():
            logits = network.decode(torch.tensor([TARGET]), network.encode(ids, mask, run), mask, run)
        return float(logits[0, token].log_softmax(-1)[TARGET[token + 1]])

    base = effects.log_probabilities[token]
    for row, site in enumerate(effects.sites):
        decoder = site.startswith("decoder")
        keys = len(TARGET) if site.endswith("self") and decoder else len(source)
        for key in range(keys):
            if decoder and site.endswith("self") and key > token:
                assert np.isnan(effects.changes[row, key]), "the causal mask hides it anyway"
                continue
            query = slice(token, token + 1) if decoder else slice(None)
            assert base + effects.changes[row, key] == pytest.approx(scored(f"attention/{site}/mask", query, key), abs=1e-5)


def test_edges_of_each_head_of_a_site() -> None:
    together, apart = (answered("language model", Edges(asked(), 0, site)) for site in ("", "decoder.0.1.self"))
    assert apart.heads == (0, 1)
    assert set(apart.sites) == {"decoder.0.1.self"}
    assert together.heads == (-1, -1)
    assert together.sites == ("decoder.0.0.self", "decoder.0.1.self")
    assert np.isfinite(apart.changes[:, : apart.first]).all()
    assert not np.array_equal(apart.changes[0], apart.changes[1], equal_nan=True)


def test_an_edge_that_leaves_a_row_without_keys_says_so() -> None:
    effects = answered("paper", Edges(asked(), 0))
    row = effects.sites.index("decoder.0.0.self")
    assert effects.emptied[row].tolist() == [True, *[False] * (effects.emptied.shape[1] - 1)]
    assert not effects.emptied[effects.sites.index("decoder.0.0.cross")].any()


def test_what_is_not_there_is_refused_in_words() -> None:
    with pytest.raises(BadSetting, match="from 0 to 3"):
        answered("paper", Edges(asked(), 4))
    with pytest.raises(UnknownSite):
        answered("paper", Edges(asked(), 0, "decoder.0.9.cross"))
