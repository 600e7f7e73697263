"""Batching: which calls of several runs are computed as one, and what happens if memory is too small for them.

A run makes one call at a time. Calls with equal batch keys become one batch (batch.py). Where a query would attend to the padding
of its batch, every call is computed alone: see `Batch.hides_padding`.
"""

from collections.abc import Hashable, Sequence
from itertools import accumulate

import torch
from torch import Tensor

from model.errors import OutOfMemory
from model.huggingface.network import ForeignNetwork
from model.inference.batch import Batch, begins_anywhere
from model.inference.calls import Call, computed
from model.transformer.cache import KVCache
from model.transformer.shared_head import MemoryLayer
from model.transformer.stacks import EncoderDecoder

MOST_POSITIONS = 8192
"""Most rows times positions of one batch; more rows would take memory and save no time."""

SHORT = 4
"""Most positions of a short step. Long ones check guesses (draft.py)."""


def batch_key(call: Call) -> Hashable | None:
    """Batch key: calls with equal keys can be batched. None for a call that is always computed alone.

    Never batched are: long inputs, since the fused kernel computes no weights; prompts of which only the last logits are computed;
    a decoder that applies its target's mask to the source; runs that change a part of a mask, since only the combined mask is
    checked for padding; and networks of other libraries, which have their own caches.
    """
    if isinstance(call.network, ForeignNetwork) or call.computed_by is not None:
        return None
    over_source = isinstance(call.network, EncoderDecoder) and any(
        isinstance(own, MemoryLayer) for own in call.network.decoder.layers
    )
    if (
        call.run.fused
        or call.run.last_logits
        or (over_source and call.memory is not None)
        or not isinstance(call.run.cache, KVCache)
    ):
        return None
    if any(name.endswith(("/mask_padding", "/mask_causal")) for name in call.run.interventions):
        return None
    # Where steps may begin at different positions, short ones and long ones are apart: padding is computed, too.
    place = ("step", call.queries > SHORT) if begins_anywhere(call) else call.start
    return id(call.network), call.memory is None, place


def room(calls: Sequence[Call]) -> int:
    """Number of calls, counted from the first, that fit into one batch; at least one."""
    rows = list(accumulate(len(call.ids) for call in calls))
    widest = list(accumulate((max(call.ids.shape[1], call.source_keys) for call in calls), max))
    return max(1, sum(r * w <= MOST_POSITIONS for r, w in zip(rows, widest, strict=True)))


def together(calls: Sequence[Call]) -> list[Tensor | Exception]:
    """The results of calls with one batch key, or the error of each.

    If memory is too small, each half is tried; only a call that does not fit by itself gets OutOfMemory.
    """
    if len(calls) == 1:
        return [_alone_or_refused(calls[0])]
    try:
        return _at_once(calls)
    except Exception as error:
        too_large = is_out_of_memory(error)
    if not too_large:
        return [_alone_or_refused(call) for call in calls]  # whose error it is shows when each runs alone
    release()  # here and not above: until its `except` has ended, an error holds the tensors of the try that failed
    half = len(calls) // 2
    return together(calls[:half]) + together(calls[half:])


def _at_once(calls: Sequence[Call]) -> list[Tensor | Exception]:
    batch = Batch(calls)
    return list(batch.answers()) if batch.hides_padding() else [_alone_or_refused(call) for call in calls]


def _alone_or_refused(call: Call) -> Tensor | Exception:
    try:
        return computed(call)
    except Exception as error:
        if not is_out_of_memory(error):
            return error  # goes back to the run that asked
    release()
    return OutOfMemory(device=str(call.ids.device), found=f"{len(call.ids)} × {call.ids.shape[1]}")


def is_out_of_memory(error: Exception) -> bool:
    """Whether a device is out of memory: torch has an error class for it, but on a CPU only a message."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "DefaultCPUAllocator: can't allocate memory" in str(error)


def release() -> None:
    """Returns cached memory to the device, so that the next attempt can use it."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
