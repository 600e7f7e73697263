"""Scoring: log-probabilities of a target that edited copies of one run are fed, many copies in one call of the network.

In networks of our own, copies join the batch in the layer where they begin to differ (layerwise.py), and the output layer is summed
up a part of the vocabulary at a time (example.py). Copies that read other ids, and those of other networks, go through the whole
network, a row for each; those that differ in the decoder alone share one pass through the encoder.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from model.errors import OutOfMemory
from model.features.what_if.copies import Copies, chained
from model.features.what_if.example import VOCAB_CHUNK, Example, ForcedLogits, ForcedStates
from model.features.what_if.layerwise import Layerwise
from model.features.what_if.pace import Pace
from model.inference.calls import Ask, Call
from model.inference.inputs import LONG, needs_weights
from model.inference.resources import BATCH_BYTES
from model.trace.progress import OnCount, ignore_count
from model.trace.types import Array, sites
from model.transformer.attention import Intervention, Run
from model.transformer.masks import Mask
from model.transformer.networks import BuiltNetwork, Translates, Writes

Forced: TypeAlias = ForcedLogits | ForcedStates
"""The network's log-probabilities of the measured tokens, given the tokens before them."""

MOST_ROWS = 128
"""Most copies of one batch: more rows would save no time."""


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores copies of one example.

    Attributes:
        ask: answers calls of the network, alone or through a scheduler.
        most_bytes: memory of one batch.
        clock: the time in seconds.
        read: the encoder's output and its mask where no copy changes the encoder, once they were computed.
    """

    example: Example
    ask: Ask
    most_bytes: int = BATCH_BYTES
    clock: Callable[[], float] = time.perf_counter
    read: list[tuple[Tensor, Mask]] = field(default_factory=list)

    def score(self, copies: Copies, on_count: OnCount = ignore_count) -> Array:
        """Log-probabilities [row, token] of the measured tokens, float64, for each copy.

        Raises:
            OutOfMemory: not even one copy fits into the memory of the device.
        """
        return self._read(copies, lambda forced: forced.log_probabilities(), on_count)

    def score_with_likeliest(self, copies: Copies) -> tuple[Array, Array]:
        """As `score`, and ids [row, token] of the likeliest token at each place, the target before it being fed."""
        scores, ids = self._read(copies, lambda forced: forced.with_likeliest(), ignore_count)
        return scores, ids.astype(np.int64)

    def _read(self, copies: Copies, read: Callable[[Forced], Tensor], on_count: OnCount) -> Array:
        """Numbers [..., row, token] of each copy, float64."""
        parts, order, done = list[Array](), list[Array](), 0
        on_count(0, len(copies))
        passes = self.passes(copies)
        # Batches take copies in the order in which they begin to differ; `order` says which ones each batch had, so that the scores
        # can be put back into the order of the copies.
        for rows in copies.batches(self.rows(), passes, self.pace.units):
            parts.append(self._batch(copies.rows(rows), passes[rows], read))
            order.append(rows)
            done += len(rows)
            on_count(done, len(copies))
        joined: Array = np.concatenate(parts, axis=-2)[..., np.argsort(np.concatenate(order)), :]
        return joined

    def rows(self, graph: bool = False) -> int:
        """How many copies fit into one batch: the memory of a row at its widest place, times the tensors that exist there together.

        Args:
            graph: whether everything that is computed is held for gradients.
        """
        spec, example = self.example.runner.info.spec, self.example
        # Layer by layer, logits exist only for a part of the vocabulary at a time; otherwise for all of it.
        apart = graph or not isinstance(example.runner.network, BuiltNetwork)
        queries = example.fed.shape[1]
        keys = queries if example.source is None else max(example.source.shape[1], queries)
        widest = max(stack.d_model * 10 for stack in spec.stacks.values())
        heads = max(stack.attention.heads for stack in spec.stacks.values())
        vocab = spec.writer.vocab if apart else min(spec.writer.vocab, VOCAB_CHUNK)
        # Numbers of a row in one layer: about ten vectors at each position, and four tensors as large as the scores of all heads.
        # For gradients those of all layers are held, about three times as much for each site.
        layer = (queries + keys) * widest + 4 * heads * max(queries, keys) ** 2
        held = 3 * len(sites(spec)) if graph else 1
        # A number in float32 has 4 bytes, and about three tensors as large as the logits exist together.
        needed = 4 * (3 * len(example.following) * vocab + held * layer)
        return max(1, min(self.most_bytes // needed, MOST_ROWS))

    def passes(self, copies: Copies) -> Array:
        """[row], how much of the network each copy goes through: from the site on where it begins to differ, or all of it."""
        if not Layerwise.can(self.example, copies):
            return np.ones(len(copies))
        return np.asarray(1 - copies.first_sites() / (len(copies.sites) + 1))

    @cached_property
    def pace(self) -> Pace:
        """The pace of copies; a unit is a pass through the network."""
        return Pace(self.operations, self.clock)

    @property
    def operations(self) -> float:
        """About how many operations one pass of the example takes."""
        example = self.example
        # Each parameter is about one multiplication and one addition for each position.
        positions = example.fed.shape[1] + (0 if example.source is None else example.source.shape[1])
        return 2.0 * positions * sum(part.numel() for part in example.runner.network.parameters())

    def computed(self, compute: Callable[[], Tensor], units: float = 1, pace: Pace | None = None) -> Array:
        """What `compute` returns, in float64: a call that waits in the queue, behind those of runs.

        Args:
            units: how much work that is, in units of the pace.
            pace: of this kind of work; None: that of copies.
        """
        # `.cpu()` waits until a GPU is done, so the time that the pace takes is that of the work and not of handing it out.
        network, pace = self.example.runner.network, pace or self.pace
        call = Call(
            network, Run(), self.example.fed, computed_by=lambda: pace.timed(units, lambda: compute().cpu()), gives_way=True
        )
        answer: Array = self.ask(call).double().numpy()
        return answer

    def _batch(self, copies: Copies, passes: Array, read: Callable[[Forced], Tensor]) -> Array:
        """The copies of one batch; half of them at a time where memory does not suffice."""
        try:
            return self.computed(lambda: read(self._forced(copies)), passes.sum())
        except OutOfMemory:
            if len(copies) == 1:
                raise
        # Not within `except`: there the error would still hold the tensors of the attempt, and the halves might not
        # find room either.
        half, every = len(copies) // 2, np.arange(len(copies))
        parts = (every[:half], every[half:])
        return np.concatenate([self._batch(copies.rows(part), passes[part], read) for part in parts], axis=-2)

    def _forced(self, copies: Copies) -> Forced:
        """The target fed to a batch of copies, layer by layer where that can be."""
        if not Layerwise.can(self.example, copies):
            return forced(self.example, copies, read=self.read)
        # The last states of all copies are small; their logits are made some words at a time (`ForcedStates`).
        states = self._layerwise.states(copies)
        return ForcedStates(states[:, self.example.measured], self._layerwise.output, self.example.following)

    @cached_property
    def _layerwise(self) -> Layerwise:
        return Layerwise(self.example)


def forced(
    example: Example,
    copies: Copies,
    also: dict[str, Intervention] | None = None,
    read: list[tuple[Tensor, Mask]] | None = None,
) -> ForcedLogits:
    """Feeds the target to a batch of copies, through the whole network.

    Args:
        also: interventions after those of the copies.
        read: as for Scorer; None: the encoder runs in any case.
    """
    network = example.runner.network
    # In networks of our own a batch may begin with one row, which the first value that differs makes as many as there are copies.
    # Other networks, and copies that read other ids, need a row for each from the beginning on.
    wide = not isinstance(network, BuiltNetwork) or copies.source is not None or copies.fed is not None
    run = _Batch(example, copies, wide, also or {})
    match network:
        case Writes():
            logits = network(run.fed, run.run("decoder"))
        case Translates():
            # What the encoder says is the same for every batch whose copies leave it alone: it is kept in `read` and computed once.
            shared = read is not None and not wide and not copies.changes("encoder")
            if read is None or not shared:
                memory, mask = run.memory(network)
            else:
                read[:] = read or [run.memory(network)]
                memory, mask = read[0]
            logits = network.decode(run.fed, memory, mask, run.run("decoder"))
        case _:
            raise TypeError(f"{type(network).__name__} writes nothing")
    # One row came out where no copy changes anything: it is the row of each.
    return ForcedLogits(logits[:, example.measured].expand(len(copies), -1, -1), example.following)


@dataclass(frozen=True, eq=False)
class _Batch:
    """One batch of copies on its way through a network.

    Attributes:
        wide: whether the batch has a row for each copy from the beginning on.
    """

    example: Example
    copies: Copies
    wide: bool
    also: dict[str, Intervention]

    @property
    def fed(self) -> Tensor:
        """[row or 1, query]."""
        if self.copies.fed is not None:
            return torch.tensor(self.copies.fed, device=self.example.device)
        return self.example.fed.expand(len(self.copies), -1) if self.wide else self.example.fed

    def run(self, stack: str, copies: Copies | None = None) -> Run:
        """The run that changes each row of a stack."""
        example = self.example
        # The edits of the run come first, since a copy is the edited run with its own changes on top.
        edits = chained(example.interventions, (copies or self.copies).interventions(stack, example.device))
        interventions = chained(chained(edits, self._padded() if stack == "decoder" else {}), self.also)
        longest = max(example.fed.shape[1], 0 if example.source is None else example.source.shape[1])
        fused = example.runner.network.fuses and longest > LONG and not needs_weights(interventions)
        return Run(interventions=interventions, fused=fused)

    def _padded(self) -> dict[str, Intervention]:
        """Masks that hide the decoder's tokens that a copy replaced by padding: the network takes no token for it."""
        pad_id = self.example.runner.info.spec.pad_id
        if self.copies.fed is None or pad_id is None:
            return {}
        # Padding that the run itself has was there before, and stays as visible as it was.
        seen = ((self.fed != pad_id) | (self.fed == self.example.fed))[:, None, None, :]  # [row, head, query, key]
        if bool(seen.all()):
            return {}
        sites = (site for site in self.copies.sites if site.stack == "decoder" and site.kind == "self")
        return {f"attention/{site}/mask": lambda mask, start: mask & seen for site in sites}

    def memory(self, network: Translates) -> tuple[Tensor, Mask]:
        """The encoder's output [row or 1, key, model] and its mask: each different encoder runs once."""
        assert self.example.source is not None
        # Copies that are equal in the encoder have the same bytes. The first row of each kind goes through the encoder, and
        # `inverse` says for every copy which of these rows is its own.
        changes = self.copies.of("encoder")
        places = {change: row for row, change in reversed(list(enumerate(changes)))}  # the first row of each
        firsts = sorted(places.values())
        inverse = [firsts.index(places[change]) for change in changes]
        different = self.copies.rows(np.array(firsts))
        source = self._source(len(firsts), different)
        mask = self._source_mask(network, source)
        memory = network.encode(source, mask, self.run("encoder", different))
        # One output for all copies, as one row: the decoder's cross-attention reads it for each.
        if len(firsts) == 1 and not self.wide:
            return memory, mask
        rows = torch.tensor(inverse, device=memory.device)
        padding = mask.padding.expand(len(firsts), -1, -1, -1)[rows] if self.wide else mask.padding
        return memory.expand(len(firsts), -1, -1)[rows], Mask(padding)

    def _source_mask(self, network: Translates, source: Tensor) -> Mask:
        """The mask of the run, in which tokens that a copy replaced by padding are hidden, too."""
        mask, spec = network.source_mask(source, self.example.valid), self.example.runner.info.spec
        pad_id = spec.source_padding
        if self.example.valid is None or self.copies.source is None or pad_id is None:
            return mask
        # As in `_padded`: what the run itself reads stays visible.
        return Mask(mask.padding & ((source != pad_id) | (source == self.example.source))[:, None, None, :])

    def _source(self, rows: int, different: Copies) -> Tensor:
        """[row or 1, key] of ids, or [row or 1, key, model] of features."""
        source = self.example.source
        assert source is not None
        if different.source is not None:
            return torch.tensor(different.source, device=self.example.device)
        return source.expand(rows, *source.shape[1:]) if self.wide else source
