"""Gradients of a target's log-probabilities by the vectors that a network reads: gradient × input, and integrated gradients.

The vectors are those that enter the first layer, positions included (`embedded/STACK`). For each target token t, with F its
log-probability, x the vectors and b those of the baseline:

    gradient × input        ∂F/∂x_i · x_i
    integrated gradients    (x_i − b_i) · ∫ ∂F/∂x_i (b + α (x − b)) dα, from α = 0 to 1

The integrated gradients of a token sum to F(x) − F(b). The integral is computed by Gauss-Legendre quadrature with more and more
points, until each sum is within TOLERANCE of that difference, or there are MOST_POINTS.

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
from model.inference.calls import Call
from model.inference.interventions import sites
from model.trace.types import Array
from model.transformer.attention import Intervention, Run

FIRST_POINTS, MOST_POINTS = 16, 512
TOLERANCE = 0.01
"""How far the sum of integrated gradients may be from the difference, as a share of it."""


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradient measures of one example.

    Attributes:
        gradient, integrated: [token, input], over the inputs of all stacks, one after the other.
        difference: [token], F(x) − F(b).
    """

    gradient: Array
    integrated: Array
    difference: Array


def gradients(scorer: Scorer, baseline: Mapping[str, int | None], on_count: OnCount) -> Gradients:
    """Gradient × input and integrated gradients of every measured token.

    Args:
        baseline: by stack the id at every position of the baseline; None: vectors of zeros.
        on_count: called with the number of tokens done so far.
    """
    inputs, there = _vectors(scorer, {}), _vectors(scorer, baseline)
    scores = _ask(scorer, lambda: _interpolated(scorer.example, there, inputs, np.array([0.0, 1.0])).scores)
    difference, left = scores[1] - scores[0], np.arange(scores.shape[1])
    zeros = {name: torch.zeros_like(x) for name, x in inputs.items()}
    gradient = _summed(scorer, (zeros, inputs), np.ones(1), np.ones(1), left)
    integrated, points = np.zeros_like(gradient), FIRST_POINTS
    while len(left) and points <= MOST_POINTS:
        integrated[left] = _integrated(scorer, (there, inputs), points, left)
        left = left[np.abs(integrated.sum(axis=1) - difference)[left] > TOLERANCE * np.abs(difference[left])]
        points *= 2
        on_count(len(difference) - len(left), len(difference))
    return Gradients(gradient, integrated, difference)


Ends: TypeAlias = tuple[dict[str, Tensor], dict[str, Tensor]]
"""The vectors [1, position, model] at both ends of the integral, by stack: of the baseline, and of the input."""


def _integrated(scorer: Scorer, ends: Ends, points: int, tokens: Array) -> Array:
    """[token, input], with so many points."""
    places, weights = np.polynomial.legendre.leggauss(points)
    places, weights = (places + 1) / 2, weights / 2  # from [-1, 1] to [0, 1]
    size = scorer.rows(graph=True)
    chunks = [slice(begin, begin + size) for begin in range(0, points, size)]
    return np.asarray(sum(_summed(scorer, ends, places[own], weights[own], tokens) for own in chunks))


def _summed(scorer: Scorer, ends: Ends, places: Array, weights: Array, tokens: Array) -> Array:
    """[token, input]: Σ weight · gradient · (input − baseline) over some points between baseline and input.

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
    return np.asarray(sum(_summed(scorer, ends, places[part], weights[part], tokens) for part in parts))


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
        """[token, input]: the gradients by the leaves times `steps`, weighed and summed over the points."""
        each = torch.tensor(weights, dtype=self.scores.dtype, device=self.scores.device)[:, None]
        (states,) = torch.autograd.grad((self.scores * each).sum(), self.last, retain_graph=True)  # once for all tokens
        rows = []
        for token in tokens.tolist():
            own = torch.zeros_like(states)
            own[:, self.first + token] = states[:, self.first + token]
            found = torch.autograd.grad(self.last, list(self.leaves.values()), own, retain_graph=True)
            parts = [(part * steps[name]).sum(dim=(0, 2)) for name, part in zip(self.leaves, found, strict=True)]
            rows.append(torch.cat(parts))
        return torch.stack(rows)


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

    example = scorer.example
    call = Call(example.runner.network, Run(), example.fed, computed_by=computed)
    found: Array = scorer.ask(call).cpu().double().numpy()
    return found
