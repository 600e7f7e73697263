"""Answers beside a raw file are those of this file alone, and a folder with one raw file is that file."""

import json
from pathlib import Path

import pytest

from model.checkpoints import loader
from model.checkpoints.layouts.given_answers import answers_of, raw_file, weight_files
from model.errors import DamagedFile, MissingFile, OpenQuestions, SeveralFiles
from tests.networks import save_checkpoint
from tests.reference import CPU, GOLDEN

WEIGHTS = (GOLDEN / "001_tiny_a.pt").read_bytes()


def put(path: Path, **answers: object) -> Path:
    """A raw file, and answers beside it."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(WEIGHTS)
    if answers:
        path.with_name(f"{path.stem}.spec.json").write_text(json.dumps(answers), encoding="utf-8")
    return path


def test_each_of_two_files_in_a_folder_has_its_own_answers(tmp_path: Path) -> None:
    one, two = put(tmp_path / "one.pt", n_heads=2), put(tmp_path / "two.pt", n_heads=1)
    heads = [loader.load(path, {}, CPU).info.spec.writer.attention.heads for path in (one, two)]
    assert heads == [2, 1]


def test_a_spec_json_is_not_taken_as_the_answers_of_all_files_of_a_folder(tmp_path: Path) -> None:
    one = put(tmp_path / "one.pt")
    (tmp_path / "spec.json").write_text('{"n_heads": 2}', encoding="utf-8")
    assert answers_of(one) == {"n_heads": "2"}
    two = put(tmp_path / "two.pt")
    assert answers_of(one) == answers_of(two) == {}
    with pytest.raises(OpenQuestions, match=r"a file next to it with the same name and the ending \.spec\.json"):
        loader.load(two, {}, CPU)


def test_a_folder_with_one_raw_file_and_its_answers_opens(tmp_path: Path) -> None:
    put(tmp_path / "mine" / "weights.pt")
    assert loader.inspect(tmp_path / "mine", {"n_heads": "1"}).layout == "torch-lm"
    (tmp_path / "mine" / "spec.json").write_text('{"n_heads": 2}', encoding="utf-8")
    assert loader.load(tmp_path / "mine", {}, CPU).info.spec.writer.attention.heads == 2
    assert loader.load(tmp_path / "mine", {"n_heads": "1"}, CPU).info.spec.writer.attention.heads == 1


def test_a_folder_with_several_raw_files_names_them(tmp_path: Path) -> None:
    put(tmp_path / "b.pt"), put(tmp_path / "a.pt")
    assert [path.name for path in weight_files(tmp_path)] == ["a.pt", "b.pt"]
    with pytest.raises(SeveralFiles, match=r"several weight files \(a\.pt, b\.pt\)\. Open one of them instead of the folder"):
        loader.load(tmp_path, {}, CPU)


@pytest.mark.parametrize("lost", ["model.safetensors", "spec.json", "tokenizer.json"])
def test_a_damaged_folder_of_our_own_is_never_read_as_raw_weights(tmp_path: Path, lost: str) -> None:
    save_checkpoint(tmp_path / "ours")
    (tmp_path / "ours" / lost).unlink()
    assert raw_file(tmp_path / "ours") is None
    with pytest.raises(MissingFile, match=lost):
        loader.load(tmp_path / "ours", {}, CPU)


def test_a_spec_json_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    put(tmp_path / "mine" / "weights.pt")
    (tmp_path / "mine" / "spec.json").write_text("{", encoding="utf-8")
    with pytest.raises(DamagedFile, match=r"spec\.json"):
        loader.load(tmp_path / "mine" / "weights.pt", {}, CPU)
    (tmp_path / "mine" / "spec.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(DamagedFile, match="no JSON object of setting names"):
        loader.load(tmp_path / "mine" / "weights.pt", {}, CPU)
