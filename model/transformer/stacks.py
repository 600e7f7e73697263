"""Stacks: an embedding and its layers; and the networks made of stacks: encoder-decoder, causal language model, encoder alone."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

import torch
from torch import Tensor, nn

from model.errors import CannotChange, TooManyTokens, Words, phrase
from model.transformer.attention import Dropout, Run
from model.transformer.layers import AttentionLayer, CrossAttentionLayer, ResidualAttentionLayer, SelfAttentionLayer
from model.transformer.masks import Mask, TargetMask, padding_mask, valid_mask
from model.transformer.networks import BuiltNetwork, Encodes, Translates, Writes
from model.transformer.positions import PositionalEncoding, running
from model.transformer.shared_head import MemoryLayer


class Embedding(nn.Module):
    """x = E[ids] · scale + positions.

    Args:
        scale: √d_model in the paper, which makes the token's vector as large as the positional encoding; 1 in other models.
        first: position of a step's first token, given the number of tokens before it: `running` or `from_zero`.

    Source: section 3.4.
    """

    never_recorded: Words = ""

    def __init__(
        self,
        vocab: int,
        d_model: int,
        scale: float,
        positions: PositionalEncoding,
        dropout: float = 0.0,
        first: Callable[[int], int] = running,
    ) -> None:
        super().__init__()
        self.token = nn.Embedding.from_pretrained(torch.empty(vocab, d_model), freeze=False)  # build() draws the numbers
        self.scale = scale
        self.positions = positions  # any object with rows(start, count), see positions.py
        self.first = first
        self.dropout = Dropout(dropout)

    def forward(self, ids: Tensor, start: int, stack: str, run: Run = Run()) -> Tensor:
        """[batch, position] of ids, the first at position `start` -> [batch, position, model].

        Raises:
            TooManyTokens: there are fewer positions than ids. Without this check, a single row left would be broadcast to all ids.
        """
        rows = self._rows(self.first(start), ids.shape[1], stack)  # [position, model]
        # A row of the table [vocab, model] for each id: the same vector wherever the token stands.
        embedding = run.see(f"stages/{stack}/embedding", self.token(ids))  # [batch, position, model]
        scaled = run.see(f"stages/{stack}/scaled", embedding * self.scale)
        added = run.see(f"positions/{stack}", rows[None].expand(len(ids), -1, -1))  # the same rows for every example
        return run.see(f"embedded/{stack}", self.dropout(scaled + added))  # [batch, position, model]

    def position_rows(self, stack: str) -> Tensor:
        """The positional encodings that may be added, all that there are: [position, model]."""
        return self.positions.rows(0, 2**20)

    def _rows(self, first: int, count: int, stack: str) -> Tensor:
        rows = self.positions.rows(first, count)
        if len(rows) < count:
            allowed = len(self.positions.rows(0, first + count))
            raise TooManyTokens(found=first + count, allowed=allowed, reason=phrase("the model has no more positions"))
        return rows


ROTATED = phrase("no positions are added: queries and keys are rotated by their positions")


class EmbeddingAlone(Embedding):
    """x = E[ids] · scale, and no positions: the layers of this stack tell them apart by rotary queries and keys (positions.py)."""

    never_recorded = ROTATED

    def forward(self, ids: Tensor, start: int, stack: str, run: Run = Run()) -> Tensor:
        """[batch, position] of ids, the first at position `start` -> [batch, position, model].

        Raises:
            TooManyTokens: there are more than the spec allows.
        """
        self._rows(self.first(start), ids.shape[1], stack)
        embedding = run.see(f"stages/{stack}/embedding", self.token(ids))  # [batch, position, model]
        scaled = run.see(f"stages/{stack}/scaled", embedding * self.scale)
        return run.see(f"embedded/{stack}", self.dropout(scaled))

    def position_rows(self, stack: str) -> Tensor:
        """There are none.

        Raises:
            CannotChange: always.
        """
        raise CannotChange(name=f"positions/{stack}", reason=ROTATED)


class Features(nn.Module):
    """Stands in for the embedding where the input is float features: they are the residual stream already."""

    never_recorded: Words = ""

    def forward(self, features: Tensor, start: int, stack: str, run: Run = Run()) -> Tensor:
        """[batch, position, model] -> the same, recorded."""
        return run.see(f"embedded/{stack}", features)

    def position_rows(self, stack: str) -> Tensor:
        """There are none.

        Raises:
            CannotChange: always.
        """
        raise CannotChange(
            name=f"positions/{stack}", reason=phrase("its input is float features, and no positions are added to them")
        )


ReadingLayer: TypeAlias = SelfAttentionLayer | ResidualAttentionLayer | AttentionLayer
"""Layers that attend to their own stream alone."""

WritingLayer: TypeAlias = CrossAttentionLayer | MemoryLayer
"""Layers that also attend to the encoder's output."""


class Encoder(nn.Module):
    """The stack that reads the source: every position attends to every position that is not padding, earlier or later.

    Args:
        passes: how often all layers are applied, with the same weights.
        final_norm: a LayerNorm after the last layer (pre-norm models need one), or nn.Identity.
    """

    def __init__(self, embedding: Embedding | Features, layers: Iterable[ReadingLayer], passes: int, final_norm: nn.Module) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(layers)
        self.passes = passes
        self.final_norm = final_norm

    def forward(self, ids: Tensor, mask: Mask, run: Run = Run()) -> Tensor:
        """[batch, position] of ids, or [batch, position, model] of features -> [batch, position, model]."""
        x = self.embedding(ids, 0, "encoder", run)  # the residual stream, [batch, position, model], from here to the end
        for pass_ in range(self.passes):  # 1 in the paper; in a second pass the same weights read what the first one wrote
            for index, layer in enumerate(self.layers):
                x = layer(x, mask, "encoder", pass_, index, run)  # every layer keeps the shape, so layers can be stacked
        return run.see("stages/encoder/final", self.final_norm(x))


class Decoder(nn.Module):
    """The stack that writes the target: in each layer, every position attends to itself and those before it, and to the source."""

    def __init__(self, embedding: Embedding | Features, layers: Iterable[WritingLayer], passes: int, final_norm: nn.Module) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(layers)
        self.passes = passes
        self.final_norm = final_norm

    def forward(self, ids: Tensor, start: int, memory: Tensor, self_mask: Mask, cross_mask: Mask, run: Run = Run()) -> Tensor:
        """[batch, query] of ids, the first at position `start` -> [batch, query, model]."""
        x = self.embedding(ids, start, "decoder", run)
        for pass_ in range(self.passes):
            for index, layer in enumerate(self.layers):
                # Each layer reads the same memory: the encoder's last states, not those of the layer at the same height.
                x = layer(x, memory, self_mask, cross_mask, "decoder", pass_, index, run)
        return run.see("stages/decoder/final", self.final_norm(x))


class Output(nn.Linear):
    """The map from the last hidden states to logits over the vocabulary: one score for each token that could come next.

    Source: section 3.4.
    """

    def forward(self, x: Tensor, run: Run = Run()) -> Tensor:
        """[batch, query, model] -> [batch, query, vocab], or [batch, 1, vocab] where the run wants the last one alone."""
        return run.see("logits", super().forward(x[:, -1:] if run.last_logits else x))


class NoOutput(nn.Module):
    """Stands in for the output layer where there is none: the last hidden states are the result."""

    def forward(self, x: Tensor, run: Run = Run()) -> Tensor:
        """[batch, position, model] -> the same."""
        return x


class EncoderDecoder(BuiltNetwork, Translates):
    """The network of the paper's figure 1: source ids and target ids in, logits for the next target token out."""

    def __init__(
        self, encoder: Encoder, decoder: Decoder, output: Output | NoOutput, source_pad_id: int | None, target_mask: TargetMask
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.output = output
        self.source_pad_id = source_pad_id
        self.target_mask = target_mask

    def source_mask(self, source: Tensor, valid: Tensor | None = None) -> Mask:
        """The mask over the source: positions that are not padding; given `valid` [batch], the first `valid` positions."""
        return Mask(padding_mask(source, self.source_pad_id) if valid is None else valid_mask(valid, source.shape[1]))

    def encode(self, source: Tensor, mask: Mask, run: Run = Run()) -> Tensor:
        """[batch, key] of ids -> [batch, key, model], the memory that the decoder attends to. Runs once for each source."""
        memory: Tensor = self.encoder(source, mask, run)
        return memory

    def decode(self, target: Tensor, memory: Tensor, source_mask: Mask, run: Run = Run(), start: int = 0) -> Tensor:
        """Logits for the token after each target position from `start` on.

        Args:
            target: [batch, position], the whole target so far; positions before `start` are in `run.cache`.
            memory: [batch, key, model].

        Returns:
            [batch, query, vocab], one row for each position from `start` on.
        """
        run = replace(run, start=start)
        # Only the new positions go through the layers; the mask needs all of them, since all are keys.
        x = self.decoder(target[:, start:], start, memory, self.target_mask(target, start), source_mask, run)
        logits: Tensor = self.output(x, run)  # [batch, query, vocab]
        return logits

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Teacher forcing, as in training: [batch, key] and [batch, query] of ids -> logits [batch, query, vocab].

        All positions are predicted at once. That is possible since the causal mask hides from each the tokens that it must predict.
        """
        mask = self.source_mask(source)  # [batch, 1, 1, key]
        return self.decode(target, self.encode(source, mask), mask)


class CausalLM(BuiltNetwork, Writes):
    """A decoder without an encoder, which continues a prompt. Its layers belong to a stack called `decoder`."""

    def __init__(
        self,
        embedding: Embedding | Features,
        layers: Iterable[ReadingLayer],
        passes: int,
        final_norm: nn.Module,
        output: Output | NoOutput,
        target_mask: TargetMask,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(layers)
        self.passes = passes
        self.final_norm = final_norm
        self.output = output
        self.target_mask = target_mask

    def forward(self, ids: Tensor, run: Run = Run(), start: int = 0) -> Tensor:
        """Logits for the token after each position from `start` on.

        Args:
            ids: [batch, position], everything so far; positions before `start` are in `run.cache`.

        Returns:
            [batch, query, vocab].
        """
        # One stream for prompt and continuation: the network cannot tell what was typed from what it wrote.
        mask, run = self.target_mask(ids, start), replace(run, start=start)
        x = self.embedding(ids[:, start:], start, "decoder", run)
        for pass_ in range(self.passes):
            for index, layer in enumerate(self.layers):
                x = layer(x, mask, "decoder", pass_, index, run)
        last = run.see("stages/decoder/final", self.final_norm(x))
        logits: Tensor = self.output(last, run)  # [batch, query, vocab]
        return logits

    def stacks(self) -> dict[str, nn.Module]:
        """Itself: its layers are those of one stack."""
        return {"decoder": self}


class EncoderAlone(BuiltNetwork, Encodes):
    """An encoder without a decoder: its last hidden states are the result."""

    def __init__(self, encoder: Encoder, pad_id: int | None) -> None:
        super().__init__()
        self.encoder = encoder
        self.pad_id = pad_id

    def source_mask(self, source: Tensor, valid: Tensor | None = None) -> Mask:
        """The mask over the source: positions that are not padding; given `valid` [batch], the first `valid` positions."""
        return Mask(padding_mask(source, self.pad_id) if valid is None else valid_mask(valid, source.shape[1]))

    def encode(self, source: Tensor, mask: Mask, run: Run = Run()) -> Tensor:
        """[batch, position] of ids, or [batch, position, model] of features -> [batch, position, model]."""
        states: Tensor = self.encoder(source, mask, run)
        return states
