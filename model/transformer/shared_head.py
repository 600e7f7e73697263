"""Layers of reference document 003 (docs/references.md): one small matrix for all heads, and a decoder without self-attention.

They use the same attention as the other layers. Two things differ: the projection, and which stream gives queries, keys and values.
"""

from torch import Tensor, nn

from model.errors import DoesNotFit, phrase
from model.trace.types import Site
from model.transformer.attention import MultiHeadAttention, Run
from model.transformer.layers import FeedForward, Residual, feed_forward, see_mask
from model.transformer.masks import Mask


class SharedProjection(nn.Linear):
    """[batch, position, head · head_dim] -> the same: the *input* is cut into heads, and one small matrix maps each piece.

    In the paper each head has its own matrix [model, head_dim], which reads all columns of the stream. Here all heads share one
    matrix [head_dim, head_dim], and each head reads its own columns only.
    """

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(head_dim, head_dim, bias=False)
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        """[batch, position, model] -> [batch, position, model]."""
        # Every piece [head_dim] is multiplied by the same matrix, as torch applies a linear map to the last axis.
        pieces: Tensor = x.unflatten(-1, (self.heads, -1))  # [batch, position, head, head_dim]
        return super().forward(pieces).flatten(-2)  # [batch, position, head · head_dim]


class MemoryLayer(nn.Module):
    """A decoder layer in which the encoder's output attends to itself, and the decoder's stream queries the result.

        value = LayerNorm(memory + Attention(memory, memory, memory))      with the target's mask
        x     = LayerNorm(value + Attention(query x, keys memory, values value))
        x     = LayerNorm(x + FFN(x))

    The decoder's stream is used as the query only, so no target position attends to an earlier one. The residual connection adds
    `value`, which has one row for each *source* position. So the target must be as long as the source, or one token long: its one
    row of attention output is then added to every row. The memory does not change during a decode, so its self-attention runs once.
    """

    def __init__(
        self,
        memory_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        residuals: tuple[Residual, Residual, Residual],
    ) -> None:
        super().__init__()
        self.memory_attention = memory_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.memory_residual, self.cross_residual, self.feed_forward_residual = residuals

    def forward(
        self, x: Tensor, memory: Tensor, self_mask: Mask, cross_mask: Mask, stack: str, pass_: int, layer: int, run: Run = Run()
    ) -> Tensor:
        """One application. Arguments as for CrossAttentionLayer; `self_mask`, the target's, is applied to the memory.

        Returns:
            [batch, key, model]: as many rows as the memory has.

        Raises:
            BadSetting: the target is neither as long as the source nor one token.
        """
        memory_site, cross_site = Site(stack, pass_, layer, "memory"), Site(stack, pass_, layer, "cross")
        value = run.cache.once(memory_site, lambda: self.value(memory, self_mask, memory_site, run))  # [batch, key, model]
        allowed = see_mask(run, cross_site, cross_mask, x)
        x = self.cross_residual(
            value, lambda _: self.cross_attention(x, memory, allowed, cross_site, run, values=value), str(cross_site), run
        )
        x = feed_forward(x, self.feed_forward, self.feed_forward_residual, f"{stack}.{pass_}.{layer}.feed_forward", run)
        return run.see(f"hidden/{stack}.{pass_}.{layer}", x)

    def value(self, memory: Tensor, target_mask: Mask, site: Site, run: Run) -> Tensor:
        """The memory after attending to itself: [batch, key, model]. Its mask is the target's; one token's masks nothing."""
        allowed = see_mask(run, site, over_memory(target_mask, memory.shape[1]), memory)
        value: Tensor = self.memory_residual(memory, lambda y: self.memory_attention(y, y, allowed, site, run), str(site), run)
        return value


def over_memory(mask: Mask, size: int) -> Mask:
    """The target's mask, stretched over `size` source positions.

    Raises:
        BadSetting: the target is neither as long as the source nor one token.
    """
    targets = mask.allowed.shape[-1]  # the mask is [batch, 1, query, key] over target positions
    if targets not in (1, size):
        raise DoesNotFit(
            name="target",
            reason=phrase(
                "it has {found:,} tokens, but this decoder lays its mask over the source: a target has 1 token, or as many as the "
                "source, {size:,}",
                found=targets,
                size=size,
            ),
        )
    # One token's mask has one row and one column: expanded, it says the same of every source position.
    causal = None if mask.causal is None else mask.causal.expand(-1, -1, size, size)
    return Mask(mask.padding.expand(-1, -1, -1, size), causal)
