"""Forced: the target fed to copies of one run, and what the network says of its tokens."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

ROW_CHUNK, VOCAB_CHUNK = 1024, 256
"""Rows, and words of the vocabulary, whose logits are held at once: 1 MiB, which stays in a processor's cache."""


class Forced(Protocol):
    """What the network says of the measured tokens, whose predecessors it was fed."""

    def log_probabilities(self) -> Tensor:
        """[row, token]."""

    def likeliest(self) -> Tensor:
        """Ids [row, token] of the likeliest token at each place."""


@dataclass(frozen=True, eq=False)
class ForcedLogits:
    """Logits that the network computed by itself.

    Attributes:
        logits: [row, token, vocab], of the rows that predict the measured tokens.
        following: [token], their ids.
    """

    logits: Tensor
    following: Tensor

    def log_probabilities(self) -> Tensor:
        """[row, token]."""
        found = self.logits.float().log_softmax(dim=-1)
        return found.gather(-1, self.following.expand(len(found), -1)[..., None])[..., 0]

    def likeliest(self) -> Tensor:
        """Ids [row, token] of the likeliest token at each place."""
        return self.logits.argmax(dim=-1)


@dataclass(frozen=True, eq=False)
class ForcedStates:
    """Last states, from which the logits are computed some words of the vocabulary at a time and summed up at once.

    Without gradients.

    Attributes:
        states: [row, token, model], of the rows that predict the measured tokens.
        output: the output layer.
        following: [token], their ids.
    """

    states: Tensor
    output: nn.Linear
    following: Tensor

    def log_probabilities(self) -> Tensor:
        """[row, token]: the token's own logit minus log Σ exp over all logits."""
        own = (self.states * self.output.weight[self.following]).sum(dim=-1)
        if self.output.bias is not None:
            own = own + self.output.bias[self.following]
        parts = [
            [_log_sum_exp(logits.float()) for logits in self._chunks(states)]
            for states in self.states.flatten(0, 1).split(ROW_CHUNK)
        ]
        sums = torch.cat([torch.stack(part).logsumexp(dim=0) for part in parts])
        return own.float() - sums.view_as(own)

    def likeliest(self) -> Tensor:
        """Ids [row, token] of the likeliest token at each place."""
        found = [self._likeliest(states) for states in self.states.flatten(0, 1).split(ROW_CHUNK)]
        return torch.cat(found).view(self.states.shape[:2])

    def _likeliest(self, states: Tensor) -> Tensor:
        values, places = zip(*(logits.max(dim=-1) for logits in self._chunks(states)), strict=True)
        chunk = torch.stack(values).argmax(dim=0)
        return torch.stack(places).gather(0, chunk[None])[0] + VOCAB_CHUNK * chunk

    def _chunks(self, states: Tensor) -> Iterator[Tensor]:
        """Logits [row, word] of VOCAB_CHUNK words at a time, all in the same memory: fresh memory costs as much as the product."""
        weight, bias = self.output.weight, self.output.bias
        held = states.new_empty(len(states) * VOCAB_CHUNK)
        for begin in range(0, len(weight), VOCAB_CHUNK):
            part = weight[begin : begin + VOCAB_CHUNK]
            logits = held[: len(states) * len(part)].view(len(states), len(part))
            if bias is None:
                yield torch.mm(states, part.T, out=logits)
            else:
                yield torch.addmm(bias[begin : begin + VOCAB_CHUNK], states, part.T, out=logits)


def _log_sum_exp(logits: Tensor) -> Tensor:
    """log Σ exp [row] of logits [row, word]: a logit minus its logarithmic share, both of the first word. Overwrites `logits`."""
    first = logits[:, 0].clone()
    return first - torch.log_softmax(logits, dim=-1, out=logits)[:, 0]
