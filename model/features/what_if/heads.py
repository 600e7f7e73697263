"""Heads: what each is for, by three numbers, and how many can be silenced one after the other.

For the heads of a site let v(S) be the log-probability of the target where only the heads S are heard and the others silenced, by
zeros or by the mean of their context over the sentence; all other sites are as they are.

    without     v(all but h) − v(all)
    alone       v(h alone) − v(all)
    share       the mean of v(S and h) − v(S) over all orders of the heads, S being those before h: the Shapley value

The shares of a site sum to v(all) − v(none). Up to MOST_EXACT heads every S is run; above that the mean is taken over random
orders, each with its reverse, and its standard error is that of the means of such pairs.

Sources: Michel, Levy and Neubig 2019, "Are Sixteen Heads Really Better than One?", for silenced heads; Shapley 1953, "A Value for
n-Person Games"; Castro, Gómez and Tejada 2009, "Polynomial calculation of the Shapley value based on sampling", for random orders;
Mitchell et al. 2022, "Sampling Permutations for Shapley Value Estimation", for their reverses (antithetic sampling).

Pruning is greedy: each step silences the head whose silence leaves the target most likely (`least`), or least likely (`most`),
given those that are silent already; all others are measured again after each step. Without `every`, the order of `least` is an
approximation: only the most promising heads are measured again, in the order of what their silence changed when it was measured
last, TOGETHER at a time, until the best one of this step is at least as good as the last value of all that are left. A head whose
value became better unnoticed is then silenced a little later; no head is silenced on an old value.

Sources: Michel, Levy and Neubig 2019, section 4, who rank heads once; Minoux 1978, "Accelerated greedy algorithms for maximizing
submodular set functions", for measuring only the most promising again.
"""

from collections.abc import Iterable, Sequence
from math import factorial

import numpy as np

from model.features.what_if.copies import ZEROS, Copies, Silencer, columns_of
from model.features.what_if.example import Example
from model.features.what_if.questions import MOST_EXACT, Heads, Prune
from model.features.what_if.results import Head, HeadEffects, PruneCurve
from model.features.what_if.scoring import Scorer
from model.requests.network import StackSpec
from model.trace.progress import OnCount, ignore_count
from model.trace.types import Array, Site, sites
from model.transformer.networks import Translates


def head_effects(question: Heads, scorer: Scorer, on_count: OnCount = ignore_count) -> HeadEffects:
    """The answer to `question`."""
    example = scorer.example
    head_counts = sites(example.runner.info.spec)
    # Each site is a game of its own: a coalition are the heads of one site that are heard, while all other sites are as they are.
    # Measures share coalitions, so each is scored once.
    players = {site: _Site(heads, question) for site, heads in head_counts.items()}
    wanted = [(site, heard) for site, player in players.items() for heard in dict.fromkeys(player.coalitions())]
    # The first copy silences nothing. It is the base of all changes, and the same run whatever site it is called after.
    everyone = next((site, player.all) for site, player in players.items())
    base, *scores = scorer.score(_copies(head_counts, [everyone, *wanted], _silencer(question, example)), on_count)
    values = {site: {player.all: base} for site, player in players.items()}
    for (site, heard), score in zip(wanted, scores, strict=True):
        values[site][heard] = score
    by_site = [player.numbers(values[site]) for site, player in players.items()]
    # The arrays of the sites, one below the other, have the heads in the order in which they run.
    joined = {name: np.concatenate([score[name] for score in by_site]) for name in by_site[0]}
    return HeadEffects(
        tokens=example.tokens,
        ids=tuple(example.following.tolist()),
        first=example.first + 1,
        log_probabilities=base,
        heads=tuple(Head(str(site), head) for site, heads in head_counts.items() for head in range(heads)),
        sites=tuple(map(str, head_counts)),
        **joined,
    )


def _silencer(question: Heads, example: Example) -> Silencer:
    """What silences heads; a mean leaves out the padding of the source."""
    network, decoder = example.runner.network, example.runner.info.spec.decoder
    if question.by == "zeros":
        return ZEROS
    padding = None
    if isinstance(network, Translates) and example.source is not None:
        # The mask of the run itself knows its padding: [1, 1, 1, key] of bool.
        padding = network.source_mask(example.source, example.valid).padding[0, 0, 0]
    return Silencer(True, padding, of_source=isinstance(decoder, StackSpec) and decoder.wiring == "memory")


def _copies(head_counts: dict[Site, int], coalitions: Sequence[tuple[Site, int]], silencer: Silencer = ZEROS) -> Copies:
    """A copy for each coalition: the heads of one site that are heard, as bits. Head h is bit h."""
    silenced, columns = np.zeros((len(coalitions), sum(head_counts.values())), bool), columns_of(head_counts)
    for row, (site, heard) in enumerate(coalitions):
        # Every head of the site whose bit is 0; heads of other sites stay False, so they are heard.
        silenced[row, columns[site]] = [not heard >> head & 1 for head in range(head_counts[site])]
    return Copies(head_counts, silenced=silenced, silencer=silencer)


class _Site:
    """The heads of one site: which coalitions are needed, and what follows from them."""

    def __init__(self, heads: int, question: Heads) -> None:
        self.heads, self.question = heads, question
        self.all = 2**heads - 1
        self.orders = [] if heads <= MOST_EXACT else _orders(heads, question.permutations, question.seed)

    def coalitions(self) -> Iterable[int]:
        """The coalitions that are needed, `all` left out."""
        asked = self.question.measures
        if "without" in asked:
            # All bits but that of one head.
            yield from (self.all ^ 1 << head for head in range(self.heads))
        if "alone" in asked:
            # The only head of a site is alone already: that is the run itself.
            yield from (1 << head for head in range(self.heads) if self.heads > 1)
        if "share" in asked:
            yield 0
            # The sets that the random orders pass; without orders every set but `all` itself, where `range` stops.
            yield from ((heard for order in self.orders for heard in _on_the_way(order)) if self.orders else range(self.all))

    def numbers(self, v: dict[int, Array]) -> dict[str, Array]:
        """Arrays [head, token], of `none` [1, token], of `total_share_error` [head].

        Args:
            v: log-probabilities [token] by the heads that are heard.
        """
        asked, numbers, heads = self.question.measures, dict[str, Array](), range(self.heads)
        if "without" in asked:
            numbers["without"] = np.stack([v[self.all ^ 1 << head] - v[self.all] for head in heads])
        if "alone" in asked:
            numbers["alone"] = np.stack([v[1 << head] - v[self.all] for head in heads])
        if "share" in asked:
            numbers["none"] = (v[0] - v[self.all])[None]
            numbers |= self._sampled(v) if self.orders else self._exact(v)
        return numbers

    def _exact(self, v: dict[int, Array]) -> dict[str, Array]:
        n = self.heads
        # Of all n! orders, this share has exactly the heads of S, |S| = size, in front of a given head and the others behind it. So
        # the mean over all orders is a sum over sets.
        chance = [factorial(size) * factorial(n - size - 1) / factorial(n) for size in range(n)]
        share = [
            sum(chance[s.bit_count()] * (v[s | 1 << head] - v[s]) for s in range(self.all) if not s >> head & 1)
            for head in range(n)
        ]
        exact = np.stack(share)
        return {"share": exact, "share_error": np.zeros_like(exact), "total_share_error": np.zeros(n)}

    def _sampled(self, v: dict[int, Array]) -> dict[str, Array]:
        """Each order and its reverse are one sample, in pairs."""
        # Axes: [order, head, token].
        gains = np.stack([self._gains(order, v) for order in self.orders])
        # What a head adds early and what it adds late tend to err in opposite directions; the mean of an order and its reverse errs
        # less. Both depend on each other, so the pairs, not the orders, are the independent samples that a standard error is made
        # of.
        samples = gains.reshape(-1, 2, *gains.shape[1:]).mean(axis=1)
        root = np.sqrt(len(samples))
        share, error = samples.mean(axis=0), samples.std(axis=0, ddof=1) / root
        # The error of a total is not the sum of those of its tokens, which go up and down together: it is that of the sums.
        return {"share": share, "share_error": error, "total_share_error": samples.sum(axis=2).std(axis=0, ddof=1) / root}

    def _gains(self, order: Sequence[int], v: dict[int, Array]) -> Array:
        """[head, token], what each head adds when it comes in this order."""
        # The heads join one after the other. What the score grows by when a head joins is what this order says of it.
        gains: list[Array] = [np.empty(0)] * self.heads
        heard = 0
        for head in order:
            gains[head] = v[heard | 1 << head] - v[heard]
            heard |= 1 << head
        return np.stack(gains)


def _orders(heads: int, count: int, seed: int) -> list[list[int]]:
    """Random orders of the heads, each followed by its reverse: at least two pairs, so that there is a standard error."""
    draw = np.random.default_rng(seed)
    drawn = [draw.permutation(heads).tolist() for _ in range(max(2, count // 2))]
    return [order for forwards in drawn for order in (forwards, forwards[::-1])]


def _on_the_way(order: Sequence[int]) -> Iterable[int]:
    """The coalitions that an order passes, without the empty one and all."""
    heard = 0
    for head in order[:-1]:
        heard |= 1 << head
        yield heard


TOGETHER = 3
"""Heads that are measured again at once."""


def prune_curve(question: Prune, scorer: Scorer, on_count: OnCount = ignore_count) -> PruneCurve:
    """The answer to `question`."""
    example, head_counts = scorer.example, sites(scorer.example.runner.info.spec)
    heads = [Head(str(site), head) for site, count in head_counts.items() for head in range(count)]
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
        # `waiting` are the heads that could be silenced next, the most promising first, by values that may be old. They are
        # measured again from the front, until nobody who waits promises more than the best new value: then that one is silenced.
        left = np.flatnonzero(~self._silenced)
        waiting, best, now = left[np.argsort(-self._gains[left], kind="stable")], -1, (np.empty(0), np.empty(0))
        while len(waiting) and (best < 0 or self._gains[waiting[0]] > self._gains[best]):
            # In the first step none was measured before, so all are measured.
            first = int(np.isinf(self._gains[waiting]).sum())
            # A batch costs little more than a single copy, so a few are measured together.
            tried, waiting = np.split(waiting, [max(first, self._together)])
            scores, ids = self._measured(tried)
            self._gains[tried] = self._sign * (scores.sum(axis=1) - self.curve[-1].sum())
            top = int(self._gains[tried].argmax())
            if best < 0 or self._gains[tried[top]] > self._gains[best]:
                best, now = int(tried[top]), (scores[top], ids[top])
        self._silenced[best] = True
        self.order.append(best)
        self.curve.append(now[0])
        self.likeliest.append(now[1])

    def _measured(self, heads: Array, alone: bool = False) -> tuple[Array, Array]:
        """Log-probabilities and ids of the likeliest tokens, each [head, token], where each of some heads is silenced, too.

        Args:
            alone: one row, where no other head is silenced.
        """
        # In each row all heads that are silent already, and one more.
        copies = np.repeat(self._silenced[None], 1 if alone else len(heads), axis=0)
        copies[np.arange(len(heads)), heads] = True
        return self._scorer.score_with_likeliest(Copies(self._sites, silenced=copies))
