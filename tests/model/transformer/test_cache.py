"""A cached decode gives the rows of the full pass: every tensor, every site, every row, every step."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from model.trace.types import Site
from model.transformer.attention import Run
from model.transformer.cache import NO_CACHE, KVCache
from model.transformer.stacks import EncoderDecoder
from tests.networks import (
    LANGUAGE_MODELS,
    TRANSLATORS,
    VARIANTS,
    Notes,
    assert_close,
    continue_,
    language_model,
    padded,
    translate,
    translator,
)

SOURCES = padded([[2, 4, 9, 4, 6, 3], [2, 7, 3]])
TARGETS = torch.tensor([[2, 5, 5, 8, 7, 6, 9], [2, 9, 4, 4, 1, 5, 6]])
CUTS = pytest.mark.parametrize("cuts", [(1, 2, 3, 4, 5, 6, 7), (3, 4, 7), (7,)], ids=str)


def steps_of(cuts: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip((0, *cuts), cuts, strict=False))


def decode(built: EncoderDecoder, memory: Tensor, target: Tensor, cache: KVCache, start: int) -> Notes:
    notes = Notes()
    with torch.inference_mode():
        built.decode(target, memory, built.source_mask(SOURCES), Run(record=notes, cache=cache), start)
    return notes


def encode(built: EncoderDecoder) -> Tensor:
    with torch.inference_mode():
        return built.encode(SOURCES, built.source_mask(SOURCES))


def assert_rows(step: Notes, whole: Notes, first: int, last: int) -> None:
    """The step's tensors are the rows `first` to `last` of the full pass; keys in the future were never scored."""
    for name, found in step.items():
        kind = name.rpartition("/")[2] if name.startswith("attention") else name.partition("/")[0]
        keys = found.shape[-1] if kind in ("weights", "scores", "mask", "mask_padding", "mask_causal") else None
        expected = whole[name] if name.endswith(("cross/k", "cross/v")) else whole[name][..., first:last, :]
        assert_close(name, found, expected[..., :keys])


@CUTS
@pytest.mark.parametrize("name", TRANSLATORS)
def test_cached_rows_of_a_translation_are_those_of_the_full_pass(name: str, cuts: tuple[int, ...]) -> None:
    built, cache = translator(VARIANTS[name]), KVCache()
    whole, memory = translate(built, SOURCES, TARGETS), encode(built)
    for first, last in steps_of(cuts):
        step = decode(built, memory, TARGETS[:, :last], cache, first)
        kept = {key for key in whole if "encoder." not in key and "/encoder" not in key}
        cross = {key for key in kept if first and key.endswith(("cross/k", "cross/v"))}
        assert step.keys() == kept - cross
        assert_rows(step, whole, first, last)


@CUTS
@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_cached_rows_of_a_continuation_are_those_of_the_full_pass(name: str, cuts: tuple[int, ...]) -> None:
    built, cache = language_model(VARIANTS[name]), KVCache()
    whole = continue_(built, TARGETS)
    for first, last in steps_of(cuts):
        step = continue_(built, TARGETS[:, :last], cache, first)
        assert step.keys() == whole.keys()
        assert_rows(step, whole, first, last)


def test_what_a_cached_step_leaves_out_is_zero_in_the_full_pass() -> None:
    whole = continue_(language_model(VARIANTS["language model"]), TARGETS)
    for name, value in whole.items():
        if name.endswith("/weights"):
            assert (value.triu(1) == 0).all()


def test_keys_of_the_source_are_computed_once_and_those_of_the_target_at_each_step() -> None:
    asked: list[str] = []

    def count(site: Site, size: int) -> tuple[Tensor, Tensor]:
        asked.append(str(site))
        return torch.zeros(1, 2, size, 4), torch.ones(1, 2, size, 4)

    cache = KVCache()
    own, cross, memory = Site("decoder", 0, 0, "self"), Site("decoder", 0, 0, "cross"), Site("decoder", 0, 0, "memory")
    for _ in range(3):
        own_keys, _ = cache.keys_and_values(own, lambda: count(own, 1))
        cross_keys, _ = cache.keys_and_values(cross, lambda: count(cross, 6))
        cache.keys_and_values(memory, lambda: count(memory, 6))
    assert asked.count(str(own)) == 3
    assert asked.count(str(cross)) == asked.count(str(memory)) == 1
    assert own_keys.shape == (1, 2, 3, 4)
    assert cross_keys.shape == (1, 2, 6, 4)


def test_a_second_pass_through_the_same_layer_has_keys_of_its_own() -> None:
    cache = KVCache()
    first, _ = cache.keys_and_values(Site("decoder", 0, 0, "self"), lambda: (torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 1, 1)))
    second, _ = cache.keys_and_values(Site("decoder", 1, 0, "self"), lambda: (torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1, 1)))
    assert first.item() == 0
    assert second.item() == 1
    assert second.shape == (1, 1, 1, 1)


def test_no_cache_remembers_nothing() -> None:
    site = Site("decoder", 0, 0, "self")
    for pair in ((torch.zeros(1), torch.zeros(1)), (torch.ones(1), torch.ones(1))):
        given = iter([pair])
        assert NO_CACHE.keys_and_values(site, given.__next__) is pair


@pytest.mark.parametrize("name", TRANSLATORS)
def test_select_lets_hypotheses_go_on_swapped_dropped_and_doubled(name: str) -> None:
    built, cache = translator(VARIANTS[name]), KVCache()
    memory, rows = encode(built), torch.tensor([1, 0, 1])
    decode(built, memory, TARGETS[:, :3], cache, 0)
    cache.select(rows)
    new = torch.cat([TARGETS[rows, :3], torch.tensor([[9], [4], [6]])], dim=1)
    notes = Notes()
    with torch.inference_mode():
        built.decode(new, memory[rows], built.source_mask(SOURCES[rows]), Run(record=notes, cache=cache), 3)
    whole = translate(built, SOURCES[rows], new)
    assert_rows(notes, whole, 3, 4)
