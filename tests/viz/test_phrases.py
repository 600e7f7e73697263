"""Phrases of `model` in the language of the page."""

import re
from pathlib import Path

import pytest

from model.checkpoints.layouts.loading import inspect
from model.errors import BadLecture, BadSetting, HeadlightError, TooManyTokens, UnknownModel
from model.huggingface.recorded.network import NO_ROW
from tests.reference import GOLDEN
from viz import language, phrases, texts
from viz.views import checkpoint_diagnosis


def test_a_phrase_inside_an_error_is_said_in_the_language_of_the_page() -> None:
    """The sentence was German, its reason English: "höchstens 100 (it has no more positions)"."""
    error = TooManyTokens(what="source text", found=120, allowed=100, reason="it has no more positions")
    assert "source text" in texts.sentence(error)
    with language.speaking("zh-CN"):
        assert texts.sentence(error) == "原文文本有 120 个词元，但上限是 100（它没有更多的位置）。请缩短。"
    with language.speaking("de"):
        assert "Text (Quelle): 120 Tokens" in texts.sentence(error)


def test_a_phrase_with_gaps_keeps_what_fills_them() -> None:
    with language.speaking("de"):
        assert phrases.phrase("a whole number from 0 to 7") == "eine ganze Zahl von 0 bis 7"
        assert phrases.phrase("has a.weight and b.weight, which have no place in it") == (
            "hat a.weight and b.weight, die darin keinen Platz haben"
        )


def test_what_people_typed_is_never_taken_for_a_phrase() -> None:
    with language.speaking("de"):
        assert "„no stack“" in texts.sentence(UnknownModel(asked="no stack", there="a, b"))
        assert "„kein Stack“" in texts.sentence(BadSetting(name="n", found="no stack", allowed="given"))


def test_a_name_that_is_also_a_word_of_the_pages_stays_as_it_is() -> None:
    """A lecture that was asked for as "none" was called "无", a tensor called "embedding" was called "嵌入"."""
    with language.speaking("zh-CN"):
        assert "none" in texts.sentence(BadLecture(lecture="none", line=1, reason="x"))
        assert phrases.phrase("has embedding") == "有 embedding"
        assert phrases.phrase("the encoder has 3 layers, counted from 0") == "编码器有 3 层，从 0 计数"


def test_the_more_exact_phrase_wins() -> None:
    with language.speaking("zh-CN"):
        assert phrases.phrase("has x, which has no place in it") == "有 x，而布局中没有它"


def test_a_route_speaks_the_first_language_that_its_browser_asks_for() -> None:
    assert language.of_request("fr-FR,fr;q=0.9,zh-TW;q=0.8,de;q=0.7") == "zh-TW"
    assert language.of_request("de-AT") == "de"
    assert language.of_request("fr,*;q=0.5") == language.of_request("") == "en"


SAID_IN_WORDS = re.compile(r"(?<![\w./_=\[(])[a-z]{3,} [a-z]{3,}(?![\w./_=\])])")
"""Two English words after each other; names and code have dots, underscores or brackets."""


def said_of(file: Path) -> list[str]:
    """All sentences of an inspection in the current language, or why there is none."""
    try:
        found = inspect(file, {})
    except HeadlightError as error:
        return [texts.sentence(error)]
    asked = [part for each in found.ask for part in (each.consequence, each.allowed, each.origin)]
    said = [checkpoint_diagnosis.what(found), *map(texts.said, (*found.in_favour, *found.against, *found.notes, *asked))]
    return said + (checkpoint_diagnosis.evidence(found.freshness) if found.freshness else [])


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.pt")), ids=lambda path: path.stem)
def test_an_inspection_says_nothing_in_english_on_a_chinese_page(file: Path) -> None:
    """Evidence, notes and what depends on an answer were English on every page."""
    assert any(map(SAID_IN_WORDS.search, said_of(file)))
    with language.speaking("zh-CN"):
        assert list(filter(SAID_IN_WORDS.search, said_of(file))) == []


def test_why_something_was_not_recorded_is_said_in_the_language_of_the_page() -> None:
    with language.speaking("zh-CN"):
        assert texts.said(NO_ROW).startswith("它的架构不在 Headlight 的表中")
        assert texts.said(f"A run records nothing else, and nothing can be changed in it: {NO_ROW}.").endswith("只记录算出的内容。")


def test_reasons_that_stand_together_stayed_english() -> None:
    reason = "the file lacks layers.#.q.weight, q.weight; has a.b, c.d and 14 more, which have no place in it"
    with language.speaking("zh-CN"):
        assert phrases.phrase(reason) == "文件缺少 layers.#.q.weight, q.weight；有 a.b, c.d 以及另外 14 个，而布局中没有它们"
    with language.speaking("de"):
        said = phrases.phrase(reason)
    assert not [word for word in ("lacks", "has ", "and ", "more", "place") if word in said], said
