"""Interventions: whatever is recorded can be changed, and the network goes on with what it was changed to."""

from collections.abc import Iterator, Mapping

import pytest
import torch
from torch import Tensor

from model.trace.types import Site
from model.transformer.attention import Intervention, MultiHeadAttention, Run, softmax_uniform, softmax_zeros
from model.transformer.cache import KVCache
from model.transformer.layers import FeedForward, see_mask
from model.transformer.masks import Mask, causal_mask
from model.transformer.stacks import EncoderDecoder
from tests.networks import TRANSLATORS, VARIANTS, Notes, assert_close, translate, translator

SITE = Site("decoder", 0, 0, "self")
SOURCE, TARGET = torch.tensor([[2, 4, 9, 4, 6, 3]]), torch.tensor([[2, 5, 5, 8, 7]])


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def adding(table: Tensor) -> Intervention:
    """Adds rows of `table` [position, …] by the position that each row [query] has in the whole text."""

    def add(value: Tensor, start: int) -> Tensor:
        return value + table[start : start + value.shape[-2], : value.shape[-1]]

    return add


def hiding(mask: Tensor, start: int) -> Tensor:
    """Key 0 is hidden from every query but the first, which counts from the beginning of the text."""
    hidden = mask.clone()
    hidden[..., (torch.arange(mask.shape[-2]) + start) > 0, 0] = False
    return hidden


def the_formula(module: MultiHeadAttention, x: Tensor, allowed: Tensor, added: Mapping[str, Tensor]) -> Tensor:
    """Attention in float64, a head and a query at a time, with something added to one of its stages."""
    module, x = module.double(), x.double()
    more = {name: value.double() for name, value in added.items()}
    q, k, v = (layer(x[0]).detach() for layer in (module.query, module.key, module.value))
    context = torch.zeros_like(q)
    for head in range(module.heads):
        own = slice(head * 4, head * 4 + 4)
        for query in range(len(x[0])):
            row = more.get("q", torch.zeros(9, 9))[query, :4] + q[query, own]
            scores = torch.stack(
                [module.scale * row @ (k[j, own] + more.get("k", torch.zeros(9, 9))[j, :4]) for j in range(len(k))]
            )
            scores = scores + more.get("scores", torch.zeros(9, 9))[query, : len(k)]
            weights = torch.tensor([float(s.exp()) if ok else 0.0 for s, ok in zip(scores, allowed[query], strict=True)])
            weights = weights.double() / weights.double().sum() + more.get("weights", torch.zeros(9, 9))[query, : len(k)]
            values = v[:, own] + more.get("v", torch.zeros(9, 9))[: len(k), :4]
            context[query, own] = (
                sum(w * value for w, value in zip(weights, values, strict=True)) + more.get("context", torch.zeros(9, 9))[query, :4]
            )
    output: Tensor = module.output(context).detach() + more.get("output", torch.zeros(9, 9))[: len(k), :8]
    return output


@pytest.mark.parametrize("name", ["q", "k", "v", "scores", "weights", "context", "output"])
def test_what_is_added_to_a_stage_of_attention_is_in_the_formula(name: str) -> None:
    torch.manual_seed(0)
    module, x, table = MultiHeadAttention(2, 4, 8, 8).eval(), normal(1, 5, 8), normal(9, 9, seed=1)
    allowed, notes = causal_mask(5, 5), Notes()
    with torch.no_grad():
        found = module(x, x, allowed, SITE, Run(notes, {f"attention/{SITE}/{name}": adding(table)}))
    plain = the_formula(module, x, allowed[0, 0], {})
    expected = the_formula(module, x, allowed[0, 0], {name: table})
    assert not torch.allclose(plain, expected, atol=1e-2)
    assert_close(name, found.double(), expected[None], 1e-5)
    assert torch.equal(notes[f"attention/{SITE}/output"], found)


def test_what_is_added_to_the_inner_layer_is_multiplied_on() -> None:
    torch.manual_seed(0)
    network, x, table = FeedForward(6, 7, torch.nn.ReLU()).eval(), normal(1, 5, 6), normal(9, 9, seed=1)
    with torch.no_grad():
        plain = network(x, "n")
        found = network(x, "n", Run(interventions={"stages/n/hidden": adding(table)}))
        expected = plain.double() + table[:5, :7].double() @ network.contract.weight.double().T
    assert_close("hidden", found.double(), expected)


def changed_names(notes: Notes) -> Iterator[str]:
    """One recorded name of each kind, all of the decoder's sites and stages."""
    yield from (name for name in notes if "mask" not in name and ("decoder" in name or name == "logits"))


def decoded(built: EncoderDecoder, changes: Mapping[str, Intervention], cuts: tuple[int, ...]) -> list[Notes]:
    """What the decoder recorded in each step: the target cut into pieces, with a cache."""
    mask, cache, steps = built.source_mask(SOURCE), KVCache(), []
    with torch.inference_mode():
        memory = built.encode(SOURCE, mask, Run(interventions=changes))
        for start, end in zip((0, *cuts), cuts, strict=False):
            steps.append(notes := Notes())
            built.decode(TARGET[:, :end], memory, mask, Run(notes, changes, cache), start)
    return steps


@pytest.mark.parametrize("variant", TRANSLATORS)
def test_in_a_cached_decode_a_change_by_position_is_that_of_the_whole(variant: str) -> None:
    built = translator(VARIANTS[variant])
    plain, table = translate(built, SOURCE, TARGET), normal(32, 32, seed=2)
    masks = {name: hiding for name in plain if name.startswith("attention/decoder") and name.endswith("self/mask")}
    values = {
        name: adding(table.tril() if name.endswith("self/weights") else table)  # keys of the future are not there yet in a step
        for name in changed_names(plain)
    }
    for changes in (masks, values):
        whole = decoded(built, changes, (5,))[0]["logits"]
        steps = torch.cat([step["logits"] for step in decoded(built, changes, (2, 3, 5))], dim=1)
        assert not torch.allclose(whole, plain["logits"], atol=1e-4)
        assert_close("logits", steps, whole, 1e-4)


@pytest.mark.parametrize("variant", TRANSLATORS)
def test_what_is_recorded_is_what_the_run_went_on_with(variant: str) -> None:
    built = translator(VARIANTS[variant])
    plain, table = translate(built, SOURCE, TARGET), normal(32, 32, seed=2)
    mask = built.source_mask(SOURCE)
    for name in (name for name in plain if "mask" not in name):
        notes = Notes()
        run = Run(notes, {name: adding(table)})
        with torch.inference_mode():
            built.decode(TARGET, built.encode(SOURCE, mask, run), mask, run)
        assert torch.equal(notes[name], plain[name] + table[: plain[name].shape[-2], : plain[name].shape[-1]]), name


@pytest.mark.parametrize("softmax", [softmax_uniform, softmax_zeros])
def test_a_mask_that_hides_a_key_from_one_head_hides_it_from_that_head_alone(softmax: type[Tensor]) -> None:
    torch.manual_seed(0)
    built = translator(VARIANTS["paper"])
    site = "encoder.0.0.self"

    def hide(mask: Tensor, start: int) -> Tensor:
        heads = mask.repeat(1, 2, 1, 1)
        heads[:, 1, :, 3] = False
        return heads

    notes, plain = Notes(), translate(built, SOURCE, TARGET)
    with torch.inference_mode():
        built.encode(SOURCE, built.source_mask(SOURCE), Run(notes, {f"attention/{site}/mask": hide}))
    weights, before = notes[f"attention/{site}/weights"], plain[f"attention/{site}/weights"]
    assert torch.equal(weights[:, 0], before[:, 0])
    rest = before[:, 1].index_fill(-1, torch.tensor(3), 0.0)
    assert_close("weights", weights[:, 1], rest / rest.sum(-1, keepdim=True))


def test_a_part_of_a_mask_that_is_changed_changes_the_mask() -> None:
    built, notes = translator(VARIANTS["paper"]), Notes()
    opened = {"attention/decoder.0.1.self/mask_causal": lambda mask, start: torch.ones_like(mask)}
    mask = built.source_mask(SOURCE)
    with torch.inference_mode():
        built.decode(TARGET, built.encode(SOURCE, mask), mask, Run(notes, opened))
    assert notes["attention/decoder.0.1.self/mask"].all()
    assert (notes["attention/decoder.0.1.self/weights"] > 0).all()
    assert not notes["attention/decoder.0.0.self/mask"].all()


def test_where_nothing_is_changed_the_fused_kernel_gets_the_mask_itself() -> None:
    mask = Mask(torch.ones(1, 1, 1, 4, dtype=torch.bool), causal_mask(4, 4))
    assert see_mask(Run(Notes()), SITE, mask, normal(3, 4, 8)) is mask.allowed
