"""Decoding: loops that write a target token by token and make a Step for each.

They have the network read ids from a position on and get the logits after each; earlier positions are in the cache. Greedy
decoding, sampling and teacher forcing follow one hypothesis, beam search several.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, repeat
from typing import TypeAlias

import torch
from torch import Tensor

from model.inference.draft import Draft
from model.spec.request import Decoding
from model.trace.beam_tree import Fate, Node
from model.trace.steps import Candidate, Step

Read: TypeAlias = Callable[[Tensor, int], Tensor]
"""ids [batch, position], first position to compute -> logits [batch, query, vocab]."""

Choose: TypeAlias = Callable[[Tensor], Iterator[int]]
"""Log-probabilities [query, vocab] -> the token that each row chooses; a row chooses only when its token is asked for."""

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
        texts_of: returns the texts of ids.
        end_id: id of the end token; None: there is none.
        suppressed: ids that are never chosen.
        limit: number of positions in the stack, and so the most tokens that it can read.
        normalise: turns logits [..., vocab] into natural log-probabilities, float32 on the CPU.
    """

    texts_of: Callable[[Sequence[int]], Sequence[str]]
    end_id: int | None
    suppressed: tuple[int, ...]
    limit: int
    normalise: Callable[[Tensor], Tensor] = log_probabilities_of

    def steps(
        self, indices: Iterable[int], chosen: Sequence[int], log_probabilities: Tensor, computed: Iterable[tuple[int, int]]
    ) -> list[Step]:
        """The Steps of rows that each chose a token, given the model's `log_probabilities` [row, vocab].

        Args:
            indices, chosen, computed: for each row, the index of its step, its token, and the positions computed for it.
        """
        likeliest = log_probabilities.topk(min(CANDIDATES, log_probabilities.shape[-1]))
        tokens = torch.tensor(chosen, dtype=torch.int64)[:, None]
        ids = torch.cat([tokens, likeliest.indices], dim=1).tolist()  # [row, 1 + candidate]: the token comes first
        values = torch.cat([log_probabilities.gather(1, tokens), likeliest.values], dim=1).tolist()
        texts = iter(self.texts_of([id_ for row in ids for id_ in row]))
        steps: list[Step] = []
        for index, places, row, of_row in zip(indices, computed, ids, values, strict=False):  # indices may go on for ever
            taken, *candidates = (Candidate(id_, next(texts), value) for id_, value in zip(row, of_row, strict=True))
            steps.append(Step(index, taken, tuple(candidates), places))
        return steps


def forced(read: Read, ids: Sequence[int], writer: Writer, device: torch.device, last: int | None = None) -> list[Step]:
    """Teacher forcing: the network reads all of `ids` at once, and each step's token is the next one in `ids`.

    Args:
        last: one more token, which is predicted but not read (the end token of a typed target).
    """
    log_probabilities = writer.normalise(read(torch.tensor([list(ids)], device=device), 0)[0])  # [query, vocab]
    following = [*ids[1:], *([] if last is None else [last])]
    places = [(i, i + 1) for i in range(len(following))]
    return writer.steps(count(), following, log_probabilities[: len(following)], places)


def greedy(log_probabilities: Tensor) -> Iterator[int]:
    """The likeliest token of each row, given log-probabilities [query, vocab]; the first of equally likely ones."""
    return iter(log_probabilities.argmax(dim=-1).tolist())


def sampler(decoding: Decoding) -> Choose:
    """A function that samples tokens: divides logits by the temperature, keeps the top k, then the smallest set that holds top_p.

    Nothing can be sampled where logits are NaN: the token is then `greedy`'s, so that the run ends and can be inspected.

    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", section 3.1, for top-p.
    """
    generator = torch.Generator().manual_seed(decoding.seed)

    def sample(log_probabilities: Tensor) -> int:
        if log_probabilities.isnan().any():
            return next(greedy(log_probabilities[None]))
        probabilities, order = (log_probabilities / decoding.temperature).softmax(dim=-1).sort(descending=True, stable=True)
        if decoding.top_k:
            probabilities[decoding.top_k :] = 0
        probabilities /= probabilities.sum()
        before = probabilities.cumsum(0) - probabilities  # [vocab], the probability of all likelier tokens together
        probabilities[before >= decoding.top_p] = 0
        return int(order[torch.multinomial(probabilities, 1, generator=generator)])

    return lambda log_probabilities: map(sample, log_probabilities)


def chooser(decoding: Decoding) -> Choose:
    """How a decode of one hypothesis chooses its tokens."""
    return sampler(decoding) if decoding.method == "sample" else greedy


def write(
    prompt: Sequence[int],
    choose: Choose,
    max_length: int,
    writer: Writer,
    device: torch.device,
    begin: Sequence[int] = (),
    draft: Draft | None = None,
    told: Callable[[list[Step]], None] = lambda steps: None,
) -> Generator[tuple[Tensor, int], Tensor, None]:
    """Follows one hypothesis: reads the new tokens, chooses the next one, appends it; until the end token or a limit of length.

    Args:
        begin: the first tokens, which are not chosen.
        draft: guesses tokens that are read in one pass with the newest one; None: each pass writes one token.
        told: called after each pass with its steps.

    Yields:
        What to read, the arguments of a Read; its logits are to be sent. So the loop needs no thread that waits for them.
    """
    ids, start, written, draft = list(prompt), 0, 0, draft or Draft()
    while written < max_length:
        guess = draft.after(ids, min(max_length - written - 1, writer.limit - len(ids)))
        logits = (yield torch.tensor([ids + guess], device=device), start)[0, -1 - len(guess) :]  # [1 + guessed, vocab]
        log_probabilities, given = writer.normalise(logits), begin[written:]
        choices = chain(given, choose(_suppress(log_probabilities, writer.suppressed)[len(given) :]))
        chosen: list[int] = []
        for guessed, token in zip([*guess, None], choices, strict=False):
            chosen.append(token)
            if token != guessed or token == writer.end_id:  # the rows after it were computed from tokens that were not written
                break
        ends = range(len(ids), len(ids) + len(chosen))
        steps = writer.steps(count(written), chosen, log_probabilities[: len(chosen)], zip([start, *ends], ends, strict=False))
        start = ends[-1]
        ids += chosen
        draft.settle(len(chosen) - 1)
        written += len(chosen)
        told(steps)
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
    places = [divmod(place, totals.shape[1]) for place in best.indices.tolist()]
    found = [(total, *place) for total, place in zip(best.values.tolist(), places, strict=True) if total != -torch.inf]
    rows, tokens = [row for _, row, _ in found], [token for _, _, token in found]
    newest = writer.steps(repeat(index), tokens, log_probabilities[rows], repeat(computed))
    grown: list[Hypothesis] = []
    for (total, row, token), step in zip(found, newest, strict=True):
        parent = alive[row]
        ids, steps, lineage = (*parent.ids, token), (*parent.steps, step), (*parent.lineage, row)
        grown.append(Hypothesis(ids, total, steps, lineage, first + len(grown)))
    return grown
