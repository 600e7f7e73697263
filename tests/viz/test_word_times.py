"""Times of words: the path beside a search of all paths, and beside the library's own times of a decode."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.engine.api import Receive, Run
from model.engine.local import LocalEngine
from model.requests.request import Decoding, RunRequest
from model.trace.types import Array, Trace
from tests import traces
from tests.sounds import RATE, extractor, saved_listener, sound_file, tones
from viz.metrics import word_times

HEARD, STEP = 65, 0.02
HEADS = ((1, 2), (2, 0), (2, 3))


def all_paths(tokens: int, positions: int) -> Iterator[list[tuple[int, int]]]:
    """All ways from the first cell to the last."""

    def ahead(path: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
        row, column = path[-1]
        if (row, column) == (tokens - 1, positions - 1):
            yield path
            return
        for one in ((row + 1, column + 1), (row + 1, column), (row, column + 1)):
            if one[0] < tokens and one[1] < positions:
                yield from ahead([*path, one])

    return ahead([(0, 0)])


@pytest.mark.parametrize("seed", range(6))
def test_the_path_has_the_largest_sum_of_all(seed: int) -> None:
    gain = np.random.default_rng(seed).normal(size=(3, 6))
    best = max(all_paths(3, 6), key=lambda path: sum(gain[cell] for cell in path))
    wanted = [(min(c for r, c in best if r == row), max(c for r, c in best if r == row) + 1) for row in range(3)]
    assert word_times.path_spans(gain) == wanted


def test_a_diagonal_is_followed() -> None:
    gain = np.full((4, 20), -1.0)
    for token in range(4):
        gain[token, 5 * token : 5 * token + 5] = 1
    assert word_times.path_spans(gain) == [(0, 5), (5, 10), (10, 15), (15, 20)]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shelf")
    saved_listener(path / "short")
    return path


@pytest.fixture(scope="module")
def trace(shelf: Path) -> Trace:
    engine = LocalEngine(shelf, torch.device("cpu"))
    source = engine.ask(Receive(sound_file(tones(), subtype="FLOAT"), "a.wav"))
    return engine.ask(Run(RunRequest("short", source, decoding=Decoding(max_length=15))))


def of_the_library(shelf: Path, frames: int | None) -> Any:
    """The library's own decode of the same sound, with the times that it finds."""
    from transformers import WhisperForConditionalGeneration

    own: Any = WhisperForConditionalGeneration.from_pretrained(shelf / "short", attn_implementation="eager").eval()
    features = extractor(2)(tones()[:, 0], sampling_rate=RATE, return_tensors="pt")["input_features"]
    more = {} if frames is None else {"attention_mask": (torch.arange(200) < frames).long()[None]}
    return own.generate(features, max_new_tokens=12, return_token_timestamps=True, return_dict_in_generate=True, **more)


@pytest.mark.parametrize("frames", [None, 2 * HEARD])
def test_times_are_the_librarys(shelf: Path, trace: Trace, frames: int | None) -> None:
    found = of_the_library(shelf, frames)
    heard = 100 if frames is None else HEARD
    rows = [row + 1 for row in word_times.spoken_rows(trace)][:-1]  # the library takes those that read a token
    crosses = trace.of("decoder", "cross")
    chosen = np.stack([np.asarray(crosses[layer].head(head))[list(rows), :heard] for layer, head in HEADS])
    starts = [first * STEP for first, _end in word_times.path_spans(word_times.compared(chosen, 7))]
    own = np.asarray(found["token_timestamps"])[0]
    ids = np.asarray(found["sequences"])[0].tolist()
    assert ids[-len(rows) - 1 :] == list(trace.tokens["target"].ids[4:])
    np.testing.assert_allclose(starts, own[-len(rows) - 1 : -1], atol=1e-4)
    assert len(set(starts)) > 1  # they are not all the same


def test_words_are_made_of_their_tokens_and_follow_each_other(trace: Trace) -> None:
    found = word_times.words(trace, HEADS, HEARD, STEP, 7)
    assert [row for word in found for row in word.rows] == list(word_times.spoken_rows(trace))
    assert "".join(word.text for word in found) == "".join(trace.tokens["target"].texts[4:]).replace(" ", "")
    assert all(0 <= word.start < word.end <= HEARD * STEP + 1e-9 for word in found)
    assert all(one.end <= other.start + STEP + 1e-9 for one, other in pairwise(found))
    mean = np.mean([own.weights.mean(axis=0) for own in trace.of("decoder", "cross")], axis=0)[:, :HEARD]
    assert [word.largest for word in found] == pytest.approx([mean[word.rows[0]].argmax() * STEP for word in found])
    assert found[0].even == 0


def test_what_follows_the_last_word_takes_the_rest_of_the_sound() -> None:
    heard = traces.heard()
    with_end = word_times.words(heard, ((0, 1), (1, 2)), HEARD, STEP, 3)
    rows = [*word_times.spoken_rows(heard), word_times.spoken_rows(heard)[-1] + 1]
    crosses = heard.of("decoder", "cross")
    gain = word_times.compared(np.stack([crosses[layer].head(head)[rows, :HEARD] for layer, head in ((0, 1), (1, 2))]), 3)
    spans = word_times.path_spans(gain)
    assert with_end[-1].text == "ask"
    assert with_end[-1].end == pytest.approx(spans[-2][1] * STEP)
    assert spans[-1][1] == HEARD
    assert with_end[-1].end < HEARD * STEP


def test_without_heads_there_are_no_times(trace: Trace) -> None:
    assert word_times.words(trace, (), HEARD, STEP, 7) == ()


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        ([" Hel", "lo", " wor", "ld", "."], [[0, 1], [2, 3, 4]]),
        (["你", "好", "世界"], [[0], [1], [2]]),
        (["Hi"], [[0]]),
        ([], []),
    ],
)
def test_tokens_are_grouped_into_words(texts: list[str], wanted: list[list[int]]) -> None:
    assert word_times._grouped(texts) == wanted


def test_a_position_to_which_all_tokens_attend_equally_says_nothing() -> None:
    weights: Array = np.full((1, 3, 9), 0.1)
    assert not word_times.compared(weights, 3).any()
