"""No English is left on a Chinese page but names, tokens and code; and no page is wider than a phone."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ROOT, Serve
from tests.browser.visits import overflow, rest

pytestmark = pytest.mark.browser

PAGES = (
    "step?clock=computation&stage=decoder.0.2.cross/weights&head=4&query=2&key=1",
    "compare?against=decode%3Dbeam",
)

LEFT_OUT = (
    "script, style, bdi, code, pre, svg, canvas, .katex, .word, "
    "[data-testid=stIconMaterial], [data-testid=stExpanderIcon], [role=img], [translate=no]"
)
"""Code, formulas, icons, which have English names, and tokens, which stand in `bdi`."""

WORDS = """(leftOut) => {
  const found = [];
  const add = (text) => { if (/[A-Za-z]{3,}/.test(text)) found.push(text.trim()); };
  const walk = (root) => root.childNodes.forEach((node) => {
    if (node.nodeType === Node.TEXT_NODE) add(node.data);
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches(leftOut) || !node.checkVisibility()) return;
    for (const name of ["alt", "aria-label", "placeholder", "title"]) add(node.getAttribute(name) ?? "");
    if (node.shadowRoot) walk(node.shadowRoot);
    walk(node);
  });
  walk(document.body);
  return found;
}"""
"""The texts of a page, and what its controls are called."""

QUOTED = re.compile(r"“[^”]*”|\S*[<>/\\_.~#:*+=]\S*|\([^)]*\)")
"""Tokens in sentences, and names of files, of values and of commands."""

NAMES = set(
    "Adam BERT CPU CSV CUDA Ctrl Deutsch English Enter GPU HTML Headlight Hugging Face Jensen JSON Kaiming LayerNorm Levenshtein "
    "Logit Multi30k PDF PNG PyTorch Rollout SVG SentencePiece Shannon Shift Streamlit Tatoeba Top TorchScript Transformer Vaswani "
    "WikiText bit exp head_dim icon lens logit nat normal post-norm pre-norm query rollout safetensors softmax teacher forcing "
    "float32 float64 softmax_uniform torch transformers width zip".split()
)
"""Names of people, programs, formats, models and units, which Chinese texts of the field do not translate."""


def english(page: Page) -> list[str]:
    """The English words of a page; what it says of its tokens does not count."""
    tokens = {text.strip() for text in page.locator("bdi").all_inner_texts()}
    said = {QUOTED.sub(" ", text) for text in page.evaluate(WORDS, LEFT_OUT)}
    words = {(word, text) for text in said for word in re.findall(r"[A-Za-z][A-Za-z0-9_-]{2,}", text)}
    known = {name.lower() for name in NAMES | tokens}
    return sorted(f"{word}: {text}" for word, text in words if word.lower() not in known)


@pytest.mark.parametrize("path", PAGES)
def test_no_english_is_left_on_a_chinese_page(watched: Page, serve: Serve, path: str) -> None:
    watched.set_viewport_size({"width": 390, "height": 844})
    watched.goto(f"{serve(ROOT / 'app.py')}/{path}&lang=zh-CN", wait_until="domcontentloaded")
    expect(watched.locator("html")).to_have_attribute("lang", "zh-CN")
    watched.locator(".stMainBlockContainer [data-testid=stElementContainer]").nth(3).wait_for()
    rest(watched)
    assert english(watched) == []
    assert overflow(watched) <= 0
