"""Gradients of a target's log-probabilities by the vectors that a network reads: gradient × input, and integrated gradients.

The vectors are those that enter the first layer, positions included (`embedded/STACK`). For each target token t, with F its
log-probability, x the vectors and b those of the baseline:

    gradient × input        ∂F/∂x_i · x_i
    integrated gradients    (x_i − b_i) · ∫ ∂F/∂x_i (b + α (x − b)) dα, from α = 0 to 1

The integrated gradients of a token sum to F(x) − F(b), and so do those of each part of the way: the part from α to β sums to its
own F(β) − F(α). What its sum lacks is therefore known for every part. Errors of single words can cancel out in that sum, so each
word is compared, too: what a part gives it with what both halves of the part give it. The parts that lack or change most are
halved again and again (adaptive Gauss-Legendre quadrature), until what is lacking is at most TOLERANCE of the difference and no
chance (CHANCE), and no word changed by more than TOLERANCE of the token's largest one. Changes of
parts are added as squares, since the parts are off independently of each other.

Where that is not reached with MOST_POINTS, or the parts become too narrow for float32, the token has no integrated gradients.

That is the rule for a baseline of zeros in a deep network with RMSNorm, such as Llama's: near zero each norm divides by √ε alone
and so magnifies its input about 300 times, in every layer again. So F keeps changing at every scale down to α = 10⁻⁷⁰, and no
number of points is enough. A token as the baseline has a length, and no such place on its way.

Sources: Sundararajan, Taly and Yan 2017, "Axiomatic Attribution for Deep Networks", equation 1 and proposition 1 (completeness);
Shrikumar et al. 2016, "Not Just a Black Box", for gradient × input.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from model.errors import OutOfMemory
from model.features.what_if.copies import Copies
from model.features.what_if.example import Example
from model.features.what_if.pace import Pace
from model.features.what_if.scoring import Scorer, forced
from model.trace.progress import OnCount
from model.trace.types import Array, sites
from model.transformer.attention import Intervention

PARTS, POINTS = 2, 4
"""Parts of the way at first, which are all halved once, and points in each part."""

FORWARD = 2
"""What a forward pass of some points counts beside a backward pass for one token, which does not go through the output layer."""

MOST_POINTS, NARROWEST = 2048, 2.0**-18
"""Points after which a token is given up, and the width of a part that float32 still divides well."""

TOLERANCE, CHANCE = 0.01, 0.1
"""How much the integrated gradients of a token may lack, as a share of the difference; how much each word may change, as a share of
the token's largest word; and how much the lacks of all parts may be without their signs, as a share of all amounts."""


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradient measures of one example.

    Attributes:
        gradient: [token, input], over the inputs of all stacks, one after the other.
        integrated: [token, input]; NaN for a token whose integral was not found within TOLERANCE.
        changed: [token, input], by how much half as many steps give another number; NaN likewise.
        difference: [token], F(x) − F(b).
        lacking: [token], how far their sum was from the difference.
        points: how many points of the way were used.
    """

    gradient: Array
    integrated: Array
    changed: Array
    difference: Array
    lacking: Array
    points: int


def gradients(scorer: Scorer, baseline: Mapping[str, int | None], on_count: OnCount) -> Gradients:
    """Gradient × input and integrated gradients of every measured token.

    Args:
        baseline: by stack the id at every position of the baseline; None: vectors of zeros.
        on_count: called with the number of gradients computed so far, and how many there are as far as is known.
    """
    # Gradient × input is the same sum with a single point, at the input itself (1.0), and a baseline of zeros.
    inputs, baselines = _vectors(scorer, {}), _vectors(scorer, baseline)
    zeros = {name: torch.zeros_like(x) for name, x in inputs.items()}
    every = np.arange(len(scorer.example.following))
    gradient = _Weighing(scorer, (zeros, inputs)).weighed(np.ones(1), np.ones(1), every)[0]
    integral = _Integral(scorer, (baselines, inputs), on_count)
    # Parts are measured, then all are halved once: how much a word changes by that is the first estimate of its error.
    integral.measure(every)
    integral.halve(np.ones(PARTS, bool))
    integrated, changed = np.full_like(gradient, np.nan), np.full_like(gradient, np.nan)
    lacking, left = np.full(len(every), np.nan), every
    while len(left):
        integral.measure(left)
        # Tokens that are good enough leave with what they have. For the others the parts that are furthest off are halved and
        # measured again, until none is left or nothing can be halved any more: then the rest stays NaN.
        state = integral.convergence(left)
        lacking[left], good = state.lacking, state.good
        integrated[left[good]], changed[left[good]] = state.sums[good], state.changed[good]
        left = left[~good]
        if not len(left) or not integral.halve(state.worst):
            break
    return Gradients(gradient, integrated, changed, integral.difference, lacking, integral.points)


@dataclass(frozen=True, eq=False)
class _Convergence:
    """How far some tokens are.

    Attributes:
        sums: [token, input], integrated gradients.
        changed: [token, input], by how much the wider parts gave other numbers.
        lacking: [token], how far their sum is from the difference.
        good: [token] of bool.
        worst: [part] of bool, what is to be halved for the others.
    """

    sums: Array
    changed: Array
    lacking: Array
    good: Array
    worst: Array


def _worst(lacking: Array, allowed: Array) -> Array:
    """[part] of bool: for each token the parts that lack most, so many that the others lack less than half of what is allowed."""
    # Parts from the best to the worst, token by token, with the sum of what they lack up to there. As soon as that sum reaches half
    # of what is allowed, this part and all worse ones have to become better.
    order = np.argsort(lacking, axis=0)
    rest = np.cumsum(np.take_along_axis(lacking, order, axis=0), axis=0)
    is_worst = np.zeros(lacking.shape, bool)
    np.put_along_axis(is_worst, order, rest >= allowed / 2, axis=0)
    return np.asarray(is_worst.any(axis=1))


Ends: TypeAlias = tuple[dict[str, Tensor], dict[str, Tensor]]
"""The vectors [1, position, model] at both ends of the integral, by stack: of the baseline, and of the input."""


class _Integral:
    """The integral from baseline to input, as the sum over parts of the way.

    Attributes:
        difference: [token], over the whole way.
        sums: [part, token, input], integrated gradients of each part.
        squares: [part, token, input], the square of how far both halves are from the part that they are of, shared by them.
        points: how many were used so far.
    """

    def __init__(self, scorer: Scorer, ends: Ends, on_count: OnCount) -> None:
        self._weighing, self._on_count = _Weighing(scorer, ends), on_count
        # Places in (-1, 1) and weights that sum to 2: `measure` moves them into each part.
        self._places, self._weights = np.polynomial.legendre.leggauss(POINTS)
        self._edges = np.linspace(0, 1, PARTS + 1)
        self._scores = self._weighing.scores(self._edges)
        self._done, self._wider = np.zeros(PARTS, bool), dict[float, Array]()
        self.points, self._gradients = 0, 0
        self.difference: Array = self._scores[-1] - self._scores[0]
        self.sums: Array = np.zeros((PARTS, len(self.difference), sum(x.shape[1] for x in ends[1].values())))
        self.squares: Array = np.zeros_like(self.sums)

    @property
    def lacking(self) -> Array:
        """[part, token], what the sum of each part lacks."""
        return np.asarray(np.diff(self._scores, axis=0) - self.sums.sum(axis=2))

    def measure(self, tokens: Array) -> None:
        """Computes the parts that were not computed yet, for some tokens."""
        parts = np.flatnonzero(~self._done)
        # From (-1, 1) to a part of the way from edge to edge: places are moved and stretched, weights only stretched.
        width = np.diff(self._edges)[parts, None] / 2
        places, weights = self._edges[parts, None] + width * (self._places + 1), width * self._weights
        before, known = self._gradients, self._gradients + places.size * len(tokens)
        weighed = self._weighing.weighed(places.ravel(), weights.ravel(), tokens, lambda done: self._on_count(before + done, known))
        # The weighed gradients at the points of a part sum to the integral over it.
        self.sums[np.ix_(parts, tokens)] = weighed.reshape(len(parts), POINTS, *weighed.shape[1:]).sum(axis=1)
        self._gradients = known
        self.points += places.size
        self._done[:] = True
        # Halves follow each other.
        for first in parts[:-1]:
            if (wider := self._wider.pop(self._edges[first], None)) is not None:
                # What the whole part gave, minus what both halves give: its square, half of it for each half.
                squares = (self.sums[first] + self.sums[first + 1] - wider)[tokens] ** 2
                self.squares[first, tokens] = self.squares[first + 1, tokens] = squares / 2

    def convergence(self, tokens: Array) -> _Convergence:
        """How far some tokens are, for which all parts were measured."""
        # Two tests for each token. Its sum: what all parts lack together must be small, and not only because amounts of opposite
        # signs cancel out. Its words: none may change by much when parts are halved.
        lacks, squares = np.abs(self.lacking[:, tokens]), self.squares[:, tokens]
        sums, lacking = self.sums[:, tokens].sum(axis=0), np.abs(self.lacking[:, tokens].sum(axis=0))
        changed = np.sqrt(squares.sum(axis=0))
        most_lacking, most_changed = TOLERANCE * np.abs(self.difference[tokens]), TOLERANCE * np.abs(sums).max(axis=1)
        is_sum = (lacking <= most_lacking) & (lacks.sum(axis=0) <= CHANCE * np.abs(sums).sum(axis=1))
        are_words = changed.max(axis=1) <= most_changed
        # Each word of a token that is not good is a column of its own, with the bound of its token, squared like the changes.
        allowed = np.repeat(most_changed[~are_words] ** 2, sums.shape[1])
        worst = _worst(lacks[:, ~is_sum], most_lacking[~is_sum])
        worst |= _worst(squares[:, ~are_words].reshape(len(squares), -1), allowed)
        return _Convergence(sums, changed, lacking, is_sum & are_words, worst)

    def halve(self, which: Array) -> bool:
        """Halves some parts; False, and nothing is halved: one is too narrow, or that would be too many points."""
        if self.points + 2 * POINTS * which.sum() > MOST_POINTS or (np.diff(self._edges)[which] <= NARROWEST).any():
            return False
        middles = (self._edges[:-1] + self._edges[1:])[which] / 2
        # A part that is halved is there twice from now on, and both halves count as not computed. The new edge is the middle.
        copies, behind = 1 + which, np.flatnonzero(which) + 1
        self._wider = {float(self._edges[part]): self.sums[part] for part in np.flatnonzero(which)}
        self._done = np.repeat(~which, copies)
        self.sums, self.squares = (np.repeat(array, copies, axis=0) for array in (self.sums, self.squares))
        self._edges = np.insert(self._edges, behind, middles)
        self._scores = np.insert(self._scores, behind, self._weighing.scores(middles), axis=0)
        return True


class _Weighing:
    """Scores and weighed gradients at points of the way, in batches of a moment each (pace.py).

    Args:
        ends: of the way.
    """

    def __init__(self, scorer: Scorer, ends: Ends) -> None:
        self._scorer, self._ends = scorer, ends
        self._pace = Pace(scorer.operations, scorer.clock)
        self._most = scorer.rows(graph=True)

    def scores(self, places: Array) -> Array:
        """[place, token], log-probabilities at some places of the way."""
        # Scores need no backward pass: a point counts FORWARD units, as in `weighed`.
        scores, left = list[Array](), places
        while len(left):
            some, left = np.split(left, [self._pace.whole(self._most * FORWARD) // FORWARD or 1])
            scores.append(self._ask(lambda some=some: self._points(some).scores, FORWARD * len(some)))  # type: ignore[misc]
        return np.concatenate(scores)

    def weighed(self, places: Array, weights: Array, tokens: Array, on_done: Callable[[int], None] = lambda done: None) -> Array:
        """[point, token, input]: weight · gradient · (input − baseline) at each of some points between baseline and input.

        Args:
            on_done: called with the number of gradients computed so far.
        """
        rows_done, begin = list[Array](), 0
        while begin < len(places):
            # A point costs one forward pass and one backward pass for each token.
            units = self._pace.whole(self._most * (FORWARD + len(tokens)))
            span = slice(begin, begin + max(1, units // (FORWARD + len(tokens))))
            parts, rows = list[Array](), len(places[span])
            left = tokens
            # One point for all tokens can take longer than a moment: the forward pass is computed again then.
            while len(left):
                size = max(1, self._pace.whole(rows * (FORWARD + len(left))) // rows - FORWARD)
                some, left = np.split(left, [size])
                parts.append(self._attributed(places[span], weights[span], some))
                on_done(begin * len(tokens) + rows * (len(tokens) - len(left)))
            rows_done.append(np.concatenate(parts, axis=1))
            begin += rows
        return np.concatenate(rows_done)

    def _attributed(self, places: Array, weights: Array, tokens: Array) -> Array:
        """As `weighed`, in one call; half of the points at a time where memory does not suffice."""

        def computed() -> Tensor:
            # Tensors of inference mode cannot take part in gradients; their copies can.
            steps = {name: x.clone() - self._ends[0][name].clone() for name, x in self._ends[1].items()}
            return self._points(places).attributed(weights, tokens, steps)

        try:
            return self._ask(computed, len(places) * (FORWARD + len(tokens)))
        except OutOfMemory:
            if len(places) == 1:
                raise
        # Not within `except`, where the error still holds the tensors of the attempt.
        halves = np.array_split(np.arange(len(places)), 2)
        return np.concatenate([self._attributed(places[half], weights[half], tokens) for half in halves])

    def _points(self, places: Array) -> "_Points":
        return _interpolated(self._scorer.example, *self._ends, places)

    def _ask(self, compute: Callable[[], Tensor], units: float) -> Array:
        return _ask(self._scorer, compute, units, self._pace)


@dataclass(frozen=True, eq=False)
class _Points:
    """The example at some points between baseline and input.

    Attributes:
        scores: [point, token], log-probabilities.
        last: [point, query, model], the decoder's last hidden states. Row q alone decides the token that row q predicts.
        first: the row that predicts the first token.
        leaves: [point, position, model] by stack, the vectors that all this is a function of.
    """

    scores: Tensor
    last: Tensor
    first: int
    leaves: dict[str, Tensor]

    def attributed(self, weights: Array, tokens: Array, steps: Mapping[str, Tensor]) -> Tensor:
        """[point, token, input]: the gradients by the leaves times `steps`, weighed."""
        # The backward pass in two steps. Through the output layer once for all tokens: the gradients of their sum by the last
        # states do not mix, since each token's score depends on one row. Then through the layers, for each token from its own row
        # alone.
        factors = torch.tensor(weights, dtype=self.scores.dtype, device=self.scores.device)[:, None]
        (states,) = torch.autograd.grad((self.scores * factors).sum(), self.last, retain_graph=True)
        rows = []
        for token in tokens.tolist():
            # Only the row that predicts this token; the points are rows of a batch, which do not mix either.
            direction = torch.zeros_like(states)
            direction[:, self.first + token] = states[:, self.first + token]
            gradients = torch.autograd.grad(self.last, list(self.leaves.values()), direction, retain_graph=True)
            # A vector has one number for each dimension of the model; their sum is what the input as a whole adds.
            parts = [(part * steps[name]).sum(dim=2) for name, part in zip(self.leaves, gradients, strict=True)]
            rows.append(torch.cat(parts, dim=1))
        return torch.stack(rows, dim=1)


def _interpolated(example: Example, baselines: dict[str, Tensor], inputs: dict[str, Tensor], places: Array) -> _Points:
    """The example at some places between baseline (0) and input (1)."""
    shares = torch.tensor(places, device=example.device)[:, None, None]
    leaves = {
        name: torch.lerp(baselines[name].clone(), x.clone(), shares.to(x.dtype)).detach().requires_grad_()  # no inference tensors
        for name, x in inputs.items()
    }
    # The run begins at the embedded vectors: whatever the embedding makes of the ids is replaced by the point's vectors.
    spec, last = example.runner.info.spec, list[Tensor]()
    # A row of ids for each point, so that batches are wide.
    fed = np.repeat(example.fed.cpu().numpy(), len(places), axis=0)
    also: dict[str, Intervention] = {f"embedded/{name}": _instead(leaf) for name, leaf in leaves.items()}
    also[f"hidden/decoder.{spec.writer.passes - 1}.{spec.writer.layers - 1}"] = _noting(last.append)
    scores = forced(example, Copies(sites(spec), fed=fed, apart=True), also).log_probabilities()
    return _Points(scores, last[0], example.first, leaves)


def _noting(note: Callable[[Tensor], None]) -> Intervention:
    """Hands over a value and leaves it as it is."""

    def noted(value: Tensor, start: int) -> Tensor:
        # What the network goes on with: a view of `value` would not be.
        kept = value.clone()
        note(kept)
        return kept

    return noted


def _instead(leaf: Tensor) -> Intervention:
    """Another tensor, whatever the value was."""
    return lambda value, start: leaf


def _vectors(scorer: Scorer, ids: Mapping[str, int | None]) -> dict[str, Tensor]:
    """[1, position, model] by stack: the vectors that enter the first layer, or those of one id in every place."""
    example, vectors = scorer.example, dict[str, Tensor]()
    # A baseline is read by the network like a text, with its positions; 0 stands in where zeros replace the vectors below.
    fed = np.full(example.fed.shape, ids.get("decoder") or 0) if ids else example.fed.cpu().numpy()
    source = None
    if example.source is not None and not example.source.is_floating_point():
        source = np.full(example.source.shape, ids.get("encoder") or 0) if ids else example.source.cpu().numpy()
    copies = Copies(sites(example.runner.info.spec), fed=fed, source=source)

    stacks = example.runner.info.spec.stacks
    also = {f"embedded/{stack}": _noting(lambda value, stack=stack: vectors.update({stack: value.detach()})) for stack in stacks}  # type: ignore[misc]
    _ask(scorer, lambda: forced(example, copies, also).log_probabilities())
    zeros = {stack for stack in stacks if ids and ids.get(stack) is None}
    return {stack: torch.zeros_like(x) if stack in zeros else x for stack, x in vectors.items()}


def _ask(scorer: Scorer, compute: Callable[[], Tensor], units: float = 1, pace: Pace | None = None) -> Array:
    """The result of `compute`, computed with gradients as a call of the queue; `units` and `pace` as for Scorer.computed."""

    def computed() -> Tensor:
        with torch.inference_mode(False), torch.enable_grad():
            return compute().detach()

    return scorer.computed(computed, units, pace)
