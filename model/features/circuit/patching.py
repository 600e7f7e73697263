"""The interventions of patched paths (paths.py): maps between heads, what is added to a query, key or value, and what is cut."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from model.errors import BadSetting, CannotMeasure, UnknownHead, phrase
from model.features.circuit.circuits import SIDES, Paths, Side
from model.features.circuit.score_parts import ran
from model.features.circuit.stream import ResidualStream
from model.features.what_if.copies import Copies
from model.features.what_if.example import Example
from model.features.what_if.results import Head
from model.features.what_if.scoring import Scorer, forced
from model.inference.inputs import Reader
from model.trace.types import Array, Trace, sites
from model.transformer.attention import Intervention
from model.transformer.positions import Rotation

MOST_PATHS = 8192
"""Paths of one question: their maps of 64 × 64 numbers take 128 MB."""

VALUE: Mapping[Side, str] = {"query": "q", "key": "k", "value": "v"}
"""The name under which a run records what each side makes: attention/SITE/q, k or v."""


@dataclass(frozen=True, eq=False)
class Path:
    """One path.

    Attributes:
        side, to, since: places of the side, and of the later and the earlier head among all heads.
        map: [head_dim, head_dim of the earlier head].
        factor: [row, 1], by which rows of the map's results are multiplied.
        turn: turns queries and keys by their positions.
        change: [row, head_dim], what is added to the query, key or value where the path is patched.
    """

    side: int
    to: int
    since: int
    map: Tensor
    factor: Tensor
    turn: Rotation | None
    change: Tensor

    def carried(self, context: Tensor) -> Tensor:
        """What a change of the earlier head's context [copy, row, head_dim] adds: [copy, row, head_dim]."""
        # The matrix product runs over the numbers of the earlier head. A rotation expects an axis of heads, which is
        # put in and taken out.
        added: Tensor = self.factor * (context @ self.map.T)
        return added if self.turn is None else self.turn(added[:, None], 0)[:, 0]


def numbers_of(example: Example, ids: tuple[int, int], token: int, count: int, also: dict[str, Intervention]) -> Tensor:
    """[2, copy], as for `_measured`."""
    heads_by_site = sites(example.runner.info.spec)
    copies = Copies(heads_by_site, silenced=np.zeros((count, sum(heads_by_site.values())), bool), apart=True)
    # float64 before anything is made of the logits: then neither the difference nor the softmax is rounded once more.
    logits = forced(example, copies, also).logits[:, token].double()  # [copy, vocab]
    return torch.stack([logits[:, ids[0]] - logits[:, ids[1]], logits.log_softmax(dim=-1)[:, ids[0]]])


class Patching:
    """The heads, paths and interventions of one question.

    Attributes:
        heads: all heads.
        other, other_text: the token whose logit is taken away.
        corrupted: the logit difference in the corrupted run.
    """

    def __init__(self, asked: Paths, scorer: Scorer, traces: tuple[Trace, Trace]) -> None:
        self._asked, self._scorer, self._example = asked, scorer, scorer.example
        self._clean, self._corrupted = traces
        spec, network = self._example.runner.info.spec, self._example.runner.network
        self.heads = tuple(Head(str(site), head) for site, count in sites(spec).items() for head in range(count))
        self._stream = ResidualStream(self._clean, ran(network, self._clean).stacks)
        self._dtype = network.dtype
        # How many heads share a key and value: 1 where every head has its own.
        self._groups = {
            name: stack.attention.heads // (stack.attention.key_heads or stack.attention.heads)
            for name, stack in spec.stacks.items()
        }
        if asked.site and not 0 <= asked.head < (heads := self._clean.at(asked.site).heads):
            raise UnknownHead(asked=asked.head, site=asked.site, last=heads - 1)
        row = self._example.first + asked.token
        logits = self._corrupted.logits
        assert logits is not None
        id_ = int(self._example.following[asked.token])
        if asked.minus != "corrupted" and asked.minus >= logits.shape[1]:
            raise BadSetting(name="minus", found=asked.minus, allowed=phrase("a number from 0 to {last}", last=logits.shape[1] - 1))
        # The likeliest token of the corrupted run, or the second where the first is the token that is measured.
        order = np.argsort(-logits[row], kind="stable")
        self.other = int(order[order != id_][0]) if asked.minus == "corrupted" else asked.minus
        writer = "target" if self._example.source is not None else "source"
        self.other_text = Reader(self._example.runner.tokenizers, self._example.device).tokens(writer, (self.other,)).texts[0]
        self.corrupted = float(logits[row].astype(np.float64)[id_] - logits[row].astype(np.float64)[self.other])

    def places(self) -> list[Path]:
        """All paths that are asked for.

        Raises:
            CannotMeasure: there are too many.
        """
        paths = list[Path]()
        for to, head in enumerate(self.heads):
            if self._asked.site and head != Head(self._asked.site, self._asked.head):
                continue
            for side in SIDES:
                if self._asked.shared and not self._asked.site and side != "query" and head.head % self._group(head):
                    continue  # the first of a group stands for all
                paths += self._to(to, head, side)
            if len(paths) > MOST_PATHS:
                reason = phrase(
                    "there are more than {most:,} paths between its heads; name the head that the paths lead to", most=MOST_PATHS
                )
                raise CannotMeasure(reason=reason)
        return paths

    def _group(self, head: Head) -> int:
        return self._groups[head.site.partition(".")[0]]

    def _to(self, to: int, head: Head, side: Side) -> list[Path]:
        """The paths to the queries, keys or values of a head."""
        attention = self._clean.at(head.site)
        stack = self._stream.stacks[attention.site.stack]
        maps = stack.sublayers[stack.index(head.site)].heads
        assert maps is not None
        heads = maps()
        rows = self._count(attention.query_tokens if side == "query" else attention.key_tokens)
        places = {head_: index for index, head_ in enumerate(self.heads)}
        paths = list[Path]()
        # Everything that the side reads, of which only the terms of heads are paths. Their maps have the norms of the
        # clean run in them.
        terms = self._stream.read(attention.site, side, getattr(heads, side)(head.head).weight, np.arange(rows))
        for term in [*terms][::-1]:
            if term.part.kind != "head":
                continue
            since = Head(term.part.place, term.part.head)
            # Only the rows that the copies compute.
            before, after = (self._context(trace, since)[:rows] for trace in (self._clean, self._corrupted))
            map_, factor = (torch.tensor(x, dtype=self._dtype, device=self._example.device) for x in (term.map, term.factor))
            # What the patch adds follows from the path's own map and rotation: so it is made with a stand-in, which
            # the next lines replace.
            path = Path(SIDES.index(side), to, places[since], map_, factor, None if side == "value" else heads.rotation, map_)
            change = torch.tensor(after - before, dtype=self._dtype, device=self._example.device)
            paths.append(replace(path, change=path.carried(change[None])[0]))
        return paths

    def _context(self, trace: Trace, head: Head) -> Array:
        context = trace.at(head.site).context
        assert context is not None
        vectors: Array = context[head.head].astype(np.float64)
        return vectors

    def _count(self, strip: str) -> int:
        """Positions of a strip in a copy: all of a source, those of a target that are fed."""
        example = self._example
        return len(example.strips[strip]) if strip == "source" and example.source is not None else example.fed.shape[1]

    def _of(self, path: Path) -> tuple[str, list[int]]:
        """The name of the value that a path leads to, and the heads of it."""
        head, side = self.heads[path.to], SIDES[path.side]
        name = f"attention/{head.site}/{VALUE[side]}"
        group = self._group(head)
        if side == "query" or not self._asked.shared or group == 1:
            return name, [head.head]
        first = head.head - head.head % group
        return name, list(range(first, first + group))

    def adding(self, paths: Sequence[Path]) -> dict[str, Intervention]:
        """The interventions that patch one path in each copy."""
        by_name: dict[str, list[tuple[int, list[int], Tensor]]] = {}
        for row, path in enumerate(paths):
            # Several paths lead to the same value: they are collected by its name, since a value has one
            # intervention.
            name, heads = self._of(path)
            by_name.setdefault(name, []).append((row, heads, path.change))

        def added(changes: list[tuple[int, list[int], Tensor]]) -> Intervention:
            def add(value: Tensor, start: int) -> Tensor:
                # Until here all copies may share one row. Each now gets its own, to which its own path alone is
                # added.
                wide = value.expand(len(paths), -1, -1, -1).clone()
                for row, heads, change in changes:
                    wide[row, heads] += change
                return wide

            return add

        return {name: added(changes) for name, changes in by_name.items()}

    def cutting(self, order: Sequence[Path], steps: Sequence[int]) -> dict[str, Intervention]:
        """The interventions that keep the first paths of `order` alone: a copy for each number of them."""
        contexts: dict[str, Tensor] = {}
        # A copy keeps so many paths from the beginning of the order; on all others it reads the corrupted run.
        cut = torch.tensor(
            [[index >= kept for kept in steps] for index in range(len(order))], device=self._example.device
        )  # [path, copy]
        # The contexts [head, row, head_dim] of each site in the corrupted run, in the order of its heads.
        corrupted = {
            site: torch.tensor(
                np.stack([self._context(self._corrupted, head) for head in self.heads if head.site == site]),
                dtype=self._dtype,
                device=self._example.device,
            )
            for site in dict.fromkeys(head.site for head in self.heads)
        }
        by_name: dict[str, list[tuple[list[int], Path, Tensor]]] = {}
        for path, is_cut in zip(order, cut, strict=True):
            name, heads = self._of(path)
            by_name.setdefault(name, []).append((heads, path, is_cut))

        # Nothing is changed here. A head runs before all heads that read it, so its context is noted by the time they
        # ask for it.
        def noted(site: str) -> Intervention:
            def note(value: Tensor, start: int) -> Tensor:
                contexts[site] = value
                return value

            return note

        def changed(leading: list[tuple[list[int], Path, Tensor]]) -> Intervention:
            def change(value: Tensor, start: int) -> Tensor:
                wide = value.expand(len(steps), -1, -1, -1).clone()
                for heads, path, is_cut in leading:
                    since = self.heads[path.since]
                    # What the earlier head computed in this very copy: other paths that are cut there have changed it
                    # already.
                    now = contexts[since.site][:, since.head]  # [copy, row, head_dim]
                    carried = path.carried((corrupted[since.site][since.head, : now.shape[1]] - now)[:, : len(path.change)])
                    # Copies that keep this path add 0. The same number goes to all heads that share the value.
                    wide[:, heads] += torch.where(is_cut[:, None, None], carried, 0)[:, None]
                return wide

            return change

        return {f"attention/{site}/context": noted(site) for site in corrupted} | {
            name: changed(leading) for name, leading in by_name.items()
        }

    def estimated(self, ids: tuple[int, int], paths: Sequence[Path]) -> Array:
        """[path], gradients times changes: what the patch of each path would do if all after it were linear."""
        names = [self._of(path) for path in paths]
        if not names:
            return np.zeros(0)
        leaves: dict[str, Tensor] = {}

        def leaf(name: str) -> Intervention:
            def watched(value: Tensor, start: int) -> Tensor:
                # A zero is added to the value: its gradient is the gradient by the value, wherever the value itself
                # came from.
                leaves[name] = torch.zeros_like(value[:1]).clone().requires_grad_()
                return value.clone() + leaves[name]

            return watched

        def computed() -> Tensor:
            # Measurements run in inference mode, whose tensors know no gradients: so the clean run is computed anew
            # outside of it.
            with torch.inference_mode(False), torch.enable_grad():
                also = {name: leaf(name) for name, _ in names}
                difference = numbers_of(self._example, ids, self._asked.token, 1, also)[0, 0]
                slopes = torch.autograd.grad(difference, list(leaves.values()), allow_unused=True)
                gradients = dict(zip(leaves, slopes, strict=True))
                numbers = list[Tensor]()
                for path, (name, heads) in zip(paths, names, strict=True):
                    # None: the logits do not depend on this value, such as one in a row after the measured token.
                    # Where heads share a key or value their slopes are added, since all of them read the change.
                    slope = gradients[name]
                    numbers.append(
                        torch.zeros(()) if slope is None else (slope[0, heads].sum(dim=0) * path.change.clone()).sum().cpu()
                    )
                return torch.stack([number.double() for number in numbers]).detach()

        return self._scorer.computed(computed)

    def spread(self, array: Array) -> None:
        """Gives the paths to a shared key or value to all heads that share it."""
        if not self._asked.shared or self._asked.site:
            return
        for to, head in enumerate(self.heads):
            # Heads that share a key are neighbors, and the first of them was measured. Queries (index 0) are never shared.
            first = to - head.head % self._group(head)
            array[1:, to] = array[1:, first]
