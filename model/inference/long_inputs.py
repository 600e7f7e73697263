"""Long inputs: whether the weights of a run are written out, or computed when they are read; which logits are computed."""

from math import isqrt

from model.checkpoints.loaded import Runner
from model.errors import TooManyTokens, phrase
from model.huggingface.network import ForeignNetwork
from model.huggingface.recorded.network import RecordedNetwork
from model.inference.inputs import Inputs
from model.inference.interventions import sites
from model.spec.request import RunRequest

LONG = 256
"""Length of source or target above which the fused kernel is used, unless scores are recorded, or an intervention changes scores,
masks or weights (docs/benchmarks.md measures the cost)."""

LARGEST = 2 << 30
"""Most bytes of weights and scores in one run, and of the logits of what a run is fed."""

LARGEST_PROMPT = 512 << 20
"""Most bytes of a prompt's logits. Above, only those of its last token are computed, which decide the first new one."""


def is_fused(checkpoint: Runner, request: RunRequest, inputs: Inputs, changed: bool) -> bool:
    """Whether the run uses the fused kernel: for long inputs, whose weights are computed from q and k when they are shown.

    Args:
        changed: whether an intervention changes scores, masks or weights.

    Raises:
        TooManyTokens: recorded weights and scores would exceed LARGEST.
    """
    longest = max(inputs.longest, request.source_pad_to or 0)
    if isinstance(checkpoint.network, RecordedNetwork) and request.target is None:  # the recorded pass reads all that was written
        grown = len(inputs.source) if checkpoint.network.kind == "decoder" else 0
        longest = max(longest, min(grown + request.decoding.max_length, checkpoint.info.spec.writer.max_positions))
    ours = not isinstance(
        checkpoint.network, ForeignNetwork | RecordedNetwork
    )  # the library's attention writes weights out, and scores never
    scores = ours and "scores" in request.keep
    if ours and not scores and not changed:
        return longest > LONG
    heads, bytes_ = sum(sites(checkpoint.info.spec).values()), 8 if scores else 4
    if (needed := bytes_ * heads * longest**2) > LARGEST:
        size = {"heads": heads, "gigabytes": needed / 2**30}
        if scores:
            reason = phrase("scores and weights of {heads:,} heads would take {gigabytes:.1f} GB; without scores, more fit", **size)
        elif changed and ours:
            reason = phrase("weights of {heads:,} heads would take {gigabytes:.1f} GB; more fit where they are not changed", **size)
        else:
            reason = phrase("weights of {heads:,} heads would take {gigabytes:.1f} GB", **size)
        raise TooManyTokens(found=longest, allowed=isqrt(LARGEST // (bytes_ * heads)), reason=reason)
    return False


def only_last_logits(checkpoint: Runner, request: RunRequest, inputs: Inputs) -> bool:
    """Whether a run computes the logits of its prompt's last token alone, because those of all tokens take too much memory.

    Raises:
        TooManyTokens: all logits are needed, since the tokens are fed and not written, and would exceed LARGEST.
    """
    spec = checkpoint.info.spec
    fed = inputs.source if spec.encoder is None else inputs.target
    if spec.decoder is None or spec.output is None or fed is None:
        return False
    of_a_token = 4 * spec.writer.vocab
    needed = of_a_token * len(fed)
    if spec.encoder is None and request.decoding.max_length and not isinstance(checkpoint.network, RecordedNetwork):
        return needed > LARGEST_PROMPT
    if needed > LARGEST:
        reason = phrase(
            "the logits of all {vocab:,} tokens of the vocabulary, for each position, would take {gigabytes:.1f} GB",
            vocab=spec.writer.vocab,
            gigabytes=needed / 2**30,
        )
        strip = "source" if spec.encoder is None else "target"
        raise TooManyTokens(found=len(fed), allowed=LARGEST // of_a_token, reason=reason, strip=strip)
    return False
