"""No English is left on a Chinese page but names, tokens and code; and no page is wider than a phone."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ROOT, Serve
from tests.browser.visits import overflow, rest
from tests.reference import GOLDEN

pytestmark = pytest.mark.browser

PAGES = (
    "explore?open=numbers+heads+lens",
    "step",
    "step?clock=computation&stage=decoder.0.2.cross/weights&head=4&query=2&key=1",
    "masks",
    "positions",
    "compare?against=decode%3Dbeam",
    "whatif?edit=silence+site%3Ddecoder.0.2.cross+head%3D1",
    "training",
    "checkpoint",
    "lecture",
)
DRAWN = ".hl canvas, .js-plotly-plot, input[type=file], .st-key-lecture-copies"

LEFT_OUT = (
    "script, style, bdi, code, pre, svg, canvas, .katex, .word, "
    "[data-testid=stIconMaterial], [data-testid=stExpanderIcon], [role=img], [translate=no], "
    "[class*=st-key-lecture-] strong, [class*=st-key-lecture-] [data-testid=stCaptionContainer]"
)
"""Code, formulas, icons, which have English names, tokens, which stand in `bdi`, and lectures, which have their own language."""

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
    "WikiText bit exp head_dim icon lens logit nat normal post-norm pre-norm pos query rollout safetensors softmax teacher forcing "
    "float32 float64 itos stoi softmax_uniform Xavier torch transformers width zip".split()
)
"""Names of people, programs, formats, models and units, which Chinese texts of the field do not translate."""


def english(page: Page) -> list[str]:
    """The English words of a page; what it says of its tokens does not count."""
    tokens = {text.strip() for text in page.locator("bdi").all_inner_texts()}
    said = {QUOTED.sub(" ", text) for text in page.evaluate(WORDS, LEFT_OUT)}
    words = {(word, text) for text in said for word in re.findall(r"[A-Za-z][A-Za-z0-9_-]{2,}", text)}
    known = {name.lower() for name in NAMES | tokens}
    return sorted(f"{word}: {text}" for word, text in words if word.lower() not in known)


def visit(page: Page, address: str, path: str) -> None:
    """Opens a page of the app in Chinese and waits until it is drawn."""
    page.goto(f"{address}/{path}{'&' if '?' in path else '?'}lang=zh-CN", wait_until="domcontentloaded")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.locator(DRAWN).first.wait_for(state="attached")
    rest(page)


def test_no_english_is_left_on_any_chinese_page(watched: Page, serve: Serve) -> None:
    watched.set_viewport_size({"width": 390, "height": 844})
    address = serve(ROOT / "app.py")
    found: dict[str, list[str]] = {}
    wide: dict[str, int] = {}
    for path in PAGES:
        visit(watched, address, path)
        found[path], wide[path] = english(watched), overflow(watched)
    for file in (GOLDEN / "000_tiny_a.pt", ROOT / "CHANGELOG.md"):  # it asks; it is refused; the page is the one of a file
        visit(watched, address, "checkpoint")
        watched.locator("input[type=file]").first.set_input_files(file)
        watched.get_by_text(file.name).first.wait_for()
        rest(watched)
        found[file.name] = english(watched)
    assert {where: words for where, words in found.items() if words} == {}
    assert {where: by for where, by in wide.items() if by > 0} == {}
