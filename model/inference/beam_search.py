"""Beam search: decoding that follows several hypotheses at once; and the limit of its memory.

Each step computes a row for each hypothesis. A row stays in memory while some hypothesis that can still be shown goes back to it
(`Recorder.prune`). Most hypotheses soon share their earlier rows, but how soon depends on the text. `BeamMemory` assumes that they
share none, so a wide beam over a large vocabulary may be refused although it would have fitted.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import torch
from torch import Tensor

from model.errors import DoesNotFit, phrase
from model.inference.decoding import Read, Writer, only
from model.requests.external import AnySpec
from model.requests.network import StackSpec
from model.requests.request import Keep
from model.trace.beam_tree import Fate, Node
from model.trace.steps import Step
from model.trace.types import sites


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
    on_best: Callable[[Hypothesis], None] = lambda best: None,
    begin: Sequence[int] = (),
) -> tuple[list[Hypothesis], tuple[Node, ...]]:
    """Beam search: each step keeps the `size` likeliest continuations of all hypotheses. One that ends leaves the beam.

    A step of a search of `size` 2, where A and B are alive and `.` ends a text. Numbers are the log-probabilities of whole texts:

        A −0.5 ── A x −0.9    kept: the likeliest
               └─ A y −2.0    kept: the second of those that go on
        B −0.8 ── B . −1.0    finished: it is among the 2 likeliest, and leaves the beam
               └─ B z −2.4    pruned

    Of all continuations the 2 · `size` likeliest are looked at, so that `size` of them go on even if all others end. One that ends
    outside the `size` likeliest is pruned. The cache has a row for each hypothesis: here both that go on continue row 0, so
    `select([0, 0])` copies it, and `lineage` is (…, 0) in both.

    Args:
        select: called with the batch rows that go on, in their new order, so that the cache follows.
        prune: called after each step with the lineages of all hypotheses that can still be shown, so that the recorder frees the
            rows of the others.
        on_best: called after each step with the best hypothesis so far: the one returned if the search ended there.
        begin: the first tokens, the same in all hypotheses.

    Returns:
        The finished hypotheses, or the unfinished ones if none has ended, best mean log-probability first; and the tree of all
            continuations that were considered.

    Source: Graves 2012, "Sequence Transduction with Recurrent Neural Networks", section 3; ranked by mean as in Wu et al. 2016,
        equation 14, with α = 1.
    """
    # One hypothesis at first, the prompt; the first step makes `size` of it.
    alive, finished, start = [Hypothesis(tuple(prompt))], list[Hypothesis](), 0
    tree: list[Node] = []
    for index in range(max_length):
        # All hypotheses have the same length: those that ended are no longer among them.
        logits = read(torch.tensor([h.ids for h in alive], device=device), start)[:, -1]  # [hypothesis, vocab]
        log_probabilities = writer.normalise(logits)
        computed = (start, len(alive[0].ids))
        allowed = only(log_probabilities, begin[index : index + 1]) if begin[index:] else writer.allowed(log_probabilities, index)
        # Twice as many as go on: even if `size` of them end, as many are left.
        grown = _continuations(alive, log_probabilities, allowed, 2 * size, index, computed, writer, len(tree))
        # What ends among the `size` likeliest is finished; elsewhere it would displace a likelier text that goes on.
        ended = [h for h in grown[:size] if h.ids[-1] in writer.ends]
        start = len(alive[0].ids)
        parents, alive = alive, [h for h in grown if h.ids[-1] not in writer.ends][:size]
        finished += ended
        # What the tree shows of each continuation: it ended a text, went on, or was dropped.
        fates: dict[int, Fate] = dict.fromkeys([h.node for h in ended], "finished")
        fates |= dict.fromkeys([h.node for h in alive], "kept")
        tree += _nodes(grown, parents, fates)
        prune([h.lineage for h in alive + finished])
        on_best(max(finished or alive, key=lambda h: h.mean_log_probability, default=Hypothesis(tuple(prompt))))
        if not alive or len(finished) >= size or len(alive[0].ids) > writer.limit:
            break
        select(torch.tensor([h.lineage[-1] for h in alive], device=device))
    # By the mean and not by the sum: a sum falls with every token, so the shortest text would always win.
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
    # All hypotheses compete in one list: the cell of row r and column t is the text of hypothesis r with token t behind it.
    so_far = torch.tensor([h.log_probability for h in alive])
    totals = so_far[:, None] + allowed  # [hypothesis, vocab]
    best = totals.flatten().topk(min(count, totals.numel()))
    places = [divmod(cell, totals.shape[1]) for cell in best.indices.tolist()]
    # Fewer tokens may be allowed than are asked for: then some of the likeliest have probability 0.
    allowed_best = [(total, *cell) for total, cell in zip(best.values.tolist(), places, strict=True) if total != -torch.inf]
    rows, tokens = [row for _, row, _ in allowed_best], [token for _, _, token in allowed_best]
    newest = writer.steps(repeat(index), tokens, log_probabilities[rows], repeat(computed))
    grown: list[Hypothesis] = []
    for (total, row, token), step in zip(allowed_best, newest, strict=True):
        parent = alive[row]
        ids, steps, lineage = (*parent.ids, token), (*parent.steps, step), (*parent.lineage, row)
        grown.append(Hypothesis(ids, total, steps, lineage, first + len(grown)))
    return grown


LARGEST = 2 << 30
"""Most bytes of one beam search: its recorded tensors, and its cached keys and values."""

_FLOAT = 4  # bytes, also for the number types of two bytes: the bound stays on the safe side


@dataclass(frozen=True)
class BeamMemory:
    """Upper bound on the memory of a beam search.

    Attributes:
        spec: the network.
        size: number of hypotheses followed at once.
        prompt: number of positions before the first written token.
        source: number of positions in the encoder's output; 0: there is no encoder.
        keep: tensors recorded besides weights, masks, positions and logits.
        fused: whether queries, keys and values are recorded instead of weights.
    """

    spec: AnySpec
    size: int
    prompt: int
    source: int
    keep: Collection[Keep] = ()
    fused: bool = False

    def refuse_too_many(self, tokens: int) -> None:
        """Refuses a search for up to `tokens` tokens whose bound is above LARGEST. A beam of one hypothesis is never refused.

        Raises:
            DoesNotFit: the bound is above the limit; the message gives the largest beam that fits.
        """
        # The bound grows in proportion to the number of hypotheses, so the largest beam that fits follows from it.
        fitting = max(1, self.size * LARGEST // max(1, self.bytes(tokens)))
        if self.size > fitting:
            reason = phrase(
                "{size} hypotheses of up to {tokens:,} tokens could take {gigabytes:.1f} GB of memory; at most {fitting} fit, or "
                "more with fewer new tokens (max_length)",
                size=self.size,
                tokens=tokens,
                gigabytes=self.bytes(tokens) / 2**30,
                fitting=fitting,
            )
            raise DoesNotFit(name="beam_size", reason=reason)

    def bytes(self, tokens: int) -> int:
        """Most bytes in memory when `tokens` tokens have been written."""
        stack, kinds = self.spec.writer, [site.kind for site in sites(self.spec) if site.stack == "decoder"]
        own_sites, across = kinds.count("self"), kinds.count("cross")
        width = stack.attention.heads * stack.attention.head_dim
        rows = tokens * (self.source if stack.wiring == "memory" else 1)  # this decoder computes a row for each source position
        keys = own_sites * (tokens * self.prompt + tokens * (tokens + 1) // 2) + across * rows * self.source  # in all steps
        cached = 2 * width * (own_sites * (self.prompt + tokens) + across * self.source)
        cached += stack.d_model * self.source * kinds.count("memory")
        maps = 0 if self.fused else 1 + ("scores" in self.keep)
        of_masks = 3  # bytes: allowed, padding, causal
        floats = rows * self._floats_of_a_row() + cached
        return self.size * (_FLOAT * floats + keys * (_FLOAT * maps * stack.attention.heads + of_masks))

    def _floats_of_a_row(self) -> int:
        """Numbers recorded for one hypothesis in one step, without its weights and scores."""
        stack, kinds = self.spec.writer, [site.kind for site in sites(self.spec) if site.stack == "decoder"]
        model, width, layers = stack.d_model, stack.attention.heads * stack.attention.head_dim, stack.passes * stack.layers
        hidden = stack.hidden if isinstance(stack, StackSpec) else 0
        of = {
            "qkv": width * (3 * kinds.count("self") + kinds.count("cross")),
            "context": width * len(kinds),
            "output": model * len(kinds),
            "hidden": model * (layers + 1),
            "stages": model * (2 * len(kinds) + 3 * layers + 3) + hidden * layers,
        }
        kept = {*self.keep, "qkv"} if self.fused else {*self.keep}
        return stack.vocab + model + sum(of.get(kind, 0) for kind in kept)
