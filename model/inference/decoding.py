"""Decoding: loops that write a target token by token and make a Step for each.

They call the network through one function, `read(ids, start)`, which returns the logits after each position from `start` on;
earlier positions are in the cache that `read` uses. Greedy decoding, sampling and teacher forcing follow one hypothesis, beam
search several.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from model.inference.draft import Draft
from model.spec.request import Decoding
from model.trace.beam_tree import Fate, Node
from model.trace.steps import Candidate, Step

Read: TypeAlias = Callable[[Tensor, int], Tensor]
"""ids [batch, position], first position to compute -> logits [batch, query, vocab]."""

CANDIDATES = 8
"""Number of likeliest tokens in a Step."""


def log_probabilities_of(logits: Tensor) -> Tensor:
    """Natural log-probabilities of logits [..., vocab], as float32 on the CPU."""
    return logits.float().log_softmax(dim=-1).cpu()


def certain(logits: Tensor) -> Tensor:
    """Log-probabilities [..., vocab] under a softmax over the batch axis: with one example, each probability is 1.

    Reference document 003 computes this (docs/references.md).
    """
    return torch.zeros_like(logits, dtype=torch.float32, device="cpu")


@dataclass(frozen=True)
class Writer:
    """Everything that decoding needs, except for the network.

    Attributes:
        text_of: returns the text of an id.
        end_id: id of the end token; None: there is none.
        suppressed: ids that are never chosen.
        limit: number of positions in the stack, and so the most tokens that it can read.
        normalise: turns logits [..., vocab] into natural log-probabilities, float32 on the CPU.
    """

    text_of: Callable[[int], str]
    end_id: int | None
    suppressed: tuple[int, ...]
    limit: int
    normalise: Callable[[Tensor], Tensor] = log_probabilities_of

    def step(self, index: int, chosen: int, log_probabilities: Tensor, computed: tuple[int, int]) -> Step:
        """The Step that chose the token `chosen`, given the model's `log_probabilities` [vocab]."""
        likeliest = log_probabilities.topk(min(CANDIDATES, len(log_probabilities)))
        pairs = zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
        candidates = tuple(Candidate(id_, self.text_of(id_), value) for id_, value in pairs)
        taken = Candidate(chosen, self.text_of(chosen), log_probabilities[chosen].item())
        return Step(index, taken, candidates, computed)


def forced(read: Read, ids: Sequence[int], writer: Writer, device: torch.device, last: int | None = None) -> list[Step]:
    """Teacher forcing: the network reads all of `ids` at once, and each step's token is the next one in `ids`.

    Args:
        last: one more token, which is predicted but not read (the end token of a typed target).
    """
    log_probabilities = writer.normalise(read(torch.tensor([list(ids)], device=device), 0)[0])  # [query, vocab]
    following = [*ids[1:], *([] if last is None else [last])]
    return [writer.step(i, token, log_probabilities[i], (i, i + 1)) for i, token in enumerate(following)]


def greedy(log_probabilities: Tensor) -> int:
    """The likeliest token, given log-probabilities [vocab]; the first of equally likely ones."""
    return int(log_probabilities.argmax())


def sampler(decoding: Decoding) -> Callable[[Tensor], int]:
    """A function that samples a token: divides logits by the temperature, keeps the top k, then the smallest set that holds top_p.

    Nothing can be sampled where logits are NaN: the token is then `greedy`'s, so that the run ends and can be inspected.

    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", section 3.1, for top-p.
    """
    generator = torch.Generator().manual_seed(decoding.seed)

    def choose(log_probabilities: Tensor) -> int:
        if log_probabilities.isnan().any():
            return greedy(log_probabilities)
        probabilities, order = (log_probabilities / decoding.temperature).softmax(dim=-1).sort(descending=True, stable=True)
        if decoding.top_k:
            probabilities[decoding.top_k :] = 0
        probabilities /= probabilities.sum()
        before = probabilities.cumsum(0) - probabilities  # [vocab], the probability of all likelier tokens together
        probabilities[before >= decoding.top_p] = 0
        return int(order[torch.multinomial(probabilities, 1, generator=generator)])

    return choose


def write(
    read: Read,
    prompt: Sequence[int],
    choose: Callable[[Tensor], int],
    max_length: int,
    writer: Writer,
    device: torch.device,
    begin: Sequence[int] = (),
    draft: Draft | None = None,
) -> Iterator[tuple[Step, ...]]:
    """Follows one hypothesis: reads the new tokens, chooses the next one, appends it; until the end token or a limit of length.

    Args:
        begin: the first tokens, which are not chosen.
        draft: guesses tokens that are read in one pass with the newest one; None: each pass writes one token.

    Yields:
        The steps of each pass.
    """
    ids, start, written, draft = list(prompt), 0, 0, draft or Draft()
    while written < max_length:
        # The prompt is read by itself: its first token then appears as soon as without guesses.
        guess = draft.after(ids, min(max_length - written - 1, writer.limit - len(ids))) if start else []
        logits = read(torch.tensor([ids + guess], device=device), start)[0, -1 - len(guess) :]  # [1 + guessed, vocab]
        steps: list[Step] = []
        for log_probabilities, guessed in zip(writer.normalise(logits), [*guess, None], strict=True):
            index = written + len(steps)
            chosen = begin[index] if index < len(begin) else choose(_suppress(log_probabilities, writer.suppressed))
            steps.append(writer.step(index, chosen, log_probabilities, (start, len(ids))))
            start = len(ids)
            ids.append(chosen)
            if chosen != guessed or chosen == writer.end_id:  # the rows after it were computed from tokens that were not written
                break
        draft.settle(len(steps) - 1)
        written += len(steps)
        yield tuple(steps)
        if ids[-1] == writer.end_id or len(ids) > writer.limit:
            return


def _suppress(log_probabilities: Tensor, suppressed: Sequence[int]) -> Tensor:
    """A copy in which the suppressed ids have log-probability -inf."""
    return log_probabilities.index_fill(-1, torch.tensor(suppressed, dtype=torch.int64), -torch.inf)


def _only(log_probabilities: Tensor, token: int) -> Tensor:
    """A copy in which all other ids have log-probability -inf."""
    others = torch.arange(log_probabilities.shape[-1]) != token
    return log_probabilities.masked_fill(others, -torch.inf)


@dataclass(frozen=True)
class Hypothesis:
    """One text that beam search follows or has finished.

    Attributes:
        ids: its ids, prompt included.
        log_probability: sum of the log-probabilities of the tokens written.
        steps: its steps, one for each token written.
        lineage: its batch row in each decoder step.
        node: index of its last node in the tree of the search; -1: the prompt.
    """

    ids: tuple[int, ...]
    log_probability: float = 0.0
    steps: tuple[Step, ...] = ()
    lineage: tuple[int, ...] = ()
    node: int = -1

    @property
    def mean_log_probability(self) -> float:
        """Mean log-probability of the tokens written: ranks finished hypotheses of different lengths."""
        return self.log_probability / max(1, len(self.steps))


def beam(
    read: Read,
    select: Callable[[Tensor], None],
    prune: Callable[[list[tuple[int, ...]]], None],
    prompt: Sequence[int],
    size: int,
    max_length: int,
    writer: Writer,
    device: torch.device,
    told: Callable[[Hypothesis], None] = lambda best: None,
    begin: Sequence[int] = (),
) -> tuple[list[Hypothesis], tuple[Node, ...]]:
    """Beam search: each step keeps the `size` likeliest continuations of all hypotheses. One that ends leaves the beam.

    Args:
        select: called with the batch rows that go on, in their new order, so that the cache follows.
        prune: called after each step with the lineages of all hypotheses that can still be shown, so that the recorder frees the
            rows of the others.
        told: called after each step with the best hypothesis so far: the one returned if the search ended there.
        begin: the first tokens, the same in all hypotheses.

    Returns:
        The finished hypotheses, or the unfinished ones if none has ended, best mean log-probability first; and the tree of all
            continuations that were considered.

    Source: Graves 2012, "Sequence Transduction with Recurrent Neural Networks", section 3; ranked by mean as in Wu et al. 2016,
        equation 14, with α = 1.
    """
    alive, finished, start = [Hypothesis(tuple(prompt))], list[Hypothesis](), 0
    tree: list[Node] = []
    for index in range(max_length):
        logits = read(torch.tensor([h.ids for h in alive], device=device), start)[:, -1]  # [hypothesis, vocab]
        log_probabilities = writer.normalise(logits)
        computed = (start, len(alive[0].ids))
        allowed = _only(log_probabilities, begin[index]) if index < len(begin) else _suppress(log_probabilities, writer.suppressed)
        grown = _continuations(alive, log_probabilities, allowed, 2 * size, index, computed, writer, len(tree))
        ended = [h for h in grown[:size] if h.ids[-1] == writer.end_id]
        start = len(alive[0].ids)
        parents, alive = alive, [h for h in grown if h.ids[-1] != writer.end_id][:size]
        finished += ended
        fates: dict[int, Fate] = dict.fromkeys([h.node for h in ended], "finished")
        fates |= dict.fromkeys([h.node for h in alive], "kept")
        tree += _nodes(grown, parents, fates)
        prune([h.lineage for h in alive + finished])
        told(max(finished or alive, key=lambda h: h.mean_log_probability, default=Hypothesis(tuple(prompt))))
        if not alive or len(finished) >= size or len(alive[0].ids) > writer.limit:
            break
        select(torch.tensor([h.lineage[-1] for h in alive], device=device))
    ranked = sorted(finished or alive, key=lambda h: -h.mean_log_probability)
    for rank, hypothesis in enumerate(ranked):
        tree[hypothesis.node] = replace(tree[hypothesis.node], rank=rank)
    return ranked, tuple(tree)


def _nodes(grown: Sequence[Hypothesis], parents: Sequence[Hypothesis], fates: dict[int, Fate]) -> list[Node]:
    """The continuations of one step as nodes of the tree; those not in `fates` were pruned."""
    return [
        Node(
            step=h.steps[-1].index,
            parent=parents[h.lineage[-1]].node,
            id=h.ids[-1],
            text=h.steps[-1].chosen.text,
            log_probability=h.steps[-1].chosen.log_probability,
            total=h.log_probability,
            fate=fates.get(h.node, "pruned"),
        )
        for h in grown
    ]


def _continuations(
    alive: Sequence[Hypothesis],
    log_probabilities: Tensor,
    allowed: Tensor,
    count: int,
    index: int,
    computed: tuple[int, int],
    writer: Writer,
    first: int,
) -> list[Hypothesis]:
    """The `count` likeliest one-token continuations of all hypotheses, likeliest first; nodes are counted from `first`.

    `allowed` [hypothesis, vocab] are `log_probabilities` with -inf for tokens that may not follow.
    """
    so_far = torch.tensor([h.log_probability for h in alive])
    totals = so_far[:, None] + allowed  # [hypothesis, vocab]
    best = totals.flatten().topk(min(count, totals.numel()))
    grown: list[Hypothesis] = []
    for total, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        if total == -torch.inf:
            break
        row, token = divmod(place, totals.shape[1])
        step = writer.step(index, token, log_probabilities[row], computed)
        parent = alive[row]
        ids, steps, lineage = (*parent.ids, token), (*parent.steps, step), (*parent.lineage, row)
        grown.append(Hypothesis(ids, total, steps, lineage, first + len(grown)))
    return grown
