"""Batches: what several runs ask of one network, padded to one size, computed at once, and taken apart again.

A run asks its network one question at a time, a `Call`. Calls that fit together become one call with more rows: shorter inputs are
filled up, the filling is masked, and what the network records is cut into what each run would have recorded alone. No run can tell
the difference but by rounding. Where the filling could be seen, every call is computed alone: see `_nobody_sees_the_filling`.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import pad

from model.checkpoints.loaded import AnyNetwork
from model.errors import OutOfMemory
from model.huggingface.network import ForeignEncoder, ForeignNetwork, ForeignTranslator, ForeignWriter
from model.trace.types import AXES, Site
from model.transformer.attention import Intervention, Run
from model.transformer.cache import KVCache
from model.transformer.masks import Mask
from model.transformer.shared_head import MemoryLayer
from model.transformer.stacks import CausalLM, EncoderAlone, EncoderDecoder

MOST_POSITIONS = 8192
"""Rows times positions of one batch: beyond it more rows only take more memory."""


@dataclass(frozen=True, eq=False)
class Call:
    """One question to a network.

    Attributes:
        network: which one.
        run: recorder, interventions and cache of the run that asks.
        ids: [row, position] of ids, or [row, position, model] of features: a source, or a target as far as it is written.
        source_mask: which source positions may be looked at; None: there is no source but `ids`.
        memory: [row, key, model], the encoder's output; None: the encoder is what is asked.
        start: positions before it are in the run's cache.
        computed_by: computes the answer in place of one pass through the network; such a call is always computed alone.
    """

    network: AnyNetwork
    run: Run
    ids: Tensor
    source_mask: Mask | None = None
    memory: Tensor | None = None
    start: int = 0
    computed_by: Callable[[], Tensor] | None = None

    @property
    def queries(self) -> int:
        """Positions to be computed."""
        return self.ids.shape[1] - self.start

    def keys(self, site: Site) -> int:
        """Positions that a site of this call looks at."""
        return self.ids.shape[1] if site.kind == "self" or self.memory is None else self.memory.shape[1]


Ask: TypeAlias = Callable[[Call], Tensor]
"""Answers a call: the encoder's output [row, position, model], or logits [row, query, vocab]."""


def alone(call: Call) -> Tensor:
    """The network's own answer."""
    if call.computed_by is not None:
        return call.computed_by()
    match call.network:
        case CausalLM() | ForeignWriter() as network:
            answer: Tensor = network(call.ids, call.run, call.start)
            return answer
        case EncoderDecoder() | ForeignTranslator() as network if call.memory is not None and call.source_mask is not None:
            return network.decode(call.ids, call.memory, call.source_mask, call.run, call.start)
        case EncoderDecoder() | EncoderAlone() | ForeignEncoder() as network if call.source_mask is not None:
            return network.encode(call.ids, call.source_mask, call.run)
    raise TypeError(f"no such call of {type(call.network).__name__}")


def batch_key(call: Call) -> Hashable | None:
    """Batch key: calls with equal keys can be batched. None for a call that is always computed alone.

    Alone go long inputs (their kernel writes no weights out), a decoder that lays its target's mask over the source, runs that
    change a part of a mask (what the parts leave together is not looked at), and networks that another program runs: what their
    cache holds is theirs.
    """
    if isinstance(call.network, ForeignNetwork) or call.computed_by is not None:
        return None
    over_source = isinstance(call.network, EncoderDecoder) and any(
        isinstance(own, MemoryLayer) for own in call.network.decoder.layers
    )
    if call.run.fused or (over_source and call.memory is not None) or not isinstance(call.run.cache, KVCache):
        return None
    if any(name.endswith(("/mask_padding", "/mask_causal")) for name in call.run.interventions):
        return None
    width = call.ids.shape[1] if call.start else 0  # a step goes with steps at the same position, a first reading with any other
    return id(call.network), call.memory is None, call.start, width


def room(calls: Sequence[Call]) -> int:
    """How many of `calls`, from the first on, one batch has room for: at least one."""
    rows = list(accumulate(len(call.ids) for call in calls))
    widest = list(accumulate((max(call.ids.shape[1], call.keys(_CROSS)) for call in calls), max))
    return max(1, sum(r * w <= MOST_POSITIONS for r, w in zip(rows, widest, strict=True)))


def together(calls: Sequence[Call]) -> list[Tensor | Exception]:
    """The answers to calls of one batch key, or what went wrong with each.

    Where memory does not suffice, each half is tried; a call for which it does not suffice alone is refused, and only that one.
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
    return list(batch.answers()) if batch.hides_its_filling() else [_alone_or_refused(call) for call in calls]


def _alone_or_refused(call: Call) -> Tensor | Exception:
    try:
        return alone(call)
    except Exception as error:
        if not is_out_of_memory(error):
            return error  # goes back to the run that asked
    release()
    return OutOfMemory(device=str(call.ids.device), found=f"{len(call.ids)} × {call.ids.shape[1]}")


def is_out_of_memory(error: Exception) -> bool:
    """Whether a device has no room: torch has an error for it, but on a CPU only a sentence."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "DefaultCPUAllocator: can't allocate memory" in str(error)


def release() -> None:
    """Gives memory that is kept for later back to the device, so that the next try finds it."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


_CROSS = Site("decoder", 0, 0, "cross")


class Batch:
    """Several calls as one.

    Nothing reaches the recorders and caches of runs before the whole batch is computed, so a batch that failed can be tried anew.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = calls
        ends = list(accumulate(len(call.ids) for call in calls))
        self.rows = [slice(end - len(call.ids), end) for call, end in zip(calls, ends, strict=True)]
        self.recorded: list[tuple[str, Tensor]] = []
        self.caches = [call.run.cache.copy() for call in calls if isinstance(call.run.cache, KVCache)]
        masks = [_rows_of(call.source_mask, len(call.ids)) for call in calls if call.source_mask is not None]
        memories = [call.memory for call in calls if call.memory is not None]
        self.call = replace(
            calls[0],
            run=Run(),  # the real one would hold this batch, which would then keep its tensors until garbage is collected
            ids=_filled([call.ids for call in calls], 1),
            source_mask=Mask(_filled(masks, 3)) if masks else None,
            memory=_filled(memories, 1) if memories else None,
        )

    def hides_its_filling(self) -> bool:
        """Whether no query of a call looks at the filling of its row, and each may look at something.

        A query that may look at nothing looks at all keys alike, which would be more keys here than alone.
        """
        own = [torch.ones((), dtype=torch.bool, device=self.call.ids.device)]
        if self.call.source_mask is not None:
            own.append(self.call.source_mask.padding.any(-1).all())
        if self.call.source_mask is None or self.call.memory is not None:
            assert not isinstance(self.call.network, EncoderAlone | ForeignNetwork)
            mask = self.call.network.target_mask(self.call.ids, self.call.start).allowed  # [row or 1, 1, query, key]
            mask = mask.expand(len(self.call.ids), -1, -1, -1)
            for call, rows in zip(self.calls, self.rows, strict=True):
                seen = mask[rows, :, : call.queries]
                own += [~seen[..., call.ids.shape[1] :].any(), seen.any(-1).all()]
        return bool(torch.stack(own).all())

    def answers(self) -> list[Tensor]:
        """The answer to each call; its run's recorder and cache are then as if it had been computed alone."""
        names = {name for call in self.calls for name in call.run.interventions}
        answer = alone(replace(self.call, run=Run(self._record, {name: self._intervention(name) for name in names}, self)))
        answers = [answer[rows, : call.queries].clone() for call, rows in zip(self.calls, self.rows, strict=True)]
        parts = [
            [(name, self._own(index, name, value).clone()) for name, value in self.recorded] for index in range(len(self.calls))
        ]
        for call, cache, own in zip(self.calls, self.caches, parts, strict=True):  # needs no more memory, so it cannot fail halfway
            assert isinstance(call.run.cache, KVCache)
            call.run.cache.adopt(cache)
            for name, value in own:
                call.run.record(name, value)
        return answers

    def _record(self, name: str, value: Tensor) -> None:
        self.recorded.append((name, value))

    def _intervention(self, name: str) -> Intervention:
        """Each run changes its own part of the value `name`, which has the shape that it would have alone."""

        changing = [(i, call.run.interventions[name]) for i, call in enumerate(self.calls) if name in call.run.interventions]

        def intervene(value: Tensor, start: int) -> Tensor:
            parts = [(index, change(self._own(index, name, value), start)) for index, change in changing]
            if any(part.shape[-1] < value.shape[-1] and _looks_at_filling(name, part) for _, part in parts):
                raise FillingSeen(name)
            heads = max(part.shape[1] for _, part in parts)  # of a mask, where it differs between heads; else the axis is as it was
            changed = value.expand(-1, max(heads, value.shape[1]), *value.shape[2:]).clone()
            for index, part in parts:
                self._own(index, name, changed).copy_(part)
            return changed

        return intervene

    def _own(self, index: int, name: str, value: Tensor) -> Tensor:
        """The part of a recorded value that belongs to one call: its rows, without filling."""
        call, own = self.calls[index], value[self.rows[index]]
        if not name.startswith("attention/"):
            return own[:, : call.queries]
        _, site, kind = name.split("/")
        keys = call.keys(Site.parse(site))
        made = keys if site.endswith("cross") else call.queries  # of k and v: positions whose keys were computed now
        sizes = {"query": call.queries, "key": made if kind in ("k", "v") else keys}
        axes = ("head", "query", "key") if kind.startswith("mask") else AXES[kind]
        for dim, axis in enumerate(axes, start=1):
            own = own.narrow(dim, 0, sizes[axis]) if axis in sizes else own
        return own

    def keys_and_values(self, site: Site, compute: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """What each run's cache gives, one below the other, filled up: [row, head, key, head_dim], as for KVCache."""
        computed: list[tuple[Tensor, Tensor]] = []

        def own(index: int) -> tuple[Tensor, Tensor]:
            if not computed:
                computed.append(compute())
            k, v = computed[0]
            return self._own(index, f"attention/{site}/k", k), self._own(index, f"attention/{site}/v", v)

        held = [cache.keys_and_values(site, lambda index=index: own(index)) for index, cache in enumerate(self.caches)]  # type: ignore[misc]
        return _filled([k for k, _ in held], 2), _filled([v for _, v in held], 2)

    def once(self, site: Site, compute: Callable[[], Tensor]) -> Tensor:
        """Decoders that keep a stream are computed alone."""
        raise AssertionError("a decoder that keeps a stream was put into a batch")


class FillingSeen(Exception):
    """A query would look at the filling of its row: the batch is given up, and each of its calls computed alone."""


def _looks_at_filling(name: str, part: Tensor) -> bool:
    """Whether a changed value makes the softmax spread a row over all keys: no key is allowed, or a score is not finite."""
    if name.endswith("/mask"):
        return not part.any(dim=-1).all()
    return name.endswith("/scores") and not part.isfinite().all()


def _rows_of(mask: Mask, rows: int) -> Tensor:
    """The padding that a mask says, [row, 1, 1, key]."""
    return mask.padding.expand(rows, -1, -1, -1)


def _filled(parts: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors of unequal size along `axis`, one below the other along the first axis, the shorter ones filled up with zeros."""
    longest = max(part.shape[axis] for part in parts)
    after = parts[0].dim() - 1 - axis  # pad() counts axes from the last
    return torch.cat([pad(part, (0, 0) * after + (0, longest - part.shape[axis])) for part in parts])
