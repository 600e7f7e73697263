"""Parallel corpora: read whole or refused in words; batches complete, padded, and the same again for the same seed."""

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.errors import DataError
from model.tokenizers import learn_vocabulary
from model.training.data import PAD_ID, Batch, Pair, batches, collate, encode, read_lines, read_parallel

GERMAN, ENGLISH = ["Ein Hund.", "Zwei Hunde, ein Ball.", "Schnee!"], ["A dog.", "Two dogs, one ball.", "Snow!"]


def corpus(folder: Path, german: list[str] = GERMAN, english: list[str] = ENGLISH) -> Path:
    for name, lines in (("train.de", german), ("train.en", english)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def read(folder: Path) -> list[tuple[str, str]]:
    return read_parallel(folder, "train", "{split}.de", "{split}.en")


def test_lines_are_paired_plain_or_packed(tmp_path: Path) -> None:
    expected = list(zip(GERMAN, ENGLISH, strict=True))
    assert read(corpus(tmp_path)) == expected
    packed = gzip.compress((tmp_path / "train.de").read_bytes())
    (tmp_path / "train.de").unlink()
    (tmp_path / "train.de.gz").write_bytes(packed)
    assert read(tmp_path) == expected


def test_a_last_line_without_an_end_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("one\ntwo", encoding="utf-8")
    assert read_lines(tmp_path, "x") == ["one", "two"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_separator_inside_a_sentence_ends_no_line(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    lines = ["a\u2028b", "c\x0cd", "e\x85f", "g\rh"]
    name = "x.gz" if pack is gzip.compress else "x"
    for end in ("\n", "\r\n"):
        (tmp_path / name).write_bytes(pack("".join(line + end for line in lines).encode("utf-8")))
        assert read_lines(tmp_path, "x") == lines


def test_a_missing_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path)
    assert str(caught.value) == (
        f"The data at {tmp_path} cannot be used (there is neither train.de nor train.de.gz): put the corpus of the checkpoint's "
        "CARD.md there: one UTF-8 sentence a line, source and target aligned by line, plain or with .gz at the end of the name."
    )


def test_sides_of_unequal_length_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"split train has 3 source and 2 target lines\): align the two files line by line"):
        read(corpus(tmp_path, GERMAN, ENGLISH[:2]))


@pytest.mark.parametrize("blank", ["", "  ", "\t"])
def test_an_empty_line_is_named_by_its_number(tmp_path: Path, blank: str) -> None:
    with pytest.raises(DataError, match=r"line 2 of split train is empty\): mend or remove that line in both files"):
        read(corpus(tmp_path, GERMAN, [ENGLISH[0], blank, ENGLISH[2]]))


def test_a_file_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 1 of split train is empty"):
        read(corpus(tmp_path, [], []))


def damaged_archives() -> dict[str, bytes]:
    packed = gzip.compress(b"Ein Hund spielt.\n" * 20)
    flipped, unknown_block = bytearray(packed), bytearray(packed)
    flipped[20] ^= 0xFF
    unknown_block[10] |= 0b110  # the first three bits after the header name the kind of block; kind 3 does not exist
    return {
        "cut": packed[:-9],
        "flipped": bytes(flipped),
        "unknown block": bytes(unknown_block),
        "no archive": b"Ein Hund.\n",
        "empty": b"",
    }


@pytest.mark.parametrize("name", damaged_archives())
def test_a_damaged_archive_is_refused(tmp_path: Path, name: str) -> None:
    corpus(tmp_path)
    (tmp_path / "train.de.gz").write_bytes(damaged_archives()[name])
    with pytest.raises(DataError):
        read(tmp_path)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_file_that_is_not_utf8_is_named(tmp_path: Path, ending: str) -> None:
    corpus(tmp_path)
    latin = "Ein Mädchen.\n".encode("latin-1")
    (tmp_path / f"train.de{ending}").write_bytes(gzip.compress(latin) if ending else latin)
    with pytest.raises(DataError, match=rf"train\.de{ending} cannot be used .*utf-8"):
        read(tmp_path)


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    corpus(tmp_path)
    (tmp_path / "train.de").unlink()
    (tmp_path / "train.de").mkdir()
    with pytest.raises(DataError):
        read(tmp_path)


def test_pairs_become_ids_with_start_and_end() -> None:
    source, target = learn_vocabulary(GERMAN, "spacy-de", 1), learn_vocabulary(ENGLISH, "spacy-en", 1)
    (pair, *_) = encode([("Ein Hund", "A dog")], source, target)
    assert pair == Pair((2, source.ids["ein"], source.ids["hund"], 3), (2, target.ids["a"], target.ids["dog"], 3))


PAIRS = [Pair(tuple(range(2, 4 + n % 5)), tuple(range(2, 4 + n * 7 % 9))) for n in range(23)]


def unpadded(batch: Batch) -> list[Pair]:
    rows = [tuple(tuple(i for i in row if i != PAD_ID) for row in side.tolist()) for side in (batch.source, batch.target)]
    return [Pair(source, target) for source, target in zip(*rows, strict=True)]


def test_a_batch_is_padded_at_the_end_and_counts_what_is_predicted() -> None:
    batch = collate([Pair((2, 5, 3), (2, 3)), Pair((2, 3), (2, 7, 8, 3))])
    assert batch.source.tolist() == [[2, 5, 3], [2, 3, PAD_ID]]
    assert batch.target.tolist() == [[2, 3, PAD_ID, PAD_ID], [2, 7, 8, 3]]
    assert batch.predicted == 1 + 3
    assert torch.equal(batch.to(torch.device("cpu")).source, batch.source)


@given(st.integers(1, 30), st.none() | st.integers(0, 2**32))
def test_every_pair_stands_in_one_batch_and_the_same_seed_gives_the_same_batches(size: int, seed: int | None) -> None:
    first, second = list(batches(PAIRS, size, seed)), list(batches(PAIRS, size, seed))
    assert [unpadded(b) for b in first] == [unpadded(b) for b in second]
    assert Counter(pair for batch in first for pair in unpadded(batch)) == Counter(PAIRS)
    assert sorted(len(batch.source) for batch in first)[1:] == [size] * (len(first) - 1) or len(first) == 1
    assert max(len(batch.source) for batch in first) <= size


def test_another_seed_gives_another_order() -> None:
    assert len({str([unpadded(b) for b in batches(PAIRS, 4, seed)]) for seed in range(5)}) == 5


def test_sentences_of_like_length_share_a_batch() -> None:
    for seed in (None, 0, 1):
        waste = sum(int((b.target == PAD_ID).sum()) for b in batches(PAIRS, 4, seed))
        assert waste < sum(int((collate(PAIRS[i : i + 4]).target == PAD_ID).sum()) for i in range(0, len(PAIRS), 4))
