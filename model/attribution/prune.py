"""Pruning: heads are silenced one after the other, and after each the others are measured again.

Greedy: each step silences the head whose silence leaves the target most likely (`least`), or least likely (`most`), given those
that are silent already. With `every`, all others are measured again after each step. Without it, only the most promising ones
are: in the order of what their silence changed when it was measured last, TOGETHER at a time, until the best one of this step
is at least as good as the last value of all that are left. A head whose value became better unnoticed is then silenced a little
later; no head is silenced on an old value. `most` always measures all, because heads that replace each other matter only
after some are silent.

Sources: Michel, Levy and Neubig 2019, "Are Sixteen Heads Really Better than One?", section 4, who rank heads once; Minoux 1978,
"Accelerated greedy algorithms for maximizing submodular set functions", for measuring only the most promising again.
"""

import numpy as np

from model.attribution.copies import Copies
from model.attribution.questions import Prune
from model.attribution.results import Head, PruneCurve
from model.attribution.scoring import OnCount, Scorer, ignore_count
from model.inference.interventions import sites
from model.trace.types import Array

TOGETHER = 3
"""Heads that are measured again at once."""


def prune_curve(question: Prune, scorer: Scorer, on_count: OnCount = ignore_count) -> PruneCurve:
    """The answer to `question`."""
    example, there = scorer.example, sites(scorer.example.runner.info.spec)
    heads = [Head(str(site), head) for site, count in there.items() for head in range(count)]
    on_count(0, len(heads))
    pruning = _Pruning(question, scorer, len(heads))
    for step in range(len(heads)):
        pruning.step()
        on_count(step + 1, len(heads))
    return PruneCurve(
        tokens=example.tokens,
        ids=tuple(example.following.tolist()),
        first=example.first + 1,
        log_probabilities=pruning.curve[0],
        order=tuple(heads[head] for head in pruning.order),
        curve=np.stack(pruning.curve),
        likeliest=np.stack(pruning.likeliest),
    )


class _Pruning:
    """Heads silenced so far, and what the silence of each of the others changed when it was measured last.

    Attributes:
        order: the silenced heads.
        curve: log-probabilities [token], before the first and after each.
        likeliest: ids [token] of the likeliest token at each place, likewise.
    """

    def __init__(self, question: Prune, scorer: Scorer, heads: int) -> None:
        self._scorer, self._sites = scorer, sites(scorer.example.runner.info.spec)
        self._sign = 1 if question.order == "least" else -1
        self._together = heads if question.every or question.order == "most" else TOGETHER
        self._silenced, self._gains = np.zeros(heads, bool), np.full(heads, np.inf)
        self.order: list[int] = []
        scores, ids = self._measured(np.zeros(0, np.int64), alone=True)
        self.curve, self.likeliest = [scores[0]], [ids[0]]

    def step(self) -> None:
        """Silences one more head."""
        left = np.flatnonzero(~self._silenced)
        waiting, best, now = left[np.argsort(-self._gains[left], kind="stable")], -1, (np.empty(0), np.empty(0))
        while len(waiting) and (best < 0 or self._gains[waiting[0]] > self._gains[best]):
            first = int(np.isinf(self._gains[waiting]).sum())  # all where none was measured before
            tried, waiting = np.split(waiting, [max(first, self._together)])
            found, ids = self._measured(tried)
            self._gains[tried] = self._sign * (found.sum(axis=1) - self.curve[-1].sum())
            top = int(self._gains[tried].argmax())
            if best < 0 or self._gains[tried[top]] > self._gains[best]:
                best, now = int(tried[top]), (found[top], ids[top])
        self._silenced[best] = True
        self.order.append(best)
        self.curve.append(now[0])
        self.likeliest.append(now[1])

    def _measured(self, heads: Array, alone: bool = False) -> tuple[Array, Array]:
        """Log-probabilities and ids of the likeliest tokens, each [head, token], where each of some heads is silenced, too.

        Args:
            alone: one row, where no other head is silenced.
        """
        copies = np.repeat(self._silenced[None], 1 if alone else len(heads), axis=0)
        copies[np.arange(len(heads)), heads] = True
        return self._scorer.score_with_likeliest(Copies(self._sites, silenced=copies))
