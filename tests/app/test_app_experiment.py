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
            "Experiment: Cross-attention, layer 2, head 2; Encoder self-attention, layer 1, head 1 silenced"
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


@pytest.mark.parametrize("silence", ["decoder.0.9.cross:1"])
def test_a_head_that_does_not_exist_is_no_experiment(stocked: Path, silence: str) -> None:
    visitor = Visitor(text="w4 w5", silence=silence)
    assert banner(visitor) == []
    assert len(visitor.problems) == 1
