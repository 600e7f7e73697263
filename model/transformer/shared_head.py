"""Reference document 003: one small matrix for all heads, and a decoder that never looks at what it wrote.

Its layers are built of the same attention as the others; what differs is the projection, and which stream goes where.
"""

from torch import Tensor, nn

from model.errors import BadSetting
from model.trace.types import Site
from model.transformer.attention import MultiHeadAttention, Run
from model.transformer.layers import FeedForward, Residual, feed_forward, record_mask
from model.transformer.masks import Mask


class SharedProjection(nn.Linear):
    """[batch, position, head · head_dim] -> the same: each head's piece of the *input* goes through one small matrix.

    The paper gives each head a matrix that sees the whole stream; here a head sees its own columns alone, through the eyes of all.
    """

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(head_dim, head_dim, bias=False)
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        """[batch, position, model] -> [batch, position, model]."""
        pieces: Tensor = x.unflatten(-1, (self.heads, -1))  # [batch, position, head, head_dim]
        return super().forward(pieces).flatten(-2)


class MemoryLayer(nn.Module):
    """The encoder's output attends to itself, and the decoder's stream asks about the result.

        value = LayerNorm(memory + Attention(memory, memory, memory))      masked as if its positions were the target's
        x     = LayerNorm(value + Attention(query x, keys memory, values value))
        x     = LayerNorm(x + FFN(x))

    The decoder's stream enters as the query alone, and no position looks at an earlier one. Since the residual is `value`, there is
    a row for each *source* position: the target must be as long as the source, or of one token, which asks for all rows at once.
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
        """One application; arguments as for CrossAttentionLayer, with `self_mask` laid over the memory.

        Returns:
            [batch, key, model]: as many rows as the memory has.

        Raises:
            BadSetting: the target is neither as long as the source nor one token.
        """
        memory_site, cross_site = Site(stack, pass_, layer, "memory"), Site(stack, pass_, layer, "cross")
        value = run.cache.once(memory_site, lambda: self.value(memory, self_mask, memory_site, run))  # [batch, key, model]
        record_mask(run, cross_site, cross_mask, x)
        x = self.cross_residual(
            value,
            lambda _: self.cross_attention(x, memory, cross_mask.allowed, cross_site, run, values=value),
            str(cross_site),
            run,
        )
        x = feed_forward(x, self.feed_forward, self.feed_forward_residual, f"{stack}.{pass_}.{layer}.feed_forward", run)
        run.record(f"hidden/{stack}.{pass_}.{layer}", x)
        return x

    def value(self, memory: Tensor, target_mask: Mask, site: Site, run: Run) -> Tensor:
        """The memory after attending to itself: [batch, key, model]. Its mask is the target's; one token's masks nothing."""
        mask = over_memory(target_mask, memory.shape[1])
        record_mask(run, site, mask, memory)
        value: Tensor = self.memory_residual(memory, lambda y: self.memory_attention(y, y, mask.allowed, site, run), str(site), run)
        return value


def over_memory(mask: Mask, size: int) -> Mask:
    """A target's mask as one over `size` source positions.

    Raises:
        BadSetting: the target is neither as long as the source nor one token.
    """
    targets = mask.allowed.shape[-1]
    if targets not in (1, size):
        raise BadSetting(
            name="the target",
            found=f"{targets} tokens long",
            allowed=f"1 token or as long as the source, {size} tokens: this decoder lays the target's mask over the source",
        )
    causal = None if mask.causal is None else mask.causal.expand(-1, -1, size, size)
    return Mask(mask.padding.expand(-1, -1, -1, size), causal)
