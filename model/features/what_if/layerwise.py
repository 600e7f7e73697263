"""Layer by layer: copies of one run that join the batch at the layer in which they begin to differ.

What all copies of a batch have in common, such as heads that are silenced in each of them, is computed once, one row up to the
layer where the first copy differs; the states [1, position, model] in front of each layer are kept for the next batches. A copy is
a row from its own layer on. A row is computed exactly as it would be alone: rows of a batch do not see each other.

Keys and values that copies share are kept, too. For networks of our own, and for copies that read the same ids.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from operator import attrgetter
from typing import TypeAlias

import cachetools
import numpy as np
import torch
from torch import Tensor, nn

from model.features.what_if.copies import Copies, Layout, Rows, chained
from model.features.what_if.example import Example
from model.inference.inputs import LONG, needs_weights
from model.trace.types import Site, sites
from model.transformer.attention import Intervention, Run
from model.transformer.cache import NoCache
from model.transformer.masks import Mask
from model.transformer.stacks import CausalLM, Decoder, Encoder, EncoderDecoder

KEPT_BYTES = 32 * 2**20
"""Most bytes of states in front of a layer that are kept: a greedy search comes back to those of its last steps."""

WORTH_A_CALL = 4
"""Copies that are worth a call of their own in the layer where they join: what comes before their site is computed once for all."""

WORTH_A_PASS = 16
"""Copies that are worth two passes through the decoder: of those that differ in the encoder, and of the others, which share it."""


@dataclass(frozen=True, eq=False)
class _Stack:
    """One stack, to be run from any of its layers on.

    Attributes:
        name: encoder or decoder.
        module: the stack, or the language model.
        ids: [1, position], what its embedding reads; or features.
        masks: of its layers' attentions, [1, …].
    """

    name: str
    module: Encoder | Decoder | CausalLM
    ids: Tensor
    masks: tuple[Mask, ...]

    @property
    def places(self) -> list[tuple[int, int]]:
        """Pass and layer of each application of a layer, in the order in which they run."""
        return list(product(range(self.module.passes), range(len(self.module.layers))))

    def enter(self, run: Run) -> Tensor:
        """The stream in front of the first layer."""
        x: Tensor = self.module.embedding(self.ids, 0, self.name, run)
        return x

    def layer(self, layer: tuple[int, int], x: Tensor, memory: Tensor | None, run: Run) -> Tensor:
        """The stream after one layer."""
        streams = (x,) if memory is None else (x, memory)
        after: Tensor = self.module.layers[layer[1]](*streams, *self.masks, self.name, *layer, run)
        return after

    def leave(self, x: Tensor, run: Run) -> Tensor:
        """The last states."""
        return run.see(f"stages/{self.name}/final", self.module.final_norm(x))


Pair: TypeAlias = tuple[Tensor, Tensor]
"""Keys and values, each [1, head, key, head_dim]."""

Held: TypeAlias = cachetools.LRUCache[tuple[Site, bytes], Pair]
"""Keys and values by their site, and what is silenced in front of the stream that they are made of."""


class Projected(NoCache):
    """The keys and values of one call, from a store where they are shared.

    Args:
        store: of all calls.
        streams: what is silenced in front of the streams that are shared in this call, by the kind of the sites that read them.
    """

    def __init__(self, store: Held, streams: Mapping[str, bytes]) -> None:
        self._store, self._streams = store, streams

    def keys_and_values(self, site: Site, compute: Callable[[], Pair]) -> Pair:
        """Keys and values of a site, computed where they are not known yet."""
        # The stream that this site reads differs between the rows, or differs from the one that is kept: nothing can be shared.
        stream = self._streams.get(site.kind)
        if stream is None:
            return compute()
        projected = self._store.get((site, stream))
        if projected is None:
            projected = compute()
            if self._store.getsizeof(projected) <= self._store.maxsize:
                self._store[site, stream] = projected
        return projected


class Layerwise:
    """An example whose copies are computed layer by layer.

    Args:
        example: of a network of our own.
    """

    def __init__(self, example: Example) -> None:
        network = example.runner.network
        assert isinstance(network, EncoderDecoder | CausalLM)
        self._example, self._network = example, network
        self._known: cachetools.LRUCache[tuple[int, bytes], Tensor] = cachetools.LRUCache(KEPT_BYTES, attrgetter("nbytes"))
        self._projected: Held = cachetools.LRUCache(KEPT_BYTES, lambda pair: sum(tensor.nbytes for tensor in pair))
        # A language model has one stack; of two stacks, the decoder's cross-attention is masked by what the encoder read.
        target = network.target_mask(example.fed, 0)
        if isinstance(network, CausalLM):
            self._stacks = [_Stack("decoder", network, example.fed, (target,))]
        else:
            assert example.source is not None
            source = network.source_mask(example.source, example.valid)
            self._stacks = [
                _Stack("encoder", network.encoder, example.source, (source,)),
                _Stack("decoder", network.decoder, example.fed, (target, source)),
            ]
        self._long = max(stack.ids.shape[1] for stack in self._stacks) > LONG and not needs_weights(example.interventions)
        # All layers get one number: those of the encoder first, then those of the decoder. A layer of two passes has two.
        self._places = [(stack, layer) for stack in self._stacks for layer in stack.places]
        self._layout = Layout(sites(example.runner.info.spec), [(stack.name, *layer) for stack, layer in self._places])
        self._entries = (0, len(self._stacks[0].places)) if len(self._stacks) > 1 else (0,)  # where a stack begins

    @staticmethod
    def can(example: Example, copies: Copies) -> bool:
        """Whether these copies can be computed layer by layer.

        An edit that skips a layer, or patches its states, looks at the whole batch before and after it.
        """
        ours = isinstance(example.runner.network, EncoderDecoder | CausalLM)
        edited = any(name.startswith(("hidden/", "embedded/")) for name in example.interventions)
        return ours and not edited and copies.source is None and copies.fed is None and not copies.apart

    @property
    def output(self) -> nn.Linear:
        """The output layer."""
        output = self._network.output
        assert isinstance(output, nn.Linear)
        return output

    def states(self, copies: Copies) -> Tensor:
        """The decoder's last states [row, query, model] of each copy."""
        # Copies are sorted by the site where they begin to differ. So whoever joins later stands behind all that are in the batch,
        # and the rows of any layer are the first rows of `batch`.
        firsts = copies.first_sites()
        order = np.argsort(firsts, kind="stable")
        batch = Rows(copies.rows(order), copies.common(), firsts[order], self._layout)
        begin, end = len(self._places) - len(self._stacks[-1].places), len(self._places)  # the decoder's layers
        streams = [self._run_layers(rows, begin, end, read) for rows, read in self._passes(batch, batch.before(begin), begin)]
        # The last step puts the rows back into the order in which the copies were given.
        states = [self._stacks[-1].leave(x, self._around) for x in streams]
        return torch.cat(states)[np.argsort(order).tolist()]

    def _passes(self, batch: Rows, early: int, begin: int) -> list[tuple[Rows, Tensor | None]]:
        """The rows that go through the decoder together, and the encoder's output that they read: one for all, or one for each.

        Args:
            early: rows that differ in the encoder; they come first.
            begin: the decoder's first layer.
        """
        # No copy differs in the encoder: one row of its output serves all of them.
        if not early or len(self._stacks) == 1:
            return [(batch, self._memory(batch.common))]
        # Each of the early rows has an encoder of its own, and so an output of its own.
        memories = self._stacks[0].leave(self._run_layers(batch.part(0, early), 0, begin, None), self._around)
        # Known by now: what is shared went along.
        shared, late = self._memory(batch.common), len(batch) - early
        assert shared is not None
        # In one pass every row has its row of `memories`, so keys and values of the source are projected for each. In two passes
        # the late rows read a single one, whose keys and values are projected once.
        if late < 1 or len(batch) < WORTH_A_PASS:
            return [(batch, torch.cat([memories, shared.expand(late, -1, -1)]))]
        return [(batch.part(0, early), memories), (batch.part(early, early + late), shared)]

    def _run_layers(self, batch: Rows, begin: int, end: int, memory: Tensor | None) -> Tensor:
        """The stream of all rows after layer `end` - 1; each joins in front of its own layer.

        Args:
            memory: the encoder's output of each row, or one for all; None: there is none.
        """
        # `x` is the stream of the `rows` copies that have joined so far. None has joined in front of the layer where the first
        # differs.
        x, rows = None, 0
        for number in range(begin, end):
            # Each part is one call of the layer: a stream, and how many copies it is of. The first part are the copies that came
            # along, the others those that join here, by the site of this layer where they begin to differ.
            parts: list[tuple[Tensor, int]] = [] if x is None else [(x, rows)]
            for count in batch.joining(number, first=number == begin):
                # Up to here these copies are what all have in common, so one row [1, position, model] is the state of all of them.
                state = self._state(number, batch.common)
                # A few copies become rows of the call before; many get a call that begins with one row, which the change at their
                # site makes as many as there are copies.
                if parts and count < WORTH_A_CALL:
                    before, count_before = parts.pop()
                    joined = torch.cat([before.expand(count_before, -1, -1), state.expand(count, -1, -1)])
                    parts.append((joined, count_before + count))
                else:
                    parts.append((state, count))
            # The parts run one after the other, and `span` are their rows in the batch. A part can come out with a single row,
            # where its copies change nothing in this layer.
            rows, after = 0, list[Tensor]()
            for stream, count in parts:
                span = slice(rows, rows + count)
                read = memory if memory is None or len(memory) == 1 else memory[span]
                after.append(self._part(number, batch, span, stream, read).expand(count, -1, -1))
                rows += count
            if after:
                x = after[0] if len(after) == 1 else torch.cat(after)
                self._remember(number + 1, batch, x)
        # Copies that differ nowhere never join: they end as what all have in common.
        left = len(batch) - rows
        last = [self._state(end, batch.common).expand(left, -1, -1)] if left else []
        return torch.cat([*([] if x is None else [x]), *last])

    def _part(self, number: int, batch: Rows, span: slice, stream: Tensor, memory: Tensor | None) -> Tensor:
        """The stream of some rows after a layer.

        What all copies have in common is one more row where it is not known yet: this costs less than a call of its own.
        """
        stack, layer = self._places[number]
        # Does this part consist of copies that all join here, with one row for all?
        alone = stream is self._known.get((number, self._before(number, batch.common)))  # of no row yet, but of all that join
        # Does every row of this batch read the encoder's output that all have in common?
        shared = memory is None or batch.before(self._entries[-1]) == 0
        key = self._after(number, batch.common)
        # The encoder's common output is read by the decoder in any case; a state of the decoder only by copies that join further
        # on.
        needed = number < self._entries[-1] or batch.before(number + 1) < len(batch)  # some copies still wait for it
        # The row of what all have in common can go along if it starts from the same stream and reads the same memory.
        also = alone and shared and needed and key not in self._known
        changed = batch.interventions(number, span, self._example.device, common=also)
        run = self._run(changed, batch.copies, self._keys(number, batch.common, text=alone, read=shared))
        after = stack.layer(layer, stream, memory, run)
        if not also:
            return after
        # That row is the last one, a copy of its own: a view would keep the whole batch in memory.
        self._keep(key, self._left(number, after[-1:].clone()))
        # One row came out for all copies and for what they have in common: none of them changes anything in this layer.
        return after[:1] if len(after) == 1 else after[:-1]

    def _remember(self, number: int, batch: Rows, x: Tensor) -> None:
        """Keeps the states of a small batch: a greedy search goes on from one of its copies."""
        # A state is found again by the heads that are silenced in front of it, which says nothing of forbidden edges. The
        # number after the encoder's last layer means the decoder's beginning, which is another stream.
        if len(batch) < WORTH_A_PASS and number not in self._entries and batch.copies.silenced is not None:
            for row, state in enumerate(x):
                self._keep((number, self._before(number, batch.copies, row)), state[None].clone())

    def _keep(self, key: tuple[int, bytes], state: Tensor) -> Tensor:
        if state.nbytes <= KEPT_BYTES:
            self._known[key] = state
        return state

    def _state(self, number: int, common: Copies) -> Tensor:
        """The stream [1, position, model] in front of a layer; with the number of layers, after the last one."""
        key = (number, self._before(number, common))
        state = self._known.get(key)
        if state is None:
            begins = number in self._entries
            state = self._keep(key, self._places[number][0].enter(self._around) if begins else self._next(number - 1, common))
        return state

    def _next(self, number: int, common: Copies) -> Tensor:
        """The stream [1, position, model] after a layer."""
        stack, layer = self._places[number]
        memory = self._memory(common) if stack.name == "decoder" else None
        changed = self._layout.changed(number, common, self._example.device)
        run = self._run(changed, common, self._keys(number, common, text=True, read=True))
        return stack.layer(layer, self._state(number, common), memory, run)

    def _memory(self, common: Copies) -> Tensor | None:
        """The encoder's output [1, key, model]; None: there is no encoder."""
        if len(self._stacks) == 1:
            return None
        last = len(self._stacks[0].places) - 1
        key = self._after(last, common)
        if (memory := self._known.get(key)) is None:
            memory = self._keep(key, self._left(last, self._next(last, common)))
        return memory

    def _after(self, number: int, common: Copies) -> tuple[int, bytes]:
        """The key of the stream after a layer; that of the encoder's end is negative, since the decoder's beginning comes next."""
        after = number + 1
        return -after if after in self._entries else after, self._before(after, common)

    def _left(self, number: int, x: Tensor) -> Tensor:
        """The stream after a layer, as it is kept: after the encoder's last one it is the encoder's output."""
        return self._stacks[0].leave(x, self._around) if number + 1 in self._entries else x

    def _before(self, number: int, copies: Copies, row: int = 0) -> bytes:
        """The silenced values before a layer, of one copy: copies that are equal in it have the same states there."""
        return b"" if copies.silenced is None else copies.silenced[row, : self._layout.heads_before[number]].tobytes()

    def _keys(self, number: int, common: Copies, text: bool, read: bool) -> Projected:
        """Keys and values of one layer that were computed before.

        Args:
            text: whether the stream is what all copies have in common.
            read: whether the encoder's output is.
        """
        # Self-attention projects the stream in front of this layer, cross-attention the encoder's output: keys and values are found
        # again by the heads that are silenced before either.
        memory = self._before(self._entries[-1], common)
        known = {"self": self._before(number, common)} if text else {}
        return Projected(self._projected, known | ({"cross": memory} if read else {}))

    def _run(self, changed: dict[str, Intervention], copies: Copies, cache: Projected) -> Run:
        """The run that changes each row in one layer. All copies of a question use the same kernel."""
        fused = self._long and copies.edges is None
        return Run(interventions=chained(self._example.interventions, changed), cache=cache, fused=fused)

    @property
    def _around(self) -> Run:
        """The run in front of the first layer and after the last one, where copies do not differ."""
        return Run(interventions=self._example.interventions)
