"""Paths: what one head's output tells another head, patched from a corrupted run, and how much of the clean run some paths carry.

Let c and c' be the contexts of head A in a clean and in a corrupted run, and M the linear map from A's context to the query, key or
value of head B, all normalizations between them with the spreads of the clean run (docs/why.md). The path from A to B is patched by
adding M (c' − c) to that query, key or value of B; everything after B is computed anew, and nothing else that A wrote is touched.

The estimate is the gradient of the logit difference by B's query, key or value in the clean run, times the same M (c' − c).

Where some paths are kept, every head's output is computed anew, and on each path that is not kept M (c' − c) is added with what A
computes in that copy in place of c: B reads A as in the corrupted run. Embeddings, positions, feed-forward networks, and what heads
write into the last state directly are not cut.

Sources: Wang et al. 2023, "Interpretability in the Wild", section 3.1, for path patching; Nanda 2023, "Attribution Patching", and
Syed et al. 2023, "Attribution Patching Outperforms Automated Circuit Discovery", for the estimate; Conmy et al. 2023, "Towards
Automated Circuit Discovery for Mechanistic Interpretability", for the paths that are kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from model.attribution.anatomy import stacks_of
from model.attribution.circuits import SIDES, PathEffects, Side
from model.attribution.copies import Copies
from model.attribution.example import Example
from model.attribution.questions import Paths
from model.attribution.results import Head
from model.attribution.score_parts import ran
from model.attribution.scoring import OnCount, Scorer, forced, ignore_count
from model.attribution.stream import ResidualStream
from model.errors import BadSetting, CannotMeasure, DoesNotFit, UnknownHead, phrase
from model.inference.calls import Call, dtype_of
from model.inference.inputs import Reader
from model.spec.request import KEEP, Decoding, RunRequest
from model.trace.types import Array, Trace, sites
from model.transformer.attention import Intervention, Run
from model.transformer.positions import Rotation

MOST_PATHS = 8192
"""Paths of one question: their maps of 64 × 64 numbers take 128 MB."""

VALUE: Mapping[Side, str] = {"query": "q", "key": "k", "value": "v"}


@dataclass(frozen=True, eq=False)
class _Path:
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
        added: Tensor = self.factor * (context @ self.map.T)
        return added if self.turn is None else self.turn(added[:, None], 0)[:, 0]


def corrupted_request(asked: Paths, request: RunRequest, example: Example, prompt: int, most: int) -> RunRequest:
    """The corrupted run, which is forced to the same target; of a language model the same continuation.

    Raises:
        DoesNotFit: it has another number of tokens.
    """
    runner, strip = example.runner, "source"
    reader = Reader(runner.tokenizers, example.device, most)
    stack = next(iter(runner.info.spec.stacks.values()))
    ids = reader.read("source", asked.corrupted, stack).tokens.ids
    clean = example.strips[strip].ids
    length = prompt or len(clean)
    if len(ids) != length:
        reason = phrase(
            "it has {found:,} tokens and the sentence has {expected:,}, and both must have as many", found=len(ids), expected=length
        )
        raise DoesNotFit(name="corrupted", reason=reason)
    if prompt:
        return replace(request, source=(*ids, *clean[prompt:]))
    return replace(request, source=asked.corrupted, target=example.strips["target"].ids)


def path_effects(
    asked: Paths,
    request: RunRequest,
    corrupted: RunRequest,
    run: Callable[[RunRequest], Trace],
    scorer: Scorer,
    on_count: OnCount = ignore_count,
) -> PathEffects:
    """The answer to `asked`.

    Args:
        request: the clean run.
        corrupted: the corrupted one, of `corrupted_request`.
        run: runs a request.

    Raises:
        CannotMeasure: there are too many paths.
        BadSetting, UnknownSite, UnknownHead: the run has no such token or head.
    """
    example = scorer.example
    if asked.token >= len(example.following):
        raise BadSetting(
            name="token", found=asked.token, allowed=phrase("a number from 0 to {last}", last=len(example.following) - 1)
        )
    if example.source is not None:
        request = replace(request, target=example.strips["target"].ids)
    traces = run(replace(request, keep=KEEP, decoding=Decoding())), run(replace(corrupted, keep=KEEP, decoding=Decoding()))
    wanted = _Wanted(asked, scorer, traces)
    everything = wanted.places()
    paths = [path for path in everything if bool(path.change.any())]
    steps = [] if asked.site else _steps(len(everything))
    on_count(0, of := len(paths) + len(steps))
    ids = int(example.following[asked.token]), wanted.other
    effects = np.full((len(SIDES), len(wanted.heads), len(wanted.heads)), np.nan)
    estimates = effects.copy()
    for path in everything:
        effects[path.side, path.to, path.since] = estimates[path.side, path.to, path.since] = 0.0
    clean = _measured(scorer, ids, asked.token, 1, {})
    size = _rows(scorer)
    for begin in range(0, len(paths), size):
        own = paths[begin : begin + size]
        found = _measured(scorer, ids, asked.token, len(own), wanted.adding(own))
        for path, value in zip(own, found[0] - clean[0], strict=True):
            effects[path.side, path.to, path.since] = value
        on_count(begin + len(own), of)
    for path, value in zip(paths, wanted.estimated(ids, paths), strict=True):
        estimates[path.side, path.to, path.since] = value
    order = sorted(everything, key=lambda path: -abs(effects[path.side, path.to, path.since]))
    kept = list[Array]()
    for begin in range(0, len(steps), size):
        kept.append(_measured(scorer, ids, asked.token, len(steps[begin:][:size]), wanted.cutting(order, steps[begin:][:size])))
        on_count(min(of, len(paths) + begin + size), of)
    for array in (effects, estimates):
        wanted.spread(array)
    joined = np.concatenate(kept, axis=1) if kept else np.zeros((2, 0))
    return PathEffects(
        tokens=example.tokens,
        ids=tuple(example.following.tolist()),
        first=example.first + 1,
        log_probabilities=scorer.score(Copies(sites(example.runner.info.spec), silenced=np.zeros((1, len(wanted.heads)), bool)))[0],
        token=asked.token,
        other=wanted.other,
        other_text=wanted.other_text,
        heads=wanted.heads,
        effects=effects,
        estimates=estimates,
        clean=float(clean[0, 0]),
        corrupted=wanted.corrupted,
        kept=np.array(steps, np.float64),
        kept_difference=joined[0].copy(),
        kept_log_probability=joined[1].copy(),
    )


def _steps(count: int) -> list[int]:
    """Numbers of paths that are kept: 0, powers of two, and all."""
    return sorted({0, *(2**power for power in range(count.bit_length()) if 2**power < count), count})


def _rows(scorer: Scorer) -> int:
    """How many copies fit into one batch, whose logits are held whole."""
    example = scorer.example
    logits = 12 * len(example.following) * example.runner.info.spec.writer.vocab
    return max(1, min(scorer.rows(), scorer.most_bytes // logits))


def _measured(scorer: Scorer, ids: tuple[int, int], token: int, count: int, also: dict[str, Intervention]) -> Array:
    """The logit difference and the log-probability of the token in each of some copies: [2, copy]."""
    found: Array = (
        scorer.ask(
            Call(
                scorer.example.runner.network,
                Run(),
                scorer.example.fed,
                computed_by=lambda: _numbers(scorer.example, ids, token, count, also),
            )
        )
        .cpu()
        .double()
        .numpy()
    )
    return found


def _numbers(example: Example, ids: tuple[int, int], token: int, count: int, also: dict[str, Intervention]) -> Tensor:
    """[2, copy], as for `_measured`."""
    there = sites(example.runner.info.spec)
    copies = Copies(there, silenced=np.zeros((count, sum(there.values())), bool), apart=True)
    logits = forced(example, copies, also).logits[:, token].double()  # [copy, vocab]
    return torch.stack([logits[:, ids[0]] - logits[:, ids[1]], logits.log_softmax(dim=-1)[:, ids[0]]])


class _Wanted:
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
        self._stream = ResidualStream(self._clean, stacks_of(ran(network, self._clean, next(iter(self._clean.attention)))))
        self._dtype = dtype_of(network)
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
        order = np.argsort(-logits[row], kind="stable")
        self.other = int(order[order != id_][0]) if asked.minus == "corrupted" else asked.minus
        writer = "target" if self._example.source is not None else "source"
        self.other_text = Reader(self._example.runner.tokenizers, self._example.device).tokens(writer, (self.other,)).texts[0]
        self.corrupted = float(logits[row].astype(np.float64)[id_] - logits[row].astype(np.float64)[self.other])

    def places(self) -> list[_Path]:
        """All paths that are asked for.

        Raises:
            CannotMeasure: there are too many.
        """
        found = list[_Path]()
        for to, head in enumerate(self.heads):
            if self._asked.site and head != Head(self._asked.site, self._asked.head):
                continue
            for side in SIDES:
                if self._asked.shared and not self._asked.site and side != "query" and head.head % self._group(head):
                    continue  # the first of a group stands for all
                found += self._to(to, head, side)
            if len(found) > MOST_PATHS:
                reason = phrase(
                    "there are more than {most:,} paths between its heads; name the head that the paths lead to", most=MOST_PATHS
                )
                raise CannotMeasure(reason=reason)
        return found

    def _group(self, head: Head) -> int:
        return self._groups[head.site.partition(".")[0]]

    def _to(self, to: int, head: Head, side: Side) -> list[_Path]:
        """The paths to the queries, keys or values of a head."""
        attention = self._clean.at(head.site)
        stack = self._stream.stacks[attention.site.stack]
        maps = stack.sublayers[stack.index(head.site)].heads
        assert maps is not None
        heads = maps()
        rows = self._count(attention.query_tokens if side == "query" else attention.key_tokens)
        places = {each: place for place, each in enumerate(self.heads)}
        found = list[_Path]()
        for term in self._stream.read(attention.site, side, getattr(heads, side)(head.head).weight, np.arange(rows)):
            if term.part.kind != "head":
                continue
            since = Head(term.part.place, term.part.head)
            before, after = (self._context(trace, since)[:rows] for trace in (self._clean, self._corrupted))
            map_, factor = (torch.tensor(each, dtype=self._dtype, device=self._example.device) for each in (term.map, term.factor))
            path = _Path(SIDES.index(side), to, places[since], map_, factor, None if side == "value" else heads.rotation, map_)
            change = torch.tensor(after - before, dtype=self._dtype, device=self._example.device)
            found.append(replace(path, change=path.carried(change[None])[0]))
        return found

    def _context(self, trace: Trace, head: Head) -> Array:
        context = trace.at(head.site).context
        assert context is not None
        return context[head.head].astype(np.float64)

    def _count(self, strip: str) -> int:
        """Positions of a strip in a copy: all of a source, those of a target that are fed."""
        example = self._example
        return len(example.strips[strip]) if strip == "source" and example.source is not None else example.fed.shape[1]

    def _of(self, path: _Path) -> tuple[str, list[int]]:
        """The name of the value that a path leads to, and the heads of it."""
        head, side = self.heads[path.to], SIDES[path.side]
        name = f"attention/{head.site}/{VALUE[side]}"
        group = self._group(head)
        if side == "query" or not self._asked.shared or group == 1:
            return name, [head.head]
        first = head.head - head.head % group
        return name, list(range(first, first + group))

    def adding(self, paths: Sequence[_Path]) -> dict[str, Intervention]:
        """The interventions that patch one path in each copy."""
        by_name: dict[str, list[tuple[int, list[int], Tensor]]] = {}
        for row, path in enumerate(paths):
            name, heads = self._of(path)
            by_name.setdefault(name, []).append((row, heads, path.change))

        def added(own: list[tuple[int, list[int], Tensor]]) -> Intervention:
            def add(value: Tensor, start: int) -> Tensor:
                wide = value.expand(len(paths), -1, -1, -1).clone()
                for row, heads, change in own:
                    wide[row, heads] += change
                return wide

            return add

        return {name: added(own) for name, own in by_name.items()}

    def cutting(self, order: Sequence[_Path], steps: Sequence[int]) -> dict[str, Intervention]:
        """The interventions that keep the first paths of `order` alone: a copy for each number of them."""
        contexts: dict[str, Tensor] = {}
        cut = torch.tensor(
            [[place >= kept for kept in steps] for place in range(len(order))], device=self._example.device
        )  # [path, copy]
        corrupted = {
            site: torch.tensor(
                np.stack([self._context(self._corrupted, head) for head in self.heads if head.site == site]),
                dtype=self._dtype,
                device=self._example.device,
            )
            for site in dict.fromkeys(head.site for head in self.heads)
        }
        by_name: dict[str, list[tuple[list[int], _Path, Tensor]]] = {}
        for path, own in zip(order, cut, strict=True):
            name, heads = self._of(path)
            by_name.setdefault(name, []).append((heads, path, own))

        def noted(site: str) -> Intervention:
            def note(value: Tensor, start: int) -> Tensor:
                contexts[site] = value
                return value

            return note

        def changed(leading: list[tuple[list[int], _Path, Tensor]]) -> Intervention:
            def change(value: Tensor, start: int) -> Tensor:
                wide = value.expand(len(steps), -1, -1, -1).clone()
                for heads, path, own in leading:
                    since = self.heads[path.since]
                    now = contexts[since.site][:, since.head]  # [copy, row, head_dim]
                    carried = path.carried((corrupted[since.site][since.head, : now.shape[1]] - now)[:, : len(path.change)])
                    wide[:, heads] += torch.where(own[:, None, None], carried, 0)[:, None]
                return wide

            return change

        return {f"attention/{site}/context": noted(site) for site in corrupted} | {
            name: changed(own) for name, own in by_name.items()
        }

    def estimated(self, ids: tuple[int, int], paths: Sequence[_Path]) -> Array:
        """[path], gradients times changes: what the patch of each path would do if all after it were linear."""
        names = [self._of(path) for path in paths]
        if not names:
            return np.zeros(0)
        leaves: dict[str, Tensor] = {}

        def leaf(name: str) -> Intervention:
            def watched(value: Tensor, start: int) -> Tensor:
                leaves[name] = torch.zeros_like(value[:1]).clone().requires_grad_()
                return value.clone() + leaves[name]

            return watched

        def computed() -> Tensor:
            with torch.inference_mode(False), torch.enable_grad():
                also = {name: leaf(name) for name, _ in names}
                difference = _numbers(self._example, ids, self._asked.token, 1, also)[0, 0]
                found = dict(zip(leaves, torch.autograd.grad(difference, list(leaves.values()), allow_unused=True), strict=True))
                numbers = list[Tensor]()
                for path, (name, heads) in zip(paths, names, strict=True):
                    slope = found[name]
                    numbers.append(
                        torch.zeros(()) if slope is None else (slope[0, heads].sum(dim=0) * path.change.clone()).sum().cpu()
                    )
                return torch.stack([number.double() for number in numbers]).detach()

        call = Call(self._example.runner.network, Run(), self._example.fed, computed_by=computed)
        return np.asarray(self._scorer.ask(call).cpu().double().numpy())

    def spread(self, array: Array) -> None:
        """Gives the paths to a shared key or value to all heads that share it."""
        if not self._asked.shared or self._asked.site:
            return
        for to, head in enumerate(self.heads):
            first = to - head.head % self._group(head)
            array[1:, to] = array[1:, first]
