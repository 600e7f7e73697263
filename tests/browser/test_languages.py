"""The main path in each language: a browser that asks for it, a sentence, a choice of another language that keeps the page."""

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import DRAWINGS, Serve
from tests.browser.emulation import another_language
from tests.browser.patience import expect
from tests.browser.servers import ROOT
from tests.browser.visits import PAINTED, PICTURES, chips, rest, until
from viz.i18n import translate
from viz.widgets import appearance

pytestmark = pytest.mark.browser

WORDS = {
    "de-AT": ("de", "Eingabesatz (Deutsch)", "Starten", "Self-Attention des Encoders"),
    "zh-CN": ("zh-CN", "输入句子（德语）", "运行", "编码器自注意力"),
    "zh-HK": ("zh-TW", "輸入句子（德語）", "執行", "編碼器自注意力"),
    "fr-FR": ("en", "Input sentence (German)", "Run", "Encoder self-attention"),
}
"""By what a browser asks for: the language of the page, the name of the sentence box and of its button, the title of a drawing."""


@pytest.mark.parametrize("asked", WORDS)
def test_a_browser_gets_its_language_on_the_main_path(page: Page, serve: Serve, asked: str) -> None:
    language, box, run, title = WORDS[asked]
    page.set_viewport_size({"width": 390, "height": 844})
    with another_language(page, asked):
        page.goto(f"{serve(ROOT / 'app.py')}/?model=multi30k-de-en", wait_until="domcontentloaded")
        rest(page, drawn=PICTURES)
        page.get_by_role("textbox", name=box).fill("ein hund")
        page.get_by_role("button", name=run, exact=True).click()
        expect(chips(page, "source")).to_have_text(["<sos>", "ein", "hund", "<eos>"])
        rest(page)
        expect(page.get_by_text(title).first).to_be_attached()
        assert page.evaluate("document.documentElement.lang") == language
        assert page.evaluate("document.scrollingElement.scrollWidth <= document.scrollingElement.clientWidth")


def test_keys_and_sizes_of_streamlit_are_those_of_the_language(watched: Page) -> None:
    """A German page said “Ctrl + Z”, which no German keyboard has, and “128MB pro Datei”."""
    watched.set_content(
        "<button><kbd aria-label='Shortcut Ctrl + Shift + Z'>Ctrl + Shift + Z</kbd></button>"
        "<div data-testid=stFileUploader><span>128MB per file</span><span>• TSV</span></div>"
    )
    watched.add_script_tag(content=appearance.SCRIPT)
    with translate.speaking("de"):
        watched.evaluate("(words) => speakStreamlit(words)", appearance.words())
    expect(watched.locator("kbd")).to_have_text("Strg + Umschalt + Z")
    expect(watched.locator("kbd")).to_have_attribute("aria-label", "Taste: Strg + Umschalt + Z")
    expect(watched.locator("[data-testid=stFileUploader]")).to_have_text("128\u00a0MB pro Datei• TSV")


def test_a_table_that_was_painted_before_the_language_was_known_is_painted_again(watched: Page, serve: Serve) -> None:
    """On a busy machine, Streamlit may paint a page before it starts our script: a hyphen stood where a minus sign belongs."""
    watched.add_init_script(PAINTED)
    watched.goto(f"{serve(DRAWINGS)}/?show=table")
    until(watched, lambda: "-1,234.500" in watched.evaluate("[...painted]"))
    watched.add_script_tag(content=appearance.SCRIPT)
    for language, number in {"en": "−1,234.500", "de": "−1.234,500"}.items():
        watched.evaluate("(language) => { document.documentElement.lang = language; speakStreamlit({}); }", language)
        until(watched, lambda number=number: number in watched.evaluate("[...painted]"))  # type: ignore[misc]
