"""What goes along with a run: recording changes nothing, an intervention changes what follows alone, a batch is its examples."""

from functools import partial

import pytest
import torch
from torch import Tensor

from model.trace.types import Site
from model.transformer.attention import Run
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
    some_ids,
    translate,
    translator,
)

SOURCE, TARGET = torch.tensor([[2, 4, 9, 4, 6, 3, 1]]), torch.tensor([[2, 5, 5, 8, 7]])


@pytest.mark.parametrize("name", TRANSLATORS)
def test_recording_changes_not_one_bit_of_a_translation(name: str) -> None:
    built = translator(VARIANTS[name])
    with torch.inference_mode():
        assert torch.equal(built(SOURCE, TARGET), translate(built, SOURCE, TARGET)["logits"])


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_recording_changes_not_one_bit_of_a_continuation(name: str) -> None:
    built = language_model(VARIANTS[name])
    with torch.inference_mode():
        assert torch.equal(built(TARGET), continue_(built, TARGET)["logits"])


def test_two_runs_through_one_network_know_nothing_of_each_other() -> None:
    built = translator(VARIANTS["two passes"])
    before = {name: value.clone() for name, value in built.state_dict().items()}
    first = translate(built, SOURCE, TARGET)
    translate(built, SOURCE[:, :3], TARGET[:, :2])
    again = translate(built, SOURCE, TARGET)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert all(torch.equal(value, before[name]) for name, value in built.state_dict().items())
    assert not any(isinstance(value, Tensor) for module in built.modules() for value in vars(module).values())


def intervened(built: EncoderDecoder, site: Site, name: str, factor: float) -> Notes:
    """A run in which one value of one site is multiplied."""
    notes = Notes()
    run = Run(notes, {f"attention/{site}/{name}": lambda value, start: value * factor})
    mask = built.source_mask(SOURCE)
    with torch.inference_mode():
        built.decode(TARGET, built.encode(SOURCE, mask, run), mask, run)
    return notes


STAGES = {"weights": ("q", "k", "v", "scores"), "context": ("q", "k", "v", "scores", "weights")}


@pytest.mark.parametrize("site", ["encoder.1.0.self", "decoder.0.1.self", "decoder.1.0.cross"])
@pytest.mark.parametrize("name", STAGES)
def test_an_intervention_changes_what_follows_and_nothing_before(site: str, name: str) -> None:
    built = translator(VARIANTS["two passes"])
    plain = translate(built, SOURCE, TARGET)
    changed = intervened(built, Site.parse(site), name, 0.0)
    assert changed.keys() == plain.keys()
    order = list(plain)
    first = order.index(f"attention/{site}/{name}")
    same = {path for path in order if torch.equal(plain[path], changed[path])}
    earlier = {p for p in order[:first] if not p.startswith(f"attention/{site}/")} | {f"attention/{site}/{n}" for n in STAGES[name]}
    assert earlier <= same
    assert not {f"attention/{site}/{n}" for n in (name, "context", "output")} & same
    assert (changed[f"attention/{site}/{name}"] == 0).all()
    later = [p for p in order[first:] if p.startswith(("hidden/decoder", "logits"))]
    assert later
    assert not set(later) & same


@pytest.mark.parametrize("name", TRANSLATORS)
def test_an_intervention_that_hands_the_value_back_changes_not_one_bit(name: str) -> None:
    built = translator(VARIANTS[name])
    plain = translate(built, SOURCE, TARGET)
    asked = list[str]()

    def hand_back(name: str, value: Tensor, start: int) -> Tensor:
        asked.append(name)
        return value

    notes = Notes()
    mask, run = built.source_mask(SOURCE), Run(notes, {path: partial(hand_back, path) for path in plain})
    with torch.inference_mode():
        built.decode(TARGET, built.encode(SOURCE, mask, run), mask, run)
    assert all(torch.equal(plain[path], notes[path]) for path in plain)
    assert asked == list(plain)


LENGTHS = (5, 1, 9, 2)


def assert_examples_alone(batch: Notes, alone: list[Notes]) -> None:
    """Each example's rows and columns of the batch are those that it has alone."""
    for name in batch:
        for row, single in enumerate(alone):
            found, expected = batch[name][row], single[name][0]
            for axis in (-1, -2):
                if found.shape[axis] != expected.shape[axis]:
                    found = found.narrow(axis, 0, expected.shape[axis])
            assert_close(name, found, expected)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_padded_batch_of_translations_is_each_of_them_alone(name: str) -> None:
    spec = VARIANTS[name]
    assert spec.encoder is not None
    sources = [some_ids(length, spec.encoder.vocab, seed) for seed, length in enumerate(LENGTHS)]
    targets = [some_ids(length, spec.writer.vocab, seed + 9) for seed, length in enumerate(reversed(LENGTHS))]
    built = translator(spec)
    batch = translate(built, padded(sources), padded(targets))
    alone = [translate(built, torch.tensor([s]), torch.tensor([t])) for s, t in zip(sources, targets, strict=True)]
    assert_examples_alone(batch, alone)


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_padded_batch_of_continuations_is_each_of_them_alone(name: str) -> None:
    prompts = [some_ids(length, VARIANTS[name].writer.vocab, seed) for seed, length in enumerate(LENGTHS)]
    built = language_model(VARIANTS[name])
    assert_examples_alone(continue_(built, padded(prompts)), [continue_(built, torch.tensor([p])) for p in prompts])


@pytest.mark.parametrize("name", TRANSLATORS)
def test_more_padding_changes_nothing_and_weighs_nothing(name: str) -> None:
    built = translator(VARIANTS[name])
    short, long = (translate(built, torch.tensor([[2, 4, 9, 3, *[1] * pads]]), TARGET) for pads in (0, 12))
    torch.testing.assert_close(long["logits"], short["logits"], rtol=1e-5, atol=1e-5)
    for path, value in long.items():
        if path.endswith("/weights") and ("encoder" in path or "cross" in path):
            assert (value[..., 4:] == 0).all()


def test_valid_positions_count_in_place_of_the_pad_id() -> None:
    built = translator(VARIANTS["paper"])
    ids = torch.tensor([[2, 1, 9, 3, 8, 8]])
    notes = translate(built, ids, TARGET, valid=torch.tensor([4]))
    assert notes["attention/decoder.0.0.cross/mask"][0, 0].tolist() == [[True] * 4 + [False] * 2] * 5
    assert (notes["attention/decoder.0.0.cross/weights"][..., 1] > 0).all()
    other = translate(built, torch.tensor([[2, 1, 9, 3, 5, 6]]), TARGET, valid=torch.tensor([4]))
    torch.testing.assert_close(notes["logits"], other["logits"], rtol=0, atol=1e-6)
