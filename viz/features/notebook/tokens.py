"""The tokens that somebody gives beside attention, as texts."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from viz.features.notebook.arrays import is_array

SPECIAL = re.compile(r"\[(CLS|SEP|PAD|MASK|BOS|EOS)\]|</?s>|<(pad|bos|eos|mask|sos)>|<\|[\w ]+\|>", re.IGNORECASE)
"""Texts of tokens that stand for no text in the vocabularies of transformers."""


@dataclass(frozen=True)
class Texts:
    """The tokens of a strip.

    Attributes:
        texts: one for each position.
        special: positions of tokens that stand for no text.
        padding: positions that are padding.
        words: of each position the number of its word, None of a special token; empty: the tokenizer did not say.
        segments: of each position the number of its sentence, as of BERT's two; empty: the tokenizer did not say.
    """

    texts: tuple[str, ...]
    special: frozenset[int] = frozenset()
    padding: frozenset[int] = frozenset()
    words: tuple[int | None, ...] = ()
    segments: tuple[int, ...] = field(default=())


def texts_of(tokens: Any, tokenizer: Any, example: int, name: str) -> Texts | None:
    """The tokens that were given under a name; None: none were.

    Args:
        tokens: texts, bytes or ids, in a list, an array or a tensor, or what a tokenizer of transformers returned; also batches.
        tokenizer: what has `convert_ids_to_tokens`, for ids; None: ids are shown as numbers.
        example: which example of a batch.

    Raises:
        ValueError: they are something else.
    """
    if tokens is None:
        return None
    if isinstance(tokens, Mapping) or hasattr(tokens, "input_ids"):
        return _encoded(tokens, tokenizer, example, name)
    values = _listed(tokens, example, name)
    if wrong := [value for value in values if not isinstance(value, str | bytes | int) or isinstance(value, bool)]:
        raise ValueError(f"{name} takes a text or an id for each position, not {wrong[0]!r:.60}.")
    return _with_special(values, tokenizer)


def _encoded(encoding: Any, tokenizer: Any, example: int, name: str) -> Texts:
    """The tokens of what a tokenizer returned: its ids, and what it knows about them."""
    fields = {key: encoding[key] for key in ("input_ids", "attention_mask", "token_type_ids") if key in encoding}
    if "input_ids" not in fields:
        raise ValueError(f"{name} is a {type(encoding).__name__} without input_ids: give what the tokenizer returned.")
    rows = {key: _listed(value, example, name) for key, value in fields.items()}
    # A fast tokenizer keeps its own tokens and words beside the ids; a slow one, or a dict, has the ids alone.
    batch = getattr(encoding, "encodings", None)
    words: tuple[int | None, ...] = ()
    texts = rows["input_ids"]
    if batch:  # of a fast tokenizer, which knows its tokens and its words
        known = batch[example if len(batch) > 1 else 0]
        texts, words = known.tokens, tuple(known.word_ids)
    made = _with_special(texts if tokenizer is None else rows["input_ids"], tokenizer)
    padding = frozenset(at for at, kept in enumerate(rows.get("attention_mask", ())) if not kept)
    segments = tuple(rows.get("token_type_ids", ()))
    return Texts(made.texts, made.special, padding, words, segments if len(set(segments)) > 1 else ())


def _with_special(values: Sequence[Any], tokenizer: Any) -> Texts:
    """Tokens as texts; which of them are special is known by the tokenizer, or by their text."""
    named = list(values)
    if tokenizer is not None and all(isinstance(value, int) for value in named):
        named = list(tokenizer.convert_ids_to_tokens(named))
    texts = tuple(_text(value) for value in named)
    known = set(getattr(tokenizer, "all_special_tokens", ()))
    special = frozenset(at for at, text in enumerate(texts) if text in known or SPECIAL.fullmatch(text))
    return Texts(texts, special)


def _text(token: str | bytes | int | None) -> str:
    """The text of one token; what is no text in UTF-8 becomes a replacement character."""
    return (token if isinstance(token, bytes) else str(token).encode("utf-8", "replace")).decode("utf-8", "replace")


def _listed(values: Any, example: int, name: str) -> list[Any]:
    """Values as a list of Python's own; of a batch the example.

    Raises:
        ValueError: they are no sequence, or the batch has no such example.
    """
    values = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(values, str | bytes | Mapping | set) or not isinstance(values, Iterable):
        raise ValueError(f"{name} takes a list with one text or id for each position, not {values!r:.60}.")
    values = [value.tolist() if is_array(value) else value for value in values]
    if values and all(isinstance(value, list | tuple) for value in values):
        if example >= len(values) > 1:
            raise ValueError(f"{name} is a batch of {len(values)}, which has no example {example}; they count from 0.")
        return list(values[example if len(values) > 1 else 0])
    return list(values)


WORD_BEGINS = ("▁", "Ġ")
"""Signs of vocabularies for a blank before a token."""

HAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def word_numbers(tokens: Texts, name: str) -> list[int | None]:
    """Of each token the number of its word; None: it belongs to none.

    Raises:
        ValueError: nothing says where words begin.
    """
    if tokens.words:
        return list(tokens.words)
    marked = any(text.startswith(WORD_BEGINS) for text in tokens.texts)
    if not marked and not any(text.startswith("##") for text in tokens.texts):
        raise ValueError(
            f"words=True needs to know where words begin, and nothing in {name} says it: give what the tokenizer returned, "
            "or words= a list with the number of each token's word."
        )
    numbers, word = list[int | None](), -1
    for at, text in enumerate(tokens.texts):
        if at in tokens.special:
            numbers.append(None)
            continue
        begins = text.startswith(WORD_BEGINS) if marked else not text.startswith("##")
        # Chinese and Japanese are written without blanks, so each of these characters is a word.
        alone = bool(HAN.match(text)) or (at > 0 and bool(HAN.search(tokens.texts[at - 1])))
        word += begins or alone or word < 0 or numbers[-1] is None
        numbers.append(word)
    return numbers


def joined_text(texts: Sequence[str]) -> str:
    """The text of a word out of its pieces, without the signs of the vocabulary."""
    pieces = [text.removeprefix("##").lstrip("▁Ġ") if len(text) > 1 else text for text in texts]
    return "".join(pieces) or "".join(texts)
