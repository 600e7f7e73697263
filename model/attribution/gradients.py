"""Gradients of a target's log-probabilities by the vectors that a network reads: gradient × input, and integrated gradients.

The vectors are those that enter the first layer, positions included (`embedded/STACK`). For each target token t, with F its
log-probability, x the vectors and b those of the baseline:

    gradient × input        ∂F/∂x_i · x_i
    integrated gradients    (x_i − b_i) · ∫ ∂F/∂x_i (b + α (x − b)) dα, from α = 0 to 1

The integrated gradients of a token sum to F(x) − F(b), and so do those of each part of the way: the part from α to β sums to its
own F(β) − F(α). What its sum lacks is therefore known for every part, and the parts that lack most are halved again and again
(adaptive Gauss-Legendre quadrature), until what is lacking is at most TOLERANCE of the difference, and no chance (CHANCE).
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

from model.attribution.copies import Copies
from model.attribution.example import Example
from model.attribution.scoring import OnCount, Scorer, forced
from model.errors import OutOfMemory
from model.trace.types import Array, sites
from model.transformer.attention import Intervention

PARTS, POINTS = 4, 4
"""Parts of the way at first, and points in each part."""

MOST_POINTS, NARROWEST = 2048, 2.0**-18
"""Points after which a token is given up, and the width of a part that float32 still divides well."""

TOLERANCE, CHANCE = 0.01, 0.1
"""How much the integrated gradients of a token may lack: as a share of the difference, and, where the lacks of all parts are added
without their signs, as a share of all amounts, so that large errors cannot cancel out by chance."""


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradient measures of one example.

    Attributes:
        gradient: [token, input], over the inputs of all stacks, one after the other.
        integrated: [token, input]; NaN for a token whose integral was not found within TOLERANCE.
        difference: [token], F(x) − F(b).
        lacking: [token], how far their sum was from the difference.
        points: how many points of the way were used.
    """

    gradient: Array
    integrated: Array
    difference: Array
    lacking: Array
    points: int


def gradients(scorer: Scorer, baseline: Mapping[str, int | None], on_count: OnCount) -> Gradients:
    """Gradient × input and integrated gradients of every measured token.

    Args:
        baseline: by stack the id at every position of the baseline; None: vectors of zeros.
        on_count: called with the number of gradients computed so far, and how many there are as far as is known.
    """
    inputs, there = _vectors(scorer, {}), _vectors(scorer, baseline)
    zeros = {name: torch.zeros_like(x) for name, x in inputs.items()}
    every = np.arange(len(scorer.example.following))
    gradient = _weighed(scorer, (zeros, inputs), np.ones(1), np.ones(1), every)[0]
    integral = _Integral(scorer, (there, inputs), on_count)
    found, lacking, left = np.full_like(gradient, np.nan), np.full(len(every), np.nan), every
    while len(left):
        integral.measure(left)
        each, sums = integral.lacking[:, left], integral.sums[:, left].sum(axis=0)
        allowed, lacking[left] = TOLERANCE * np.abs(integral.difference[left]), np.abs(each.sum(axis=0))
        good = (lacking[left] <= allowed) & (np.abs(each).sum(axis=0) <= CHANCE * np.abs(sums).sum(axis=1))
        found[left[good]] = sums[good]
        left = left[~good]
        if not len(left) or not integral.halve(_worst(np.abs(each[:, ~good]), allowed[~good])):
            break
    return Gradients(gradient, found, integral.difference, lacking, integral.points)


def _worst(lacking: Array, allowed: Array) -> Array:
    """[part] of bool: for each token the parts that lack most, so many that the others lack less than half of what is allowed."""
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
        points: how many were used so far.
    """

    def __init__(self, scorer: Scorer, ends: Ends, on_count: OnCount) -> None:
        self._scorer, self._ends, self._on_count = scorer, ends, on_count
        self._places, self._weights = np.polynomial.legendre.leggauss(POINTS)
        self._edges = np.linspace(0, 1, PARTS + 1)
        self._scores = self._score(self._edges)
        self._done = np.zeros(PARTS, bool)
        self.points, self._gradients = 0, 0
        self.difference: Array = self._scores[-1] - self._scores[0]
        self.sums: Array = np.zeros((PARTS, len(self.difference), sum(x.shape[1] for x in ends[1].values())))

    @property
    def lacking(self) -> Array:
        """[part, token], what the sum of each part lacks."""
        return np.asarray(np.diff(self._scores, axis=0) - self.sums.sum(axis=2))

    def measure(self, tokens: Array) -> None:
        """Computes the parts that were not computed yet, for some tokens."""
        ahead = np.flatnonzero(~self._done)
        known = self._gradients + len(ahead) * POINTS * len(tokens)
        at_once = max(1, self._scorer.rows(graph=True) // POINTS)
        for begin in range(0, len(ahead), at_once):
            parts = ahead[begin : begin + at_once]
            width = np.diff(self._edges)[parts, None] / 2
            places = self._edges[parts, None] + width * (self._places + 1)
            found = _weighed(self._scorer, self._ends, places.ravel(), (width * self._weights).ravel(), tokens)
            self.sums[parts[:, None], tokens] = found.reshape(len(parts), POINTS, *found.shape[1:]).sum(axis=1)
            self._gradients += places.size * len(tokens)
            self._on_count(self._gradients, known)
        self.points += len(ahead) * POINTS
        self._done[:] = True

    def halve(self, which: Array) -> bool:
        """Halves some parts; False, and nothing is halved: one is too narrow, or that would be too many points."""
        if self.points + 2 * POINTS * which.sum() > MOST_POINTS or (np.diff(self._edges)[which] <= NARROWEST).any():
            return False
        middles = (self._edges[:-1] + self._edges[1:])[which] / 2
        copies, behind = 1 + which, np.flatnonzero(which) + 1
        self._done = np.repeat(~which, copies)
        self.sums = np.repeat(self.sums, copies, axis=0)
        self._edges = np.insert(self._edges, behind, middles)
        self._scores = np.insert(self._scores, behind, self._score(middles), axis=0)
        return True

    def _score(self, places: Array) -> Array:
        """[place, token], log-probabilities at some places of the way."""
        example, size = self._scorer.example, self._scorer.rows(graph=True)

        def scores(own: Array) -> Array:
            return _ask(self._scorer, lambda: _interpolated(example, *self._ends, own).scores)

        return np.concatenate([scores(places[begin : begin + size]) for begin in range(0, len(places), size)])


def _weighed(scorer: Scorer, ends: Ends, places: Array, weights: Array, tokens: Array) -> Array:
    """[point, token, input]: weight · gradient · (input − baseline) at each of some points between baseline and input.

    Half of the points at a time where memory does not suffice.
    """

    def computed() -> Tensor:
        steps = {name: x.clone() - ends[0][name].clone() for name, x in ends[1].items()}
        return _interpolated(scorer.example, *ends, places).attributed(weights, tokens, steps)

    try:
        return _ask(scorer, computed)
    except OutOfMemory:
        if len(places) == 1:
            raise
    parts = np.array_split(np.arange(len(places)), 2)
    return np.concatenate([_weighed(scorer, ends, places[part], weights[part], tokens) for part in parts])


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
        each = torch.tensor(weights, dtype=self.scores.dtype, device=self.scores.device)[:, None]
        (states,) = torch.autograd.grad((self.scores * each).sum(), self.last, retain_graph=True)  # once for all tokens
        rows = []
        for token in tokens.tolist():
            own = torch.zeros_like(states)
            own[:, self.first + token] = states[:, self.first + token]
            found = torch.autograd.grad(self.last, list(self.leaves.values()), own, retain_graph=True)
            parts = [(part * steps[name]).sum(dim=2) for name, part in zip(self.leaves, found, strict=True)]
            rows.append(torch.cat(parts, dim=1))
        return torch.stack(rows, dim=1)


def _interpolated(example: Example, there: dict[str, Tensor], inputs: dict[str, Tensor], places: Array) -> _Points:
    """The example at some places between baseline (0) and input (1)."""
    shares = torch.tensor(places, device=example.device)[:, None, None]
    leaves = {
        name: torch.lerp(there[name].clone(), x.clone(), shares.to(x.dtype)).detach().requires_grad_()  # no inference tensors
        for name, x in inputs.items()
    }
    spec, last = example.runner.info.spec, list[Tensor]()
    fed = np.repeat(example.fed.cpu().numpy(), len(places), axis=0)  # a row of ids for each point, so that batches are wide
    also: dict[str, Intervention] = {f"embedded/{name}": _instead(leaf) for name, leaf in leaves.items()}
    also[f"hidden/decoder.{spec.writer.passes - 1}.{spec.writer.layers - 1}"] = _noting(last.append)
    scores = forced(example, Copies(sites(spec), fed=fed, apart=True), also).log_probabilities()
    return _Points(scores, last[0], example.first, leaves)


def _noting(note: Callable[[Tensor], None]) -> Intervention:
    """Hands over a value and leaves it as it is."""

    def noted(value: Tensor, start: int) -> Tensor:
        kept = value.clone()  # what the network goes on with: a view of `value` would not be
        note(kept)
        return kept

    return noted


def _instead(leaf: Tensor) -> Intervention:
    """Another tensor, whatever the value was."""
    return lambda value, start: leaf


def _vectors(scorer: Scorer, ids: Mapping[str, int | None]) -> dict[str, Tensor]:
    """[1, position, model] by stack: the vectors that enter the first layer, or those of one id in every place."""
    example, found = scorer.example, dict[str, Tensor]()
    fed = np.full(example.fed.shape, ids.get("decoder") or 0) if ids else example.fed.cpu().numpy()
    source = None
    if example.source is not None and not example.source.is_floating_point():
        source = np.full(example.source.shape, ids.get("encoder") or 0) if ids else example.source.cpu().numpy()
    copies = Copies(sites(example.runner.info.spec), fed=fed, source=source)

    stacks = example.runner.info.spec.stacks
    also = {f"embedded/{stack}": _noting(lambda value, stack=stack: found.update({stack: value.detach()})) for stack in stacks}  # type: ignore[misc]
    _ask(scorer, lambda: forced(example, copies, also).log_probabilities())
    zeros = {stack for stack in stacks if ids and ids.get(stack) is None}
    return {stack: torch.zeros_like(x) if stack in zeros else x for stack, x in found.items()}


def _ask(scorer: Scorer, compute: Callable[[], Tensor]) -> Array:
    """The result of `compute`, computed with gradients as a call of the queue."""

    def computed() -> Tensor:
        with torch.inference_mode(False), torch.enable_grad():
            return compute().detach()

    return scorer.computed(computed)
