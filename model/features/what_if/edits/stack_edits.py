"""Edits of a stack: the words that it reads, its positional encodings, and its layers.

A network is never changed: what a run exchanges it gets as another value, or as a second network of the same modules.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor

from model.checkpoints.loader import Runner
from model.errors import CannotChange, phrase
from model.features.what_if.edits.places import Parts, Strips
from model.requests.edits import Edit, Embed, NoPositions, ShiftPositions, SinusoidalPositions, SwapLayers, SwapPositions
from model.trace.types import Tokens
from model.transformer.attention import Intervention
from model.transformer.networks import Changeable
from model.transformer.positions import sinusoids

PositionEdit: TypeAlias = NoPositions | SwapPositions | ShiftPositions | SinusoidalPositions

Vectors: TypeAlias = Callable[[list[int]], Tensor]
"""The positional encodings of some positions: [batch or 1, position, model]."""


def moved(network: Changeable, stack: str, edits: Sequence[PositionEdit], strips: Strips) -> Intervention:
    """Replaces positional encodings: each edit says for a position whose encoding it gets.

    Raises:
        CannotChange: no positions are added to the embeddings of the stack.
    """
    # Positions that this call does not compute (of earlier steps, of a swap over the whole text) are read from the table.
    table = network.position_rows(stack)  # [position, model]
    swaps = [(edit, _pair(edit, strips)) if isinstance(edit, SwapPositions) else (edit, (0, 0)) for edit in edits]

    def change(value: Tensor, start: int) -> Tensor:
        first = network.first_position(stack, start)
        computed = range(first, first + value.shape[1])  # the positions that this call adds; others come from the table

        def unmoved(positions: list[int]) -> Tensor:
            rows = [value[:, p - first] if p in computed else table[[p]].to(value).expand(len(value), -1) for p in positions]
            return torch.stack(rows, dim=1)

        # Each edit asks the one before it: a swap after a shift swaps shifted positions.
        vectors: Vectors = unmoved
        for edit, pair in swaps:
            vectors = _after(edit, pair, vectors, value, len(table))
        return vectors(list(computed))

    return change


def _after(edit: PositionEdit, pair: tuple[int, int], before: Vectors, value: Tensor, count: int) -> Vectors:
    """The positional encodings after one more edit.

    Args:
        count: number of positions that there are.
    """
    if isinstance(edit, NoPositions):
        return lambda positions: torch.zeros_like(value[:, :1]).expand(-1, len(positions), -1)
    if isinstance(edit, SinusoidalPositions):
        return lambda positions: sinusoids(torch.tensor(positions), value.shape[-1]).to(value)[None].expand(len(value), -1, -1)
    if isinstance(edit, SwapPositions):
        other = {pair[0]: pair[1], pair[1]: pair[0]}
        return lambda positions: before([other.get(position, position) for position in positions])

    def shifted(positions: list[int]) -> Tensor:
        others = [position + edit.by for position in positions]
        if min(others) < 0 or max(others) >= count:
            wrong = min(others) if min(others) < 0 else max(others)
            raise edit.refuse(
                phrase(
                    "position {value} would become {wrong}, and the positions run from 0 to {last}",
                    value=wrong - edit.by,
                    wrong=wrong,
                    last=count - 1,
                )
            )
        return before(others)

    return shifted


def _pair(edit: SwapPositions, strips: Strips) -> tuple[int, int]:
    """The two positions to be exchanged."""
    strip = strips.of_stack(edit.stack)
    pair = []
    for token in (edit.a, edit.b):
        # The number of a token that is not written yet can be taken as it is; a word must be found in a known text.
        places = (token,) if isinstance(token, int) and strip == strips.growing else strips.places(edit, token, strip)
        if len(places) > 1:
            raise edit.refuse(
                phrase("“{token}” occurs at {names}: choose one by its index", token=token, names=", ".join(map(str, places)))
            )
        pair.append(places[0])
    return pair[0], pair[1]


def captured(into: dict[str, Tensor], name: str) -> Intervention:
    """Notes a value down and changes nothing."""

    def look(value: Tensor, start: int) -> Tensor:
        into[name] = value
        return value

    return look


def skipped(into: dict[str, Tensor], name: str, edit: Edit) -> Intervention:
    """A layer's input instead of its output."""

    def change(value: Tensor, start: int) -> Tensor:
        # `captured` noted it down in the same pass, before the layer ran.
        before = into[name]
        if before.shape[1:] != value.shape[1:]:
            raise edit.refuse(
                phrase("this layer makes a row for each source position, so its input cannot take the place of its output")
            )
        return before.expand_as(value)  # copies of a run that are first changed in this layer have one input

    return change


def nothing(value: Tensor, start: int) -> Tensor:
    """Zeros instead of what a sublayer adds."""
    return torch.zeros_like(value)


Network = TypeVar("Network", bound=Changeable)


def reordered(network: Network, edits: Sequence[SwapLayers]) -> Network:
    """A second network of the same modules, some of its layers exchanged; `network` itself where there is nothing to exchange.

    Raises:
        CannotChange: the order of its layers cannot be changed.
    """
    # Each swap makes a network of the same modules in another order; nothing is copied, and the first network stays as it is.
    for edit in edits:
        network = network.with_swapped_layers(edit.stack, edit.a, edit.b, str(edit))
    return network


class ExchangedWords:
    """The words that the edits of a run exchange."""

    def __init__(self, checkpoint: Runner, edits: Sequence[Edit], strips: Strips, parts: Parts) -> None:
        self._checkpoint, self._strips = checkpoint, strips
        self._words = [(edit, self._id(edit, parts)) for edit in edits if isinstance(edit, Embed)]

    def read(self, stack: str, ids: Tensor) -> Tensor:
        """The ids [row, position] that a stack reads instead of `ids`."""
        for edit, id_ in self._words:
            if edit.stack == stack:
                at = self._strips.match((edit.at,), self._strips.of_stack(stack), 0, ids.shape[1])
                ids = torch.where(at.to(ids.device), id_, ids)
        return ids

    def mark_exchanged(self, strips: Mapping[str, Tokens]) -> dict[str, Tokens]:
        """The strips of a trace: at an exchanged place both words, and the id that the network read."""
        exchanged = dict(strips)
        for edit, id_ in self._words:
            name = self._strips.of_stack(edit.stack)
            tokens, word = exchanged[name], self._checkpoint.tokenizers[name].tokens((id_,), name).texts[0]
            at = [edit.at in (i, text, text.strip()) for i, text in enumerate(strips[name].texts)]
            texts = [f"{text} → {word}" if changed else text for changed, text in zip(at, tokens.texts, strict=True)]
            ids = [id_ if changed else before for changed, before in zip(at, tokens.ids, strict=True)]
            exchanged[name] = replace(tokens, texts=tuple(texts), ids=tuple(ids))
        return exchanged

    def _id(self, edit: Embed, parts: Parts) -> int:
        """The id of the word whose embedding is taken."""
        parts.check_stack(edit, edit.stack)
        strip = self._strips.of_stack(edit.stack)
        if strip not in self._checkpoint.tokenizers:
            raise CannotChange(name=str(edit), reason=phrase("this network has no embedding"))
        self._strips.check(edit, (edit.at,), (strip,))
        tokenizer = self._checkpoint.tokenizers[strip]
        # An id is taken as it is: it also names tokens that no text would become.
        if isinstance(edit.word, int):
            if edit.word >= tokenizer.size:
                raise edit.refuse(phrase("the ids of the vocabulary run from 0 to {last}", last=tokenizer.size - 1))
            return edit.word
        # A start or end token that the tokenizer adds does not count: the word itself must be one token.
        tokens = tokenizer.encode(edit.word, strip)
        words = [i for i, special in enumerate(tokens.special) if not special]
        if len(words) != 1 or tokens.unknown[words[0]]:
            pieces = ", ".join(tokens.texts[i] for i in words)
            raise edit.refuse(
                phrase(
                    "“{word}” is not one token of the vocabulary; it becomes: {pieces}",
                    word=edit.word,
                    pieces=pieces or "∅",
                )
            )
        return tokens.ids[words[0]]
