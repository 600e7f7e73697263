"""What a question about a network is answered with, and within which limits."""

from dataclasses import dataclass

import torch

from model.inference.calls import Ask, alone
from model.requests.inputs import POSITIONS
from model.trace.progress import OnCount, ignore_count

BATCH_BYTES = 128 * 2**20
"""Memory that one batch of copies may take where the configuration says nothing else."""


@dataclass(frozen=True)
class Resources:
    """What a question about a network is answered with, and within which limits.

    Attributes:
        device: of the network.
        ask: answers calls of the network.
        most: positions of an input that are read.
        most_bytes: memory of one batch of copies, where a question makes copies.
        on_count: called with the number of copies or texts measured so far, and of all.
    """

    # Defaults are those of a question that is asked by itself: computed at once, of any length, without anybody who watches.
    device: torch.device
    ask: Ask = alone
    most: int = POSITIONS
    most_bytes: int = BATCH_BYTES
    on_count: OnCount = ignore_count
