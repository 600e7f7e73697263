"""The parts of a residual stream, computed another way than the project does: forwards, each a vector, norms as whole matrices.

It knows the networks by their specs and parameters' names, reads the recorded values of a run, and shares no code with
`model.features.circuit.stream`, which goes backwards.
"""

from typing import Any

import numpy as np

from model.requests.network import StackSpec
from model.trace.types import Array, Trace

Parts = dict[str, Array]
"""Vectors [position, model] by the text of the part."""


class Forward:
    """One run of one of our networks."""

    def __init__(self, network: Any, trace: Trace, spec: Any) -> None:
        self.weights = {name: tensor.double().numpy() for name, tensor in network.state_dict().items()}
        self.trace, self.spec, self.alone = trace, spec, spec.encoder is None

    def weight(self, stack: str, name: str) -> Any:
        return self.weights.get(name if self.alone else f"{stack}.{name}")

    def normed(self, parts: Parts, states: Array, stack: str, module: str, place: str) -> Parts:
        """Each part times the matrix of a norm at its position, and the norm's bias as one more part."""
        own: StackSpec = self.spec.stacks[stack]
        gain, bias, n = self.weight(stack, f"{module}.weight"), self.weight(stack, f"{module}.bias"), own.d_model
        centre = np.eye(n) - (0 if own.norm == "rms" else 1 / n)
        found = {name: vectors.copy() for name, vectors in parts.items()}
        for row, state in enumerate(states):
            if own.norm == "unbiased":
                spread = state.std(ddof=1) + 1e-6
            else:
                moment = (state**2).mean() if own.norm == "rms" else state.var()
                spread = (moment + own.norm_epsilon) ** 0.5
            matrix = np.diag(gain) @ centre / spread
            for name, vectors in found.items():
                vectors[row] = matrix @ parts[name][row]
        return found | ({} if bias is None else {f"{place} norm-bias": np.tile(bias, (len(states), 1))})

    def stage(self, name: str) -> Array:
        return np.asarray(self.trace.stages[name], np.float64)

    def wrote(self, stack: str, place: str, module: str) -> Parts:
        """What the heads of an attention sublayer wrote."""
        contexts = np.asarray(self.trace.at(place).context, np.float64)
        joined, bias = self.weight(stack, f"{module}.output.weight"), self.weight(stack, f"{module}.output.bias")
        width = contexts.shape[-1]
        found = {
            f"{place} head {head}": np.stack([joined[:, head * width :][:, :width] @ row for row in context])
            for head, context in enumerate(contexts)
        }
        return found | ({} if bias is None else {f"{place} output-bias": np.tile(bias, (contexts.shape[1], 1))})

    def entered(self, stack: str) -> Parts:
        if f"{stack}/scaled" not in self.trace.stages:
            return {f"{stack} features": np.asarray(self.trace.embedded[stack], np.float64)}
        found = {f"{stack} embedding": self.stage(f"{stack}/scaled")}
        positions = self.trace.positions.get(stack)
        return found | ({f"{stack} position": positions.astype(np.float64)} if positions is not None and positions.any() else {})

    def walk(self, stack: str) -> tuple[dict[str, tuple[Parts, Parts]], Parts]:
        """For each site what its queries and its keys are made of, and the parts of the stack's last states."""
        own: StackSpec = self.spec.stacks[stack]
        assert own.wiring != "memory"
        memory = {} if stack == "encoder" or self.alone else self.walk("encoder")[1]
        parts, state = self.entered(stack), np.asarray(self.trace.embedded[stack], np.float64)
        read: dict[str, tuple[Parts, Parts]] = {}
        for pass_ in range(own.passes):
            for layer in range(own.layers):
                crossing = bool(memory)
                for kind in ("self", "cross") if crossing else ("self",):
                    place = f"{stack}.{pass_}.{layer}.{kind}"
                    module = f"layers.{layer}.{kind}_attention" if crossing else f"layers.{layer}.attention"
                    if own.wiring == "attention":
                        read[place] = parts, parts
                        parts = self.wrote(stack, place, module)
                        continue
                    norm = f"layers.{layer}.{kind if crossing else 'attention'}_residual.norm"
                    pre = own.norm_order == "pre"
                    seen = self.normed(parts, state, stack, norm, place) if pre else parts
                    read[place] = seen, memory if kind == "cross" else seen
                    parts, state = parts | self.wrote(stack, place, module), self.stage(f"{place}/residual")
                    if not pre:
                        parts, state = self.normed(parts, state, stack, norm, place), self.stage(f"{place}/normed")
                if own.hidden and own.wiring != "attention":
                    place, norm = f"{stack}.{pass_}.{layer}.feed_forward", f"layers.{layer}.feed_forward_residual.norm"
                    parts, state = parts | {place: self.stage(f"{place}/output")}, self.stage(f"{place}/residual")
                    if own.norm_order == "post":
                        parts, state = self.normed(parts, state, stack, norm, place), self.stage(f"{place}/normed")
        return read, self.normed(parts, state, stack, "final_norm", stack) if own.final_norm else parts

    def turned(self, stack: str, vectors: Array, row: int, cross: bool) -> Array:
        """Vectors [part, head_dim] of one position, turned as complex numbers."""
        own: StackSpec = self.spec.stacks[stack]
        if cross or not own.positions.startswith("rotary"):
            return vectors
        half = vectors.shape[1] // 2
        angles = row / own.rotary_base ** (np.arange(half) * 2 / vectors.shape[1])
        pairs = own.positions == "rotary-pairs"
        points = vectors[:, 0::2] + 1j * vectors[:, 1::2] if pairs else vectors[:, :half] + 1j * vectors[:, half:]
        points = points * np.exp(1j * angles)
        together = np.stack([points.real, points.imag], axis=-1).reshape(vectors.shape)
        return together if pairs else np.concatenate([points.real, points.imag], axis=1)

    def projected(self, place: str, side: int, head: int, row: int) -> Parts:
        """The parts of a query (side 0) or key (side 1) of a head: [head_dim]."""
        stack, _, layer, kind = place.split(".")
        own = self.spec.stacks[stack].attention
        crossing = stack == "decoder" and not self.alone
        module = f"layers.{layer}.{kind + '_' if crossing else ''}attention.{('query', 'key')[side]}"
        shared = own.heads // (own.key_heads or own.heads) if side else 1
        columns = slice(head // shared * own.head_dim, (head // shared + 1) * own.head_dim)
        weight, bias = self.weight(stack, f"{module}.weight")[columns], self.weight(stack, f"{module}.bias")
        parts = {name: weight @ vectors[row] for name, vectors in self.walk(stack)[0][place][side].items()}
        parts |= {} if bias is None else {f"{place} projection-bias": bias[columns]}
        turned = self.turned(stack, np.stack(list(parts.values())), row, kind == "cross")
        return dict(zip(parts, turned, strict=True))

    def logits(self, row: int, direction: Array) -> dict[str, float]:
        return {name: float(vectors[row] @ direction) for name, vectors in self.walk("decoder")[1].items()}
