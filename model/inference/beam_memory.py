"""Memory of a beam search: what it could come to hold is worked out, and refused where it is too much, before it runs.

Each step of the search computes a row for each hypothesis, and a row is held while a hypothesis that has been in it can still be
shown (`Recorder.prune`). Most hypotheses soon share their rows, but when depends on the words: the bound is for a search in which
they share none, so a wide beam over a large vocabulary is refused also where it might have fitted.
"""

from collections.abc import Collection
from dataclasses import dataclass

from model.errors import BadSetting
from model.inference.interventions import sites
from model.spec.external import AnySpec
from model.spec.network import StackSpec
from model.spec.request import Keep

LARGEST = 2 << 30
"""Bytes that one beam search may hold: the records of its steps, and its keys and values."""

_FLOAT = 4  # bytes; a run in a type of two is taken for one of four


@dataclass(frozen=True)
class BeamMemory:
    """How the memory of a beam search grows.

    Attributes:
        spec: the network.
        size: hypotheses followed at once.
        prompt: positions before the first token that is written.
        source: positions of the encoder's output; 0: there is no encoder.
        keep: what is recorded besides weights, masks, positions and logits.
        fused: whether queries, keys and values are recorded instead of weights.
    """

    spec: AnySpec
    size: int
    prompt: int
    source: int
    keep: Collection[Keep] = ()
    fused: bool = False

    def refuse_too_many(self, tokens: int) -> None:
        """Refuses a search that writes up to `tokens` tokens where it could hold more than LARGEST. A beam of one always goes on.

        Raises:
            BadSetting: with the largest beam that fits.
        """
        fitting = max(1, self.size * LARGEST // max(1, self.bytes(tokens)))
        if self.size > fitting:
            needed = f"{self.size} could take {self.bytes(tokens) / 2**30:.1f} GB of memory"
            allowed = f"at most {fitting} where up to {tokens} tokens are written ({needed}; fewer tokens, max_length, take less)"
            raise BadSetting(name="beam_size", found=self.size, allowed=allowed)

    def bytes(self, tokens: int) -> int:
        """Bytes held at most when `tokens` tokens are written."""
        stack, kinds = self.spec.writer, [site.kind for site in sites(self.spec) if site.stack == "decoder"]
        own, across = kinds.count("self"), kinds.count("cross")
        width = stack.attention.heads * stack.attention.head_dim
        rows = tokens * (self.source if stack.wiring == "memory" else 1)  # such a decoder computes one for each source position
        keys = own * (tokens * self.prompt + tokens * (tokens + 1) // 2) + across * rows * self.source  # in all steps
        cached = 2 * width * (own * (self.prompt + tokens) + across * self.source)
        cached += stack.d_model * self.source * kinds.count("memory")
        maps = 0 if self.fused else 1 + ("scores" in self.keep)
        of_masks = 3  # bytes: allowed, padding, causal
        floats = rows * self._floats_of_a_row() + cached
        return self.size * (_FLOAT * floats + keys * (_FLOAT * maps * stack.attention.heads + of_masks))

    def _floats_of_a_row(self) -> int:
        """Numbers recorded of one hypothesis in one step, but for its weights and scores."""
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
