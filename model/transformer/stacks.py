"""Stacks: embeddings, a pile of layers, and the two networks made of them: encoder-decoder and causal language model."""

from collections.abc import Iterable

from torch import Tensor, nn

from model.errors import TooManyTokens
from model.transformer.attention import Run
from model.transformer.layers import CrossAttentionLayer, SelfAttentionLayer
from model.transformer.masks import Mask, causal_mask, padding_mask, valid_mask
from model.transformer.positions import PositionalEncoding


class Embedding(nn.Module):
    """x = E[ids] · scale + positions.

    Args:
        scale: √d_model in the paper, so that a word is not drowned by its position; 1 in other models.

    Source: section 3.4.
    """

    def __init__(
        self,
        vocab: int,
        d_model: int,
        scale: float,
        positions: PositionalEncoding,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.token = nn.Embedding(vocab, d_model)
        self.scale = scale
        self.positions = positions
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor, start: int, stack: str, run: Run = Run()) -> Tensor:
        """[batch, position] of ids, the first at position `start` -> [batch, position, model].

        Raises:
            TooManyTokens: there are fewer positions than ids. Unasked, the sum below might stretch the one row that is left.
        """
        rows = self.positions.rows(start, ids.shape[1])  # [position, model]
        if len(rows) < ids.shape[1]:
            found = start + ids.shape[1]
            allowed = len(self.positions.rows(0, found))
            raise TooManyTokens(what=f"{stack}'s input", found=found, allowed=allowed, reason="it has no more positions")
        embedding: Tensor = self.token(ids)  # [batch, position, model]
        scaled = embedding * self.scale
        x: Tensor = self.dropout(scaled + rows)  # [batch, position, model]
        run.record(f"stages/{stack}/embedding", embedding)
        run.record(f"stages/{stack}/scaled", scaled)
        run.record(f"positions/{stack}", rows[None].expand(len(ids), -1, -1))
        run.record(f"embedded/{stack}", x)
        return x


class Encoder(nn.Module):
    """Reads the source: every position looks at every other that is no padding.

    Args:
        passes: how often the pile of layers is applied, with the same weights.
        final_norm: a LayerNorm after the last layer (pre-norm models need one), or nn.Identity.
    """

    def __init__(self, embedding: Embedding, layers: Iterable[SelfAttentionLayer], passes: int, final_norm: nn.Module) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(layers)
        self.passes = passes
        self.final_norm = final_norm

    def forward(self, ids: Tensor, mask: Mask, run: Run = Run()) -> Tensor:
        """[batch, position] of ids -> [batch, position, model]."""
        x = self.embedding(ids, 0, "encoder", run)
        for pass_ in range(self.passes):
            for index, layer in enumerate(self.layers):
                x = layer(x, mask, "encoder", pass_, index, run)
        last: Tensor = self.final_norm(x)
        run.record("stages/encoder/final", last)
        return last


class Decoder(nn.Module):
    """Writes the target: every position looks at those before it and, in each layer, at the encoder's output."""

    def __init__(self, embedding: Embedding, layers: Iterable[CrossAttentionLayer], passes: int, final_norm: nn.Module) -> None:
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
                x = layer(x, memory, self_mask, cross_mask, "decoder", pass_, index, run)
        last: Tensor = self.final_norm(x)
        run.record("stages/decoder/final", last)
        return last


def causal_padding_mask(ids: Tensor, start: int, pad_id: int) -> Mask:
    """The mask of a causal stack: no future, no padding.

    Args:
        ids: [batch, key], all positions so far.
        start: the first of them that asks; those before are in the cache.
    """
    return Mask(padding_mask(ids, pad_id), causal_mask(ids.shape[1] - start, ids.shape[1], ids.device))


class EncoderDecoder(nn.Module):
    """The network of the paper's figure 1: source ids and target ids in, logits for the next target token out."""

    def __init__(self, encoder: Encoder, decoder: Decoder, output: nn.Linear, pad_id: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.output = output
        self.pad_id = pad_id

    def source_mask(self, source: Tensor, valid: Tensor | None = None) -> Mask:
        """Which source positions may be looked at: those that are no padding, or the first `valid` [batch] ones."""
        return Mask(padding_mask(source, self.pad_id) if valid is None else valid_mask(valid, source.shape[1]))

    def encode(self, source: Tensor, mask: Mask, run: Run = Run()) -> Tensor:
        """[batch, key] of ids -> [batch, key, model], the memory that the decoder looks at."""
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
        mask = causal_padding_mask(target, start, self.pad_id)
        x = self.decoder(target[:, start:], start, memory, mask, source_mask, run)
        logits: Tensor = self.output(x)  # [batch, query, vocab]
        run.record("logits", logits)
        return logits

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Teacher forcing, as in training: [batch, key] and [batch, query] of ids -> logits [batch, query, vocab]."""
        mask = self.source_mask(source)
        return self.decode(target, self.encode(source, mask), mask)


class CausalLM(nn.Module):
    """A decoder without an encoder: it continues its own prompt, and keeps its layers in a stack called `decoder`."""

    def __init__(
        self,
        embedding: Embedding,
        layers: Iterable[SelfAttentionLayer],
        passes: int,
        final_norm: nn.Module,
        output: nn.Linear,
        pad_id: int,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(layers)
        self.passes = passes
        self.final_norm = final_norm
        self.output = output
        self.pad_id = pad_id

    def forward(self, ids: Tensor, run: Run = Run(), start: int = 0) -> Tensor:
        """Logits for the token after each position from `start` on.

        Args:
            ids: [batch, position], everything so far; positions before `start` are in `run.cache`.

        Returns:
            [batch, query, vocab].
        """
        mask = causal_padding_mask(ids, start, self.pad_id)
        x = self.embedding(ids[:, start:], start, "decoder", run)
        for pass_ in range(self.passes):
            for index, layer in enumerate(self.layers):
                x = layer(x, mask, "decoder", pass_, index, run)
        last: Tensor = self.final_norm(x)
        run.record("stages/decoder/final", last)
        logits: Tensor = self.output(last)  # [batch, query, vocab]
        run.record("logits", logits)
        return logits
