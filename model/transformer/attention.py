"""Attention: each position's query takes a weighted mean of the values, with weights that say how well it matches their keys.

It is like a lookup in a dictionary, made soft: a query does not find one key but matches each of them a little, and the answer is a
mixture of the values. Read from top to bottom: the formula, then the projections that make queries, keys and values, then many
heads side by side.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn

from model.trace.types import Site
from model.transformer.cache import NO_CACHE, Cache
from model.transformer.positions import Rotation, unrotated

# --- What accompanies a run --------------------------------------------------------------------------------------------


class Intervention(Protocol):
    """Changes one value while the network runs. It knows the value by the name under which `Run.interventions` holds it."""

    def __call__(self, value: Tensor, start: int, /) -> Tensor:
        """The value that the run goes on with: another tensor of the shape of `value`, which itself stays as it is.

        A mask may come back with an axis of heads: [batch, head, query, key].

        Args:
            value: the rows of one run: the next axis is [batch], with several rows in a beam search alone.
            start: the position of the value's first row [query], counted from the beginning of the text: in a cached decode the
                earlier rows are in the cache. Keys in scores, weights and masks are all keys, counted from 0; keys and values (k
                and v) of self-attention are those of the rows, others are all of them. Where a token makes a row for each
                source position (`MemoryLayer`), it is the position of that token.
        """


def record_nothing(name: str, value: Tensor) -> None:
    """The recorder of a run that records nothing."""


@dataclass(frozen=True)
class Run:
    """The state of one run through a network, passed from call to call; the network itself stores nothing.

    Attributes:
        record: called with a name of model/trace/types.py's file form and the tensor, at the moment it is computed.
        interventions: what is changed, by the same names.
        cache: keys and values of earlier steps of the same decode.
        fused: the weights are never written out (`attend_fused`), for inputs so long that writing them costs more than it shows.
            No such run may change scores, weights or masks: see `model.inference.inputs.needs_weights`.
        start: the first position that is computed in this call; those before it are in the cache.
        last_logits: the logits of a call's last position alone are computed: for prompts so long that those of all positions,
            which nobody needs in order to write, would not fit into memory.
    """

    record: Callable[[str, Tensor], None] = record_nothing
    interventions: Mapping[str, Intervention] = field(default_factory=dict)
    cache: Cache = field(default=NO_CACHE)
    fused: bool = False
    start: int = 0
    last_logits: bool = False

    def see(self, name: str, value: Tensor) -> Tensor:
        """`value`, or what an intervention makes of it: what is recorded is what the network goes on with."""
        if name in self.interventions:  # first changed, then recorded: the record is of the value that is used
            value = self.interventions[name](value, self.start)
        self.record(name, value)
        return value


def see_nothing(name: str, value: Tensor) -> Tensor:
    """The `see` of a formula that nobody looks at."""
    return value


# --- The formula -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attended:
    """The results of the three steps of `attend`.

    Shapes:
        scores: [batch, head, query, key], after scaling, before the mask.
        weights: [batch, head, query, key], probabilities over the keys.
        context: [batch, head, query, head_dim].
    """

    scores: Tensor
    weights: Tensor
    context: Tensor


def softmax_uniform(scores: Tensor, allowed: Tensor) -> Tensor:
    """Softmax over the allowed keys; a query that may attend to no key attends to all of them equally.

    softmax(s)_j = exp(s_j) / Σ_k exp(s_k): every weight is positive, and each row sums to 1.

    A forbidden score becomes the most negative finite number and not -inf. Its exponential is exactly 0 beside any allowed key.
    Where all keys are forbidden, their exponentials are equal and share the row; with -inf they would be 0 / 0 = NaN.

    Args:
        scores: [batch, head, query, key].
        allowed: bool, broadcastable to `scores`.
    """
    # dim=-1 is the key axis: the keys compete for the attention of one query.
    return torch.where(allowed, scores, torch.finfo(scores.dtype).min).softmax(dim=-1)


def softmax_zeros(scores: Tensor, allowed: Tensor) -> Tensor:
    """Softmax over the allowed keys; a query that may attend to no key attends to nothing: its row is zeros.

    Args:
        scores: [batch, head, query, key].
        allowed: bool, broadcastable to `scores`.
    """
    # In other rows the forbidden weights are 0 already, so this changes all-forbidden rows alone.
    return softmax_uniform(scores, allowed).masked_fill(~allowed, 0.0)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor,
    scale: float,
    softmax: Callable[[Tensor, Tensor], Tensor] = softmax_uniform,
    see: Callable[[str, Tensor], Tensor] = see_nothing,
    dropout: Callable[[Tensor], Tensor] = lambda weights: weights,
) -> Attended:
    """Attention(Q, K, V) = softmax(Q Kᵀ / √head_dim) V, written out.

    Line 1 compares each query with each key: Q Kᵀ holds their dot products, a number for each pair of positions. Line 2 turns each
    row of scores into weights. Line 3 takes the mean of the values with these weights, so a context row is a mixture of value rows.
    Batch and head are carried along: every head of every example does this by itself.

    Training, decoding and recording all run these three lines, so what is shown is what ran.

    Args:
        query: [batch, head, query, head_dim].
        key, value: [batch, head, key, head_dim].
        allowed: bool, broadcastable to [batch, head, query, key]; True where the query may attend to the key.
        scale: factor of the dot products, 1 / √head_dim in the paper. If the numbers in q and k have variance 1, their dot product
            has variance head_dim; the factor brings it back to 1. Without it the softmax would saturate, and its gradient vanish.
        softmax: what an all-forbidden row becomes.
        see: records each stage, and may hand back another value: `Run.see`.
        dropout: applied to the weights in training, before they weigh the values.

    Source: section 3.2.1, equation 1.
    """
    scores = see("scores", query @ key.transpose(-2, -1) * scale)  # [batch, head, query, key]
    weights = see("weights", softmax(scores, allowed))  # [batch, head, query, key]
    context = see("context", dropout(weights) @ value)  # [batch, head, query, head_dim]
    return Attended(scores, weights, context)


def attend_fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor,
    scale: float,
    softmax: Callable[[Tensor, Tensor], Tensor] = softmax_uniform,
) -> Tensor:
    """The same context as `attend`, from a fused kernel that never holds all weights: it computes them block by block.

    It is for long inputs, whose weights [query, key] would not fit into memory. Where they are shown, they are computed from the
    recorded queries and keys (model/trace/lazy_attention.py). Arguments as for `attend`.

    Returns:
        [batch, head, query, head_dim].

    Source: Dao et al. 2022, "FlashAttention", algorithm 1.
    """
    fill = torch.finfo(query.dtype).min  # finite, so that a query without any allowed key does not become NaN
    # The kernel adds its mask to the scores: 0 changes nothing, and the most negative number makes the weight 0.
    mask = torch.zeros(allowed.shape, dtype=query.dtype, device=query.device).masked_fill(~allowed, fill)
    context = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
    reachable = allowed.any(dim=-1, keepdim=True)  # [..., query, 1]
    return context * softmax(torch.zeros_like(reachable, dtype=query.dtype), reachable)  # 1, or what an all-forbidden row becomes


class Dropout(nn.Dropout):
    """nn.Dropout without the overhead of a module call: a step of a decode calls nineteen of them, and none does anything then.

    Source: section 5.4, "Residual Dropout".
    """

    def __call__(self, x: Tensor) -> Tensor:
        """`x`, and in training a share `p` of its numbers 0, the others larger by 1 / (1 - p)."""
        return torch.dropout(x, self.p, self.training)


# --- Many heads --------------------------------------------------------------------------------------------------------


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[batch, position, head · head_dim] -> [batch, head, position, head_dim]: head h gets the h-th block of columns."""
    split: Tensor = x.unflatten(-1, (heads, -1))  # [batch, position, head, head_dim]
    # Heads go before positions, so that a matrix product over the last two axes computes all heads at once, each by itself.
    return split.transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """[batch, head, position, head_dim] -> [batch, position, head · head_dim]: the inverse of `split_heads`."""
    # [batch, head, position, head_dim] -> [batch, position, head, head_dim], whose last two axes become one.
    return x.transpose(1, 2).flatten(-2)


class MultiHeadAttention(nn.Module):
    """MultiHead(x, y) = Concat(head_1, …, head_h) W_O, where head_i = Attention(x W_Q,i, y W_K,i, y W_V,i).

    In self-attention x and y are the same stream. In cross-attention x is the decoder's stream and y the encoder's output, which
    may have another width.

    One head gives each query one mean of the values. Several heads, each with projections of its own, let a position attend to
    different things at once: one head to the previous word, another to the verb. The matrices of all heads lie side by side in one
    large matrix, so each projection is one matrix product.

    Args:
        heads, head_dim: number of heads, and width of each; their product need not be `d_model`.
        d_model: width of the stream that the queries come from, and of the output.
        d_memory: width of the stream that keys and values come from.
        bias: whether the projections add a bias.
        softmax: `softmax_uniform` or `softmax_zeros`.
        dropout: share of weights dropped in training.
        projection: makes the map from a stream to the queries, keys or values of all heads, given its two widths and `bias`.
        key_heads: number of heads of keys and values; None: as many as `heads`. See `shared_by`.
        rotation: turns queries and keys by their positions; `unrotated` leaves them as they are.

    Source: section 3.2.2.
    """

    def __init__(
        self,
        heads: int,
        head_dim: int,
        d_model: int,
        d_memory: int,
        bias: bool = True,
        softmax: Callable[[Tensor, Tensor], Tensor] = softmax_uniform,
        dropout: float = 0.0,
        projection: Callable[[int, int, bool], nn.Linear] = nn.Linear,
        key_heads: int | None = None,
        rotation: Rotation = unrotated,
    ) -> None:
        super().__init__()
        self.heads, self.key_heads, self.rotation = heads, key_heads or heads, rotation
        self.scale = head_dim**-0.5  # of one head's width, not of the model's: a score sums over head_dim products
        self.softmax = softmax
        # Columns h · head_dim to (h + 1) · head_dim of these three maps belong to head h.
        self.query = projection(d_model, heads * head_dim, bias)
        self.key = projection(d_memory, self.key_heads * head_dim, bias)
        self.value = projection(d_memory, self.key_heads * head_dim, bias)
        # W_O mixes the heads: its h-th block of inputs writes what head h found into the stream; the blocks' results are added.
        self.output = nn.Linear(heads * head_dim, d_model, bias)
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Tensor, memory: Tensor, allowed: Tensor, site: Site, run: Run = Run(), values: Tensor | None = None
    ) -> Tensor:
        """One application.

        Args:
            x: [batch, query, model], the stream that the queries come from.
            memory: [batch, key, model], the stream that keys and values come from. In a cached decode only the new positions.
            allowed: bool, broadcastable to [batch, head, query, key], keys of earlier steps included.
            site: the name of this application.
            run: recorder, interventions and cache.
            values: [batch, key, model], the stream of the values, where it is not that of the keys; None: `memory`.

        Returns:
            [batch, query, model], to be added to the residual stream.
        """

        here = f"attention/{site}/"

        def see(name: str, value: Tensor) -> Tensor:
            return run.see(here + name, value)

        # The cache calls it where it needs keys and values: a cached decode computes those of the encoder's output only once.
        def keys_and_values() -> tuple[Tensor, Tensor]:
            keys = self.rotation(split_heads(self.key(memory), self.key_heads), run.start)
            weighted = split_heads(self.value(memory if values is None else values), self.key_heads)
            return see("k", shared_by(self.heads, keys)), see("v", shared_by(self.heads, weighted))

        q = see("q", self.rotation(split_heads(self.query(x), self.heads), run.start))  # [batch, head, query, head_dim]
        k, v = run.cache.keys_and_values(site, keys_and_values)  # [batch, head, key, head_dim]
        if run.fused:
            context = see("context", attend_fused(q, k, v, allowed, self.scale, self.softmax))  # [batch, head, query, head_dim]
        else:
            context = attend(q, k, v, allowed, self.scale, self.softmax, see, self.dropout).context
        return see("output", self.output(join_heads(context)))  # [batch, query, model]


def shared_by(heads: int, x: Tensor) -> Tensor:
    """[batch, key head, position, head_dim] -> [batch, head, position, head_dim]: neighboring heads get the same keys or values.

    Grouped queries: with fewer heads of keys and values than of queries, each of them is shared by a group of query heads. With as
    many it is ordinary multi-head attention, with a single one it is called multi-query attention (Shazeer 2019). Each head still
    asks with queries of its own, so it has its own map; what can be found and what is passed on is the same for a whole group.

    With 6 heads and 2 key heads, heads 0 to 2 get the keys of key head 0, and heads 3 to 5 those of key head 1. What makes this
    worthwhile is the cache: a program that only writes keeps one copy for each group. Here each head gets a copy of its own, so
    that a run can show and change the keys of one head.

    Source: Ainslie et al. 2023, "GQA: Training Generalized Multi-Query Transformer Models", section 2.2.
    """
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], dim=1)
