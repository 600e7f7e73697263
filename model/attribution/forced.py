"""Forced: the target fed to copies of one run, and what the network says of its tokens."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

ROW_CHUNK, VOCAB_CHUNK = 1024, 256
"""Rows, and words of the vocabulary, whose logits are held at once: 1 MiB, which stays in a processor's cache."""

FEW_LOGITS = 2**16
"""Logits that are held at once where there are few rows: more words a product, since each product costs a call."""


class Forced(Protocol):
    """The network's log-probabilities of the measured tokens, given the tokens before them."""

    def log_probabilities(self) -> Tensor:
        """[row, token]."""

    def with_likeliest(self) -> Tensor:
        """[2, row, token]: the log-probabilities, and the ids of the likeliest token at each place."""


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

    def with_likeliest(self) -> Tensor:
        """[2, row, token]: the log-probabilities, and the ids of the likeliest token at each place."""
        return torch.stack([self.log_probabilities().double(), self.logits.argmax(dim=-1).double()])


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
        sums = [torch.stack([_log_sum_exp(logits) for logits in self._chunks(states)]).logsumexp(dim=0) for states in self._rows()]
        return self._own() - torch.cat(sums).view_as(self.states[..., 0])

    def with_likeliest(self) -> Tensor:
        """[2, row, token]: the log-probabilities, and the ids of the likeliest token at each place, from the same logits."""
        sums, ids = list[Tensor](), list[Tensor]()
        for states in self._rows():
            parts = [(*logits.max(dim=-1), _log_sum_exp(logits)) for logits in self._chunks(states)]
            values, places, own = (torch.stack(part) for part in zip(*parts, strict=True))
            chunk = values.argmax(dim=0)
            sums.append(own.logsumexp(dim=0))
            ids.append(places.gather(0, chunk[None])[0] + self._words(len(states)) * chunk)
        found = self._own() - torch.cat(sums).view_as(self.states[..., 0])
        return torch.stack([found.double(), torch.cat(ids).view(self.states.shape[:2]).double()])

    def _own(self) -> Tensor:
        """[row, token]: the token's own logit."""
        own = (self.states * self.output.weight[self.following]).sum(dim=-1)
        return (own if self.output.bias is None else own + self.output.bias[self.following]).float()

    def _rows(self) -> Iterator[Tensor]:
        """States [row, model], some at a time."""
        yield from self.states.flatten(0, 1).split(ROW_CHUNK)

    def _words(self, rows: int) -> int:
        """How many words' logits are held at once."""
        return min(len(self.output.weight), max(VOCAB_CHUNK, FEW_LOGITS // rows))

    def _chunks(self, states: Tensor) -> Iterator[Tensor]:
        """Logits [row, word] of some words at a time, all in the same memory: fresh memory costs as much as the product."""
        weight, bias, words = self.output.weight, self.output.bias, self._words(len(states))
        held = states.new_empty(len(states) * words)
        for begin in range(0, len(weight), words):
            part = weight[begin : begin + words]
            logits = held[: len(states) * len(part)].view(len(states), len(part))
            if bias is None:
                yield torch.mm(states, part.T, out=logits)
            else:
                yield torch.addmm(bias[begin : begin + words], states, part.T, out=logits)


def _log_sum_exp(logits: Tensor) -> Tensor:
    """log Σ exp [row] of logits [row, word]: a logit minus its logarithmic share, both of the first word. Overwrites `logits`."""
    logits = logits.float()
    first = logits[:, 0].clone()
    return first - torch.log_softmax(logits, dim=-1, out=logits)[:, 0]
