"""The page Lecture: which lectures there are, and where they are held and saved."""

from pathlib import Path

import pytest

from tests.app.visiting import Visitor
from viz.features.lectures.script import library

GOOD = "---\ntitle: A *good* one\nlanguage: en\nminutes: 5\nmodels: tiny\n---\n\n# First\n\n## Look\n\nview: /explore?text=w4\n"


def test_the_page_lists_lectures_and_says_what_is_wrong_with_a_broken_one(
    stocked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "BUNDLED", tmp_path / "none")
    monkeypatch.setenv(library.VARIABLE, str(tmp_path))
    (tmp_path / "good.en.md").write_text(GOOD, encoding="utf-8")
    (tmp_path / "broken.en.md").write_text("no front matter", encoding="utf-8")
    page = "http://192.0.2.7:8501/lecture"
    monkeypatch.setattr("streamlit.runtime.context._context_info_field", lambda name: page if name == "url" else None)
    app = Visitor("lecture").app
    (joined,) = [each.value for each in app.caption if "Students join" in each.value]
    assert joined.replace("\\", "").replace("\u2060", "") == "Students join at http://192.0.2.7:8501/class.", "not at “/class”"
    assert any("A \\*good\\* one" in each.value for each in app.markdown)
    links = [each.proto.url for each in app.get("link_button")]
    assert links == ["/hold/good.en", "/hold/good.en/file", "/hold/good.en/handout"]
    (warning,) = app.warning
    assert "broken" in warning.value


def test_lectures_of_the_language_of_the_page_come_first_and_then_the_english_ones(stocked: Path) -> None:
    links = [each.proto.url for each in Visitor("lecture", lang="zh-TW").app.get("link_button")]
    held = [link.removeprefix("/hold/") for link in links if link.count("/") == 2]
    languages = [name.rpartition(".")[2] for name in held]
    assert sorted(held) == sorted(library.files())
    ranks = [(language != "zh-TW", language != "en") for language in languages]
    assert ranks == sorted(ranks)
    assert ranks[0] == (False, True)
