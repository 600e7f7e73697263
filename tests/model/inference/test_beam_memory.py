"""Memory of a beam search: rows of pruned hypotheses are freed, what is shown stays, and too much is refused before it runs."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import pytest
from torch import Tensor

from model.errors import BadSetting
from model.inference.beam_search import LARGEST, BeamMemory
from model.inference.recorder import Recorder
from model.requests.network import AttentionSpec, ModelSpec, StackSpec
from model.requests.request import KEEP, Decoding, Keep
from model.trace.types import Trace
from model.transformer.cache import KVCache
from model.transformer.networks import BuiltNetwork
from tests.networks import VARIANTS
from tests.runs import SPECS, arrays, checkpoint, request, traced

WRITERS = [name for name, spec in SPECS.items() if spec.output is not None and spec.start_id is not None]
GPT2 = ModelSpec(
    decoder=StackSpec(
        vocab=50257, d_model=768, layers=12, attention=AttentionSpec(heads=12, head_dim=64), hidden=3072, max_positions=1024
    )
)


class Watched(Recorder):
    """A recorder that notes how much it holds.

    Args:
        hoards: whether it keeps the rows of pruned hypotheses, as if nothing were freed.
    """

    def __init__(self, keep: Sequence[Keep] = (), fused: bool = False, last_logits: bool = False, hoards: bool = False) -> None:
        super().__init__(keep, fused, last_logits)
        self.hoards = hoards
        self.held = list[int]()
        self.lineages: Collection[Sequence[int]] = ()

    def prune(self, lineages: Collection[Sequence[int]]) -> None:
        self.lineages = lineages
        if self.hoards:
            self._rows.append([*range(32)])
        else:
            super().prune(lineages)
        decoded = [piece for name, own in self._pieces.items() if "decoder" in name or name == "logits" for piece in own]
        self.held.append(bytes_of(decoded))


def bytes_of(tensors: Sequence[Tensor]) -> int:
    """Bytes of memory behind tensors; what they share counts once."""
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())


@pytest.fixture
def recorders(monkeypatch: pytest.MonkeyPatch) -> list[Watched]:
    """The recorders of all runs of a test; every second one hoards."""
    made = list[Watched]()

    def make(keep: Sequence[Keep], fused: bool, last_logits: bool) -> Watched:
        made.append(Watched(keep, fused, last_logits, hoards=len(made) % 2 == 1))
        return made[-1]

    monkeypatch.setattr("model.inference.run.Recorder", make)
    return made


def searched(spec: ModelSpec, size: int, tokens: int, hypothesis: int = 0, keep: tuple[Keep, ...] = KEEP) -> Trace:
    decoding = Decoding("beam", max_length=tokens, beam_size=size, hypothesis=hypothesis)
    return traced(checkpoint(spec), replace(request(spec), keep=keep, decoding=decoding))


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("hypothesis", [0, 1])
def test_what_a_beam_shows_is_the_same_bit_for_bit_when_pruned_rows_are_freed(
    recorders: list[Watched], name: str, hypothesis: int
) -> None:
    spec = replace(SPECS[name], end_id=None) if hypothesis else SPECS[name]
    freed, hoarded = (searched(spec, 4, 8, hypothesis) for _ in range(2))
    assert (freed.steps, freed.tree, freed.tokens) == (hoarded.steps, hoarded.tree, hoarded.tokens)
    ours, theirs = arrays(freed), arrays(hoarded)
    assert ours.keys() == theirs.keys()
    for name_, array in theirs.items():
        np.testing.assert_array_equal(ours[name_], array, strict=True, err_msg=name_)
    assert recorders[0].held[-1] < recorders[1].held[-1], "nothing was freed, so this test could not fail"


@pytest.mark.parametrize("name", WRITERS)
def test_after_a_beam_only_rows_of_hypotheses_that_can_be_shown_are_held(recorders: list[Watched], name: str) -> None:
    searched(SPECS[name], 4, 8)
    (recorder,) = recorders
    rows = [len({tuple(own[: step + 1]) for own in recorder.lineages if len(own) > step}) for step in range(len(recorder.held))]
    assert [len(piece) for piece in recorder._pieces["logits"]] == rows
    assert any(len(own) == len(rows) for own in recorder.lineages)


def test_a_beam_does_not_hold_the_whole_vocabulary_for_every_hypothesis_of_every_step(recorders: list[Watched]) -> None:
    stack = replace(VARIANTS["language model"].writer, vocab=2000, max_positions=64)
    spec = ModelSpec(encoder=None, decoder=stack, end_id=None)
    for _ in range(2):
        searched(spec, 32, 24, keep=())
    freed, hoarded = (recorder.held for recorder in recorders)
    assert len(freed) == len(hoarded) == 24
    assert hoarded[-1] > 32 * 23 * 2000 * 4
    assert max(freed) < hoarded[-1] / 4


@pytest.mark.parametrize("keep", [(), KEEP])
@pytest.mark.parametrize("name", WRITERS)
def test_the_bound_of_a_beam_is_no_less_than_what_it_held_and_not_far_above(
    recorders: list[Watched], monkeypatch: pytest.MonkeyPatch, name: str, keep: tuple[Keep, ...]
) -> None:
    caches = list[KVCache]()
    monkeypatch.setattr(BuiltNetwork, "new_cache", lambda self, decodes: caches.append(KVCache()) or caches[-1])  # type: ignore[func-returns-value]
    spec = replace(SPECS[name], end_id=None)
    for _ in range(2):
        trace = searched(spec, 5, 10, keep=keep)
    cache = caches[1]
    cached = bytes_of([*cache._streams.values(), *(tensor for pair in cache._held.values() for tensor in pair)])
    source = len(trace.tokens["source"]) if spec.encoder is not None else 0
    prompt = 1 if source else len(trace.tokens["source"]) - 10
    bound = BeamMemory(spec, 5, prompt, source, keep).bytes(10)
    assert recorders[1].held[-1] + cached <= bound <= 2 * (recorders[1].held[-1] + cached)


@pytest.mark.parametrize(("size", "tokens", "fits"), [(5, 60, True), (32, 60, True), (5, 700, True), (32, 1000, False)])
def test_a_beam_that_could_take_gigabytes_is_refused(size: int, tokens: int, fits: bool) -> None:
    memory = BeamMemory(GPT2, size, prompt=8, source=0)
    assert (memory.bytes(tokens) <= LARGEST) == fits
    if fits:
        memory.refuse_too_many(tokens)
        return
    with pytest.raises(BadSetting, match=r"beam_size cannot be used: 32 hypotheses of up to 1,000 tokens") as refused:
        memory.refuse_too_many(tokens)
    assert "17.6 GB" in str(refused.value)
    replace(memory, size=3).refuse_too_many(tokens)
    with pytest.raises(BadSetting):
        replace(memory, size=4).refuse_too_many(tokens)


def test_a_beam_of_one_goes_on_as_a_greedy_decode_does() -> None:
    BeamMemory(GPT2, 1, prompt=8, source=0).refuse_too_many(10_000)


def test_a_beam_is_refused_before_it_searches(recorders: list[Watched], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.inference.beam_search.LARGEST", 20_000)
    with pytest.raises(BadSetting, match="beam_size cannot be used: 32"):
        searched(VARIANTS["paper"], 32, 12)
    assert not any("decoder" in name for name in recorders[0]._pieces)


def test_tokens_that_a_network_has_no_positions_for_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen positions: asked for a thousand tokens, a search writes eleven behind a prompt of six."""
    spec = replace(VARIANTS["language model"], end_id=None)
    prompt = len(searched(spec, 4, 1000).tokens["source"]) - 11
    monkeypatch.setattr("model.inference.beam_search.LARGEST", BeamMemory(spec, 4, prompt, 0, KEEP).bytes(11))
    assert len(searched(spec, 4, 1000).steps) == 11
    with pytest.raises(BadSetting):
        searched(spec, 5, 1000)
