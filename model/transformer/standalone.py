"""Networks with parts left out, as tutorials build them: without an embedding, without an output layer, or of attention alone."""

from torch import Tensor, nn

from model.trace.types import Site
from model.transformer.attention import MultiHeadAttention, Run
from model.transformer.layers import Residual, see_mask
from model.transformer.masks import Mask


class Features(nn.Module):
    """Stands in for the embedding where the input is float features: they are the residual stream already."""

    def forward(self, features: Tensor, start: int, stack: str, run: Run = Run()) -> Tensor:
        """[batch, position, model] -> the same, recorded."""
        return run.see(f"embedded/{stack}", features)


class NoOutput(nn.Module):
    """Stands in for the output layer where there is none: the last hidden states are the result."""

    def forward(self, x: Tensor, run: Run = Run()) -> Tensor:
        """[batch, position, model] -> the same."""
        return x


class AttentionLayer(nn.Module):
    """Self-attention and nothing else: no residual connection, no norm, no feed-forward network.

    Without the `x + ...` of a residual connection, a position keeps nothing of its own unless it attends to itself.
    """

    def __init__(self, attention: MultiHeadAttention) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, x: Tensor, mask: Mask, stack: str, pass_: int, layer: int, run: Run = Run()) -> Tensor:
        """[batch, position, model] -> [batch, position, model]; `stack`, `pass_` and `layer` name this application."""
        site = Site(stack, pass_, layer, "self")
        # Not `x + self.attention(...)`: the output replaces the stream.
        x = self.attention(x, x, see_mask(run, site, mask, x), site, run)
        return run.see(f"hidden/{stack}.{pass_}.{layer}", x)


class ResidualAttentionLayer(nn.Module):
    """Self-attention inside its residual connection, without a feed-forward network: all that a layer adds, its heads have copied.

    Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", section "Attention-only transformers".
    """

    def __init__(self, attention: MultiHeadAttention, residual: Residual) -> None:
        super().__init__()
        self.attention = attention
        self.attention_residual = residual

    def forward(self, x: Tensor, mask: Mask, stack: str, pass_: int, layer: int, run: Run = Run()) -> Tensor:
        """[batch, position, model] -> [batch, position, model]; `stack`, `pass_` and `layer` name this application."""
        site = Site(stack, pass_, layer, "self")
        allowed = see_mask(run, site, mask, x)
        x = self.attention_residual(x, lambda y: self.attention(y, y, allowed, site, run), str(site), run)
        return run.see(f"hidden/{stack}.{pass_}.{layer}", x)
