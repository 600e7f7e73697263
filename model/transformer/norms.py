"""Relatives of LayerNorm that trained checkpoints use."""

import torch
from torch import Tensor, nn


class UnbiasedNorm(nn.Module):
    """x -> (x - mean) / (deviation + 10⁻⁶) · weight + bias, with the deviation of a sample: n - 1 where LayerNorm divides by n.

    Source: Rush 2018, "The Annotated Transformer", class LayerNorm.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """[..., model] -> [..., model]."""
        deviation = x.std(dim=-1, keepdim=True)
        return (x - x.mean(dim=-1, keepdim=True)) / (deviation + 1e-6) * self.weight + self.bias


def norm_without_bias(d_model: int) -> nn.LayerNorm:
    """LayerNorm that rescales and does not shift."""
    return nn.LayerNorm(d_model, bias=False)
