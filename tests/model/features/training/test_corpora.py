"""Corpora: read whole, or refused in words that name the file, its source and the line; divided by lot and always alike."""

import gzip
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from model.errors import BadSetting, DataError, MissingSetting
from model.features.training.corpora import PARTS, Parallel, Repetition, Reversal, RunningText, Table, Texts, from_json, read_lines

GERMAN, ENGLISH = ["Ein Hund.", "Zwei Hunde, ein Ball.", "Schnee!"], ["A dog.", "Two dogs, one ball.", "Snow!"]


def corpus(folder: Path, german: list[str] = GERMAN, english: list[str] = ENGLISH) -> Path:
    for name, lines in (("train.de", german), ("train.en", english)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def read(folder: Path) -> Texts:
    return Parallel("{split}.de", "{split}.en", origin="a corpus").texts(folder, "train")


def test_lines_are_paired_plain_or_packed(tmp_path: Path) -> None:
    expected = list(zip(GERMAN, ENGLISH, strict=True))
    assert read(corpus(tmp_path)) == expected
    packed = gzip.compress((tmp_path / "train.de").read_bytes())
    (tmp_path / "train.de").unlink()
    (tmp_path / "train.de.gz").write_bytes(packed)
    assert read(tmp_path) == expected


def test_a_last_line_without_an_end_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("one\ntwo", encoding="utf-8")
    assert read_lines(tmp_path, "x", "a corpus", "lines") == ["one", "two"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_separator_inside_a_sentence_ends_no_line(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    lines = ["a\u2028b", "c\x0cd", "e\x85f", "g\rh"]
    name = "x.gz" if pack is gzip.compress else "x"
    for end in ("\n", "\r\n"):
        (tmp_path / name).write_bytes(pack("".join(line + end for line in lines).encode("utf-8")))
        assert read_lines(tmp_path, "x", "a corpus", "lines") == lines


def test_a_missing_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path)
    assert str(caught.value) == (
        f"The data at {tmp_path} cannot be used (there is neither train.de nor train.de.gz): put train.de of a corpus there, "
        "plain or as train.de.gz: one UTF-8 sentence a line, source and target aligned by line."
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
    latin = b"Ein Hund.\n" + "Ein Mädchen.\n".encode("latin-1")
    (tmp_path / f"train.de{ending}").write_bytes(gzip.compress(latin) if ending else latin)
    with pytest.raises(DataError, match=rf"train\.de{ending} cannot be used \(line 2 is not UTF-8 text\)"):
        read(tmp_path)


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    corpus(tmp_path)
    (tmp_path / "train.de").unlink()
    (tmp_path / "train.de").mkdir()
    with pytest.raises(DataError):
        read(tmp_path)


def test_without_a_folder_the_command_says_which_files_it_needs() -> None:
    with pytest.raises(MissingSetting) as caught:
        RunningText("{split}.txt", "a", "b", 4, "WikiText-2").texts(None, "a")
    assert str(caught.value) == (
        "--data is missing. Needed: a folder with a.txt of WikiText-2, plain or as a.txt.gz: UTF-8 text, a paragraph a line."
    )


TABLE = Table("cmn.txt", seed=3, held_out=0.2, origin="Tatoeba")


def table(folder: Path, lines: list[str]) -> Path:
    (folder / "cmn.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def test_all_pairs_of_one_source_fall_to_the_same_split_and_none_is_lost(tmp_path: Path) -> None:
    spellings = ["Sentence {} .", "sentence {}!", "“Sentence, {}?”"]
    lines = [f"{spelling.format(n)}\t{n}{i}\tCC-BY" for n in range(100) for i, spelling in enumerate(spellings)]
    texts = {split: TABLE.texts(table(tmp_path, lines), split) for split in PARTS}
    numbers = {split: {target[:-1] for _, target in texts[split]} for split in PARTS}
    assert sum(map(len, numbers.values())) == 100
    assert {split: len(pairs) for split, pairs in texts.items()} == {split: 3 * len(found) for split, found in numbers.items()}
    assert all(10 <= len(numbers[split]) <= 30 for split in ("val", "test"))


def test_the_split_of_a_sentence_does_not_hang_on_the_others(tmp_path: Path) -> None:
    lines = [f"Sentence {n}.\t{n}\tCC-BY" for n in range(100)]
    whole = TABLE.texts(table(tmp_path, lines), "test")
    half = TABLE.texts(table(tmp_path, lines[::-2]), "test")
    assert set(half) == {pair for pair in whole if int(pair[1]) % 2}
    assert replace(TABLE, seed=4).texts(table(tmp_path, lines), "test") != whole


@pytest.mark.parametrize("line", ["", "Hi.", "Hi.\t你好。", "Hi.\t \tCC-BY", "Hi.\t你好。\tCC-BY\tmore"])
def test_a_damaged_line_of_a_table_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    with pytest.raises(DataError) as caught:
        TABLE.texts(table(tmp_path, ["Run.\t跑！\tCC-BY", line]), "train")
    assert str(caught.value) == (
        f"The data at {tmp_path} cannot be used (line 2 of cmn.txt is not source TAB target TAB attribution): mend or remove "
        "that line."
    )


def test_running_text_is_read_without_its_empty_lines(tmp_path: Path) -> None:
    corpus = RunningText("{split}.txt", "a", "b", 4, "here")
    (tmp_path / "a.txt").write_text(" \n = Title = \n \n One . \n", encoding="utf-8")
    assert corpus.texts(tmp_path, "a") == [(" = Title = ",), (" One . ",)]
    (tmp_path / "b.txt").write_text(" \n\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"b\.txt holds nothing but blanks"):
        corpus.texts(tmp_path, "b")


REVERSAL = Reversal(shortest=2, longest=5, strings=2000, seed=1, held_out=0.1)


def test_digits_and_their_reversals_need_no_folder_and_no_split_knows_another() -> None:
    texts = {split: REVERSAL.texts(None, split) for split in PARTS}
    assert texts == {split: REVERSAL.texts(Path("/nowhere"), split) for split in PARTS}
    everything = [pair for split in PARTS for pair in texts[split]]
    assert Counter(everything).most_common(1)[0][1] == 1
    assert all("".join(reversed(target)) == source and source.isdecimal() for source, target in everything)
    assert {len(source) for source, _ in everything} == {2, 3, 4, 5}
    assert 0.05 < len(texts["val"]) / len(everything) < 0.15
    assert replace(REVERSAL, seed=2).texts(None, "test") != texts["test"]


REPETITION = Repetition(words="a b c d e", shortest=2, longest=4, length=9, texts_drawn=500, seed=1, held_out=0.1)


def test_a_block_of_random_words_is_repeated_to_the_length_of_a_text() -> None:
    texts = {split: REPETITION.texts(None, split) for split in PARTS}
    everything = [text.split() for split in PARTS for (text,) in texts[split]]
    assert len({" ".join(words) for words in everything}) == len(everything)
    assert all(len(words) == 9 and set(words) <= set("abcde") for words in everything)
    assert all(any(words[n:] == words[:-n] for n in (2, 3, 4)) for words in everything)
    assert replace(REPETITION, seed=2).texts(None, "test") != texts["test"]


@pytest.mark.parametrize("corpus", [TABLE, REVERSAL, REPETITION], ids=["table", "reversal", "repetition"])
def test_a_split_that_there_is_not_is_refused(corpus: Table | Reversal | Repetition) -> None:
    with pytest.raises(BadSetting, match=r"split: “dev” is not accepted. Allowed: train, val, test"):
        corpus.texts(None, "dev")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"kind": "video"}, "d.kind: “video” is not accepted. Allowed: parallel, table, text, reversal, repetition"),
        ({"source": "x"}, "d.target: “None” is not accepted. Allowed: a string"),
        ({"kind": "table", "files": "x"}, "d has no field “files”. Allowed: file, seed, held_out, origin"),
        (
            {"kind": "reversal", "shortest": 3, "longest": 2, "strings": 10, "seed": 0, "held_out": 0.1},
            "shortest: “3” is not accepted. Allowed: at most 2, the longest",
        ),
        (
            {
                "kind": "repetition",
                "words": "a b",
                "shortest": 3,
                "longest": 2,
                "length": 9,
                "texts_drawn": 10,
                "seed": 0,
                "held_out": 0.1,
            },
            "shortest: “3” is not accepted. Allowed: at most 2, the longest",
        ),
        (
            {
                "kind": "repetition",
                "words": "a",
                "shortest": 1,
                "longest": 2,
                "length": 9,
                "texts_drawn": 10,
                "seed": 0,
                "held_out": 0.1,
            },
            "words: “a” is not accepted. Allowed: at least two words",
        ),
    ],
)
def test_a_corpus_that_does_not_fit_is_refused_in_words(data: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadSetting) as caught:
        from_json(data, "d")
    assert str(caught.value).startswith(sentence)


def test_a_checkpoint_of_before_names_no_kind() -> None:
    assert from_json({"source": "{split}.de", "target": "{split}.en"}, "d") == Parallel("{split}.de", "{split}.en")
