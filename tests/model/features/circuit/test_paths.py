"""Patched paths: each is what a hook at the later head's projection does, estimates are slopes, all paths are the clean run."""

import json
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.__main__ import main
from model.checkpoints.native import Checkpoint
from model.engine.local import LocalEngine
from model.errors import BadSetting, CannotMeasure, DoesNotFit, HeadlightError, UnknownHead, UnknownSite
from model.features.circuit.circuits import PathEffects, Paths, spearman
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace.types import Site, Trace
from tests.model.features.conftest import answered, asked, tiny
from tests.model.features.forward_parts import Forward
from tests.networks import save_checkpoint
from tests.runs import CPU, SPECS, traced

CLEAN, CORRUPTED = "w4 w6 w5 w9", "w4 w7 w5 w9"
PATCHED = [name for name in SPECS if SPECS[name].output is not None and name != "memory"]


@cache
def effects(name: str, **options: Any) -> PathEffects:
    found: PathEffects = answered(name, Paths(asked(), CORRUPTED, **options))
    return found


def both(name: str) -> tuple[Checkpoint, Trace, Trace]:
    """The clean run and the corrupted one, forced to the same target; of a language model with the same continuation."""
    found, target = tiny(name), asked().target
    runs = list[Trace]()
    for text in (CLEAN, CORRUPTED):
        given = replace(asked(), source=text, keep=KEEP)
        if SPECS[name].encoder is None:
            ids = found.tokenizers["source"].encode(text, "source").ids
            given = replace(given, source=(*ids, *target), target=None, decoding=Decoding(max_length=0))  # type: ignore[misc]
        runs.append(traced(found, given))
    return found, runs[0], runs[1]


def by_hook(name: str, side: int, to: int, since: int, share: float = 1.0) -> float:
    """The logit difference where a share of what the earlier head's other context makes of a projection is added there."""
    found, clean, corrupted = both(name)
    graph = effects(name)
    later, earlier = graph.heads[to], graph.heads[since]
    before = clean.at(earlier.site)
    assert before.context is not None
    contexts = before.context.copy()
    theirs = corrupted.at(earlier.site).context
    assert theirs is not None
    contexts[earlier.head] = theirs[earlier.head]
    site = before.site
    other = replace(clean, attention={**clean.attention, site: replace(before, context=contexts)})
    stack, _, layer, kind = later.site.split(".")
    own, part = SPECS[name].stacks[stack].attention, f"{earlier.site} head {earlier.head}"
    source = 0 if side == 0 else 1
    vectors = [Forward(found.network, run, SPECS[name]).walk(stack)[0][later.site][source][part] for run in (clean, other)]
    alone = SPECS[name].encoder is None
    module = f"layers.{layer}.{'attention' if alone else kind + '_attention'}.{('query', 'key', 'value')[side]}"
    full = module if alone else f"{stack}.{module}"
    projection = found.network.get_submodule(full)
    rows = slice(later.head * own.head_dim, (later.head + 1) * own.head_dim)
    weight = projection.get_parameter("weight").detach().double().numpy()[rows]
    change = torch.tensor(share * (vectors[1] - vectors[0]) @ weight.T, dtype=torch.float32)

    def add(module_: Any, given: Any, output: torch.Tensor) -> torch.Tensor:
        patched = output.clone()
        patched[..., rows] += change[: output.shape[1]]
        return patched

    hook = projection.register_forward_hook(add)
    try:
        return difference(found, clean, graph)
    finally:
        hook.remove()


def difference(found: Checkpoint, clean: Trace, graph: PathEffects) -> float:
    """The logit difference of the network as it is now."""
    with torch.no_grad():
        source = torch.tensor([clean.tokens["source"].ids])
        network: Any = found.network
        if "target" in clean.tokens:
            logits = network(source, torch.tensor([clean.tokens["target"].ids[:-1]]))[0]
        else:
            logits = network(source[:, :-1])[0]
    row = logits[graph.first - 1 + graph.token].double()
    return float(row[graph.ids[graph.token]] - row[graph.other])


@pytest.mark.parametrize("name", ["paper", "modern, tied", "language model", "uneven", "no feed-forward"])
def test_a_path_is_patched_where_the_later_head_reads_it(name: str) -> None:
    graph = effects(name)
    found, clean, corrupted = both(name)
    assert graph.clean == pytest.approx(difference(found, clean, graph), abs=1e-5)
    assert corrupted.logits is not None
    row = corrupted.logits[graph.first - 1 + graph.token].astype(np.float64)
    assert graph.corrupted == pytest.approx(row[graph.ids[graph.token]] - row[graph.other], abs=1e-5)
    assert graph.other == next(id_ for id_ in np.argsort(-row) if id_ != graph.ids[graph.token])
    places = np.argwhere(np.nan_to_num(graph.effects) != 0)
    order = np.argsort(-np.abs(graph.effects[tuple(places.T)]))
    assert len(order) > 5
    for side, to, since in places[order[[0, 1, len(order) // 2]]].tolist():
        expected = by_hook(name, side, to, since) - graph.clean
        assert graph.effects[side, to, since] == pytest.approx(expected, rel=1e-3, abs=2e-6), (side, to, since)


@pytest.mark.parametrize("name", PATCHED)
def test_every_path_kept_is_the_clean_run_and_estimates_rank_alike(name: str) -> None:
    graph = effects(name)
    count = int((~np.isnan(graph.effects)).sum())
    assert graph.kept[0] == 0
    assert graph.kept[-1] == count
    assert graph.kept_difference[-1] == pytest.approx(graph.clean, abs=1e-5)
    assert graph.kept_log_probability[-1] == pytest.approx(graph.log_probabilities[graph.token], abs=1e-5)
    assert abs(graph.kept_difference[0] - graph.clean) > 1e-4
    assert graph.rank > 0.9
    there = [Site.parse(head.site) for head in graph.heads]
    for to, since in product(range(len(there)), repeat=2):
        later, earlier = there[to], there[since]
        same = earlier.stack == later.stack and since < to and earlier != later
        read = ~np.isnan(graph.effects[:, to, since])
        if later.kind == "cross":  # queries are the decoder's, keys and values the encoder's
            assert read.tolist() == [same, *[earlier.stack == "encoder"] * 2]
        else:
            assert read.tolist() == [same] * 3


def test_an_estimate_is_the_slope_of_the_effect() -> None:
    """A hundredth of what a path adds has a hundredth of the estimate as its effect."""
    graph = effects("language model")
    side, to, since = max(np.argwhere(~np.isnan(graph.effects)).tolist(), key=lambda place: abs(graph.effects[tuple(place)]))
    share = 1e-2
    found = by_hook("language model", side, to, since, share) - by_hook("language model", side, to, since, -share)
    assert found / (2 * share) == pytest.approx(graph.estimates[side, to, since], rel=1e-2)
    assert graph.estimates[side, to, since] != pytest.approx(graph.effects[side, to, since], rel=1e-3)


def test_one_receiver_has_the_same_numbers() -> None:
    graph = effects("modern language model")
    head = graph.heads[-1]
    own = effects("modern language model", site=head.site, head=head.head)
    np.testing.assert_allclose(own.effects[:, -1], graph.effects[:, -1], atol=1e-6)
    assert np.isnan(own.effects[:, :-1]).all()
    assert len(own.kept) == 0


def test_a_shared_key_is_patched_for_all_heads_that_share_it() -> None:
    name = "rotary language model"
    own = SPECS[name].stacks["decoder"].attention
    group = own.heads // (own.key_heads or own.heads)
    assert group > 1
    alone, shared = effects(name), effects(name, shared=True)
    np.testing.assert_allclose(shared.effects[0], alone.effects[0], atol=1e-6)
    np.testing.assert_array_equal(shared.effects[1:, 0::group], shared.effects[1:, 1::group])
    assert np.nanmax(np.abs(shared.effects[1:] - alone.effects[1:])) > 1e-4
    assert shared.kept_difference[-1] == pytest.approx(shared.clean, abs=1e-5)
    first = [to for to in range(len(alone.heads)) if alone.heads[to].head % group == 0]
    sums = np.stack([np.nansum(alone.estimates[1:, to : to + group], axis=1) for to in first], axis=1)
    np.testing.assert_allclose(np.nan_to_num(shared.estimates[1:, first]), sums, atol=1e-5)  # slopes add up


def test_another_token_and_what_is_taken_away_are_chosen() -> None:
    graph = effects("paper", token=2, minus=5)
    assert (graph.token, graph.other, graph.other_text) == (2, 5, "w5")
    assert graph.effects.shape == (3, len(graph.heads), len(graph.heads))
    found, clean, _ = both("paper")
    assert graph.clean == pytest.approx(difference(found, clean, graph), abs=1e-5)


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("paper", {"corrupted": "w4 w7"}, DoesNotFit),
        ("paper", {"token": 99}, BadSetting),
        ("paper", {"minus": 10_000}, BadSetting),
        ("paper", {"site": "decoder.0.9.self", "head": 0}, UnknownSite),
        ("paper", {"site": "decoder.0.0.self", "head": 9}, UnknownHead),
        ("encoder alone", {}, CannotMeasure),
        ("memory", {}, CannotMeasure),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(name: str, options: dict[str, Any], error: type[HeadlightError]) -> None:
    with pytest.raises(error):
        answered(name, Paths(asked(), **{"corrupted": CORRUPTED, **options}))


def test_too_many_paths_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.features.circuit.patching.MOST_PATHS", 3)
    with pytest.raises(CannotMeasure, match="name the head"):
        answered("paper", Paths(asked(), CORRUPTED))


def test_ranks_of_equal_values_are_their_mean() -> None:
    one, other = np.array([1.0, 2, 2, 5, 9]), np.array([3.0, 1, 4, 4, 8])
    ranks = np.array([1, 2.5, 2.5, 4, 5]), np.array([2, 1, 3.5, 3.5, 5])
    assert spearman(one, other) == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert np.isnan(spearman(one, np.zeros(5)))
    assert np.isnan(spearman(one[:2], other[:2]))


def said(folder: Path, capsys: pytest.CaptureFixture[str], *options: str, status: int = 0) -> str:
    command = ["paths", str(folder / "tiny"), "--source", CLEAN, "--max-length", "4", "--device", "cpu", *options]
    assert main(command) == status
    found = capsys.readouterr()
    return found.err if status else found.out


def test_the_command_line_prints_the_numbers_of_the_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_checkpoint(tmp_path / "tiny", split="words")
    engine = LocalEngine(tmp_path, CPU)
    run = RunRequest("tiny", CLEAN, decoding=Decoding(max_length=4))
    expected = engine.ask(Paths(run, CORRUPTED))
    found: Any = json.loads(said(tmp_path, capsys, "--corrupted", CORRUPTED, "--json"))
    assert found == json.loads(json.dumps(expected.to_json()))
    assert found["paths"][0]["effect"] == float(expected.effects.flat[np.nanargmax(np.abs(expected.effects))])
    assert f"strongest of {len(found['paths']):,} paths" in said(tmp_path, capsys, "--corrupted", CORRUPTED)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("w5 w6 w7 w8\tw5 w9 w7 w8\n\n", encoding="utf-8")
    means: Any = json.loads(said(tmp_path, capsys, "--corrupted", CORRUPTED, "--pairs", str(pairs), "--json"))
    second = engine.ask(Paths(replace(run, source="w5 w6 w7 w8"), "w5 w9 w7 w8"))
    whole = (expected.effects + second.effects) / 2
    assert means["paths"][0]["effect"] == pytest.approx(whole.flat[np.nanargmax(np.abs(whole))])
    assert len(means["pairs"]) == 2


def test_a_file_of_pairs_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_checkpoint(tmp_path / "tiny", split="words")
    assert "--corrupted" in said(tmp_path, capsys, status=1)
    assert "SITE:HEAD" in said(tmp_path, capsys, "--corrupted", CORRUPTED, "--receiver", "3", status=1)
    pairs = tmp_path / "pairs.tsv"
    for data in (b"w4 w5\n", b"w4\tw5\tw6\n", b"\xff\xfe\x00", b"w4\t\n", b"a" * (2**20 + 1)):
        pairs.write_bytes(data)
        assert "--pairs" in said(tmp_path, capsys, "--corrupted", CORRUPTED, "--pairs", str(pairs), status=1)
    assert "--pairs" in said(tmp_path, capsys, "--corrupted", CORRUPTED, "--pairs", str(tmp_path / "none"), status=1)
