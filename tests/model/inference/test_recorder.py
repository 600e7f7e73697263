"""The recorder: what it joins is what it was given."""

import numpy as np
import pytest
import torch

from model.inference.recorder import Recorder


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("one_row", [False, True])
def test_every_name_has_its_own_values(one_row: bool, count: int) -> None:
    recorder, rng = Recorder(keep=("stages",)), np.random.default_rng(0)
    steps = {f"stages/decoder.0.{layer}/sum": rng.normal(size=(count, 1, 4, 8)).astype(np.float32) for layer in range(40)}
    for name, values in steps.items():
        for value in values:
            recorder(name, torch.from_numpy(value))
    for name, array in recorder.arrays(one_row=one_row).items():
        rows = steps[name][:, 0, -1:] if one_row else steps[name][:, 0]
        np.testing.assert_array_equal(array, np.concatenate(rows))
