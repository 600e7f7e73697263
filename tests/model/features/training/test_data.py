"""Examples and batches: complete, padded, and the same again for the same seed."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.errors import BadSetting
from model.features.training.corpora import Parallel, RunningText
from model.features.training.data import PAD_ID, Batch, Pair, batches, collate, examples, windows
from model.tokenizers.words import learn_vocabulary

PARALLEL = Parallel("{split}.de", "{split}.en")


def test_pairs_become_ids_with_start_and_end() -> None:
    tokenizers = {"source": learn_vocabulary(["Ein Hund"], "spacy-de", 1), "target": learn_vocabulary(["A dog"], "spacy-en", 1)}
    (pair,) = examples(PARALLEL, [("Hund Ein", "dog A")], tokenizers)
    assert pair == Pair((2, 5, 4, 3), (2, 5, 4, 3))


def test_no_texts_are_refused() -> None:
    with pytest.raises(BadSetting, match=r"split: “empty” is not accepted. Allowed: made of at least one text"):
        examples(PARALLEL, [], {})


TEXT = RunningText("{split}.txt", "a", "b", window=4, origin="here")
LETTERS = learn_vocabulary(["abcdefgh"], "characters", 1, framed=False)


def test_running_text_is_one_stream_in_which_every_token_but_the_first_is_predicted_once() -> None:
    pairs = examples(TEXT, [("abc",), ("defgh",)], {"source": LETTERS})
    stream = (4, 5, 6, 3, 7, 8, 9, 10, 11, 3)
    assert pairs == [Pair((), stream[0:5]), Pair((), stream[4:9]), Pair((), stream[8:10])]
    assert tuple(id_ for pair in pairs for id_ in pair.target[1:]) == stream[1:]


@given(st.lists(st.text("abcdefgh", min_size=1), min_size=1, max_size=5), st.integers(1, 9))
def test_stretches_predict_the_whole_text_in_its_order(paragraphs: list[str], window: int) -> None:
    pairs = windows(paragraphs, LETTERS, window)
    stream = [id_ for text in paragraphs for id_ in (*(LETTERS.ids[c] for c in text), 3)]
    assert [pairs[0].target[0], *(id_ for pair in pairs for id_ in pair.target[1:])] == stream
    assert all(2 <= len(pair.target) <= window + 1 for pair in pairs)


def test_a_language_model_is_fed_its_target_alone() -> None:
    batch = collate([Pair((), (4, 5, 6)), Pair((), (7, 8))])
    assert batch.source is None
    assert [inputs.tolist() for inputs in batch.fed] == [[[4, 5], [7, 8]]]
    assert batch.following.tolist() == [[5, 6], [8, PAD_ID]]
    assert batch.predicted == 3
    assert batch.twice.target.tolist() == [[4, 5, 6], [7, 8, 1]] * 2
    assert batch.to(torch.device("cpu")).source is None


@pytest.mark.parametrize(("size", "of"), [(7, 2), (8, 4), (2, 3), (1, 1)])
def test_processes_share_a_batch(size: int, of: int) -> None:
    whole = collate([Pair((2, n + 4, 3), (2, n + 4, 3)) for n in range(size)])
    shares = [whole.share(number, of) for number in range(of)]
    seen = [row for share in shares[:size] for row in share.target.tolist()]
    assert sorted(seen) == whole.target.tolist()
    assert all(share.source is not None and share.source.tolist() == share.target.tolist() for share in shares)
    assert [share.target.tolist() for share in shares[size:]] == [whole.target[:1].tolist()] * max(0, of - size)


PAIRS = [Pair(tuple(range(2, 4 + n % 5)), tuple(range(2, 4 + n * 7 % 9))) for n in range(23)]


def unpadded(batch: Batch) -> list[Pair]:
    assert batch.source is not None
    rows = [tuple(tuple(i for i in row if i != PAD_ID) for row in side.tolist()) for side in (batch.source, batch.target)]
    return [Pair(source, target) for source, target in zip(*rows, strict=True)]


def test_a_batch_is_padded_at_the_end_and_counts_what_is_predicted() -> None:
    batch = collate([Pair((2, 5, 3), (2, 3)), Pair((2, 3), (2, 7, 8, 3))])
    assert batch.source is not None
    assert batch.source.tolist() == [[2, 5, 3], [2, 3, PAD_ID]]
    assert batch.target.tolist() == [[2, 3, PAD_ID, PAD_ID], [2, 7, 8, 3]]
    assert batch.predicted == 1 + 3
    assert [inputs.tolist() for inputs in batch.fed] == [batch.source.tolist(), [[2, 3, PAD_ID], [2, 7, 8]]]
    assert batch.twice.predicted == 2 * batch.predicted


@given(st.integers(1, 30), st.none() | st.integers(0, 2**32))
def test_every_pair_stands_in_one_batch_and_the_same_seed_gives_the_same_batches(size: int, seed: int | None) -> None:
    first, second = list(batches(PAIRS, size, seed)), list(batches(PAIRS, size, seed))
    assert [unpadded(b) for b in first] == [unpadded(b) for b in second]
    assert Counter(pair for batch in first for pair in unpadded(batch)) == Counter(PAIRS)
    assert sorted(len(batch.target) for batch in first)[1:] == [size] * (len(first) - 1) or len(first) == 1
    assert max(len(batch.target) for batch in first) <= size


def test_another_seed_gives_another_order() -> None:
    assert len({str([unpadded(b) for b in batches(PAIRS, 4, seed)]) for seed in range(5)}) == 5


def test_sentences_of_like_length_share_a_batch() -> None:
    for seed in (None, 0, 1):
        waste = sum(int((b.target == PAD_ID).sum()) for b in batches(PAIRS, 4, seed))
        assert waste < sum(int((collate(PAIRS[i : i + 4]).target == PAD_ID).sum()) for i in range(0, len(PAIRS), 4))
