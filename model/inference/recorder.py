"""The recorder: collects the tensors that a network hands to `Run.record`, and turns them into the arrays of one example.

In a cached decode the decoder runs once for each step, so a site's rows arrive in pieces. They are joined here without computing
anything again. A step does not compute weights and scores for keys in its future: such a weight is 0, as the causal mask makes it,
and such a score NaN.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.functional import pad

from model.errors import Words, phrase
from model.requests.external import AnyAttention
from model.requests.request import KEEP, Keep
from model.trace.lazy_attention import LazyAttention
from model.trace.types import AXES, TENSORS_OF_ATTENTION, UNWRITTEN, Array, Attention, Site, Tokens

_KEPT_AS: dict[str, Keep] = {
    "scores": "scores",
    "q": "qkv",
    "k": "qkv",
    "v": "qkv",
    "context": "context",
    "output": "output",
    "hidden": "hidden",
    "embedded": "hidden",
    "stages": "stages",
}
_OF_LAZY = ("q", "k")
"""What weights are computed from when they are read."""

NAN_UNCOMPUTED = phrase("keys that came after the step of a row have no score in it: those scores are NaN")
_FILL = {"weights": 0.0, "scores": torch.nan, "mask": False, "mask_causal": False}


class Recorder:
    """Collects the tensors of one run; called as `Run.record`.

    Args:
        keep: tensors to record besides weights, masks, positions and logits.
        fused: whether the run uses the fused kernel, which returns no weights. Queries and keys are then always recorded, since the
            weights are computed from them.
        last_logits: whether the logits of most positions are not computed; then none are recorded.

    Attributes:
        prompt: positions of the decoder's first pass that were given; those after them are guesses (`Draft`). None: all were.
    """

    def __init__(self, keep: Sequence[Keep] = (), fused: bool = False, last_logits: bool = False) -> None:
        # A tensor's pieces are in the order of the decoder's steps; a tensor of the encoder has a single piece.
        self._keep = frozenset(keep)
        self._fused, self._last_logits = fused, last_logits
        self._pieces: defaultdict[str, list[Tensor]] = defaultdict(list)
        self.prompt: int | None = None
        self._rows: list[list[int]] = []  # for each decoder step, the batch rows that are still in memory

    def __call__(self, name: str, value: Tensor) -> None:
        """Records one tensor, [batch, …], under its name in a trace file.

        Of a mask that an intervention made different for each head, it records where any head may look.
        """
        if self.wants(name):
            self.add(name, value)

    def add(self, name: str, value: Tensor) -> None:
        """Records a tensor that it wants."""
        if _is_mask(name) and value.shape[1] > 1:  # [batch, head, query, key]
            value = value.any(dim=1, keepdim=True)
        self._pieces[name].append(value.detach() if value.requires_grad else value)

    @property
    def choice(self) -> tuple[frozenset[str], bool]:
        """What `wants` depends on: recorders with equal choices want the same tensors."""
        return self._keep, self._last_logits

    def wants(self, name: str) -> bool:
        """Whether it records the tensor of this name."""
        # The fused kernel leaves no weights: queries and keys, of which they are made later, are kept though nobody asked for them.
        kind = _kept_as(name)
        if self._fused and name.rpartition("/")[2] in _OF_LAZY:
            return True
        return (kind is None or kind in self._keep) and not (name == "logits" and self._last_logits)

    def prune(self, lineages: Collection[Sequence[int]]) -> None:
        """Frees the rows of the hypotheses that beam search has dropped. Called after each decoder step.

        Args:
            lineages: the batch rows, one for each decoder step, of each hypothesis that can still be shown.
        """
        # From the newest step back: where a step needs all rows that it still has, so do all steps before it.
        for step in reversed(range(max(map(len, lineages)))):
            # Which rows of this step's batch some hypothesis goes back to; all others are freed.
            needed = sorted({lineage[step] for lineage in lineages if len(lineage) > step})
            if step >= len(self._rows):
                self._rows.append(needed)
                rows = needed
            elif needed == self._rows[step]:
                return  # then the earlier steps have not changed either
            else:
                rows = [self._rows[step].index(row) for row in needed]  # earlier pruning has moved them
                self._rows[step] = needed
            for name, pieces in self._pieces.items():
                if _is_decoded(name) and step < len(pieces):
                    # Keys and values of the source have a piece of the first step alone.
                    pieces[step] = _rows_of(pieces[step], rows)

    def forget(self, count: int) -> None:
        """Drops the newest `count` rows of the decoder: of tokens that were read on trial and not chosen (`Draft`)."""
        # All layers may share one mask: it is cut once. What was cut is kept meanwhile, so that no other tensor gets its id.
        cut: dict[tuple[int, bool], tuple[Tensor, Tensor]] = {}
        for name, pieces in self._pieces.items():
            if _forgets(name):
                key = id(pieces[-1]), _has_own_keys(name)
                if key not in cut:
                    left = pieces[-1][..., :-count, :]
                    cut[key] = pieces[-1], left[..., :-count] if key[1] else left
                pieces[-1] = cut[key][1]

    def arrays(self, lineage: Sequence[int] | None = None, one_row: bool = False) -> dict[str, Array]:
        """The recorded arrays of one example, joined over the steps.

        Args:
            lineage: the example's batch row in each decoder step, from beam search; None: row 0 in every step.
            one_row: whether to keep only the last row of each decoder step, which decides the token; for networks that compute more
                rows in a step than they read tokens.

        Returns:
            Arrays by name, without the batch axis, in the order in which they were first recorded.
        """
        # A lineage counts rows as the step computed them; pruning has moved them up since.
        places = None if lineage is None else [*map(list.index, self._rows, lineage)]
        joined: dict[tuple[object, ...], Array] = {}  # the pieces of a mask are those of every layer
        # All pieces are held until the end: a tensor that was freed would leave its id to the next one.
        decisive = {name: _deciding(name, pieces) if one_row else pieces for name, pieces in self._pieces.items()}
        arrays = {}
        for name, pieces in decisive.items():
            # Layers share masks: equal pieces are joined once, and the arrays of all layers are then one array.
            same = name.rpartition("/")[2], _is_decoded(name), *map(id, pieces)
            if same not in joined:
                joined[same] = _join(name, pieces, places, self.prompt)
            arrays[name] = joined[same]
        return arrays

    def snapshot(self) -> "Recorder":
        """The record so far; the run does not change it any more. No tensor is copied."""
        copy = Recorder(fused=self._fused)
        copy._keep, copy.prompt = self._keep, self.prompt
        # The lists are copied and the tensors are not: later steps append to the run's own lists.
        copy._pieces.update({name: list(pieces) for name, pieces in self._pieces.items()})
        copy._rows = [list(rows) for rows in self._rows]
        return copy

    def missing(self) -> dict[str, Words]:
        """Why tensors were not recorded, by name."""
        # Of a fused run, queries and keys are there without being asked for: the weights are made of them.
        absent = [kind for kind in KEEP if kind not in self._keep]
        why: dict[str, Words] = {
            name: phrase("not recorded: ask for it with --keep {kind}", kind=kind)
            for kind in absent
            for name, k in _KEPT_AS.items()
            if k == kind and not (self._fused and name in _OF_LAZY)
        }
        named = {
            name if name in ("hidden", "embedded", "stages") else f"attention/*/{name}": reason for name, reason in why.items()
        }
        # A step knows no scores of later keys. A first pass over more than the prompt read guesses, and must look like steps, too.
        scores = [pieces for name, pieces in self._pieces.items() if name.endswith(".self/scores") and _is_decoded(name)]
        stepped = any(len(pieces) > 1 or pieces[0].shape[-2] > (self.prompt or torch.inf) for pieces in scores)
        named |= {"attention/decoder.*/scores": NAN_UNCOMPUTED} if stepped else {}
        named |= {"logits": ONLY_LAST} if self._last_logits else {}
        return named | ({UNWRITTEN: FUSED} if self._fused else {})


ONLY_LAST = phrase(
    "a long prompt and a large vocabulary: the logits of each position would take too much memory, so only the last were computed"
)

FUSED = phrase(
    "a long input: the run used a fused kernel, which does not store weights; they are computed from q and k when they are shown"
)


def attentions(
    arrays: dict[str, Array],
    tokens: Mapping[str, Tokens],
    specs: Mapping[str, AnyAttention],
    scale: Callable[[Site], float] | None = None,
) -> dict[Site, Attention]:
    """Groups the arrays by site, in the order in which the sites ran.

    Args:
        arrays: arrays by name, from `Recorder.arrays`. Where there are no `weights`, a site's weights are computed from its q and
            k.
        tokens: the token strips.
        specs: description of the attention of each stack.
        scale: the factor of a site's scores; None: 1 / √(head width).
    """
    # Arrays are called attention/SITE/TENSOR; a site ran where its first tensor was recorded.
    names = dict.fromkeys(name.split("/")[1] for name in arrays if name.startswith("attention/"))
    target = "target" if "target" in tokens else "source"
    sites = {}
    for site in map(Site.parse, names):
        tensors = {n: arrays[path] for n in TENSORS_OF_ATTENTION if (path := f"attention/{site}/{n}") in arrays}
        tensors |= {name: array[0] for name, array in tensors.items() if name.startswith("mask")}  # the same for every head
        if "weights" not in tensors:
            spec = specs[site.stack]
            factor = spec.head_dim**-0.5 if scale is None else scale(site)
            tensors["weights"] = LazyAttention(tensors["q"], tensors["k"], tensors["mask"], factor, spec.empty_rows).array
        # A decoder whose queries come from the encoder's output has one for each source position: more than target tokens.
        of_source = site.stack == "encoder" or site.kind == "memory" or len(tensors["mask"]) > len(tokens[target])
        queries = "source" if of_source else target
        sites[site] = Attention(site, queries, queries if site.kind == "self" else "source", **tensors)
    return sites


def _deciding(name: str, pieces: list[Tensor]) -> list[Tensor]:
    """The last row of each piece, for tensors that have a row for each query of a decoder step."""
    # Keys and values have a row for each key, and `.memory` sites one for each source position.
    of_queries = ("decoder" in name or name == "logits") and ".memory" not in name and name.rpartition("/")[2] not in ("k", "v")
    return [piece[..., -1:, :] for piece in pieces] if of_queries else pieces


@lru_cache(4096)
def _kept_as(name: str) -> Keep | None:
    """What a request must keep for a tensor to be recorded; None: it always is."""
    group, _, rest = name.partition("/")
    return _KEPT_AS.get(rest.rpartition("/")[2] if group == "attention" else group)


@lru_cache(4096)
def _is_mask(name: str) -> bool:
    return name.startswith("attention/") and "/mask" in name


@lru_cache(4096)
def _forgets(name: str) -> bool:
    """Whether a tensor has a row for each token that the decoder read; keys and values of the source have none."""
    return _is_decoded(name) and not name.endswith((".cross/k", ".cross/v"))


@lru_cache(4096)
def _is_decoded(name: str) -> bool:
    """Whether a tensor is recorded once in each decoder step."""
    return name == "logits" or "decoder" in name


@lru_cache(4096)
def _has_own_keys(name: str) -> bool:
    """Whether the last axis of a tensor is the keys of self-attention."""
    group, _, rest = name.partition("/")
    site, _, kind = rest.partition("/")
    return group == "attention" and site.endswith(".self") and (kind.startswith("mask") or AXES[kind][-1] == "key")


def _unscored_future(scores: Tensor, prompt: int = 0) -> Tensor:
    """Scores [head, query, key] of a pass over several tokens, made like those of steps of one token: NaN in each one's future.

    Args:
        prompt: number of the first keys that were read together.
    """
    # Row i of the last `queries` positions sees keys up to its own; a step of its own would never have computed the others.
    queries, keys = scores.shape[-2:]
    future = torch.ones(queries, keys, dtype=torch.bool, device=scores.device).triu(keys - queries + 1)
    future[:, :prompt] = False
    return scores.masked_fill(future, torch.nan)


def _rows_of(piece: Tensor, rows: list[int]) -> Tensor:
    """Some batch rows of a piece [batch, …], copied, so that the memory of the others is freed."""
    if len(rows) == len(piece):
        return piece
    # A stride of 0 means that all rows are the same memory: there is nothing to free, and a copy would only cost.
    return piece[:1].expand(len(rows), *piece.shape[1:]) if piece.stride(0) == 0 else piece[rows]


def _join(name: str, pieces: list[Tensor], places: Sequence[int] | None, prompt: int | None) -> Array:
    """One array of one example: concatenates the rows of its steps, with keys padded to the number of the last step.

    Args:
        places: index of the example's row in the piece of each decoder step; None: the first row.
        prompt: as for Recorder.
    """
    decoded = _is_decoded(name)
    if places is not None and decoded:  # a hypothesis may end before the search does
        # A piece of one row holds what is the same for all hypotheses.
        pieces = [piece if piece.shape[0] == 1 else piece[row : row + 1] for piece, row in zip(pieces, places, strict=False)]
    # In a decode, passes over several tokens (guesses) computed scores of later keys, too. Steps of one token have none: here they
    # become NaN.
    if name.endswith(".self/scores"):
        first = pieces[0] if prompt is None or not decoded else _unscored_future(pieces[0], prompt)
        pieces = [first, *(piece if piece.shape[-2] == 1 else _unscored_future(piece) for piece in pieces[1:])]
    if len(pieces) > 1 and name.startswith("attention/"):
        pieces = _as_wide_as_the_last(name.rpartition("/")[2], pieces)
    # The batch axis stays until the end: taking its first row is then one operation, not one for each step.
    whole = (torch.cat(pieces, dim=-2) if len(pieces) > 1 else pieces[0])[0]  # a mask's repeated rows stay one row in memory
    lower = whole.dtype in (torch.bfloat16, torch.float16)  # float32 holds these exactly, and numpy has no bfloat16
    array: Array = (whole.float() if lower else whole).cpu().numpy()
    return array


def _as_wide_as_the_last(kind: str, pieces: list[Tensor]) -> list[Tensor]:
    """Pieces [batch, head, query, key] of an attention site with a column for each key that the last step had."""
    if kind == "mask_padding":  # depends on the keys alone, so the last step's row, which has all keys, holds for every row
        return [pieces[-1][..., -1:, :].expand(*piece.shape[:-1], -1) for piece in pieces]
    if kind not in _FILL:
        return pieces
    # A key that did not exist yet: its weight is 0, its score NaN, and the mask forbids it.
    keys = max(piece.shape[-1] for piece in pieces)
    return [piece if piece.shape[-1] == keys else pad(piece, (0, keys - piece.shape[-1]), value=_FILL[kind]) for piece in pieces]
