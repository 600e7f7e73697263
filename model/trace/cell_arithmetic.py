"""The arithmetic of one cell: recomputes one attention weight in float64, from the recorded query and key to its effect on the
output.

Only q, k and v are taken from the run. Everything else is recomputed and then compared with the recorded weights, scores and
context. A difference above the tolerance of the run's number type means that the picture cannot be trusted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from model.errors import BadSetting, EditedCell, NotRecorded, phrase
from model.requests.edits import Allow, Forbid, Patch, SetRow, Sharpen, Silence, SwapLayers
from model.requests.request import RunRequest
from model.trace.types import Array, Attention, Trace

TOLERANCE = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 2e-3}
"""Difference to float64 that rounding in a number type explains, for weights between 0 and 1. `_tolerance` allows more where scores
are large."""

ROUNDOFF = {"float32": 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11}
"""Unit roundoff: the largest relative error of one rounding."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """How one weight was computed, and what it contributed. All arrays are float64.

    Attributes:
        site, head, query, key: the cell; counted from 0.
        q, k, v: [head_dim], as recorded.
        products: [head_dim], q · k element by element; `dot` is their sum.
        scale: factor of `dot`, 1 / √head_dim in the paper; `score` is the product.
        scored: whether the run computed the score; False: the key lay in the future of a cached step.
        allowed: [key], the row's mask.
        scores: [key], the whole row after scaling, -inf where masked.
        exponentials: [key], exp(score - largest score of the row); `total` is their sum.
        weights: [key], exponentials / total; `weight` is the cell's.
        ran: the recorded weight.
        contribution: [head_dim], weight · v.
        context: [head_dim], the row's sum of contributions, recomputed.
        share: the part of `context` that lies in this contribution, contribution · context / |context|²; the shares of a row add
            up to 1.
        moved: [key], for each key the length of its contribution after the output projection: what it adds to the residual stream.
        silenced: whether the run replaced this head's context by zeros; then it moved nothing.
        largest_difference: largest difference between recomputed and recorded numbers, over the row's weights, scores and context
            (scores and context relative to their size).
        tolerance: largest difference that rounding in the run's number type explains.
    """

    site: str
    head: int
    query: int
    key: int
    q: Array
    k: Array
    v: Array
    products: Array
    dot: float
    scale: float
    score: float
    scored: bool
    allowed: Array
    scores: Array
    exponentials: Array
    total: float
    weights: Array
    weight: float
    ran: float
    contribution: Array
    context: Array
    share: float
    moved: Array
    silenced: bool
    largest_difference: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether the recomputed numbers are the recorded ones, up to rounding; False where any of them is NaN."""
        return self.largest_difference <= self.tolerance

    def to_json(self) -> dict[str, Any]:
        """All attributes and `agrees` as JSON values; a number that is not finite becomes null."""
        values = vars(self) | {"agrees": self.agrees}
        return {name: _plain(value.tolist() if isinstance(value, np.ndarray) else value) for name, value in values.items()}


def explain(trace: Trace, site: str, head: int, query: int, key: int, scale: float, output: Array) -> Explanation:
    """The arithmetic of one cell of a trace that keeps q, k, v, scores and context.

    Args:
        site: text form of a Site.
        head, query, key: counted from 0.
        scale: factor of the dot products at this site.
        output: [model, head · head_dim], the weight of its output projection.

    Raises:
        UnknownSite, UnknownHead: the run has no such site or head.
        BadSetting: the site has no such query or key.
        EditedCell: an edit replaced numbers of this head.
        UnknownTensor: the run did not record what is needed.
    """
    attention = check_cell(trace, site, head, query, key)
    _refuse_edited(trace, site, head)
    q, keys, values = (_recorded(trace, attention, name)[head] for name in ("q", "k", "v"))  # [query or key, head_dim]
    with np.errstate(all="ignore"):  # a run that holds NaN or infinite numbers is shown with them
        row = _Row(attention, head, query, q[query] * keys, scale, values, _empty_rows(trace, attention))
        silenced = _is_silenced(trace, site, head)
        # The columns of W_O that belong to this head: what it adds to the stream is its context times these.
        width = values.shape[-1]
        projection = output[:, head * width : (head + 1) * width].astype(np.float64)  # [model, head_dim]
        moved = np.linalg.norm(row.contributions @ projection.T, axis=-1) * (not silenced)
        contribution, length = row.contributions[key], float(row.context @ row.context)
        return Explanation(
            site=str(attention.site),
            head=head,
            query=query,
            key=key,
            q=q[query],
            k=keys[key],
            v=values[key],
            products=row.products[key],
            dot=float(row.dots[key]),
            scale=scale,
            score=float(row.dots[key] * scale),
            scored=row.ran["scores"] is None or not (np.isnan(row.ran["scores"][key]) and not row.allowed[key]),
            allowed=row.allowed,
            scores=row.scores,
            exponentials=row.exponentials,
            total=float(row.exponentials.sum()),
            weights=row.weights,
            weight=float(row.weights[key]),
            ran=float(attention.weights[head, query, key]),
            contribution=contribution,
            context=row.context,
            share=float(contribution @ row.context) / length if length else float("nan"),
            moved=moved,
            silenced=silenced,
            largest_difference=row.largest_difference(silenced),
            tolerance=_tolerance(str(trace.model["dtype"]), row.scores),
        )


def check_cell(trace: Trace, site: str, head: int, query: int, key: int) -> Attention:
    """Checks that the run has a cell, and returns its site.

    Raises:
        UnknownSite, UnknownHead, BadSetting: the run does not have it; the message lists what there is.
    """
    attention = trace.at(site)
    rows, columns = attention.head(head).shape
    for name, index, count in (("query", query, rows), ("key", key, columns)):
        if not 0 <= index < count:
            raise BadSetting(
                name=name, found=index, allowed=phrase("a number from 0 to {last} at {site}", last=count - 1, site=site)
            )
    return attention


def _tolerance(dtype: str, scores: Array) -> float:
    """Largest difference that rounding explains in a row with these scores; u is the unit roundoff.

    A score s is rounded twice, after the product and after scaling, so its error is up to 2u|s|. A weight w then moves by up to
    w(1 - w) times twice that: since w(1 - w) is at most 1/4, this is u|s| at most. The weight is rounded itself, too. The factor 2
    in 2u(1 + |s|) leaves room for the sum of the context.
    """
    largest = np.abs(scores[np.isfinite(scores)]).max(initial=0)
    return float(max(TOLERANCE[dtype], 2 * ROUNDOFF[dtype] * (1 + largest)))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _recorded(trace: Trace, attention: Attention, name: str) -> Array:
    tensor: Array | None = getattr(attention, name)
    if tensor is None:
        why = trace.missing.get(f"attention/*/{name}", "this source records no queries, keys and values")
        raise NotRecorded(asked=f"attention/{attention.site}/{name}", reason=why)
    return tensor.astype(np.float64)


def _empty_rows(trace: Trace, attention: Attention) -> str:
    """How the network treats a row without any allowed key: `uniform` or `zeros`."""
    return str(trace.model["spec"][attention.site.stack]["attention"]["empty_rows"])


def _is_silenced(trace: Trace, site: str, head: int) -> bool:
    edits = RunRequest.edits_in(trace.request)
    return any(isinstance(edit, Silence) and edit.by == "zeros" and edit.covers(site, head) for edit in edits)


def _refuse_edited(trace: Trace, site: str, head: int) -> None:
    """Refuses a head whose numbers an edit replaced: they do not follow from the recorded q, k, v and mask, or from its matrices.

    An edit of masks is one of these where it names heads, since a trace holds one mask for all heads.
    """
    for edit in RunRequest.edits_in(trace.request):
        match edit:
            case SetRow() | Sharpen():
                replaced = edit.covers(site, head)
            case Silence():
                replaced = edit.by != "zeros" and edit.covers(site, head)
            case Patch():
                replaced = edit.value in ("weights", "context") and edit.covers(site, head)
            case Forbid() | Allow():
                replaced = bool(edit.head) and edit.at_site(site)
            case _:
                replaced = isinstance(edit, SwapLayers) and site.startswith(f"{edit.stack}.")
        if replaced:
            raise EditedCell(site=site, head=head, edit=str(edit))


class _Row:
    """One query's row of one head, recomputed in float64."""

    def __init__(
        self, attention: Attention, head: int, query: int, products: Array, scale: float, values: Array, empty_rows: str
    ) -> None:
        # What the network computed, beside what is computed again here; scores of a cached step may be missing.
        self.ran = {name: getattr(attention, name) for name in ("weights", "scores", "context")}
        self.ran = {name: None if array is None else array[head, query].astype(np.float64) for name, array in self.ran.items()}
        self.products = products  # [key, head_dim]
        self.dots = products.sum(axis=-1)  # [key]
        self.allowed = attention.mask[query]
        self.scores = np.where(self.allowed, self.dots * scale, -np.inf)
        self.exponentials = self._exponentials(empty_rows)
        self.weights = self.exponentials / (self.exponentials.sum() or 1)
        self.contributions = self.weights[:, None] * values  # [key, head_dim]
        self.context = self.contributions.sum(axis=0)

    def _exponentials(self, empty_rows: str) -> Array:
        """exp(score - largest score), [key]. In a row without any allowed key: 1 for every key that existed then, or all zeros."""
        if self.allowed.any():
            return np.asarray(np.exp(self.scores - self.scores.max()))
        existed = np.ones_like(self.allowed) if self.ran["scores"] is None else ~np.isnan(self.ran["scores"])
        return np.where(existed, float(empty_rows == "uniform"), 0.0)

    def largest_difference(self, silenced: bool) -> float:
        """Largest difference between recomputed and recorded numbers, scores and context relative to their size. NaN if one is."""
        pairs = [(self.weights, self.ran["weights"])]
        if self.ran["scores"] is not None:
            pairs.append((self.scores[self.allowed], self.ran["scores"][self.allowed]))
        if self.ran["context"] is not None:
            pairs.append((self.context * (not silenced), self.ran["context"]))
        return float(np.max([(np.abs(ours - ran) / max(1, np.abs(ours).max(initial=0))).max(initial=0) for ours, ran in pairs]))
