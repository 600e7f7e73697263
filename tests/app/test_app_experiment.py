"""A run that was altered says so on every page, until it is undone."""

from pathlib import Path

import pytest

from tests.app.visiting import PAGES, Visitor

SILENCED = "decoder.0.1.cross:1 encoder.0.0.self:0"


def banner(visitor: Visitor) -> list[str]:
    return [found.value.replace("\\", "") for found in visitor.app.markdown if "Experiment" in found.value]


def test_a_link_with_silenced_heads_says_so_on_every_page(stocked: Path) -> None:
    visitor = Visitor(text="w4 w5", silence=SILENCED)
    for page in PAGES:
        visitor.go(page)
        assert [text.split(" ", 1)[1] for text in banner(visitor)] == [
            "Experiment: silenced: Cross-attention, layer 2, head 2; Encoder self-attention, layer 1, head 1"
        ], page
    visitor.go("explore")
    assert visitor.scene("atlas")["silenced"] == ["decoder.0.1.cross/1", "encoder.0.0.self/0"]


def test_undo_runs_the_model_unaltered(stocked: Path) -> None:
    plain = Visitor(text="w4 w5")
    assert banner(plain) == []
    visitor = Visitor(text="w4 w5", silence=SILENCED)
    visitor.press("undo")
    assert banner(visitor) == []
    assert visitor.url == plain.url
    assert visitor.scene("strips")["strips"] == plain.scene("strips")["strips"]


def test_a_run_that_was_continued_from_a_chosen_token_says_so_marks_it_and_is_undone(stocked: Path) -> None:
    visitor = Visitor(text="w4 w5")
    plain, strip = visitor.url, visitor.scene("strips")["strips"][1]
    assert not any(token.get("byHand") for token in strip["tokens"])
    written = visitor.scene("strips")["continues"]
    other = next(each for each in strip["tokens"][2]["candidates"] if not each["chosen"])
    visitor.report("strips", begin=f"{written[0]},{other['id']}")
    said = [found.value for found in visitor.app.markdown if "Continued from" in found.value]
    assert [text.split(" ", 1)[1] for text in said] == [f"Continued from “{other['text']}”".replace("<", "\\<").replace(">", "\\>")]
    tokens = visitor.scene("strips")["strips"][1]["tokens"]
    assert [token.get("byHand") for token in tokens[:4]] == [None, True, True, False][: len(tokens)]
    assert tokens[2]["text"] == other["text"]
    assert Visitor(**visitor.url).scene("strips")["strips"] == visitor.scene("strips")["strips"], "a copied link opens it"
    visitor.press("undo-continued")
    assert visitor.url == plain
    assert visitor.scene("strips")["strips"][1] == strip


def test_a_new_sentence_is_not_continued_from_the_old_ones_tokens(stocked: Path) -> None:
    visitor = Visitor(text="w4 w5", begin="6")
    visitor.type("text", "w7")
    assert "begin" not in visitor.url


def test_a_chosen_token_that_the_vocabulary_does_not_have_is_one_sentence(stocked: Path) -> None:
    assert len(Visitor(text="w4 w5", begin="99999").problems) == 1


@pytest.mark.parametrize("silence", ["decoder.0.9.cross:1"])
def test_a_head_that_does_not_exist_is_no_experiment(stocked: Path, silence: str) -> None:
    visitor = Visitor(text="w4 w5", silence=silence)
    assert banner(visitor) == []
    assert len(visitor.problems) == 1
