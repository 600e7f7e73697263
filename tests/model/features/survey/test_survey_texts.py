"""Texts of a survey: what a file may hold, and each way in which it may not."""

from dataclasses import replace
from pathlib import Path

import pytest

from model.errors import BadTexts, CannotSurvey
from model.features.survey.questions import Text
from model.features.survey.texts import FOLDER, OF_MODELS, bundled, read, read_file, repeated_for
from model.features.survey.trees import Word, parse, parts_of
from model.trace.types import Tokens

CONLLU = (
    "# text = Dogs bark.\n1\tDogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_\n1-2\tDogs\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "2\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_\n\n"
)


@pytest.mark.parametrize(
    ("name", "content", "items", "empty"),
    [
        ("a.txt", "ein hund\n\n  \nzwei\r\n", (Text("ein hund"), Text("zwei")), 2),
        ("a.tsv", "ein hund\ta dog\nzwei\ttwo\n", (Text("ein hund", "a dog"), Text("zwei", "two")), 0),
        ("a.tsv", "ein hund\t\nzwei\ttwo", (Text("ein hund"), Text("zwei", "two")), 0),
        ("a.tsv", "ein hund\ta dog\t0-0 1p1\n", (Text("ein hund", "a dog", "0-0 1p1"),), 0),
        ("a.csv", "links,target,source\n0-0,a,ein\n", (Text("ein", "a", "0-0"),), 0),
        ("a.csv", 'target,source\n"a, dog",ein hund\n', (Text("ein hund", "a, dog"),), 0),
        ("a.csv", "source\nein hund\n,\n\n", (Text("ein hund"),), 2),
        ("a.conllu", CONLLU + CONLLU, (Text("Dogs bark", tree="NOUN:2:nsubj VERB:0:root"),) * 2, 0),
    ],
)
def test_texts_in_a_file(name: str, content: str, items: tuple[Text, ...], empty: int) -> None:
    found = read(content, name)
    assert (found.items, found.empty, found.name) == (items, empty, name)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", "\n \n", "it holds no text"),
        ("a.tsv", "a\tb\n\nc\n", "line 3 has 1 column, not 2"),
        ("a.tsv", "a\tb\t0-0\td\n", "line 1 has 4 columns, not 3"),
        ("a.tsv", "a\tb\t0-0\na\tb\t0-1\n", "line 2: “0-1” is not a link between two words"),
        ("a.csv", "source,target,links\na,b,c\n", "line 2: “c” is not a link"),
        ("a.csv", "source,target\na,b\n\nc\n", "line 4 has 1 column, not 2"),
        ("a.csv", "source,target\na,b,c\n", "line 2 has 3 columns, not 2"),
        ("a.csv", "text\nhallo\n", "its first line has no column “source”"),
        ("a.csv", 'source\n"hallo', "is not a line of a CSV table"),
        ("a.conllu", CONLLU + "1\tcat\n\n", "line 6 has 2 columns, not 10"),
        ("a.conllu", CONLLU.replace("\t2\tnsubj", "\ttwo\tnsubj"), "line 2: “two” is not the number of a word"),
        ("a.conllu", CONLLU.replace("\t2\tnsubj", "\t3\tnsubj"), "before line 5 has 2 words, and one depends on word 3"),
        ("a.conllu", CONLLU.replace("2\tbark", "3\tbark"), "line 4: the words of a sentence are not counted from 1: 3"),
    ],
)
def test_a_broken_file_is_refused_and_its_line_is_named(name: str, content: str, sentence: str) -> None:
    with pytest.raises(BadTexts, match=sentence):
        read(content, name)


def test_another_encoding_a_missing_file_and_too_many_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "latin.txt").write_bytes("größer".encode("latin-1"))
    with pytest.raises(BadTexts, match="line 1 is not UTF-8"):
        read_file(tmp_path / "latin.txt")
    (tmp_path / "mixed.txt").write_bytes("größer\n\n".encode() + "größer".encode("latin-1"))
    with pytest.raises(BadTexts, match=r"mixed\.txt cannot be read: line 3 is not UTF-8"):
        read_file(tmp_path / "mixed.txt")
    with pytest.raises(BadTexts, match="No such file"):
        read_file(tmp_path / "none.txt")
    with pytest.raises(BadTexts, match="more than 100,000 texts"):
        read("a\n" * 100_001, "a.txt")
    assert len(read("a\n" * 100_000, "a.txt").items) == 100_000
    monkeypatch.setattr("model.features.survey.texts.MOST_BYTES", 2**20)
    (tmp_path / "large.txt").write_bytes(b"a" * (2**20 + 1))
    with pytest.raises(BadTexts, match="larger than 1 MB"):
        read_file(tmp_path / "large.txt")


def test_each_bundled_model_has_texts_whose_license_is_told() -> None:
    told = (FOLDER / "LICENSES.md").read_text(encoding="utf-8")
    for model, file in OF_MODELS.items():
        assert len(bundled(model).items) >= 700
        assert file in told
    assert bundled("multi30k-de-en-film@12").items[0].target
    assert bundled("somebody's").items[0].target is None


def test_random_texts_repeat_once_and_avoid_what_is_special() -> None:
    decoder = {"vocab": 30, "max_positions": 16}
    spec: dict[str, object] = {"encoder": decoder | {"max_positions": 100}, "decoder": decoder, "pad_id": 0, "suppressed": [1, 2]}
    texts = repeated_for(20, spec)
    for text in texts.items:
        assert text.target is not None
        assert (len(text.source), len(text.target)) == (50, 16)
        for ids, half in ((text.source, 25), (text.target, 8)):
            assert ids[:half] == ids[half:]
            assert not {0, 1, 2} & set(ids)
    assert len(set(texts.items)) == 20
    assert texts.items == repeated_for(20, spec).items
    spec = {"encoder": None, "decoder": {"vocab": 9, "max_positions": 100}, "pad_id": 1, "suppressed": [4]}
    assert {id_ for text in repeated_for(9, spec).items for id_ in text.source} == {0, 2, 3, 5, 6, 7, 8}
    with pytest.raises(CannotSurvey, match="reads no tokens"):
        repeated_for(9, {"encoder": {"vocab": 0}})


def test_a_parse_without_numbers_and_one_of_words_with_spaces() -> None:
    untold = (
        CONLLU.replace("\tNOUN\t", "\t_\t")
        .replace("\tVERB\t", "\t_\t")
        .replace("\t2\tnsubj", "\t_\t_")
        .replace("\t0\troot", "\t_\t_")
    )
    assert read(untold, "a.conllu").items == (Text("Dogs bark"),)
    assert read(CONLLU.replace("\tDogs\t", "\tBig dogs\t"), "a.conllu").items == (Text("Big dogs bark"),)


def test_tokens_get_the_parts_of_speech_of_their_words() -> None:
    text = read(CONLLU, "a.conllu").items[0]
    tokens = Tokens("source", (0, 1, 2, 3), ("<sos>", "dog", "##s", "bark"), (True, False, False, False), (False,) * 4)
    assert parts_of(tokens, "Dogs bark", text.tree) == ("", "NOUN", "NOUN", "VERB")
    assert parts_of(replace(tokens, name="target"), "Dogs bark", text.tree) == ()
    assert parts_of(replace(tokens, texts=("<sos>", "cat", "##s", "bark")), "Dogs bark", text.tree) == ()
    assert parts_of(tokens, "Dogs bark", "") == ()
    assert parse(text.tree) == (Word("NOUN", 1, "nsubj"), Word("VERB", -1, "root"))
