"""Pruning: heads are silenced one after the other, and after each all others are measured again.

Greedy: each step silences the head whose silence leaves the target most likely (`least`), or least likely (`most`), given those
that are silent already.

Source: Michel, Levy and Neubig 2019, "Are Sixteen Heads Really Better than One?", section 4, who rank heads once; here they are
ranked again after each step.
"""

import numpy as np

from model.attribution.copies import Copies
from model.attribution.questions import Prune
from model.attribution.results import Head, PruneCurve
from model.attribution.scoring import Scorer, Told, untold
from model.inference.interventions import sites


def prune_curve(question: Prune, scorer: Scorer, told: Told = untold) -> PruneCurve:
    """The answer to `question`."""
    example, there = scorer.example, sites(scorer.example.runner.info.spec)
    heads = [Head(str(site), head) for site, count in there.items() for head in range(count)]
    silenced, left = np.zeros(len(heads), bool), list(range(len(heads)))
    curve, order, done = [scorer.score(Copies(there, silenced=silenced[None]))[0]], list[int](), 0
    of = len(heads) * (len(heads) + 1) // 2
    while left:
        copies = np.repeat(silenced[None], len(left), axis=0)
        copies[np.arange(len(left)), left] = True
        found = scorer.score(Copies(there, silenced=copies), lambda part, _, before=done: told(before + part, of))  # type: ignore[misc]
        totals = found.sum(axis=1)
        best = int(totals.argmax() if question.order == "least" else totals.argmin())
        done += len(left)
        order.append(left.pop(best))
        silenced[order[-1]] = True
        curve.append(found[best])
    prefixes = np.zeros((len(heads) + 1, len(heads)), bool)
    for step, head in enumerate(order, start=1):
        prefixes[step:, head] = True
    return PruneCurve(
        tokens=example.tokens,
        ids=tuple(example.following.tolist()),
        first=example.first + 1,
        log_probabilities=curve[0],
        order=tuple(heads[head] for head in order),
        curve=np.stack(curve),
        likeliest=scorer.likeliest(Copies(there, silenced=prefixes)),
    )
