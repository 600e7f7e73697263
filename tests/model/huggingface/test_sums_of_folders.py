"""Scores and logits of networks of the transformers library: the sums are what ran, each part is what its modules give."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from weakref import ref

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model.engine.local import LocalEngine
from model.errors import CannotMeasure
from model.features.circuit import library_anatomy
from model.features.circuit.anatomy import Heads
from model.features.circuit.cell_words import pushes
from model.features.circuit.circuit_parts import circuit
from model.features.circuit.circuits import SIDES, Paths
from model.features.circuit.logit_parts import logit_sum
from model.features.circuit.score_parts import score_sum
from model.features.circuit.sums import CellWrites, LogitSum, ScoreSum, Why, Writes
from model.features.what_if.results import Head
from model.huggingface.families import FAMILIES
from model.huggingface.loaded import Foreign
from model.huggingface.network import ForeignNetwork
from model.inference.run import run
from model.requests.edits import read_edits
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace.types import Array, Site, Trace
from tests import folders
from tests.model.huggingface.test_maps import CPU, READERS, SOURCE, TARGET, TRANSLATORS, opened

CHANGED: dict[str, tuple[str, dict[str, Any]]] = {
    "opt of 350 M": ("opt", {"do_layer_norm_before": False, "word_embed_proj_dim": 12}),
    "gpt_neox in sequence": ("gpt_neox", {"use_parallel_residual": False}),
    "llama of Llama 3": (
        "llama",
        {
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 10000.0,
                "factor": 2.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8,
            }
        },
    ),
}
"""Networks whose configuration changes the order or the arithmetic of their family."""

NETWORKS = [*FAMILIES, *CHANGED]


@cache
def made(name: str, edits: str = "") -> tuple[Foreign, nn.Module, Trace]:
    family, changes = CHANGED.get(name, (name, {}))
    found, own = opened(Path(mkdtemp()), family, **changes)
    asked: dict[str, Any] = {"target": TARGET} if family in TRANSLATORS else {"decoding": Decoding(max_length=3)}
    if family in READERS:
        asked = {}
    request = RunRequest(model="tiny", source=SOURCE, keep=KEEP, edits=read_edits(edits) if edits else (), **asked)
    return found, own, run(found, request, CPU, "CPU")


def why(name: str, site: str, head: int, query: int, key: int, minus: Any = None, edits: str = "") -> ScoreSum:
    found, _own, trace = made(name, edits)
    return score_sum(found.network, trace, Why(RunRequest.from_json(trace.request), site, head, query, key, minus))


def writes(name: str, token: int, minus: Any = None, edits: str = "") -> LogitSum:
    found, _own, trace = made(name, edits)
    return logit_sum(found.network, trace, Writes(RunRequest.from_json(trace.request), token, minus))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_sums_of_a_row_make_the_weights_that_ran(name: str) -> None:
    _found, _own, trace = made(name)
    for number, attention in enumerate(trace.attention.values()):
        query, head = attention.weights.shape[1] - 1, number % attention.heads  # another one of each site
        sums = [why(name, str(attention.site), head, query, key) for key in range(attention.weights.shape[2])]
        assert all(each.agrees and each.difference < 1e-5 for each in sums), attention.site
        scores = np.where(attention.mask[query], [each.score for each in sums], -np.inf)
        expected = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        np.testing.assert_allclose(expected, attention.weights[head, query], atol=1e-5, err_msg=str(attention.site))
        other, mean = why(name, str(attention.site), head, query, 1, 0), why(name, str(attention.site), head, query, 1, "mean")
        open_ = np.flatnonzero(attention.mask[query])
        assert other.score == pytest.approx(sums[1].score - sums[0].score, abs=1e-9)
        assert mean.score == pytest.approx(sums[1].score - np.mean([sums[key].score for key in open_]), abs=1e-9)
        assert other.agrees
        assert mean.agrees


def test_a_sum_holds_the_matrices_of_one_layer_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _own = opened(Path(mkdtemp()), "llama", num_hidden_layers=6)
    request = RunRequest(model="tiny", source=SOURCE, keep=KEEP, decoding=Decoding(max_length=3))
    trace = run(found, request, CPU, "CPU")
    make, all_, held = library_anatomy._Reader._made, list[ref[Heads]](), list[int]()

    def watched(self: Any, site: Site) -> Any:
        heads = make(self, site)
        all_.append(ref(heads))
        held.append(sum(each() is not None for each in all_))
        return heads

    cell, token = Why(request, "decoder.0.5.self", 1, 3, 1), Writes(request, 1, "runner-up")
    expected = score_sum(found.network, trace, cell), logit_sum(found.network, trace, token)
    monkeypatch.setattr(library_anatomy._Reader, "_made", watched)
    monkeypatch.setattr(library_anatomy, "KEPT_BYTES", 0)
    logit = logit_sum(found.network, trace, token)
    assert held == [1] * 6
    score = score_sum(found.network, trace, cell)
    assert max(held) == 3  # those of the asked layer are read for their own maps and for what they read
    np.testing.assert_array_equal(score.matrix, expected[0].matrix)
    np.testing.assert_array_equal(logit.values, expected[1].values)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_skipped_feed_forward_network_is_a_hook_that_returns_zeros(name: str) -> None:
    found, _own, plain = made(name)
    assert isinstance(found.network, ForeignNetwork)
    place, module = list(found.network.places.feed_forwards.items())[-1]
    skipped = made(name, f"skip-sublayer at={place}")[2]
    handle = module.register_forward_hook(lambda module, given, written: torch.zeros_like(written))
    try:
        hooked = run(found, RunRequest.from_json(plain.request), CPU, "CPU")
    finally:
        handle.remove()
    assert not skipped.stages[f"{place}/output"].any()
    last = place.removesuffix(".feed_forward")
    np.testing.assert_array_equal(skipped.hidden[last], hooked.hidden[last])
    assert not np.allclose(skipped.hidden[last], plain.hidden[last], atol=1e-4)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in READERS])
def test_the_parts_of_a_logit_add_up_to_what_ran(name: str) -> None:
    _found, _own, trace = made(name)
    assert trace.logits is not None
    for step in trace.steps:
        row = trace.logits[step.computed[1] - 1].astype(np.float64)
        one, between = writes(name, step.index), writes(name, step.index, 4)
        assert one.agrees
        assert one.logit == pytest.approx(row[step.chosen.id], rel=1e-5, abs=1e-5)
        assert between.logit == pytest.approx(row[step.chosen.id] - row[4], rel=1e-5, abs=1e-5)
        heads = np.array([part.kind == "head" for part in one.parts])
        np.testing.assert_allclose(np.nansum(one.keys[heads], axis=1), one.values[heads], atol=1e-5)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in READERS])
def test_what_a_cell_writes_is_the_change_of_the_logits_with_norms_held_fixed(name: str) -> None:
    """The terms of a head's cells, over all keys, are what `writes` splits its part into."""
    found, _own, trace = made(name)
    step = trace.steps[-1]
    whole = writes(name, step.index, 4)
    for part, keys in zip(whole.parts, whole.keys, strict=True):
        for key in np.flatnonzero(~np.isnan(keys))[[0, -1]].tolist() if part.kind == "head" else ():
            query = min(whole.row, trace.at(part.place).weights.shape[1] - 1)
            asked = CellWrites(RunRequest.from_json(trace.request), part.place, part.head, query, key)
            own = pushes(found.network, trace, asked)
            assert own[whole.id] - own[4] == pytest.approx(keys[key], rel=1e-6, abs=1e-9), (part, key)


@pytest.mark.parametrize("name", NETWORKS)
def test_what_heads_used_adds_up_to_what_ran(name: str) -> None:
    found, _own, trace = made(name)
    graph = circuit(found.network, trace)
    assert graph.agrees
    assert len(graph.heads) == sum(attention.heads for attention in trace.attention.values())
    assert np.isfinite(graph.used[0]).any()


class Forward:
    """The parts of the stream of one pass, forwards: each a vector, pushed through the library's own modules.

    A norm multiplies each column by a number that its input and output give; a linear map of a part is what its module makes of it,
    less what it makes of nothing.
    """

    def __init__(self, own: Any, name: str, trace: Trace) -> None:
        self.own, self.trace = own, trace
        self.family = FAMILIES[CHANGED.get(name, (name, {}))[0]]
        self.seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}
        for module in own.modules():
            module.register_forward_hook(self._see)
        source = torch.tensor([SOURCE])
        with torch.inference_mode():
            if self.family.kind == "both":
                own(input_ids=source, decoder_input_ids=torch.tensor([self._fed()]))
            else:
                own(input_ids=torch.tensor([self._fed()]))
        self.parts = {stack: self._stack(stack) for stack in self.family.stacks}

    def _fed(self) -> tuple[int, ...]:
        """What the last stack of the run read: what it wrote last was not fed."""
        ids = self.trace.tokens["target" if self.family.kind == "both" else "source"].ids
        return tuple(ids[: len(self.trace.embedded[self.family.stacks[-1]])])

    def _see(self, module: nn.Module, given: Any, made_: Any) -> None:
        if given and isinstance(given[0], Tensor):
            self.seen[module] = given[0].reshape(-1, given[0].shape[-1]).double(), made_[0] if isinstance(made_, tuple) else made_

    def normed(self, module: nn.Module, parts: dict[str, Tensor]) -> dict[str, Tensor]:
        """Parts after a norm; its bias is a part of its own that is left out here."""
        given, made_ = self.seen[module]
        bias = getattr(module, "bias", None)
        centre = isinstance(module, nn.LayerNorm)
        inside = given - given.mean(-1, keepdim=True) if centre else given
        factor = (made_.reshape(given.shape).double() - (0 if bias is None else bias)) / inside
        return {name: factor * (part - part.mean(-1, keepdim=True) if centre else part) for name, part in parts.items()}

    def _stack(self, stack: str) -> dict[str, Any]:
        """What enters each sublayer, and what leaves the stack, as parts."""
        layers = list(self.own.get_submodule(self.family.layers.format(stack=stack)).children())
        post = not getattr(self.own.config, "do_layer_norm_before", not self.family.post)
        entered = torch.tensor(self.trace.embedded[stack]).double()
        parts, found = {"entered": entered}, {}
        for index, layer in enumerate(layers):
            last = self.family.last(stack)
            names = self.family.norms if last == 2 else (self.family.norms[0], self.family.norms[-1])
            norms = [layer.get_submodule(each.format(last=last)) for each in names]
            for kind, norm in zip(("self", "cross"), norms[:-1], strict=False):
                site = f"{stack}.0.{index}.{kind}"
                found[site] = parts if post else self.normed(norm, parts)
                parts = parts | self._written(site)
                parts = self.normed(norm, parts) if post else parts
            feed_forward = self.seen[layer.get_submodule(self.family.feed_forward.format(last=last))][1]
            parts = parts | {f"{stack}.0.{index}.feed_forward": feed_forward.reshape(entered.shape).double()}
            parts = self.normed(norms[-1], parts) if post else parts
        final = dict(self.own.named_modules()).get(self.family.final.format(stack=stack)) if self.family.final else None
        return found | {"end": parts if final is None else self.normed(final, parts)}

    def _written(self, site: str) -> dict[str, Tensor]:
        output = self._outputs()[site]
        contexts = self.seen[output][0]
        heads = self.trace.at(site).heads
        width = contexts.shape[-1] // heads
        found = {}
        for head in range(heads):
            alone = torch.zeros_like(contexts)
            alone[:, head * width : (head + 1) * width] = contexts[:, head * width : (head + 1) * width]
            found[f"{site} head {head}"] = linear(output, alone)
        return found

    def _outputs(self) -> dict[str, nn.Module]:
        found = {}
        for stack in self.family.stacks:
            for index, layer in enumerate(self.own.get_submodule(self.family.layers.format(stack=stack)).children()):
                for kind, name in (("self", self.family.attention), ("cross", self.family.cross)):
                    if kind == "cross" and not (stack == "decoder" and self.family.cross):
                        continue
                    parent = layer.get_submodule(name)
                    inside = self.family.output.removeprefix("../")
                    if inside != self.family.output:
                        parent = layer.get_submodule(name.rpartition(".")[0])
                    found[f"{stack}.0.{index}.{kind}"] = parent.get_submodule(inside)
        return found


def linear(module: nn.Module, x: Tensor) -> Tensor:
    """What a linear module makes of x, less what it makes of nothing, in float64."""
    with torch.inference_mode():
        double: Any = module.double()
        found: Tensor = double(x[None])[0] - double(torch.zeros_like(x)[None])[0]
        module.float()
    return found


def apart(module: Any, x: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Queries and keys of an attention that has a map for each."""
    return linear(module.q_proj, x), linear(module.k_proj, x)


PROJECTED: dict[str, Callable[[Any, Tensor, int], tuple[Tensor, Tensor]]] = {
    "gpt2": lambda module, x, width: linear(module.c_attn, x).split(24, dim=-1)[:2],
    "gpt_neox": lambda module, x, width: linear(module.query_key_value, x).view(len(x), -1, 3 * width).split(width, dim=-1)[:2],
    "bert": lambda module, x, width: (linear(module.query, x), linear(module.key, x)),
    "distilbert": lambda module, x, width: (linear(module.q_lin, x), linear(module.k_lin, x)),
    "t5": lambda module, x, width: (linear(module.q, x), linear(module.k, x)),
    "opt": lambda module, x, width: (linear(module.q_proj, x) * module.scaling, linear(module.k_proj, x)),
}


@pytest.mark.parametrize("name", ["gpt2", "bert", "distilbert", "bart", "marian", "mbart", "t5", "opt", "llama", "gpt_neox"])
def test_each_part_of_a_score_is_what_the_modules_give(name: str) -> None:
    """Of queries and keys at one position, so that rotations, which turn both alike, cancel."""
    found, own, trace = made(name)
    assert isinstance(found.network, ForeignNetwork)
    forward = Forward(own, name, trace)
    projected = PROJECTED.get(name, apart)
    for attention in trace.attention.values():
        site, count = attention.site, attention.heads
        module: Any = next(
            module
            for module, beside in zip(own.modules(), found.network.library.modules(), strict=True)
            if beside is found.network.places.module(site)
        )
        width = attention.context.shape[-1] if attention.context is not None else 0
        queries = forward.parts[site.stack][str(site)]
        keys = forward.parts["encoder"]["end"] if site.kind == "cross" else queries
        head, row = count - 1, 2
        sums = why(name, str(site), head, row, row)
        across = list[dict[str, Array]]()
        for side, parts in enumerate((queries, keys)):
            vectors = {part: projected(module, x, width)[side].reshape(len(x), -1, width) for part, x in parts.items()}
            across.append({part: x[row, head * x.shape[1] // count].numpy() for part, x in vectors.items()})
        scale = found.network.scale(site)
        for number, one in enumerate(sums.parts_query):
            for column, other in enumerate(sums.parts_key):
                if str(one) in across[0] and str(other) in across[1]:
                    expected = scale * across[0][str(one)] @ across[1][str(other)]
                    assert sums.matrix[number, column] == pytest.approx(expected, rel=1e-4, abs=1e-5), (site, one, other)
        heads = {str(part) for part in (*sums.parts_query, *sums.parts_key) if part.kind in ("head", "feed-forward")}
        assert heads == {part for side in across for part in side if part != "entered"}


def test_positions_are_a_part_of_their_own_where_nothing_follows_the_sum() -> None:
    kinds = {name: {part.kind for part in why(name, "decoder.0.0.self", 0, 2, 1).parts_key} for name in ("gpt2", "llama", "bart")}
    assert {"embedding", "position"} <= kinds["gpt2"]
    assert {"embedding", "position"} & kinds["llama"] == {"embedding"}
    assert "embedded" in kinds["bart"]


def test_the_numbers_of_distances_are_told_apart() -> None:
    found, _own, _trace = made("t5")
    assert isinstance(found.network, ForeignNetwork)
    sums = why("t5", "encoder.0.1.self", 1, 4, 0)
    table: Any = found.network.places.module(Site.parse("encoder.0.0.self"))
    assert sums.distance == pytest.approx(float(table.compute_bias(5, 5)[0, 1, 4, 0]))
    assert sums.distance != 0
    assert sums.score == pytest.approx(sums.matrix.sum() + sums.distance)


@pytest.mark.parametrize("name", ["gpt2", "bart"])
def test_an_edited_output_is_a_part_of_its_own(name: str) -> None:
    edits = "skip-sublayer at=decoder.0.0.self"
    sums = why(name, "decoder.0.1.self" if name == "gpt2" else "decoder.0.0.cross", 0, 2, 1, edits=edits)
    assert sums.agrees
    assert "edit" in {part.kind for part in sums.parts_query}
    assert writes(name, 0, edits=edits).agrees


def test_no_edit_is_seen_where_none_was_made() -> None:
    sums = why("gpt2", "decoder.0.1.self", 0, 2, 1, edits="silence site=decoder.0.0.self head=0")
    assert sums.agrees
    assert "edit" not in {part.kind for part in sums.parts_query}


def test_a_reader_writes_nothing() -> None:
    with pytest.raises(CannotMeasure):
        writes("bert", 0)


@pytest.mark.parametrize("side", ["query", "key", "value"])
def test_a_patched_path_is_what_hooks_of_ones_own_give(tmp_path: Path, side: str) -> None:
    """From head 1 of GPT-2's first layer to head 2 of its second."""
    own: Any = folders.save(tmp_path / "gpt2", "gpt2")
    clean, corrupted = SOURCE, (*SOURCE[:2], 7, *SOURCE[3:])
    request = RunRequest(model="gpt2", source=clean, decoding=Decoding(max_length=1))
    effects = LocalEngine(tmp_path, CPU).ask(Paths(request, corrupted=corrupted))
    first, second = own.transformer.h
    kept: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[..., None]:
        return lambda module, given, *made_: kept.__setitem__(name, given[0].clone())

    hooks = [first.attn.c_proj.register_forward_pre_hook(keep("context")), second.ln_1.register_forward_pre_hook(keep("stream"))]
    with torch.inference_mode():
        own(torch.tensor([corrupted]))
        theirs = kept["context"]
        logits = own(torch.tensor([clean])).logits[0, -1].double()
        change = torch.zeros_like(theirs)
        change[..., 8:16] = theirs[..., 8:16] - kept["context"][..., 8:16]
        written = change @ first.attn.c_proj.weight
        stream = kept["stream"]
        spread = (stream.var(-1, correction=0, keepdim=True) + second.ln_1.eps).sqrt()
        read = (written - written.mean(-1, keepdim=True)) / spread * second.ln_1.weight
    for hook in hooks:
        hook.remove()
    columns = slice((begin := 24 * ["query", "key", "value"].index(side) + 16), begin + 8)

    def patched(module: Any, given: Any, made_: Tensor) -> Tensor:
        made_[..., columns] += read @ module.weight[:, columns]
        return made_

    second.attn.c_attn.register_forward_hook(patched)
    with torch.inference_mode():
        after = own(torch.tensor([clean])).logits[0, -1].double()
    token = int(logits.argmax())
    expected = (after[token] - after[effects.other]) - (logits[token] - logits[effects.other])
    place = SIDES.index(side), effects.heads.index(Head("decoder.0.1.self", 2)), effects.heads.index(Head("decoder.0.0.self", 1))
    assert effects.effects[place] == pytest.approx(float(expected), abs=1e-5)
    assert abs(float(expected)) > 1e-4
