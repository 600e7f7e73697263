"""The residual stream of one run as a sum of parts, seen through a linear map: what each part adds to what the map reads.

The stream is followed *back* from where it is read: the map is multiplied by each norm that it meets, and applied to what was
written before. A norm is linear once its spread is fixed to that of the run, (x - mean) / spread · gain + bias, and the spread is
the only thing in it that differs between positions. So one matrix serves all positions, with a factor for each, and no part is
ever held at the width of the model for all of them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from model.errors import NotRecorded
from model.features.circuit.anatomy import Norm, Stack, Sublayer
from model.features.circuit.sums import Part
from model.requests.edits import replaces_output
from model.requests.request import RunRequest
from model.trace.cell_arithmetic import ROUNDOFF
from model.trace.types import Array, Site, Trace


@dataclass(frozen=True, eq=False)
class Flow:
    """How what is read depends on the stream at a place further back: factor · map · stream.

    Attributes:
        map: [out, model].
        factor: [row, 1], one over the product of all spreads on the way.
        rows: [row], the positions.
        of_source: whether rows are source positions, also in a decoder whose steps kept only the last of them.
    """

    map: Array
    factor: Array
    rows: Array
    of_source: bool = False

    @cached_property
    def gram(self) -> Array:
        """map · mapᵀ, [out, out]."""
        return np.asarray(self.map @ self.map.T)

    def through(self, norm: Norm, states: Array) -> "Flow":
        """The flow before a norm whose input was `states` [row, model]."""
        # Columns of the map belong to the stream's numbers, so the gain multiplies columns. Taking the mean out of
        # every state before the map gives the same as taking it out of each row of the map: then the states need not
        # be touched.
        turned = self.map * norm.gain
        if norm.centered:
            turned = turned - turned.mean(axis=-1, keepdims=True)
        return replace(self, map=turned, factor=self.factor / norm.spread(states))


@dataclass(frozen=True, eq=False)
class Term:
    """What one part adds to what is read.

    Attributes:
        part: the part.
        flow: how what is read depends on the stream where the part was written.
        written: [row, width]: of a head its context, else the vector in the stream.
        columns: [model, width], of a head: what makes a vector in the stream of its context; None: it is one already.
        joined: of a head: the flow's map times the output matrix of all heads of its sublayer, made once for all of them, and the
            columns of it that are this head's.
    """

    part: Part
    flow: Flow
    written: Array
    columns: Array | None = None
    joined: tuple[Callable[[], Array], slice] | None = None

    @property
    def factor(self) -> Array:
        """[row, 1]."""
        return self.flow.factor

    @property
    def rows(self) -> Array:
        """[row], the positions."""
        return self.flow.rows

    @cached_property
    def map(self) -> Array:
        """[out, width], from what was written to what is read."""
        if self.joined is None:
            return self.flow.map
        # One product for all heads of a sublayer is faster than one for each, and is made only if somebody asks.
        whole, columns = self.joined
        return whole()[:, columns]

    @property
    def value(self) -> Array:
        """[row, out], in the order of products that takes fewer multiplications."""
        # Two orders of the same product: up to the width of the model first, for few rows; or one small matrix first,
        # for many. The comparison counts multiplications. A matrix that was made already is used in any case.
        columns, (out, model), rows = self.columns, self.flow.map.shape, len(self.written)
        if (
            columns is not None
            and "map" not in vars(self)
            and rows * model * (columns.shape[1] + out) < columns.shape[1] * out * (model + rows)
        ):
            return np.asarray(self.factor * (self.written @ columns.T @ self.flow.map.T))
        return np.asarray(self.factor * (self.written @ self.map.T))


class ResidualStream:
    """The streams of one run.

    Args:
        trace: the run; it keeps everything.
        stacks: the stacks of the network that ran, by name.
    """

    def __init__(self, trace: Trace, stacks: Mapping[str, Stack]) -> None:
        self._trace, self.stacks = trace, stacks
        self._edits = RunRequest.edits_in(trace.request)
        # Without a given target the decoder wrote token by token, and its rows are those of steps.
        self._decoded = trace.request.get("target") is None

    def read(self, site: Site, side: str, map_: Array, rows: Array) -> Iterator[Term]:
        """The parts of what a `query`, `key` or `value` of a site is made of, through its map [head_dim, model]; what the run wrote
        last comes first. A term refers to the matrices of its layer: who is done with one before the next holds no others.

        Raises:
            NotRecorded: the run did not keep what is needed.
        """
        stack = self.stacks[site.stack]
        index = stack.index(str(site))
        sublayer = stack.sublayers[index]
        assert sublayer.heads is not None
        heads = sublayer.heads()
        source = {"query": heads.queries_from, "key": heads.keys_from, "value": heads.values_from}[side]
        # Keys and values of different streams: only where the decoder's stream is the memory that attended to itself.
        # Its values then have source positions as rows.
        flow = Flow(map_, np.ones((len(rows), 1)), rows, of_source=side == "value" and source != heads.keys_from)
        memory = source in ("memory", "normed memory")
        # The norm stands before the sublayer. Its bias is a part of its own; everything else goes on back through it.
        if source.startswith("normed") and sublayer.order == "pre" and sublayer.norm is not None:
            states = self._array("stages/encoder/final") if memory else self._before(stack, index)
            yield from _bias(sublayer.norm, str(site), flow)
            flow = flow.through(sublayer.norm, _rows(states, rows))
        if memory:
            yield from self._from_end(self.stacks["encoder"], flow)
        else:
            yield from self._back(stack, index - 1 if source == "before" else index, flow)

    def last(self, map_: Array, rows: Array) -> Iterator[Term]:
        """The parts of the decoder's last states, through a map [out, model], as `read`."""
        return self._from_end(self.stacks["decoder"], Flow(map_, np.ones((len(rows), 1)), rows))

    def written(self, part: Part, map_: Array, row: int) -> Term | None:
        """What one part adds to a last state of the decoder, through a map as in `last`; None: nothing directly."""
        flow = Flow(map_, np.ones((1, 1)), np.array([row]))
        return next((term for term in self._from_end(self.stacks["decoder"], flow) if term.part == part), None)

    def _from_end(self, stack: Stack, flow: Flow) -> Iterator[Term]:
        """From the end of a stack to its beginning."""
        if stack.final is not None:
            yield from _bias(stack.final, stack.name, flow)
            flow = flow.through(stack.final, _rows(self._before(stack, len(stack.sublayers)), flow.rows))
        yield from self._back(stack, len(stack.sublayers), flow)

    def _back(self, stack: Stack, index: int, flow: Flow) -> Iterator[Term]:
        """From before a sublayer to the beginning of its stack; what the later of two wrote comes first."""
        for number in reversed(range(index)):
            sublayer = stack.sublayers[number]
            # What the run recorded after a layer, less what the layer itself left, is what an edit put there.
            if sublayer.layer and self._edits:
                yield from self._edited(sublayer.layer, flow, self._before(stack, number + 1), self._after(stack, number))
            if sublayer.base == "memory" and not flow.of_source:
                flow = replace(flow, rows=self._rows_of_source(flow.rows))
            if sublayer.order == "post" and sublayer.norm is not None:
                yield from _bias(sublayer.norm, sublayer.place, flow)
                flow = flow.through(sublayer.norm, _rows(self._summed(stack, number), flow.rows))
            yield from self._written(sublayer, flow)
            # The output took the place of the stream: what was written before is only in what the heads read.
            if sublayer.base == "nothing":
                return
            # The stream went on from the encoder's output: that is where the way back leads.
            if sublayer.base == "memory":
                yield from self._from_end(self.stacks["encoder"], flow)
                return
        yield from self._entered(stack.name, flow)

    def _written(self, sublayer: Sublayer, flow: Flow) -> Iterator[Term]:
        """What a sublayer wrote: a feed-forward network its output, attention a term for each head, and the bias of its output."""
        name = sublayer.place
        if sublayer.heads is None:
            yield _term(Part("feed-forward", name), flow, self._array(f"stages/{name}/output"))
            return
        output, attention = sublayer.heads().output, self._trace.at(name)
        contexts = self._kept(attention.context, f"attention/{name}/context")  # [head, query, head_dim]
        width = contexts.shape[-1]
        columns = [slice(head * width, (head + 1) * width) for head in range(len(contexts))]
        # The head's own columns of the output matrix. The product with the flow waits in a cache until the first term
        # needs it.
        maps, joined = [output.weight[:, of_head] for of_head in columns], cache(lambda: np.asarray(flow.map @ output.weight))
        # Heads and bias stay as they were computed; the edit is a further part, the rest that makes the sum what was
        # recorded.
        if any(replaces_output(edit, name) for edit in self._edits):
            whole = sum((context @ map_.T for context, map_ in zip(contexts, maps, strict=True)), np.zeros(1))
            whole = whole if output.bias is None else whole + output.bias
            yield from self._edited(name, flow, self._kept(attention.output, f"attention/{name}/output"), whole)
        if output.bias is not None:
            yield _term(Part("output-bias", name), flow, np.broadcast_to(output.bias, (contexts.shape[1], len(output.bias))))
        # Backwards like everything here: who reads the terms turns the whole list round.
        for head in reversed(range(len(contexts))):
            context_rows = _rows(contexts[head], flow.rows)
            yield Term(Part("head", name, head), flow, context_rows, maps[head], (joined, columns[head]))

    def _entered(self, stack: str, flow: Flow) -> Iterator[Term]:
        """What entered the first layer."""
        embedded, scaled = self._array(f"embedded/{stack}"), self._trace.stages.get(f"{stack}/scaled")
        positions = self._trace.positions.get(stack)
        known = self.stacks[stack].enters
        # Only the sum of embedding and position is known, or the input was no tokens but vectors.
        if scaled is None and known is None:
            yield _term(Part("features" if not self._trace.model["spec"][stack]["vocab"] else "embedded", stack), flow, embedded)
            return
        # What entered is the sum: without the positions, the embedding is left. Rotary positions are not added, so
        # nothing is taken away.
        if positions is not None and positions.any() and known != "embedding":
            yield _term(Part("position", stack), flow, positions.astype(np.float64))
            embedded = embedded - positions
        yield _term(Part("embedding", stack), flow, embedded if scaled is None else scaled.astype(np.float64))

    # --- What the run recorded ---

    def _before(self, stack: Stack, index: int) -> Array:
        """The stream that a sublayer was given, [position, model]; of the number after the last one, what the stack ended with."""
        if index == 0:
            return self._array(f"embedded/{stack.name}")
        # The recorded state after a layer has the edits of that layer in it, which the sublayers' own numbers have
        # not.
        layer = stack.sublayers[index - 1].layer
        return self._array(f"hidden/{layer}") if layer else self._after(stack, index - 1)

    def _after(self, stack: Stack, index: int) -> Array:
        """The stream that a sublayer left, [position, model]."""
        sublayer = stack.sublayers[index]
        if sublayer.order == "none":
            return self._kept(self._trace.at(sublayer.place).output, f"attention/{sublayer.place}/output")
        if sublayer.order == "pre" or sublayer.norm is None:
            return self._summed(stack, index)
        normed = self._trace.stages.get(f"{sublayer.place}/normed")
        return sublayer.norm(self._summed(stack, index)) if normed is None else normed.astype(np.float64)

    def _summed(self, stack: Stack, index: int) -> Array:
        """What a sublayer was given plus what it made of it, [position, model]: recorded or, where the transformers library ran
        the network and does not expose it, added up from what was recorded."""
        name, heads = stack.sublayers[index].place, stack.sublayers[index].heads
        if (residual := self._trace.stages.get(f"{name}/residual")) is not None:
            return residual.astype(np.float64)
        if heads is None:
            return self._before(stack, index) + self._array(f"stages/{name}/output")
        return self._before(stack, index) + self._kept(self._trace.at(name).output, f"attention/{name}/output")

    def _array(self, name: str) -> Array:
        """A recorded array by its name in a trace file, in float64."""
        group, _, rest = name.partition("/")
        arrays: Mapping[str, Any] = getattr(self._trace, group)
        return self._kept(arrays.get(rest), name)

    def _kept(self, array: Array | None, name: str) -> Array:
        if array is None:
            raise NotRecorded(asked=name, reason=self._trace.missing.get(name.partition("/")[0], "—"))
        return array.astype(np.float64)

    def _edited(self, name: str, flow: Flow, recorded: Array, computed: Array) -> list[Term]:
        """What an edit put in place of what was computed, where it is more than rounding."""
        rest = recorded - computed
        # Written with "not all", since NaN compares as False: a NaN that an edit made is shown and not taken for
        # rounding.
        rounding = 4 * ROUNDOFF[str(self._trace.model["dtype"])] * np.abs(computed).max(initial=0.0)
        return [_term(Part("edit", name), flow, rest)] if not (np.abs(rest) <= rounding).all() else []

    def _rows_of_source(self, rows: Array) -> Array:
        """The source position of each row of a `MemoryLayer`: rows stand for source positions, of which a step kept the last."""
        return np.full_like(rows, len(self._trace.tokens["source"]) - 1) if self._decoded else rows


def _rows(array: Array, rows: Array) -> Array:
    """Some rows of an array [position, …]; a single row stands for all, as where a target of one token meets a `MemoryLayer`."""
    return array[rows] if len(array) > 1 else array[np.zeros_like(rows)]


def _term(part: Part, flow: Flow, written: Array) -> Term:
    return Term(part, flow, _rows(written, flow.rows))


def _bias(norm: Norm, name: str, flow: Flow) -> list[Term]:
    """What the bias of a norm adds: nothing where it has none."""
    bias = norm.bias
    return [] if bias is None else [_term(Part("norm-bias", name), flow, bias[None])]
