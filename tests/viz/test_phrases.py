"""Phrases of `model` in the language of the page."""

import gettext
import re
from pathlib import Path

import pytest

from model.checkpoints.layouts.loading import inspect
from model.errors import BadSetting, CannotMeasure, HeadlightError, NearLayout, TooManyTokens, UnknownModel, phrase
from model.huggingface.finding import OUTSIDE
from tests.reference import GOLDEN
from viz.i18n import translate
from viz.views.checkpoint import diagnosis


def test_a_reason_inside_an_error_is_said_in_the_language_of_the_page() -> None:
    """The sentence was German, its reason English: "höchstens 100 (it has no more positions)"."""
    error = TooManyTokens(found=2400, allowed=2000, reason=phrase("the model has no more positions"), strip="source")
    assert str(error) == "The source text has 2,400 tokens, but the limit is 2,000: the model has no more positions. Shorten it."
    with translate.speaking("zh-CN"):
        assert translate.error_message(error) == "原文有 2,400 个词元，但上限是 2,000：模型没有更多的位置。请缩短。"
    with translate.speaking("de"):
        assert translate.error_message(error).startswith("Die Quelle hat 2.400 Tokens; möglich sind höchstens 2.000: ")


def test_several_reasons_stand_together() -> None:
    reasons = (phrase("it lacks {pattern}", pattern="a.weight"), phrase("{names} have no place in it", names="b, c"), "typed")
    error = NearLayout(path="a.pt", nearest="gpt", reason=reasons)
    assert "it lacks a.weight; b, c have no place in it; typed" in str(error)
    with translate.speaking("zh-CN"):
        assert "缺少 a.weight；其中没有 b, c 的位置；typed" in translate.error_message(error)


def test_what_people_typed_stays_as_it_is() -> None:
    with translate.speaking("de"):
        assert "„words“" in translate.error_message(UnknownModel(asked="words", there="a, b"))
        assert "„words“" in translate.error_message(BadSetting(name="n", found="words", allowed="source"))
        assert translate.said("source") == "source"
        assert translate.said(phrase("it lacks {pattern}", pattern="words")) == "words fehlt"


def test_a_text_from_elsewhere_is_searched_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """8,200 characters took 32 s: pages matched finished English against 239 patterns. Only templates are looked up, once each."""
    hostile = "has " + "a, which has " * 600 + "no place in it; "
    looked_up: list[str] = []

    class Counting(gettext.NullTranslations):
        def gettext(self, message: str) -> str:
            looked_up.append(message)
            return message

    monkeypatch.setattr(translate, "catalogue", lambda _language: Counting())
    with translate.speaking("de"):
        said = translate.said(hostile)
        sentence = translate.error_message(CannotMeasure(reason=hostile))
        note = translate.said(phrase("it lacks {pattern}", pattern=hostile))
    assert said == hostile
    assert note == f"it lacks {hostile}"
    assert " ".join(hostile.split()) in sentence
    assert looked_up == [CannotMeasure.template, "it lacks {pattern}"]


def test_a_route_speaks_the_first_language_that_its_browser_asks_for() -> None:
    assert translate.of_request("fr-FR,fr;q=0.9,zh-TW;q=0.8,de;q=0.7") == "zh-TW"
    assert translate.of_request("de-AT") == "de"
    assert translate.of_request("fr,*;q=0.5") == translate.of_request("") == "en"


SAID_IN_WORDS = re.compile(r"(?<![\w./_=\[(])[a-z]{3,} [a-z]{3,}(?![\w./_=\])])")
"""Two English words after each other; names and code have dots, underscores or brackets."""


def said_of(file: Path) -> list[str]:
    """All sentences of an inspection in the current language, or why there is none."""
    try:
        found = inspect(file, {})
    except HeadlightError as error:
        return [translate.error_message(error)]
    asked = [part for each in found.ask for part in (each.consequence, each.allowed, each.origin)]
    said = [diagnosis.what(found), *map(translate.said, (*found.in_favour, *found.against, *found.notes, *asked))]
    return said + (diagnosis.evidence(found.freshness) if found.freshness else [])


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.pt")), ids=lambda path: path.stem)
def test_an_inspection_says_nothing_in_english_on_a_chinese_page(file: Path) -> None:
    """Evidence, notes and what depends on an answer were English on every page."""
    assert any(map(SAID_IN_WORDS.search, said_of(file)))
    with translate.speaking("zh-CN"):
        assert list(filter(SAID_IN_WORDS.search, said_of(file))) == []


def test_why_something_was_not_recorded_is_said_in_the_language_of_the_page() -> None:
    with translate.speaking("zh-CN"):
        assert translate.said(OUTSIDE).startswith("它的注意力不经过该库的注意力接口")
        whole = phrase(
            "Its attention was recognized by what was computed, and each attention layer is named by its module. Nothing in it can "
            "be changed: {reason}.",
            reason=OUTSIDE,
        )
        assert translate.said(whole).endswith("而干预正是在那里进行的。")
