"""Layers: attention and a feed-forward network, each a sublayer inside a residual connection with a LayerNorm.

A residual connection adds a sublayer's output to its input, x + f(x). So each position has a vector that runs through all layers
(the residual stream), which sublayers read from and add to, and gradients have a direct way back. PostNorm and PreNorm wrap any
sublayer, so the layers read the same whether the norm comes after the sum or before the sublayer.
"""

from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor, nn

from model.trace.types import Site
from model.transformer.attention import Dropout, MultiHeadAttention, Run, record_nothing
from model.transformer.masks import Mask

Sublayer: TypeAlias = Callable[[Tensor], Tensor]
"""[batch, position, model] -> the same: what a residual connection is put around."""


class FeedForward(nn.Module):
    """FFN(x) = activation(x W_1 + b_1) W_2 + b_2, the same at every position.

    Attention mixes positions; this network then works on each position by itself. The hidden layer is wider than the model, four
    times in the paper (2048 and 512). The activation is essential: without it, both matrices would be equal to a single one.

    Source: section 3.3, equation 2.
    """

    def __init__(self, d_model: int, hidden: int, activation: nn.Module, bias: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.expand = nn.Linear(d_model, hidden, bias)  # [position, model] -> [position, hidden]
        self.activation = activation
        self.dropout = Dropout(dropout)
        self.contract = nn.Linear(hidden, d_model, bias)  # [position, hidden] -> [position, model]

    def forward(self, x: Tensor, name: str = "", run: Run = Run()) -> Tensor:
        """[batch, position, model] -> [batch, position, model], by way of [batch, position, hidden].

        Args:
            name: of this application, `stack.pass.layer.feed_forward`.
        """
        inner = run.see(f"stages/{name}/hidden", self.dropout(self.activation(self.expand(x))))  # [batch, position, hidden]
        return run.see(f"stages/{name}/output", self.contract(inner))  # [batch, position, model]


class GatedFeedForward(FeedForward):
    """FFN(x) = (activation(x W_1) ⊙ x W_3) W_2: a second map, the gate, multiplies the hidden layer number by number.

    A hidden unit then says two things of a position: whether it applies (the activated one) and how much it adds (the other one).
    With three matrices instead of two, programs make the hidden layer two thirds as wide, so that both kinds have as many
    parameters.

    Source: Shazeer 2020, "GLU Variants Improve Transformer", equation 6: SwiGLU where the activation is SiLU, also called Swish.
    """

    def __init__(self, d_model: int, hidden: int, activation: nn.Module, bias: bool = True, dropout: float = 0.0) -> None:
        super().__init__(d_model, hidden, activation, bias, dropout)
        self.gate = nn.Linear(d_model, hidden, bias)  # the paper's V: [position, model] -> [position, hidden]

    def forward(self, x: Tensor, name: str = "", run: Run = Run()) -> Tensor:
        """[batch, position, model] -> [batch, position, model]; arguments as for FeedForward."""
        gated = self.activation(self.expand(x)) * self.gate(x)  # [batch, position, hidden]
        inner = run.see(f"stages/{name}/hidden", self.dropout(gated))
        return run.see(f"stages/{name}/output", self.contract(inner))  # [batch, position, model]


class PostNorm(nn.Module):
    """x -> LayerNorm(x + sublayer(x)): the paper's order. Each sum is normalized, so the stream keeps its scale from layer to
    layer.

    Args:
        norm: makes the LayerNorm, or a variant of it.

    Source: section 3.1.
    """

    def __init__(self, d_model: int, dropout: float = 0.0, norm: Callable[[int], nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.norm = norm(d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer, name: str = "", run: Run = Run()) -> Tensor:
        """[batch, position, model] -> [batch, position, model]; `name` is that of the sublayer's application."""
        residual = run.see(f"stages/{name}/residual", x + self.dropout(sublayer(x)))  # the sublayer adds to the stream
        return run.see(f"stages/{name}/normed", self.norm(residual))  # what goes on is normed: the next layer reads it


class PreNorm(nn.Module):
    """x -> x + sublayer(LayerNorm(x)): only the sublayer's input is normed, never the stream, so deep stacks train more easily.

    The stream then grows with every layer. That is why a pre-norm stack needs one more LayerNorm at its end (`final_norm`).

    Args:
        norm: makes the LayerNorm, or a variant of it.

    Source: Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture", figure 1 (b).
    """

    def __init__(self, d_model: int, dropout: float = 0.0, norm: Callable[[int], nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.norm = norm(d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer, name: str = "", run: Run = Run()) -> Tensor:
        """[batch, position, model] -> [batch, position, model]; `name` is that of the sublayer's application."""
        normed = run.see(f"stages/{name}/normed", self.norm(x))  # a copy for the sublayer; the stream x stays as it is
        return run.see(f"stages/{name}/residual", x + self.dropout(sublayer(normed)))


Residual: TypeAlias = PostNorm | PreNorm


def feed_forward(x: Tensor, network: FeedForward, residual: Residual, name: str, run: Run) -> Tensor:
    """A feed-forward sublayer inside its residual connection: [batch, position, model] -> the same."""
    after: Tensor = residual(x, lambda y: network(y, name, run), name, run)
    return after


def see_mask(run: Run, site: Site, mask: Mask, x: Tensor) -> Tensor:
    """The mask of a site: bool, broadcastable to [batch, head, query, key].

    It is recorded with its parts, a row [key] for each query of `x` [batch, query, model]. Six rows are made in each layer: for a
    run that nobody looks at or changes, none is.
    """
    if run.record is record_nothing and not run.interventions:
        return mask.allowed
    batch, queries, _model = x.shape
    name = f"attention/{site}/mask"
    padding_rows, causal_rows, allowed_rows = mask.rows(batch, queries)
    padding = run.see(f"{name}_padding", padding_rows)
    causal = None if causal_rows is None else run.see(f"{name}_causal", causal_rows)
    # If an intervention changed a part, the two parts are combined again, so that the softmax uses the changed one.
    if padding is not padding_rows or causal is not causal_rows:
        mask = Mask(padding, causal)
        _padding, _causal, allowed_rows = mask.rows(batch, queries)
    seen = run.see(name, allowed_rows)
    return mask.allowed if seen is allowed_rows else seen  # the small mask goes on, which is the same for all rows


class SelfAttentionLayer(nn.Module):
    """Self-attention, then the feed-forward network: a layer of an encoder, or of a causal language model.

    Source: section 3.1, "Encoder".
    """

    def __init__(self, attention: MultiHeadAttention, feed_forward: FeedForward, residuals: tuple[Residual, Residual]) -> None:
        super().__init__()
        self.attention = attention
        self.attention_residual, self.feed_forward_residual = residuals
        self.feed_forward = feed_forward

    def forward(self, x: Tensor, mask: Mask, stack: str, pass_: int, layer: int, run: Run = Run()) -> Tensor:
        """[batch, position, model] -> [batch, position, model]; `stack`, `pass_` and `layer` name this application."""
        site = Site(stack, pass_, layer, "self")
        allowed = see_mask(run, site, mask, x)
        # y is what the residual connection hands to the sublayer: x itself, or its LayerNorm. It gives queries, keys and values.
        x = self.attention_residual(x, lambda y: self.attention(y, y, allowed, site, run), str(site), run)
        x = feed_forward(x, self.feed_forward, self.feed_forward_residual, f"{stack}.{pass_}.{layer}.feed_forward", run)
        return run.see(f"hidden/{stack}.{pass_}.{layer}", x)


class CrossAttentionLayer(nn.Module):
    """Masked self-attention, then attention to the encoder's output, then the feed-forward network: a layer of a decoder.

    Source: section 3.1, "Decoder".
    """

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        residuals: tuple[Residual, Residual, Residual],
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.self_residual, self.cross_residual, self.feed_forward_residual = residuals

    def forward(
        self, x: Tensor, memory: Tensor, self_mask: Mask, cross_mask: Mask, stack: str, pass_: int, layer: int, run: Run = Run()
    ) -> Tensor:
        """One application.

        Args:
            x: [batch, query, model], the decoder's stream.
            memory: [batch, key, model], the encoder's output; every layer of the decoder gets the same.
            self_mask, cross_mask: which target positions and which source positions each query may attend to.
            stack, pass_, layer: the name of this application.

        Returns:
            [batch, query, model].
        """
        self_site, cross_site = Site(stack, pass_, layer, "self"), Site(stack, pass_, layer, "cross")
        within = see_mask(run, self_site, self_mask, x)  # [batch, 1, query, key], where keys are target positions
        x = self.self_residual(x, lambda y: self.self_attention(y, y, within, self_site, run), str(self_site), run)
        # Now the keys are source positions. The mask hides padding alone: the whole source was read before the target begins.
        across = see_mask(run, cross_site, cross_mask, x)
        x = self.cross_residual(x, lambda y: self.cross_attention(y, memory, across, cross_site, run), str(cross_site), run)
        x = feed_forward(x, self.feed_forward, self.feed_forward_residual, f"{stack}.{pass_}.{layer}.feed_forward", run)
        return run.see(f"hidden/{stack}.{pass_}.{layer}", x)


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
