"""Phrases of `model` in the language of the page."""

from model.errors import BadSetting, TooManyTokens, UnknownModel
from viz import language, phrases, texts


def test_a_phrase_inside_an_error_is_said_in_the_language_of_the_page() -> None:
    """The sentence was German, its reason English: "höchstens 100 (it has no more positions)"."""
    error = TooManyTokens(what="source text", found=120, allowed=100, reason="it has no more positions")
    assert "source text" in texts.sentence(error)
    with language.speaking("zh-CN"):
        assert texts.sentence(error) == "源文本有 120 个词元，但上限是 100（它没有更多的位置）。请缩短。"
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
        assert "'no stack'" in texts.sentence(UnknownModel(asked="no stack", there="a, b"))
        assert "'kein Stapel'" in texts.sentence(BadSetting(name="n", found="no stack", allowed="given"))


def test_the_more_exact_phrase_wins() -> None:
    with language.speaking("zh-CN"):
        assert phrases.phrase("has x, which has no place in it") == "有 x，它在其中没有位置"


def test_a_route_speaks_the_first_language_that_its_browser_asks_for() -> None:
    assert language.of_request("fr-FR,fr;q=0.9,zh-TW;q=0.8,de;q=0.7") == "zh-TW"
    assert language.of_request("de-AT") == "de"
    assert language.of_request("fr,*;q=0.5") == language.of_request("") == "en"
