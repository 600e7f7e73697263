"""Checkpoint folders that are missing, damaged or empty: each is named in a sentence, and the app starts with the others."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from model.inference import inputs
from model.trace.lazy_attention import LazyAttention
from tests.app.visiting import PAGES, Visitor
from tests.reference import GOLDEN, SETTINGS

NONE = "No usable model found. Put a checkpoint folder into checkpoints/ and reload."


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def with_half_of_the_weights(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])


def with_no_json(folder: Path) -> None:
    (folder / "spec.json").write_bytes(b"\xff\x00{")


def with_another_vocabulary(folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"w9"', '"w9","w10"'), encoding="utf-8")


def with_nothing_in_it(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


DAMAGES = [without_weights, with_half_of_the_weights, with_no_json, with_another_vocabulary, with_nothing_in_it]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_folder_puts_no_warning_on_pages_that_show_another_model(
    stocked: Path, tiny: Path, damage: Callable[[Path], None]
) -> None:
    shutil.copytree(tiny, stocked / "broken")
    damage(stocked / "broken")
    visitor = Visitor()
    assert visitor.problems == []
    assert visitor.drawn
    assert visitor.app.selectbox(key="widget:model").options == ["Tiny", "Open a model…"]
    assert "Cannot be used; the Checkpoint page says why: broken." in [
        each.value.replace("\\", "") for each in visitor.app.sidebar.caption
    ]
    visitor = Visitor("checkpoint", model="broken")
    assert len(visitor.problems) == 1
    assert "broken" in visitor.problems[0]
    assert str(stocked) not in visitor.problems[0]
    assert visitor.problems[0].endswith(".")


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_folder_alone_is_named_and_the_page_says_what_to_do(stocked: Path, damage: Callable[[Path], None]) -> None:
    damage(stocked / "tiny")
    visitor = Visitor()
    assert len(visitor.problems) == 2
    assert "tiny" in visitor.problems[0]
    assert visitor.problems[1] == NONE
    assert not visitor.drawn


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_the_page_checkpoint_names_what_is_damaged_and_not_where_it_is(stocked: Path, damage: Callable[[Path], None]) -> None:
    damage(stocked / "tiny")
    visitor = Visitor("checkpoint", model="tiny")
    assert len(visitor.problems) == 1
    assert "tiny" in visitor.problems[0]
    assert str(stocked) not in visitor.problems[0]


def test_a_link_to_a_damaged_model_shows_another(stocked: Path, tiny: Path) -> None:
    shutil.copytree(tiny, stocked / "broken")
    without_weights(stocked / "broken")
    visitor = Visitor(model="broken")
    assert visitor.problems[1:] == ["There is no usable model “broken” here. Showing “tiny” instead."]
    assert visitor.drawn


@pytest.mark.parametrize("name", PAGES)
def test_without_any_checkpoint_every_page_says_so(shelf: Path, name: str) -> None:
    assert Visitor(name).problems == [NONE]


def test_without_the_folder_of_checkpoints_the_page_says_so_and_finds_what_comes(shelf: Path, tiny: Path) -> None:
    shelf.rmdir()
    visitor = Visitor()
    assert visitor.problems == [NONE]
    shutil.copytree(tiny, shelf / "tiny")
    visitor.go("explore")
    assert visitor.problems == []
    assert visitor.drawn


def save_not_finite(folder: Path, golden: str) -> None:
    """Writes a golden file whose weights are NaN."""
    tensors = torch.load(GOLDEN / golden, weights_only=True)
    torch.save({name: tensor.clone().fill_(torch.nan) for name, tensor in tensors.items()}, folder / golden)


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
def test_weights_that_are_not_finite_are_one_sentence_however_a_target_is_written(shelf: Path, method: str) -> None:
    save_not_finite(shelf, "001_tiny_a.pt")
    visitor = Visitor(model="001_tiny_a.pt", set="n_heads=2", text="2 5", decode=method, max="3")
    assert len(visitor.problems) == 1
    assert "Weights of the model are not finite" in visitor.problems[0]
    assert not visitor.app.error, "no incident"


def test_whether_a_long_run_is_finite_is_seen_without_writing_its_weights_out(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def written_out(*_whatever: object, **_more: object) -> None:
        raise AssertionError("all weights were written out")

    save_not_finite(shelf, "002_tiny_encoder.pt")
    monkeypatch.setattr(inputs, "LONG", 0)
    monkeypatch.setattr(LazyAttention, "__array__", written_out)
    monkeypatch.setattr(LazyAttention, "__getitem__", written_out)
    settings = " ".join(f"{name}={value}" for name, value in SETTINGS["002_tiny_encoder"].items())
    visitor = Visitor(model="002_tiny_encoder.pt", set=settings)
    assert len(visitor.problems) == 1
    assert "This run produced NaN or infinite values" in visitor.problems[0]
