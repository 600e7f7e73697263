"""Positional encodings against the paper's formula, worked out in Python's own float64."""

import math

import pytest
import torch
from torch import nn

from model.errors import TooManyTokens
from model.transformer.cache import Cache, KVCache
from model.transformer.positions import LearnedPositions, NoPositions, SinusoidalPositions, sinusoids
from tests.networks import VARIANTS, Notes, continue_, language_model, translate, translator

FARTHEST = 5000


@pytest.mark.parametrize("d_model", [1, 2, 7, 10, 65])
def test_sinusoids_follow_the_formula_up_to_far_positions_and_at_odd_widths(d_model: int) -> None:
    positions = [0, 1, 2, 3, 10, 99, 100, 511, 512, 1023, 2500, FARTHEST - 1, FARTHEST]
    found = sinusoids(torch.tensor(positions), d_model)
    assert found.shape == (len(positions), d_model)
    assert found.dtype == torch.float32
    for row, position in enumerate(positions):
        for column in range(d_model):
            angle = position / math.pow(10000, (column - column % 2) / d_model)
            expected = math.cos(angle) if column % 2 else math.sin(angle)
            assert found[row, column].item() == pytest.approx(expected, abs=1e-7)


def test_every_position_of_a_long_table_is_on_the_unit_circle() -> None:
    table = SinusoidalPositions(FARTHEST, 6).rows(0, FARTHEST).double()
    torch.testing.assert_close(table[:, 0::2] ** 2 + table[:, 1::2] ** 2, torch.ones(FARTHEST, 3).double(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("d_model", [6, 7])
def test_a_column_repeats_after_its_wavelength(d_model: int) -> None:
    for column in range(d_model):
        wavelength = 2 * math.pi * 10000 ** ((column - column % 2) / d_model)
        there = sinusoids(torch.tensor([3.0, 3.0 + wavelength, 3.0 + wavelength / 2], dtype=torch.float64), d_model)[:, column]
        assert there[1].item() == pytest.approx(there[0].item(), abs=1e-6)
        assert there[2].item() == pytest.approx(-there[0].item(), abs=1e-6)


def test_a_shift_is_one_rotation_whatever_the_position() -> None:
    table = sinusoids(torch.arange(400), 2).double()
    turn = torch.tensor([[math.cos(5), -math.sin(5)], [math.sin(5), math.cos(5)]], dtype=torch.float64)
    torch.testing.assert_close(table[5:], table[:-5] @ turn, rtol=0, atol=1e-6)


def test_learned_positions_are_rows_of_their_parameter() -> None:
    learned = LearnedPositions(9, 4)
    nn.init.normal_(learned.weight)
    assert torch.equal(learned.rows(3, 2), learned.weight[3:5])
    assert [name for name, _ in learned.named_parameters()] == ["weight"]


def test_no_positions_add_zeros() -> None:
    assert torch.equal(NoPositions(9, 4).rows(2, 3), torch.zeros(3, 4))


@pytest.mark.parametrize("kind", [SinusoidalPositions, NoPositions])
def test_what_a_formula_gives_is_no_part_of_a_checkpoint(kind: type[SinusoidalPositions | NoPositions]) -> None:
    assert kind(9, 4).state_dict() == {}


def run(name: str, ids: torch.Tensor, cache: Cache, start: int) -> Notes:
    if VARIANTS[name].encoder is None:
        return continue_(language_model(VARIANTS[name]), ids, cache, start)
    return translate(translator(VARIANTS[name]), ids[:, :4], ids, cache=cache, start=start)


@pytest.mark.parametrize("name", VARIANTS)
def test_an_input_beyond_the_last_position_is_refused_never_stretched(name: str) -> None:
    for start in (0, 15, 16):
        with pytest.raises(
            TooManyTokens, match=r"The longest text .* 17 tokens, but the limit is 16: the model has no more positions"
        ):
            run(name, torch.full((2, 17), 5), KVCache(), start)


def test_the_last_position_is_usable_in_a_cached_step() -> None:
    built, cache, ids = language_model(VARIANTS["language model"]), KVCache(), torch.full((1, 16), 5)
    continue_(built, ids[:, :15], cache)
    assert continue_(built, ids, cache, start=15)["logits"].shape == (1, 1, 17)
