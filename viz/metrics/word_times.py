"""When each written token was said: from the cross-attention over a sound, by dynamic time warping, beside two plain baselines.

The weights of some heads are compared over the tokens, position by position, smoothed over time and averaged. The path through this
map from the first token and moment to the last ones, which only goes forward and has the largest sum, gives each token its moments.

Source: the Whisper authors' `timing.py` (2022); Sakoe and Chiba 1978, "Dynamic Programming Algorithm Optimization for Spoken Word
Recognition", for the path. As the authors do, a token's row is the one that wrote it. The transformers library takes the row that
reads it, and so its times are those of the token after it; all else is the same, as a test shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.trace.types import Array, Trace


@dataclass(frozen=True)
class Word:
    """A word, and the seconds in which it was said.

    Attributes:
        text: as it is written.
        rows: the rows of the decoder that wrote its tokens.
        start, end: by the path.
        largest: where the mean weight of all heads is largest: a baseline.
        even: where it would begin if all tokens were equally long: another one.
    """

    text: str
    rows: tuple[int, ...]
    start: float
    end: float
    largest: float
    even: float


def spoken_rows(trace: Trace) -> tuple[int, ...]:
    """Rows of the decoder that wrote a token that stands for a text. What begins and ends it was not said."""
    target, rows = trace.tokens["target"], _rows(trace)
    return tuple(row for row in range(min(rows, len(target) - 1)) if not target.special[row + 1])


def _rows(trace: Trace) -> int:
    return max((attention.weights.shape[1] for attention in trace.of("decoder", "cross")), default=0)


def words(trace: Trace, heads: Sequence[tuple[int, int]], heard: int, step: float, width: int) -> tuple[Word, ...]:
    """The words of a run with their times.

    Args:
        heads: layer and head of each cross-attention that the path follows.
        heard: positions that the sound fills; those of the silence after it are left out.
        step: seconds of a position.
        width: positions of the median that smooths, an odd number.
    """
    rows = spoken_rows(trace)
    if not rows or not heads:
        return ()
    crosses = trace.of("decoder", "cross")
    after = (
        [rows[-1] + 1] if rows[-1] + 1 < _rows(trace) else []
    )  # what follows the last word, such as the end token, takes the rest
    chosen = np.stack([np.asarray(crosses[layer].head(head))[[*rows, *after], :heard] for layer, head in heads])
    spans = path_spans(compared(chosen, width))
    mean = np.mean([np.asarray(attention.weights)[:, list(rows), :heard].mean(axis=0) for attention in crosses], axis=0)
    largest, texts = mean.argmax(axis=-1), trace.tokens["target"].texts
    words: list[Word] = []
    for places in _grouped([texts[row + 1] for row in rows]):
        first, last = places[0], places[-1]
        words.append(
            Word(
                "".join(texts[rows[index] + 1] for index in places).strip(),
                tuple(rows[index] for index in places),
                float(spans[first][0] * step),
                float(spans[last][1] * step),
                float(largest[first] * step),
                float(first * heard / len(rows) * step),
            )
        )
    return tuple(words)


def _grouped(texts: Sequence[str]) -> list[list[int]]:
    """Indices of the tokens that make a word: a new one begins with a blank, and after a sign that is written without blanks."""
    words: list[list[int]] = []
    for index, text in enumerate(texts):
        before = texts[index - 1] if index else " "
        if not words or text[:1].isspace() or _is_alone(text) or _is_alone(before):
            words.append([])
        words[-1].append(index)
    return words


def _is_alone(text: str) -> bool:
    """Whether a text ends in a sign of a script that puts no blanks between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese."""
    last = ord(text[-1]) if text else 0
    return any(first <= last <= end for first, end in _WITHOUT_BLANKS)


_WITHOUT_BLANKS = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x9FFF), (0x20000, 0x3FFFF))


def compared(weights: Array, width: int) -> Array:
    """[token, position], larger where a token attends more than others: weights [head, token, position], each position minus its
    mean over the tokens and divided by its standard deviation, the median of `width` neighbors, and the mean of the heads.
    """
    weights = weights.astype(np.float64)
    mean, deviation = weights.mean(axis=1, keepdims=True), weights.std(axis=1, keepdims=True)
    scaled = np.where(deviation > _EQUAL * mean, weights - mean, 0) / np.where(deviation > _EQUAL * mean, deviation, 1)
    pad = width // 2
    if scaled.shape[-1] > pad:
        padded = np.pad(scaled, ((0, 0), (0, 0), (pad, pad)), mode="reflect")
        scaled = np.median(np.lib.stride_tricks.sliding_window_view(padded, width, axis=-1), axis=-1)
    return np.asarray(scaled.mean(axis=0))


def path_spans(gain: Array) -> list[tuple[int, int]]:
    """The first position of each token and the one after its last, on the path with the largest sum of `gain` [token, position].

    A step of the path goes to the next token, to the next position, or to both. Of equally good ones the last of these is not
    taken, and the next position before the next token, as in the library.
    """
    came = _steps(-gain)
    token, position = gain.shape
    spans = [[position, 0] for _ in range(token)]
    while token > 0 or position > 0:
        if token > 0 and position > 0:
            span = spans[token - 1]
            span[0], span[1] = min(span[0], position - 1), max(span[1], position)
        step = _AHEAD if token == 0 else _NEXT if position == 0 else came[token, position]
        token -= step != _AHEAD
        position -= step != _NEXT
    return [(first, end) for first, end in spans]


_EQUAL = 1e-9
"""Share of their mean below which weights differ by rounding alone."""

_BOTH, _NEXT, _AHEAD = 0, 1, 2


def _steps(costs: Array) -> Array:
    """[token + 1, position + 1], how the cheapest path came to each cell; one diagonal after another, whose cells need no other."""
    tokens, positions = costs.shape
    total = np.full((tokens + 1, positions + 1), np.inf, np.float32)
    total[0, 0] = 0
    came = np.zeros(total.shape, np.int8)
    for diagonal in range(2, tokens + positions + 1):
        rows = np.arange(max(1, diagonal - positions), min(tokens, diagonal - 1) + 1)
        columns = diagonal - rows
        both, down, ahead = total[rows - 1, columns - 1], total[rows - 1, columns], total[rows, columns - 1]
        step = np.where((both < down) & (both < ahead), _BOTH, np.where((down < both) & (down < ahead), _NEXT, _AHEAD))
        total[rows, columns] = costs[rows - 1, columns - 1] + np.choose(step, (both, down, ahead))
        came[rows, columns] = step
    return came
