"""Variants of LayerNorm that some trained checkpoints need, and RMSNorm, which many language models use instead.

LayerNorm brings each position's vector to mean 0 and standard deviation 1, then scales and shifts each column by learned numbers:
(x - mean) / √(variance + ε) · weight + bias. Mean and variance are over the last axis (model), never over other positions.

Source: Ba et al. 2016, "Layer Normalization", equation 4.
"""

import torch
from torch import Tensor, nn


class UnbiasedNorm(nn.Module):
    """x -> (x - mean) / (deviation + 10⁻⁶) · weight + bias, with the sample standard deviation.

    Two differences to LayerNorm: the variance divides by n - 1 instead of n, and ε is added to the deviation, not under the root.

    Source: Rush 2018, "The Annotated Transformer", class LayerNorm.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """[..., model] -> [..., model]."""
        deviation = x.std(dim=-1, keepdim=True)  # [..., 1]; torch divides by n - 1 unless told otherwise
        # Each position [model] is normed by itself: no number of another position enters.
        return (x - x.mean(dim=-1, keepdim=True)) / (deviation + 1e-6) * self.weight + self.bias


class RMSNorm(nn.Module):
    """x -> x / √(mean of x² + ε) · weight: the vector is scaled to a root mean square of 1, and its mean stays as it is.

    LayerNorm centers and scales; its authors ask which of the two helps, and find that scaling alone trains as well. There is no
    bias either, so a norm has half the parameters and one pass over the vector less.

    Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization", equation 4.
    """

    def __init__(self, d_model: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """[..., model] -> [..., model]."""
        mean_square = x.square().mean(dim=-1, keepdim=True)  # [..., 1]
        normed: Tensor = x * torch.rsqrt(mean_square + self.epsilon) * self.weight
        return normed


def norm_without_bias(d_model: int, epsilon: float) -> nn.LayerNorm:
    """LayerNorm with a learned scale and no learned shift."""
    return nn.LayerNorm(d_model, epsilon, bias=False)


def norm_of_a_sample(d_model: int, epsilon: float) -> UnbiasedNorm:
    """UnbiasedNorm, whose own ε is always 10⁻⁶."""
    return UnbiasedNorm(d_model)
