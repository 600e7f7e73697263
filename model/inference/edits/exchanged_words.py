"""Exchanged words: the ids that a stack reads where an edit gives a token the embedding of another word."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from model.checkpoints.loaded import Runner
from model.errors import CannotChange, phrase
from model.inference.edits.parts import Parts
from model.inference.edits.strips import Strips
from model.spec.edits import Edit, Embed
from model.trace.types import Tokens


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

    def shown(self, strips: Mapping[str, Tokens]) -> dict[str, Tokens]:
        """The strips of a trace: at an exchanged place both words, and the id that the network read."""
        found = dict(strips)
        for edit, id_ in self._words:
            name = self._strips.of_stack(edit.stack)
            tokens, word = found[name], self._checkpoint.tokenizers[name].tokens((id_,), name).texts[0]
            at = [edit.at in (i, text, text.strip()) for i, text in enumerate(strips[name].texts)]
            texts = [f"{text} → {word}" if here else text for here, text in zip(at, tokens.texts, strict=True)]
            ids = [id_ if here else own for here, own in zip(at, tokens.ids, strict=True)]
            found[name] = replace(tokens, texts=tuple(texts), ids=tuple(ids))
        return found

    def _id(self, edit: Embed, parts: Parts) -> int:
        """The id of the word whose embedding is taken."""
        parts.check_stack(edit, edit.stack)
        strip = self._strips.of_stack(edit.stack)
        if strip not in self._checkpoint.tokenizers:
            raise CannotChange(name=str(edit), reason=phrase("this network has no embedding"))
        self._strips.check(edit, (edit.at,), (strip,))
        tokenizer = self._checkpoint.tokenizers[strip]
        if isinstance(edit.word, int):
            if edit.word >= tokenizer.size:
                raise edit.refuse(phrase("the ids of the vocabulary run from 0 to {last}", last=tokenizer.size - 1))
            return edit.word
        found = tokenizer.encode(edit.word, strip)
        words = [i for i, special in enumerate(found.special) if not special]
        if len(words) != 1 or found.unknown[words[0]]:
            pieces = ", ".join(found.texts[i] for i in words)
            raise edit.refuse(
                phrase(
                    "“{word}” is not one token of the vocabulary; it becomes: {pieces}",
                    word=edit.word,
                    pieces=pieces or "∅",
                )
            )
        return found.ids[words[0]]
