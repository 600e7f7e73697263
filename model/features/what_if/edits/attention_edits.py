"""Edits of attention: masks, scores, rows of weights, and context vectors of heads. Each makes a function of a value of a site.

Shapes: masks, scores and weights are [batch, head, query, key], a mask with one head for all of them; context is [batch, head,
query, head_dim].
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from model.errors import phrase
from model.features.what_if.edits.places import EditedSite
from model.requests.edits import Allow, Forbid, SetRow, Sharpen, Silence
from model.trace.types import Array
from model.transformer.attention import Intervention


def masked(edited: EditedSite, edits: Sequence[Forbid | Allow]) -> Intervention:
    """Closes and opens edges, one edit after the other."""

    def change(mask: Tensor, start: int) -> Tensor:
        # `before` is what earlier edits named here, so that a contradiction is noticed where it happens and not where it is typed.
        changed, before = mask, list[tuple[Forbid | Allow, Tensor]]()
        for edit in edits:
            cells = edited.cells(edit, mask, start, edit.query, edit.key)
            # Of a closed and an opened edge at the same cell the later one holds, and a note says so.
            for earlier, earlier_cells in before:
                if type(earlier) is not type(edit) and (earlier_cells & cells).any():
                    edited.notes.say(
                        phrase(
                            "“{edit}” overrides “{earlier}” where they contradict each other, because it comes later.",
                            edit=edit,
                            earlier=earlier,
                        )
                    )
            before.append((edit, cells))
            # An edit that changes nothing is told after the run: it may name an edge that is closed already.
            after = changed | cells if isinstance(edit, Allow) else changed & ~cells
            if not torch.equal(after, changed.expand_as(after)):
                edited.notes.made.add(edit)
            changed = after
        if (mask.any(dim=-1) & ~changed.any(dim=-1)).any():
            if edited.empty_rows == "uniform":
                note = phrase(
                    "A row of {site} has no key left. In this network, every key then gets the same weight, also keys of the "
                    "future and others that the mask forbids.",
                    site=edited.site,
                )
            else:
                note = phrase("A row of {site} has no key left. In this network, all its weights are 0 then.", site=edited.site)
            edited.notes.say(note)
        # A mask that nothing changed stays as it is: one for all heads.
        return mask if torch.equal(changed, mask.expand_as(changed)) else changed

    return change


def sharpened(edited: EditedSite, edit: Sharpen) -> Intervention:
    """Multiplies scores, or the queries that they are made of."""

    def change(value: Tensor, start: int) -> Tensor:
        changed = edited.replaced(edit, value, edited.cells(edit, value, start, ()), value * edit.factor)
        # A quarter of the largest number: a softmax subtracts scores from each other.
        if value.isfinite().all() and not (changed.abs() < torch.finfo(changed.dtype).max / 4).all():
            largest = float(value.abs().max())
            kind = str(value.dtype).removeprefix("torch.")
            raise edit.refuse(
                phrase(
                    "the scores of {site}, now at most {largest:.3g}, would be too large for {kind} numbers",
                    site=edited.site,
                    largest=largest,
                    kind=kind,
                )
            )
        return changed

    return change


def finite(edit: Sharpen) -> Intervention:
    """Refuses weights that are NaN since their scores became too large."""

    def look(weights: Tensor, start: int) -> Tensor:
        if weights.isnan().any():
            raise edit.refuse(phrase("the weights become NaN: choose a smaller factor"))
        return weights

    return look


def rows_set(edited: EditedSite, edit: SetRow, mask: Callable[[], Tensor]) -> Intervention:
    """Replaces rows of weights.

    Args:
        mask: the mask that the site used.
    """

    def change(weights: Tensor, start: int) -> Tensor:
        rows, defined = _row(edited, edit, weights, mask)  # a row over keys that do not exist yet stays as it is
        return edited.replaced(edit, weights, edited.cells(edit, weights, start, edit.query) & defined, rows)

    return change


def _row(edited: EditedSite, edit: SetRow, weights: Tensor, mask: Callable[[], Tensor]) -> tuple[Tensor, Tensor]:
    """New rows, broadcastable to `weights`, and where there are any."""
    # Four kinds of rows, as numbers that need not sum to 1 yet.
    keys = weights.shape[-1]
    if edit.to == "head" and edit.other is not None:
        return weights[:, edit.other, None], torch.ones_like(weights[:, :1, :, :1], dtype=torch.bool)
    if edit.to == "uniform":
        chosen = mask().to(weights.dtype)
    elif edit.to == "one-hot" and edit.key is not None:
        chosen = edited.strips.match((edit.key,), edited.strips.keys(edited.site), 0, keys)[:, None, None].to(weights)
    else:
        # Numbers were typed for all keys of the finished text: this step may not have all of them yet, or, beside padding, more.
        typed = torch.tensor(edit.numbers[:keys], dtype=torch.float64)
        chosen = torch.cat([typed, typed.new_zeros(keys - len(typed))])[None, None, None].to(weights.device)
    # Any numbers become weights by dividing them by their sum.
    total = chosen.sum(dim=-1, keepdim=True)
    return chosen / total.clamp(min=1e-30), total > 0


def silenced(edited: EditedSite, edit: Silence, past: "Past", example: Array | None) -> Intervention:
    """Replaces the context vectors of heads.

    Args:
        past: the context of earlier rows of this site.
        example: [head, head_dim], the mean over the model's examples.
    """

    def change(context: Tensor, start: int) -> Tensor:
        # Zeros, unless the edit asks for a mean: of this sentence, of the model's examples, or of a survey.
        new = torch.zeros((), dtype=context.dtype, device=context.device)
        if edit.by == "sentence":
            new = past.mean(context, start)
        elif example is not None:
            new = torch.as_tensor(example).to(context)[None, :, None]
        return edited.replaced(edit, context, edited.cells(edit, context, start, ()), new)

    return change


class Past:
    """The context vectors that a site has computed in one run, for their mean.

    Args:
        valid: of an encoder: [position] of bool, the positions that are no padding, when they are known; None: of a decoder, whose
            rows come one after the other: the mean of row i is that of the rows 0 to i.
    """

    def __init__(self, valid: Callable[[], Tensor | None] | None) -> None:
        self._valid = valid
        # [batch, head, row, head_dim], all rows so far.
        self._rows: Tensor | None = None

    def mean(self, context: Tensor, start: int) -> Tensor:
        """The mean that each row gets: [batch, head, query or 1, head_dim]."""
        if self._valid is not None:
            valid = self._valid()
            # Padding does not count: each position that is text has weight 1, and padding 0.
            weights = torch.ones(context.shape[2]) if valid is None else valid[: context.shape[2]]
            weights = weights.to(context)[:, None]
            return (context * weights).sum(dim=2, keepdim=True) / weights.sum().clamp(min=1)
        # The rows before `start` are those of earlier steps; those from it on are in `context`.
        earlier = [self._rows[:, :, :start]] if start and self._rows is not None else []
        self._rows = torch.cat([*earlier, context], dim=2)
        # The sum of the first i rows divided by i, for every row at once; only the new rows are asked for.
        counts = torch.arange(1, self._rows.shape[2] + 1, device=context.device)[:, None]
        return (self._rows.cumsum(dim=2) / counts).to(context.dtype)[:, :, -context.shape[2] :]

    def select(self, rows: Tensor) -> None:
        """Keeps batch rows, as the cache does."""
        if self._rows is not None:
            self._rows = self._rows[rows]
