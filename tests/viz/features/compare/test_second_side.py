"""The second side of Compare: the view of the first but for what a link says that differs."""

import pytest

from viz.features.compare.view import differing, second_side
from viz.url import links
from viz.url.view_state import ViewState

EDIT = "silence site=decoder.0.2.cross head=4"


def test_a_new_sentence_on_the_second_side_starts_without_the_chosen_tokens() -> None:
    assert second_side(ViewState(begin="5").changed(against="decode=beam")).begin == "5"
    assert second_side(ViewState(begin="5").changed(against="text=w6")).begin == ""


def test_the_second_side_of_a_comparison_is_the_first_but_for_what_differs() -> None:
    view = ViewState(model="m", settings="n_heads=8", text="ein hund & mehr", head=3, silence="encoder.0.0.self:1")
    against = differing(text="100 % = a&b", method="beam", beam_size=3)
    other = second_side(view.changed(against=against))
    assert (other.text, other.method, other.beam_size) == ("100 % = a&b", "beam", 3)
    assert other.changed(text=view.text, method="greedy", beam_size=5, against="") == view
    assert links.read({"against": against}) == (ViewState().changed(against=against), [])


@pytest.mark.parametrize("models", [("a", "b"), ("b", "a")])
def test_another_model_on_the_second_side_starts_without_what_the_first_was_told(models: tuple[str, str]) -> None:
    own, other = models
    first = ViewState(model=own, settings="n_heads=8", edits=EDIT, silence="encoder.0.0.self:1", off="0", text="x")
    second = first.changed(model=other, settings="", edits="", silence="", off="", against=f"model={other}")
    assert second_side(first.changed(against=f"model={other}")) == second
    told = first.changed(against=differing(model=other, settings="n_heads=4"))
    assert second_side(told).settings == "n_heads=4"
    assert second_side(first.changed(against=f"model={own}")) == first.changed(against=f"model={own}")


def test_what_is_off_on_one_side_counts_the_edits_of_that_side() -> None:
    view = ViewState(edits=EDIT, off="0").changed(against="beam=3")
    assert second_side(view).off == "0"
    assert second_side(view.changed(against=f"edit={EDIT}")).off == ""
