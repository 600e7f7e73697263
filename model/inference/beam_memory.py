"""Memory limit of beam search: an upper bound on its memory is computed before it runs, and a search above the limit is refused.

Each step computes a row for each hypothesis. A row stays in memory while some hypothesis that can still be shown goes back to it
(`Recorder.prune`). Most hypotheses soon share their earlier rows, but how soon depends on the text. The bound assumes that they
share none, so a wide beam over a large vocabulary may be refused although it would have fitted.
"""

from collections.abc import Collection
from dataclasses import dataclass

from model.errors import DoesNotFit, phrase
from model.inference.interventions import sites
from model.spec.external import AnySpec
from model.spec.network import StackSpec
from model.spec.request import Keep

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
        own, across = kinds.count("self"), kinds.count("cross")
        width = stack.attention.heads * stack.attention.head_dim
        rows = tokens * (self.source if stack.wiring == "memory" else 1)  # this decoder computes a row for each source position
        keys = own * (tokens * self.prompt + tokens * (tokens + 1) // 2) + across * rows * self.source  # in all steps
        cached = 2 * width * (own * (self.prompt + tokens) + across * self.source)
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
