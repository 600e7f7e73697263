"""The number type of a run: chosen in the sidebar, kept in the link, and its difference from float32 said on every page."""

import re
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from tests.app.visiting import PAGES, Visitor

SAID = (
    r"(bfloat16|float16) · weights differ from float32 by at most \d·10⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+, probabilities by at most \d·10⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+"
)


def captions(visitor: Visitor) -> str:
    return " ".join(caption.value for caption in visitor.app.caption)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_how_far_a_lower_type_is_from_float32(stocked: Path, page: str) -> None:
    visitor = Visitor(page, text="w4 w5", precision="bfloat16")
    assert visitor.problems == []
    found = re.search(SAID, captions(visitor))
    assert found
    assert found[1] == "bfloat16"


def test_a_type_is_chosen_kept_in_the_link_and_taken_back(stocked: Path) -> None:
    visitor = Visitor(text="w4 w5")
    assert "float32" not in captions(visitor)
    visitor.choose("precision", "float16")
    assert visitor.url["precision"] == "float16"
    assert re.search(SAID, captions(visitor))
    visitor.choose("precision", "")
    assert "precision" not in visitor.url
    assert "float32" not in captions(visitor)


def test_the_arithmetic_of_a_cell_agrees_with_what_ran(stocked: Path) -> None:
    visitor = Visitor(
        "step", text="w4 w5", precision="bfloat16", clock="computation", stage="decoder.0.1.cross/weights", query="1", key="1"
    )
    assert visitor.problems == []
    assert "recomputed in float64, largest difference" in " ".join(element.value for element in visitor.app.markdown)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_padding_is_not_blamed_for_the_rounding_of_a_type(stocked: Path, precision: str) -> None:
    visitor = Visitor("masks", text="w4 w5", precision=precision, pad="9", max="3")
    assert visitor.problems == []
    assert re.search("Output: (identical|the same words)", captions(visitor))


def test_rows_of_a_rollout_add_up_to_one_but_for_the_rounding_of_a_type(stocked: Path) -> None:
    asked = {"text": "w4 w5 w6", "reading": "rollout", "precision": "bfloat16"}
    assert "the rest on" not in captions(Visitor(site="encoder.0.1.self", **asked))
    assert "the rest on" in captions(Visitor(site="decoder.0.1.cross", **asked))


def test_two_types_are_compared(stocked: Path) -> None:
    visitor = Visitor("compare", text="w4 w5", precision="float16", against="precision=bfloat16")
    assert visitor.problems == []
    said = " ".join(element.value for element in visitor.app.markdown) + captions(visitor)
    assert re.search("precision.*float16.*bfloat16", said)
    assert Visitor("compare", text="w4 w5", precision="float16", against="precision=").problems == []


def test_a_type_that_is_not_computed_in_is_said_and_the_default_shown(stocked: Path) -> None:
    visitor = Visitor(text="w4 w5", precision="int4")
    assert visitor.problems == ["The link sets precision to “int4”. Allowed: float32, bfloat16, float16. The default is used."]
    assert visitor.drawn


def test_numbers_that_float16_cannot_hold_are_said_to_be_its_fault(stocked: Path) -> None:
    path = stocked / "tiny" / "model.safetensors"
    weights = load_file(path)
    save_file(weights | {"encoder.embedding.token.weight": 2000 * weights["encoder.embedding.token.weight"].float()}, path)
    visitor = Visitor(text="w4 w5", precision="float16")
    assert visitor.problems == ["The numbers of this run do not fit into float16. Choose float32 as the precision."]
    visitor.choose("precision", "float32")
    assert visitor.problems == []
    assert visitor.drawn
