"""Words of a text and the tokens that they were split into, so that weights between tokens become weights between words.

Source: Clark et al. 2019, "What Does BERT Look At?", section 4.1: weights on the tokens of a word are added up, and those of its
rows averaged.
"""

from collections.abc import Sequence

import numpy as np

from model.trace.types import Array, Tokens

MARKS = "▁Ġ#@ "
"""Signs that tokenizers put beside the letters of a piece."""


def words_of(tokens: Tokens, words: Sequence[str]) -> Array | None:
    """[token], the number of the word that each token is a part of, -1 for tokens that stand for no text; None: they do not match.

    Tokens and words are compared letter by letter, without case and without the signs of the tokenizer.
    """
    letters = [(number, letter) for number, word in enumerate(words) for letter in word.casefold()]
    word_of, position = np.full(len(tokens.texts), -1), 0
    for number, (text, special) in enumerate(zip(tokens.texts, tokens.special, strict=True)):
        piece = (text.strip(MARKS) or text.strip()).casefold()
        if special or not piece:
            continue
        if [letter for _word, letter in letters[position : position + len(piece)]] != list(piece):
            return None
        word_of[number] = letters[position][0]
        position += len(piece)
    return word_of if position == len(letters) else None


def matrix(weights: Array, rows: Array, keys: Array, row_words: int, key_words: int) -> tuple[Array, Array]:
    """[head, row word, key word], weights between words, and [row word], which of them have a row.

    Args:
        weights: [head, query, key].
        rows, keys: [query], [key], the word of each; -1: none.
        row_words, key_words: numbers of words.
    """
    of_rows = (rows[None, :] == np.arange(row_words)[:, None]).astype(np.float64)
    of_keys = (keys[:, None] == np.arange(key_words)[None, :]).astype(np.float64)
    counts = of_rows.sum(axis=1)
    means = of_rows / np.maximum(counts, 1)[:, None]
    return np.asarray(means @ (np.asarray(weights, np.float64) @ of_keys)), np.asarray(counts > 0)
