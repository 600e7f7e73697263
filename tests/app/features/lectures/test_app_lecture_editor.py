"""A lecture is written in the app: views are added, steps changed and moved, and the file is saved."""

from pathlib import Path

import pytest

from tests.app.visiting import Visitor
from viz.features.lectures.script import draft


def text(visitor: Visitor) -> str:
    return str(visitor.app.session_state["lecture-draft"].text)


def test_a_page_that_no_step_can_show_is_not_offered(stocked: Path) -> None:
    visitor = Visitor("lecture")
    assert "add-to-lecture" not in [button.key for button in visitor.app.button]
    visitor.go("masks")
    assert "add-to-lecture" in [button.key for button in visitor.app.button]


def test_views_are_added_to_a_lecture_that_is_edited_and_saved(
    stocked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADLIGHT_LECTURES", str(tmp_path))
    monkeypatch.setattr("viz.features.lectures.editor.is_owner", lambda: True)
    visitor = Visitor("explore", head="1")
    visitor.press("add-to-lecture")
    visitor.go("masks")
    visitor.press("add-to-lecture")
    first = draft.parts_of(text(visitor))
    assert [step.page for step in first.lecture("x").steps] == ["explore", "masks"]
    assert first.lecture("x").steps[0].view.head == 1
    assert first.lecture("x").problems == ()
    visitor.go("lecture")
    visitor.press("lecture-earlier")
    visitor.app.text_area(key="widget:lecture-text").set_value("## Changed\n\nview: /masks\nexpects: x")
    visitor.app.run()
    assert draft.parts_of(text(visitor)).steps == ("## Changed\n\nview: /masks\nexpects: x", first.steps[0])
    assert any("not an instruction" in problem for problem in visitor.problems)
    visitor.go("explore")
    visitor.go("lecture")
    assert str(visitor.app.text_area(key="widget:lecture-text").value).startswith("## Changed")
    visitor.app.text_input(key="widget:lecture-name").set_value("mine")
    visitor.app.run()
    visitor.press("lecture-write")
    assert (tmp_path / "mine.en.md").read_text(encoding="utf-8") == text(visitor)
    visitor.press("lecture-remove")
    visitor.press("lecture-remove")
    assert draft.Draft(visitor.app.session_state["lecture-draft"].front) == visitor.app.session_state["lecture-draft"]
    visitor.app.text_input(key="widget:lecture-name").set_value("../../x")
    visitor.app.run()
    assert "lecture-write" not in [button.key for button in visitor.app.button]


def test_a_copy_of_a_bundled_lecture_can_be_edited(stocked: Path) -> None:
    visitor = Visitor("lecture")
    visitor.press("copy-masks.en")
    assert text(visitor) == (Path(__file__).parents[4] / "lectures" / "masks.en.md").read_text(encoding="utf-8")
    assert visitor.problems == []
    visitor.press("lecture-discard")
    assert "copy-masks.en" in [button.key for button in visitor.app.button]
