"""Batching: which calls of several runs are computed as one, and what happens if memory is too small for them.

A run makes one call at a time. Calls with equal batch keys become one `Batch`. Where a query would attend to the padding
of its batch, every call is computed alone: see `Batch.hides_padding`.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, chain

import torch
from torch import Tensor, constant_pad_nd, nn

from model.errors import OutOfMemory
from model.inference.calls import Call, computed
from model.inference.recorder import Recorder
from model.trace.types import AXES, Site
from model.transformer.attention import Intervention, Run
from model.transformer.cache import KVCache
from model.transformer.masks import Mask
from model.transformer.networks import is_out_of_memory as is_out_of_memory
from model.transformer.shared_head import MemoryLayer
from model.transformer.stacks import CausalLM, Embedding, EncoderDecoder

MOST_POSITIONS = 8192
"""Most rows times positions of one batch; more rows would take memory and save no time."""

SHORT = 4
"""Most positions of a short step. Long ones check guesses (`Draft`)."""


def batch_key(call: Call) -> Hashable | None:
    """Batch key: calls with equal keys can be batched. None for a call that is always computed alone.

    Never batched are: long inputs, since the fused kernel computes no weights; prompts of which only the last logits are computed;
    a decoder that applies its target's mask to the source; runs that change a part of a mask, since only the combined mask is
    checked for padding; and networks of other libraries, which have their own caches.
    """
    if call.computed_by is not None or not call.network.batched:
        return None
    # `MemoryLayer` puts the target's mask over the source: padding of the batch would then be read as source.
    over_source = isinstance(call.network, EncoderDecoder) and any(
        isinstance(layer, MemoryLayer) for layer in call.network.decoder.layers
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
    position = ("step", call.queries > SHORT) if begins_anywhere(call) else call.start
    return id(call.network), call.memory is None, position


def room(calls: Sequence[Call]) -> int:
    """Number of calls, counted from the first, that fit into one batch; at least one."""
    # A batch is as wide as its longest text: each further call adds rows and may widen all others.
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
        # An error of one call is an error of the batch; then each is computed alone, and the others get their answers.
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


def release() -> None:
    """Returns cached memory to the device, so that the next attempt can use it."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def begins_anywhere(call: Call) -> bool:
    """Whether a batch may hold this step of a decode beside steps that begin at other positions.

    Not with rotary positions, which are no value of their own that could differ from row to row: the attention turns its queries.
    """
    match call.network:
        case EncoderDecoder() | CausalLM() as network if call.start:
            # Exactly this class: one without added positions (`EmbeddingAlone`) has none that could be shifted row by row.
            return type((network.decoder if isinstance(network, EncoderDecoder) else network).embedding) is Embedding
    return False


class Batch:
    """Several calls as one, whose rows are those of the calls, one call after the other.

    Recorders and caches of the runs are changed only after the whole batch was computed, so a failed batch can be tried again.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = calls
        # Of two calls with one and three rows (a beam search), the first gets row 0 of the batch and the second rows 1 to 3.
        ends = list(accumulate(len(call.ids) for call in calls))
        self.rows = [slice(end - len(call.ids), end) for call, end in zip(calls, ends, strict=True)]
        self.recorded: list[tuple[str, Tensor, list[int]]] = []
        self._parts: dict[tuple[str, ...], list[tuple[slice, ...]]] = {}
        # Runs whose recorders want the same are asked once for each value: the numbers of their calls by what they want.
        self._choices = defaultdict[object, list[int]](list)
        for index, call in enumerate(calls):
            self._choices[call.run.record.choice if isinstance(call.run.record, Recorder) else None].append(index)
        self.caches = [call.run.cache.copy() for call in calls if isinstance(call.run.cache, KVCache)]
        # Steps that begin at positions 3 and 5 are computed as if both began at 5, with two positions of padding before the first.
        self.start = max(call.start for call in calls)
        self.moved = [self.start - call.start for call in calls]
        """Of each call, the positions of padding before its first."""
        masks = [_rows_of(call.source_mask, len(call.ids)) for call in calls if call.source_mask is not None]
        memories = [call.memory for call in calls if call.memory is not None]
        self.call = replace(
            calls[0],
            run=Run(),  # the real one would hold this batch, which would then keep its tensors until garbage is collected
            ids=_padded([call.ids for call in calls], 1, self.moved),
            source_mask=Mask(_padded(masks, 3)) if masks else None,
            memory=_padded(memories, 1) if memories else None,
            start=self.start,
        )
        # Where the text of each row begins and ends among the positions of the batch: [row, 1, 1, 1] each.
        spans = [[(moved, moved + call.ids.shape[1])] * len(call.ids) for call, moved in zip(calls, self.moved, strict=True)]
        first, self._end = torch.tensor(list(chain(*spans)), device=self.call.ids.device)[:, :, None, None, None].unbind(1)
        self._keys = torch.arange(self.call.ids.shape[1], device=self.call.ids.device)
        self._after_padding = self._keys >= first  # [row, 1, 1, key]

    def hides_padding(self) -> bool:
        """Whether no query attends to the padding of its row, and each may attend to some key.

        A query without an allowed key attends to all keys equally, which would be more keys in the batch than alone.
        """
        # Each condition is a tensor of one truth value, so that a GPU is asked once for all of them.
        conditions = [torch.ones((), dtype=torch.bool, device=self.call.ids.device)]
        if self.call.source_mask is not None:
            conditions.append(self.call.source_mask.padding.any(-1).all())
        if self.call.source_mask is None or self.call.memory is not None:
            assert isinstance(self.call.network, EncoderDecoder | CausalLM)
            allowed = self.call.network.target_mask(self.call.ids, self.start).allowed
            mask = allowed & self._after_padding  # [row, 1, query or 1, key]
            padding = self._keys[self.start :, None] >= self._end  # [row, 1, query, 1]: what these attend to is for nobody
            # Every other query keeps to the keys of its own text, and has at least one.
            conditions += [(padding | ~(mask & (self._keys >= self._end))).all(), (padding | mask.any(-1, keepdim=True)).all()]
        return bool(torch.stack(conditions).all())  # one question to the device instead of three

    def answers(self) -> list[Tensor]:
        """The result of each call; its run's recorder and cache are then as if it had been computed alone."""
        # What rows see that were moved comes first; then each run changes its own part, as if it were alone.
        moves = self._moved_values()
        names = {name for call in self.calls for name in call.run.interventions} | moves.keys()
        changes = {name: self._intervention(name, moves.get(name, _unmoved)) for name in names}
        answer = computed(replace(self.call, run=Run(self._record, changes, self)))
        answers = [answer[rows, : call.queries].clone() for call, rows in zip(self.calls, self.rows, strict=True)]
        # What each run gets of the recorded values. All layers show the same mask, whose rows are copied once for each run.
        recordings: list[list[tuple[str, Tensor]]] = [[] for _call in self.calls]
        # The copy of one value for each run, by the value and by what of it is padding.
        copies = defaultdict[tuple[int, tuple[str, ...]], dict[int, Tensor]](dict)
        for name, value, wanting in self.recorded:
            parts, copy_of = self._parts_in(axes := _padded_axes(name)), copies[id(value), axes]
            for index in wanting:
                if index not in copy_of:
                    copy_of[index] = value[parts[index]].clone()
                recordings[index].append((name, copy_of[index]))
        # Nothing below needs more memory, so it cannot fail halfway: either all runs have gone on by this step, or none.
        for call, cache, kept in zip(self.calls, self.caches, recordings, strict=True):
            assert isinstance(call.run.cache, KVCache)
            call.run.cache.adopt(cache)
            record = call.run.record.add if isinstance(call.run.record, Recorder) else call.run.record
            for name, value in kept:
                record(name, value)
        return answers

    def _moved_values(self) -> dict[str, Callable[[Tensor], Tensor]]:
        """What is different for rows that were moved: their positional encodings, and keys that only fill the space before them."""
        if not any(self.moved):
            return {}
        network = self.call.network
        assert isinstance(network, EncoderDecoder | CausalLM)
        # A row that was moved right must not see the padding before it, and keeps the positions that it has alone.
        stack = network.decoder if isinstance(network, EncoderDecoder) else network
        sites = [Site("decoder", pass_, layer, "self") for pass_ in range(stack.passes) for layer in range(len(stack.layers))]
        # Every layer has the same mask, unless a run changes it.
        without_padding = lru_cache(maxsize=1)(lambda mask: mask & self._after_padding)
        masks = {f"attention/{site}/mask": without_padding for site in sites}
        return masks | {"positions/decoder": lambda rows: self._positions(stack.embedding).expand_as(rows)}

    def _positions(self, embedding: nn.Module) -> Tensor:
        """The positional encodings of each row where it really is: [row, query, model]."""
        assert isinstance(embedding, Embedding)
        tables = [embedding.positions.rows(embedding.first(call.start), call.queries) for call in self.calls]  # each [query, model]
        return _padded([rows.expand(len(call.ids), -1, -1) for call, rows in zip(self.calls, tables, strict=True)], 1)

    def _record(self, name: str, value: Tensor) -> None:
        # Most runs keep the same, so that few need to be asked.
        kinds = [indices for indices in self._choices.values() if _wants(self.calls[indices[0]], name)]
        if kinds:
            self.recorded.append((name, value, list(chain(*kinds))))

    def _intervention(self, name: str, move: Callable[[Tensor], Tensor]) -> Intervention:
        """What changes the value `name`: the move of rows, then the runs, each of which gets its own part as it would be alone."""
        changing = [(i, call.run.interventions[name]) for i, call in enumerate(self.calls) if name in call.run.interventions]

        def intervene(value: Tensor, start: int) -> Tensor:
            # First what the batch itself changes, then each run's own edits, on its own rows alone.
            value = move(value)
            parts = [(index, change(self._part(index, name, value), self.calls[index].start)) for index, change in changing]
            if not parts:
                return value
            # A softmax over nothing allowed spreads over all keys: alone, these are those of the run, in the batch padding, too.
            if any(part.shape[-1] < value.shape[-1] and _attends_to_padding(name, part) for _, part in parts):
                raise PaddingSeen(name)
            # A run may make its mask different for each head: then the rows of all runs get an axis of heads.
            heads = max(part.shape[1] for _, part in parts)
            changed = value.expand(-1, max(heads, value.shape[1]), *value.shape[2:]).clone()
            for index, part in parts:
                self._part(index, name, changed).copy_(part)
            return changed

        return intervene

    def _part(self, index: int, name: str, value: Tensor) -> Tensor:
        """The part of a recorded value [row, …] that belongs to one call: its rows, without padding."""
        return value[self._parts_in(_padded_axes(name))[index]]

    def _parts_in(self, axes: tuple[str, ...]) -> list[tuple[slice, ...]]:
        """The part of each call in a value [row, …] with these axes."""
        if axes not in self._parts:
            self._parts[axes] = [self._slices(index, axes) for index in range(len(self.calls))]
        return self._parts[axes]

    def _slices(self, index: int, axes: tuple[str, ...]) -> tuple[slice, ...]:
        """The part of one call in a value [row, …] with these axes; the last ones are left out where it has all of them.

        The second of two calls, with a text of 3 tokens beside one of 5, has in weights [row, head, query, key] the part
        [1:2, :, :3, :3]: its row of the batch, all heads, its queries and its keys.
        """
        call, moved, whole = self.calls[index], self.moved[index], slice(None)
        # Padding comes after the queries and after the source, but before the keys of a row that was moved to a later position.
        slices_of = {
            "query": whole if call.queries == self.call.queries else slice(call.queries),
            "own": whole if call.ids.shape[1] == self.call.ids.shape[1] else slice(moved, moved + call.ids.shape[1]),
            "source": whole if call.source_keys == self.call.source_keys else slice(call.source_keys),
        }
        slices = [self.rows[index], *(slices_of.get(axis, whole) for axis in axes)]
        while slices[-1] == whole:  # indexing by fewer axes is faster, and most calls have no padding
            slices.pop()
        return tuple(slices)

    def keys_and_values(self, site: Site, compute: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Keys and values from the caches of all runs, padded and joined: [row, head, key, head_dim], as for KVCache."""
        computed: list[tuple[Tensor, Tensor]] = []

        def part_of(index: int) -> tuple[Tensor, Tensor]:
            if not computed:  # the keys and values of all calls are computed at once, where the first cache needs its own
                computed.append(compute())
            k, v = computed[0]
            return self._part(index, f"attention/{site}/k", k), self._part(index, f"attention/{site}/v", v)

        # Each cache appends its own new rows, without padding: it then holds what it would hold alone.
        held = [cache.keys_and_values(site, lambda index=index: part_of(index)) for index, cache in enumerate(self.caches)]  # type: ignore[misc]
        if site.kind == "self":
            return _padded([k for k, _ in held], 2, self.moved), _padded([v for _, v in held], 2, self.moved)
        # The keys of a source stay the same while the same runs go on together: then the joined ones are those of the last step.
        parts, joined = self.caches[0].joined.get(site, ((), None))
        if joined is None or len(parts) != len(held) or any(before is not now for before, now in zip(parts, held, strict=True)):
            joined = _padded([k for k, _ in held], 2), _padded([v for _, v in held], 2)
            self.caches[0].joined[site] = tuple(held), joined
        return joined

    def once(self, site: Site, compute: Callable[[], Tensor]) -> Tensor:
        """Never called: decoders that cache a stream are not batched."""
        raise AssertionError("a decoder that keeps a stream was put into a batch")


def _unmoved(value: Tensor) -> Tensor:
    return value


def _wants(call: Call, name: str) -> bool:
    return not isinstance(call.run.record, Recorder) or call.run.record.wants(name)


@lru_cache(maxsize=8192)
def _padded_axes(name: str) -> tuple[str, ...]:
    """Which axes of a recorded value after [row] may be padded: queries, own or source keys; "" for other axes."""
    if not name.startswith("attention/"):
        return ("query",)
    # Queries, keys of the row's own text, and keys of the source are padded by different amounts.
    _, site, kind = name.split("/")
    keys = "source" if site.endswith("cross") else "query" if kind in ("k", "v") else "own"  # k and v: only those computed now
    axes = ("head", "query", "key") if kind.startswith("mask") else AXES[kind]
    return tuple({"query": "query", "key": keys}.get(axis, "") for axis in axes)


class PaddingSeen(Exception):
    """A query would attend to the padding of its row: the batch is dropped, and each of its calls is computed alone."""


def _attends_to_padding(name: str, part: Tensor) -> bool:
    """Whether a changed value makes the softmax spread a row over all keys: no key is allowed, or a score is not finite."""
    if name.endswith("/mask"):
        return not part.any(dim=-1).all()
    return name.endswith("/scores") and not part.isfinite().all()


def _rows_of(mask: Mask, rows: int) -> Tensor:
    return mask.padding.expand(rows, -1, -1, -1)


def _padded(parts: Sequence[Tensor], axis: int, before: Sequence[int] | None = None) -> Tensor:
    """Tensors padded with zeros to the same size along `axis`, joined along the first axis.

    Args:
        before: how many of the zeros of each come before it; None: all come after.
    """
    before = before or [0] * len(parts)
    longest = max(part.shape[axis] + left for part, left in zip(parts, before, strict=True))
    after = parts[0].dim() - 1 - axis  # padding counts axes from the last
    equal = [
        part if (size := part.shape[axis]) == longest else constant_pad_nd(part, (0, 0) * after + (left, longest - left - size))
        for part, left in zip(parts, before, strict=True)
    ]
    return torch.cat(equal)
