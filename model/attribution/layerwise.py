"""Layer by layer: copies of one run that join the batch at the layer in which they begin to differ.

What all copies of a batch have in common, such as heads that are silenced in each of them, is computed once, one row up to the
layer where the first copy differs; the states [1, position, model] in front of each layer are kept for the next batches. A copy is
a row from its own layer on. A row is computed exactly as it would be alone: rows of a batch do not see each other.

For networks of our own, and for copies that read the same ids.
"""

from dataclasses import dataclass
from itertools import product
from operator import attrgetter

import cachetools
import numpy as np
import torch
from torch import Tensor, nn

from model.attribution.copies import Copies, chained
from model.attribution.example import Example
from model.inference.interventions import needs_weights
from model.inference.long_inputs import LONG
from model.trace.types import Array
from model.transformer.attention import Run
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

    def layer(self, place: tuple[int, int], x: Tensor, memory: Tensor | None, run: Run) -> Tensor:
        """The stream after one layer."""
        streams = (x,) if memory is None else (x, memory)
        after: Tensor = self.module.layers[place[1]](*streams, *self.masks, self.name, *place, run)
        return after

    def leave(self, x: Tensor, run: Run) -> Tensor:
        """The last states."""
        return run.see(f"stages/{self.name}/final", self.module.final_norm(x))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Copies of a batch, in the order of the sites where they begin to differ.

    Attributes:
        common: what they have in common.
        depths: for each the number of the layer where it begins to differ.
    """

    copies: Copies
    common: Copies
    depths: Array

    def part(self, begin: int, end: int) -> "_Rows":
        """Some of the copies, next to each other."""
        return _Rows(self.copies.rows(np.arange(begin, end)), self.common, self.depths[begin:end])

    def joining(self, number: int, first: bool) -> list[int]:
        """How many copies join in front of a layer, site by site; in front of a stack's first one all that differ before, too."""
        if early := int((self.depths < number).sum()) if first else 0:
            return [early, *self.joining(number, first=False)]
        of_site = self.copies.first_sites()[self.depths == number]
        return [int(count) for count in np.unique(of_site, return_counts=True)[1]]


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
        self._places = [(stack, place) for stack in self._stacks for place in stack.places]
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
        order = np.argsort(copies.first_sites(), kind="stable")
        common, copies = copies.common(), copies.rows(order)
        batch = _Rows(copies, common, self._depths(copies))
        begin, end = len(self._places) - len(self._stacks[-1].places), len(self._places)  # the decoder's layers
        early = int((batch.depths < begin).sum())  # these differ in the encoder
        found = [self._grown(rows, begin, end, read) for rows, read in self._passes(batch, early, begin)]
        states = [self._stacks[-1].leave(x, self._around) for x in found]
        return torch.cat(states)[np.argsort(order).tolist()]

    def _passes(self, batch: "_Rows", early: int, begin: int) -> list[tuple["_Rows", Tensor | None]]:
        """The rows that go through the decoder together, and the encoder's output that they read: one for all, or one for each.

        Args:
            early: rows that differ in the encoder; they come first.
            begin: the decoder's first layer.
        """
        shared, late = self._memory(batch.common), len(batch.copies) - early
        if not early or shared is None:
            return [(batch, shared)]
        own = self._stacks[0].leave(self._grown(batch.part(0, early), 0, begin, None), self._around)
        if late < 1 or len(batch.copies) < WORTH_A_PASS:
            return [(batch, torch.cat([own, shared.expand(late, -1, -1)]))]
        return [(batch.part(0, early), own), (batch.part(early, early + late), shared)]

    def _grown(self, batch: "_Rows", begin: int, end: int, memory: Tensor | None) -> Tensor:
        """The stream of all rows after layer `end` - 1; each joins in front of its own layer.

        Args:
            memory: the encoder's output of each row, or one for all; None: there is none.
        """
        x, rows = None, 0
        for number in range(begin, end):
            stack, place = self._places[number]
            parts: list[tuple[Tensor, int]] = [] if x is None else [(x, rows)]
            for count in batch.joining(number, first=number == begin):
                state = self._state(number, batch.common)
                if parts and count < WORTH_A_CALL:
                    before, there = parts.pop()
                    parts.append((torch.cat([before.expand(there, -1, -1), state.expand(count, -1, -1)]), there + count))
                else:
                    parts.append((state, count))
            rows, after = 0, list[Tensor]()
            for stream, count in parts:
                own = slice(rows, rows + count)
                read = memory if memory is None or len(memory) == 1 else memory[own]
                run = self._run(batch.copies.rows(np.arange(own.start, own.stop)), stack.name, place)
                after.append(stack.layer(place, stream, read, run).expand(count, -1, -1))
                rows += count
            if after:
                x = after[0] if len(after) == 1 else torch.cat(after)
                self._remember(number + 1, batch, x)
        left = len(batch.copies) - rows
        last = [self._state(end, batch.common).expand(left, -1, -1)] if left else []
        return torch.cat([*([] if x is None else [x]), *last])

    def _remember(self, number: int, batch: "_Rows", x: Tensor) -> None:
        """Keeps the states of a small batch: a greedy search goes on from one of its copies."""
        if len(batch.copies) < WORTH_A_PASS and number not in self._entries and batch.copies.silenced is not None:
            for row, state in enumerate(x):
                self._keep((number, self._before(number, batch.copies, row)), state[None].clone())

    def _keep(self, key: tuple[int, bytes], state: Tensor) -> Tensor:
        if state.nbytes <= KEPT_BYTES:
            self._known[key] = state
        return state

    def _depths(self, copies: Copies) -> Array:
        """For each copy the number of the layer where it begins to differ from what all have in common; of layers: nowhere."""
        of_layer = {(stack.name, *place): number for number, (stack, place) in enumerate(self._places)}
        of_site = [*(of_layer[site.stack, site.pass_, site.layer] for site in copies.sites), len(self._places)]
        return np.array(of_site)[copies.first_sites()]

    def _state(self, number: int, common: Copies) -> Tensor:
        """The stream [1, position, model] in front of a layer; with the number of layers, after the last one."""
        key = (number, self._before(number, common))
        found = self._known.get(key)
        return self._keep(key, self._computed(number, common)) if found is None else found

    def _computed(self, number: int, common: Copies) -> Tensor:
        if number in self._entries:
            return self._places[number][0].enter(self._around)
        stack, place = self._places[number - 1]
        memory = self._memory(common) if stack.name == "decoder" else None
        return stack.layer(place, self._state(number - 1, common), memory, self._run(common, stack.name, place))

    def _memory(self, common: Copies) -> Tensor | None:
        """The encoder's output [1, key, model]; None: there is no encoder."""
        if len(self._stacks) == 1:
            return None
        encoder, number = self._stacks[0], len(self._stacks[0].places)
        key = (-number, self._before(number, common))  # of the encoder's end; `number` itself is the decoder's beginning
        if (memory := self._known.get(key)) is None:
            stack, place = self._places[number - 1]
            last = stack.layer(place, self._state(number - 1, common), None, self._run(common, stack.name, place))
            memory = self._keep(key, encoder.leave(last, self._around))
        return memory

    def _before(self, number: int, copies: Copies, row: int = 0) -> bytes:
        """What a copy silences in front of a layer: copies that are equal in it have the same states there."""
        there = {(stack.name, *place) for stack, place in self._places[:number]}
        heads = sum(count for site, count in copies.sites.items() if (site.stack, site.pass_, site.layer) in there)
        return b"" if copies.silenced is None else copies.silenced[row, :heads].tobytes()

    def _run(self, copies: Copies, stack: str, place: tuple[int, int]) -> Run:
        """The run that changes each row in one layer. All copies of a question use the same kernel."""
        interventions = chained(self._example.interventions, copies.interventions(stack, self._example.device, place))
        longest = max(each.ids.shape[1] for each in self._stacks)
        fused = longest > LONG and copies.edges is None and not needs_weights(self._example.interventions)
        return Run(interventions=interventions, fused=fused)

    @property
    def _around(self) -> Run:
        """The run in front of the first layer and after the last one, where copies do not differ."""
        return Run(interventions=self._example.interventions)
