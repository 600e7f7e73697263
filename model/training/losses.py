"""Losses of training and validation, in nats per predicted token."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from model.training.data import PAD_ID, Batch, Pair, batches


def cross_entropy(logits: Tensor, batch: Batch, smoothing: float) -> Tensor:
    """Mean cross entropy of `logits` [batch, query, vocab] over all predicted tokens, without padding.

    Args:
        smoothing: label smoothing, the share of the target probability that is spread over the vocabulary.

    Source: Szegedy et al. 2016, "Rethinking the Inception Architecture", section 7, for the smoothing.
    """
    return nn.functional.cross_entropy(
        logits.float().flatten(0, 1), batch.following.flatten(), ignore_index=PAD_ID, label_smoothing=smoothing
    )


def divergence(logits: Tensor, batch: Batch) -> Tensor:
    """Distance between the predictions for the two halves of a batch, which hold the same sentences (with different dropout).

    It is the mean of both Kullback-Leibler divergences, Σ (p - q)(log p - log q) / 2.

    Args:
        logits: [batch, query, vocab].

    Source: Liang et al. 2021, "R-Drop", equation 2.
    """
    one, other = (
        half[real].float().log_softmax(-1) for half, real in zip(logits.chunk(2), (batch.following != PAD_ID).chunk(2), strict=True)
    )
    return ((one.exp() - other.exp()) * (one - other)).sum(-1).mean() / 2


def validation_loss(network: nn.Module, pairs: Sequence[Pair], device: torch.device, size: int = 128) -> float:
    """Mean cross entropy over all predicted tokens of `pairs`, end tokens included, without label smoothing and dropout."""
    network.eval()
    total, count = 0.0, 0
    with torch.inference_mode():
        for batch in batches(pairs, size):
            on = batch.to(device)
            total += float(cross_entropy(network(*on.fed), on, 0.0)) * batch.predicted
            count += batch.predicted
    return total / count
