"""Languages: each session speaks its own, and none hears another's."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.visiting import EVERY_PAGE, Visitor
from viz.i18n import translate
from viz.widgets import appearance

SHOWN = "caption markdown info warning button selectbox text_input number_input slider expander toggle".split()


class Marked:
    """A catalogue that only marks what it translates: "⟦de:Explore⟧"."""

    def __init__(self, spoken: str) -> None:
        self.spoken = spoken

    def gettext(self, message: str) -> str:
        return message if self.spoken == "en" else f"⟦{self.spoken}:{message}⟧"

    def ngettext(self, one: str, many: str, count: int) -> str:
        return self.gettext(one if count == 1 else many)


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(translate, "catalogue", Marked)
    appearance._words.cache_clear()  # of the true languages
    yield
    appearance._words.cache_clear()


def said(visitor: Visitor) -> str:
    """Everything that a page was told, drawings included."""
    elements = [element for kind in SHOWN for element in visitor.app.get(kind)]
    texts = [str(getattr(element, name, "")) for element in elements for name in ("label", "value", "help", "options")]
    drawings = [d.proto.bytes + d.proto.json.encode() for d in visitor.app.get("bidi_component")]
    charts = [str(chart.proto.spec) for chart in visitor.app.get("plotly_chart")]
    return "\n".join([*texts, *(each.decode("utf-8", "ignore") for each in drawings), *charts])


@pytest.mark.parametrize("where", EVERY_PAGE)
def test_two_sessions_of_one_process_never_hear_each_others_language(stocked: Path, marked: None, where: str) -> None:
    for spoken, other in (("de", "zh-CN"), ("zh-CN", "de"), ("de", "zh-CN")):  # the second and third find what was cached
        with translate.speaking(spoken):  # AppTest calls format functions outside of the session
            text = said(Visitor(where, lang=spoken))
        assert f"⟦{spoken}:" in text
        assert f"⟦{other}:" not in text


def test_a_choice_of_language_keeps_the_page_and_stands_in_the_link(stocked: Path, marked: None) -> None:
    visitor = Visitor("explore", head="1", text="w4 w5")
    assert "lang" not in visitor.url
    with translate.speaking("de"):
        visitor.choose("language", "de")
    assert visitor.url == {**visitor.url, "lang": "de", "head": "1", "text": "w4 w5"}
    assert "⟦de:" in said(visitor)
    visitor.choose("language", "en")  # said in the link, too: the browser of whoever opens it may ask for another one
    assert visitor.url["lang"] == "en"
    assert "⟦" not in said(visitor)


def test_a_fragment_and_a_callback_in_a_thread_of_their_own_speak_the_sessions_language(stocked: Path, marked: None) -> None:
    visitor = Visitor("explore", lang="de")
    visitor.type("text", "w6 w7")
    assert "⟦de:" in said(visitor)


def test_the_first_visit_takes_the_browsers_language_and_another_one_the_servers(
    stocked: Path, marked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asking(locale: str, spoken: str) -> Any:
        monkeypatch.setattr("streamlit.runtime.context._context_info_field", lambda name: locale if name == "locale" else None)
        with translate.speaking(spoken):  # AppTest calls format functions outside of the session
            return said(Visitor("masks"))

    monkeypatch.setenv(translate.SERVER_SETTING, "zh_TW")
    assert "⟦zh-CN:" in asking("zh-Hans-SG", "zh-CN")
    assert "⟦zh-TW:" in asking("fr-FR", "zh-TW")
    assert "⟦" not in asking("en-GB", "en")


def test_a_link_with_a_language_that_is_not_there_says_so(stocked: Path) -> None:
    visitor = Visitor("explore", lang="fr")
    assert any("lang" in problem for problem in visitor.problems)
    assert json.dumps(visitor.url)


@pytest.mark.parametrize("where", EVERY_PAGE)
def test_fractions_of_sliders_are_written_in_the_language_of_the_page(stocked: Path, where: str) -> None:
    """The slider of Circuit said "0.05" beside "0,05" in German."""
    sliders = [slider.proto for slider in Visitor(where, lang="de").app.slider]
    assert {slider.label: slider.format for slider in sliders if slider.step % 1 and slider.format != "localized"} == {}
