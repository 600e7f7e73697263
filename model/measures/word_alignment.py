"""Word alignments that somebody typed, and how far the alignment of a head is from them.

Source: Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", section 5: links are sure or possible,
and the alignment error rate of links A is 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|), where P contains S.
"""

import re
from dataclasses import dataclass

import numpy as np

from model.measures.words import matrix, words_of
from model.trace.types import Array, Tokens

_LINK = re.compile(r"(\d{1,4})([-p])(\d{1,4})", re.ASCII)


@dataclass(frozen=True)
class Gold:
    """The links of one pair of sentences. Words are counted from 0, as spaces separate them.

    Attributes:
        source, target: the words.
        sure, possible: links (source word, target word); a sure one is possible, too.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]


def read_links(source: str, target: str, links: str) -> Gold:
    """The links in a text such as `0-0 1-2 2p1`: SOURCE-TARGET is sure, with a p between it is possible.

    Raises:
        ValueError: it holds something else, or a word that is not there; its text is the link.
    """
    words = tuple(source.split()), tuple(target.split())
    sure, possible = set[tuple[int, int]](), set[tuple[int, int]]()
    for link in links.split():
        match = _LINK.fullmatch(link)
        if match is None or int(match[1]) >= len(words[0]) or int(match[3]) >= len(words[1]):
            raise ValueError(link)
        possible.add((int(match[1]), int(match[3])))
        if match[2] == "-":
            sure.add((int(match[1]), int(match[3])))
    return Gold(*words, frozenset(sure), frozenset(possible))


def error_rate(weights: Array, queries: Tokens, keys: Tokens, gold: Gold) -> Array:
    """[head], the alignment error rate of each head of a cross-attention; NaN where words and tokens cannot be matched.

    A head links each target word to the source word on which it has most weight: the mean over the rows that generate the word's
    tokens of the sum over the source word's tokens.

    Args:
        weights: [head, query, key]; row q generates token q + 1.
        queries, keys: the tokens of the target and of the source.
    """
    to, source = words_of(queries, gold.target), words_of(keys, gold.source)
    if to is None or source is None:
        return np.full(len(weights), np.nan)
    # Row q is the one that writes token q + 1, so it belongs to that token's word.
    rows = weights.shape[1]
    generating = np.full(rows, -1)
    generating[: min(rows, len(to) - 1)] = to[1 : rows + 1]
    table, has_row = matrix(weights, generating, source[: weights.shape[2]], len(gold.target), len(gold.source))
    rates = np.full(len(weights), np.nan)
    for head, best in enumerate(table.argmax(axis=2)):
        links = {(int(best[word]), int(word)) for word in np.flatnonzero(has_row)}
        if links or gold.sure:
            rates[head] = 1 - (len(links & gold.sure) + len(links & gold.possible)) / (len(links) + len(gold.sure))
    return rates
