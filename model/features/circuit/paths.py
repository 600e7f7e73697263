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

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from model.errors import BadSetting, DoesNotFit, phrase
from model.features.circuit.circuits import SIDES, PathEffects, Paths
from model.features.circuit.patching import Patching, Path, numbers_of
from model.features.what_if.copies import Copies
from model.features.what_if.example import Example
from model.features.what_if.scoring import Scorer
from model.inference.inputs import Reader
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace.progress import OnCount, ignore_count
from model.trace.types import Array, Trace, sites
from model.transformer.attention import Intervention

Copied = TypeVar("Copied")
"""What one copy of the run is changed by: a path, or a number of paths that are kept."""


def corrupted_request(asked: Paths, request: RunRequest, example: Example, prompt: int, most: int) -> RunRequest:
    """The corrupted run, which is forced to the same target; of a language model the same continuation.

    Raises:
        DoesNotFit: it has another number of tokens.
    """
    runner, strip = example.runner, "source"
    reader = Reader(runner.tokenizers, example.device, most)
    spec = runner.info.spec
    ids = reader.read("source", asked.corrupted, spec.encoder or spec.writer).tokens.ids
    clean = example.strips[strip].ids
    length = prompt or len(clean)
    if len(ids) != length:
        reason = phrase(
            "it has {found:,} tokens and the sentence has {expected:,}, but both must have the same number",
            found=len(ids),
            expected=length,
        )
        raise DoesNotFit(name="corrupted", reason=reason)
    if prompt:
        return replace(request, source=(*ids, *clean[prompt:])[: example.fed.shape[1]])
    return replace(request, source=asked.corrupted, target=example.strips["target"].ids[: example.fed.shape[1]])


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
    patching = _patching(asked, request, corrupted, run, scorer)
    example = scorer.example
    ids = int(example.following[asked.token]), patching.other
    paths = patching.places()
    # A path on which both runs agree adds 0 to the run: it needs no copy, and its effect is 0.
    changing = [path for path in paths if bool(path.change.any())]
    # Which paths matter most is only known where all were measured.
    steps = [] if asked.site else _steps(len(paths))
    copies = _MeasuredCopies(scorer, ids, asked.token, on_count, len(changing) + len(steps))
    clean = copies.both_numbers(1, {})
    effects, estimates = _effects(patching, copies, paths, changing, float(clean[0, 0]))
    # The largest effects come first, whatever their sign: each step keeps so many paths from the beginning of this order.
    order = sorted(paths, key=lambda path: -abs(effects[_cell(path)]))
    kept = copies.measured(steps, lambda some_steps: patching.cutting(order, some_steps))
    for array in (effects, estimates):
        patching.spread(array)
    return PathEffects(
        tokens=example.tokens,
        ids=tuple(example.following.tolist()),
        first=example.first + 1,
        log_probabilities=_log_probabilities(scorer),
        token=asked.token,
        other=patching.other,
        other_text=patching.other_text,
        heads=patching.heads,
        effects=effects,
        estimates=estimates,
        clean=float(clean[0, 0]),
        corrupted=patching.corrupted,
        kept=np.array(steps, np.float64),
        kept_difference=kept[0].copy(),
        kept_log_probability=kept[1].copy(),
    )


class _MeasuredCopies:
    """Copies of the clean run that are changed and measured, batch by batch.

    Args:
        scorer: computes them.
        ids: the token, and the one whose logit is taken away.
        token: index of the token among the measured ones.
        on_count: called with the number of copies done, and of all copies.
        count: of all copies.
    """

    def __init__(self, scorer: Scorer, ids: tuple[int, int], token: int, on_count: OnCount, count: int) -> None:
        self._scorer, self.ids, self._token = scorer, ids, token
        self._on_count, self._count, self._done = on_count, count, 0
        self._batch_size = _rows(scorer)
        on_count(0, count)

    def both_numbers(self, count: int, also: dict[str, Intervention]) -> Array:
        """The logit difference and the log-probability of the token in each of `count` copies: [2, copy]."""
        example = self._scorer.example
        return self._scorer.computed(lambda: numbers_of(example, self.ids, self._token, count, also), count)

    def measured(self, copies: Sequence[Copied], changed: Callable[[Sequence[Copied]], dict[str, Intervention]]) -> Array:
        """What each copy gives, [2, copy]; `changed` makes the interventions of a batch."""
        # An array without copies comes first, since there may be none.
        results = [np.zeros((2, 0))]
        left = copies
        while left:
            # A batch should take about a moment, by what the last one took: then others get their turn between two batches.
            size = self._scorer.pace.whole(self._batch_size)
            batch, left = left[:size], left[size:]
            results.append(self.both_numbers(len(batch), changed(batch)))
            self._done += len(batch)
            self._on_count(self._done, self._count)
        return np.concatenate(results, axis=1)


def _effects(
    patching: Patching, copies: _MeasuredCopies, paths: Sequence[Path], changing: Sequence[Path], clean: float
) -> tuple[Array, Array]:
    """Effects and estimates of all paths, [side, head, earlier head] each; NaN where there is no path.

    Args:
        changing: the paths that change anything.
        clean: the logit difference in the clean run.
    """
    effects = np.full((len(SIDES), len(patching.heads), len(patching.heads)), np.nan)
    for path in paths:
        effects[_cell(path)] = 0.0
    estimates = effects.copy()
    patched = copies.measured(changing, patching.adding)[0] - clean
    for path, effect, estimate in zip(changing, patched, patching.estimated(copies.ids, changing), strict=True):
        effects[_cell(path)], estimates[_cell(path)] = effect, estimate
    return effects, estimates


def _cell(path: Path) -> tuple[int, int, int]:
    """Where a path is in an array [side, head, earlier head]."""
    return path.side, path.to, path.since


def _log_probabilities(scorer: Scorer) -> Array:
    """Those of the measured tokens in the clean run, in which no head is silenced."""
    heads_by_site = sites(scorer.example.runner.info.spec)
    scores = scorer.score(Copies(heads_by_site, silenced=np.zeros((1, sum(heads_by_site.values())), bool)))  # [copy, token]
    log_probabilities: Array = scores[0]
    return log_probabilities


def _patching(
    asked: Paths, request: RunRequest, corrupted: RunRequest, run: Callable[[RunRequest], Trace], scorer: Scorer
) -> Patching:
    """What patches the paths between both runs, which are fed the same text or target."""
    example = scorer.example
    if asked.token >= len(example.following):
        raise BadSetting(
            name="token", found=asked.token, allowed=phrase("a number from 0 to {last}", last=len(example.following) - 1)
        )
    fed = example.strips[example.written].ids[: example.fed.shape[1]]  # the last one is predicted, and there may be no more room
    request = replace(request, source=fed) if example.source is None else replace(request, target=fed)
    clean_run, corrupted_run = (
        run(replace(side, keep=KEEP, begin=(), decoding=Decoding(max_length=0))) for side in (request, corrupted)
    )
    return Patching(asked, scorer, (clean_run, corrupted_run))


def _steps(count: int) -> list[int]:
    """Numbers of paths that are kept: 0, powers of two, and all."""
    return sorted({0, *(2**power for power in range(count.bit_length()) if 2**power < count), count})


def _rows(scorer: Scorer) -> int:
    """How many copies fit into one batch, whose logits are held whole."""
    example = scorer.example
    logits = 12 * len(example.following) * example.runner.info.spec.writer.vocab
    return max(1, min(scorer.rows(), scorer.most_bytes // logits))
