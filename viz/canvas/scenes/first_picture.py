"""Scene of the first picture that a new visitor sees: one head as lines between words, without the terms of the other pages."""

import numpy as np

from model.trace.types import Attention, Trace
from viz.canvas.scenes.attention import base
from viz.canvas.wire import parts, strings
from viz.i18n.translate import _, language_of
from viz.labels import alt_text
from viz.labels import tokens as labels

LEAST_LETTERS = 3
"""Letters of a word that the visitor is asked to point at."""


def clearest_head(attention: Attention) -> int:
    """The head whose lines are seen best: the mean of its rows' largest weights times the share of keys that have one."""
    largest, keys = attention.weights.max(axis=2), attention.weights.argmax(axis=2)
    different = np.array([len(set(row.tolist())) for row in keys]) / max(1, keys.shape[1])
    return int((np.nan_to_num(largest).mean(axis=1) * different).argmax())


def inviting_row(trace: Trace, attention: Attention, head: int) -> int:
    """The row of a word that looks far away, and at one word only; the first row if there is none."""
    weights, names = np.nan_to_num(attention.head(head)), rows(trace, attention)
    words = [row for row, name in enumerate(names[: len(weights)]) if name.isalpha() and len(name) >= LEAST_LETTERS]
    far = {row: weights[row].max() * (1 + abs(row - int(weights[row].argmax()))) for row in words}
    return max(far, key=far.__getitem__, default=0)


def rows(trace: Trace, attention: Attention) -> list[str]:
    """The words of the rows: in a decoder that which a row generates, not that which it reads."""
    names = labels.strip(trace.tokens[attention.query_tokens])
    count = attention.weights.shape[1]
    generates = attention.site.stack == "decoder" and not trace.of_program
    return [names[min(row + generates, len(names) - 1)] for row in range(count)]


def scene(trace: Trace, attention: Attention, head: int) -> bytes:
    """One head between its two strips of words: part `exact`.

    Args:
        attention: a site of the trace.
        head: one of its heads.
    """
    names = rows(trace, attention)
    invites = inviting_row(trace, attention, head)
    word = names[invites]
    texts = strings.lines_alone() | {
        "hint": _("Hover over “{word}”: where did it look?", word=word),
        "hintTouch": _("Tap “{word}”: where did it look?", word=word),
    }
    own = {
        "texts": texts,
        "queries": names,
        "queryAxis": language_of(trace, attention.query_tokens),
        "keyAxis": language_of(trace, attention.key_tokens),
        "name": labels.head_name(trace, attention.site, head),
        "site": str(attention.site),
        "head": head,
        "query": -1,
        "invites": invites,
        "opens": False,
        "largest": 1.0,
        "description": alt_text.head(trace, attention, head),
    }
    header = base(trace, False) | parts.axes(trace, attention) | own
    return parts.scene(header, {"exact": parts.exact(trace, attention.site, head)})
