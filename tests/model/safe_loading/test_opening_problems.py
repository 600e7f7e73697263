"""What is said of numbers that are read, but that are not what one expects of weights."""

from typing import Any

import pytest
import torch

from model.safe_loading.reader import OpenedFile, read_upload
from tests.model.safe_loading.forge import saved


def opened(value: Any) -> OpenedFile:
    return read_upload(saved(value), "weights.pt")


def test_numbers_that_are_not_finite_are_counted() -> None:
    weight = torch.ones(2, 3)
    weight[0, 0], weight[1, 2] = float("nan"), float("-inf")
    (problem,) = opened({"model": {"weight": weight, "steps": torch.tensor(3)}}).problems
    assert problem.fields == {"candidate": "model", "tensor": "weight", "nan": 1, "infinite": 1, "count": 6}
    assert (
        str(problem)
        == "The tensor weight has 6 numbers, of which 1 are NaN and 1 infinite: whatever uses them is not finite either."
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "float8_e4m3fn", "float64", "complex64"])
def test_numbers_other_than_float32_are_reported(dtype: str) -> None:
    (problem,) = opened({"weight": torch.ones(2, 2).to(getattr(torch, dtype)), "bias": torch.ones(2)}).problems
    assert problem.fields == {"candidate": "", "count": 1, "total": 2, "dtype": dtype}
    assert str(problem) == f"1 of 2 tensors are stored as {dtype}, not as float32."


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2", "complex64"])
def test_not_finite_numbers_are_counted_in_every_kind(dtype: str) -> None:
    weight = torch.tensor([[1.0, float("nan")]]).to(getattr(torch, dtype))
    assert [problem.fields.get("nan") for problem in opened({"weight": weight}).problems] == [None, 1]


def test_large_numbers_whose_sum_is_not_finite_are_finite() -> None:
    assert opened({"weight": torch.full((2, 2), torch.finfo(torch.float32).max)}).problems == ()
    inf = float("inf")
    (problem,) = opened({"weight": torch.tensor([[inf, -inf], [1.0, 2.0]])}).problems
    assert (problem.fields["nan"], problem.fields["infinite"]) == (0, 2)
