"""What is measured of a tensor of a file."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from model.inspection import TensorInfo


def measured(info: TensorInfo, tensor: Tensor) -> TensorInfo:
    """`info` with the mean, the standard deviation and the Euclidean norm of the tensor's numbers, computed in float64."""
    if not tensor.numel() or tensor.dtype == torch.bool or tensor.is_complex():
        return info
    values = tensor.double()
    found = (values.mean().item(), values.std(correction=0).item(), values.norm().item())
    if not all(map(math.isfinite, found)):
        return info
    return replace(info, mean=found[0], deviation=found[1], norm=found[2])
