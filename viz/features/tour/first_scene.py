"""Scene of the first picture that a new visitor sees: one head as lines between words, without the terms of the other pages."""

from collections.abc import Sequence

import numpy as np

from model.trace.types import Attention, Tokens, Trace
from viz.canvas.scenes.attention import base
from viz.canvas.wire import parts, strings
from viz.i18n.translate import _, language_of
from viz.labels import alt_text
from viz.labels import tokens as labels

LEAST_LETTERS = 3
"""Letters of a word that the visitor is asked to point at."""


def clearest_head(trace: Trace, attention: Attention) -> int:
    """The head whose lines are read best: words lead to one word each, and to different ones.

    It is the mean of the word rows' largest weights on a word, times the share of words that have one of them. Special tokens and
    punctuation are no words; where there are no others, all tokens count.
    """
    queries = _words(trace.tokens[attention.query_tokens], _places(trace, attention))
    keys = _words(trace.tokens[attention.key_tokens], range(attention.weights.shape[2]))
    between = np.nan_to_num(attention.weights[:, queries][:, :, keys])
    different = np.array([len(set(row.tolist())) for row in between.argmax(axis=2)]) / between.shape[2]
    return int((between.max(axis=2).mean(axis=1) * different).argmax())


def _words(strip: Tokens, places: Sequence[int]) -> list[int]:
    """Which of these places of a strip hold words; all where none does."""
    words = [at for at, index in enumerate(places) if not strip.special[index] and any(map(str.isalnum, strip.texts[index]))]
    return words or list(range(len(places)))


def inviting_row(trace: Trace, attention: Attention, head: int) -> int:
    """The row of a word that looks far away, and at one word only; the first row if there is none."""
    weights, names = np.nan_to_num(attention.head(head)), rows(trace, attention)
    words = [row for row, name in enumerate(names[: len(weights)]) if name.isalpha() and len(name) >= LEAST_LETTERS]
    far = {row: weights[row].max() * (1 + abs(row - int(weights[row].argmax()))) for row in words}
    return max(far, key=far.__getitem__, default=0)


def rows(trace: Trace, attention: Attention) -> list[str]:
    """The words of the rows: in a decoder that which a row generates, not that which it reads."""
    names = labels.strip(trace.tokens[attention.query_tokens])
    return [names[index] for index in _places(trace, attention)]


def _places(trace: Trace, attention: Attention) -> list[int]:
    """The place of each row's word in its strip."""
    generates = attention.site.stack == "decoder" and not trace.of_program
    last = len(trace.tokens[attention.query_tokens]) - 1
    return [min(row + generates, last) for row in range(attention.weights.shape[1])]


def boundaries(strip: Tokens) -> tuple[str, str]:
    """The special tokens that a strip begins and ends with, empty where it has none."""
    if not len(strip):
        return "", ""
    first, last = (labels.word(strip.texts[at]) if strip.special[at] else "" for at in (0, -1))
    return first, last


def scene(trace: Trace, attention: Attention, head: int, emphasized: bool = False) -> bytes:
    """One head between its two strips of words: part `exact`.

    Args:
        attention: a site of the trace.
        head: one of its heads.
        emphasized: whether the lines of the word that the visitor is asked to point at stand out.
    """
    names = rows(trace, attention)
    invites = inviting_row(trace, attention, head)
    word = names[invites]
    texts = strings.lines_alone() | {
        "hint": _("Hover over “{word}”: what did it attend to?", word=word),
        "hintTouch": _("Tap “{word}”: what did it attend to?", word=word),
    }
    fields = {
        "texts": texts,
        "queries": names,
        "queryAxis": language_of(trace, attention.query_tokens),
        "keyAxis": language_of(trace, attention.key_tokens),
        "name": labels.head_name(trace, attention.site, head),
        "site": str(attention.site),
        "head": head,
        "query": invites if emphasized else -1,
        "invites": invites,
        "opens": False,
        "largest": 1.0,
        "description": alt_text.head(trace, attention, head),
    }
    header = base(trace, False) | parts.axes(trace, attention) | fields
    return parts.scene(header, {"exact": parts.exact(trace, attention.site, head)})
