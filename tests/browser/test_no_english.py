"""No English is left on a Chinese page but names, tokens and code; and no page is wider than a phone."""

import re
import time
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page
from safetensors.numpy import save_file

from tests.browser.conftest import Serve
from tests.browser.patience import expect
from tests.browser.servers import ROOT
from tests.browser.visits import overflow, rest
from tests.patience import HANG_S
from tests.reference import GOLDEN

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

FIRST = (
    "step?lang=zh-CN&open=numbers+heads+lens&clock=computation&stage=decoder.0.2.cross/weights&head=4&query=2&key=1"
    "&against=decode%3Dbeam&edit=silence+site%3Ddecoder.0.2.cross+head%3D1"
)
"""The link of the first page. What it asks of the other pages is kept until they are opened."""

PAGES = {
    "": ".st-key-all-heads",  # Explore
    "masks": ".hl[data-drawing=cells] canvas",
    "positions": ".st-key-card-curves .js-plotly-plot",
    "compare": ".st-key-heads-by-change, .st-key-equal",
    "whatif": ".effect",
    "training": ".hl[data-drawing=film] canvas",
    "checkpoint": ".st-key-card-tensors .stDataFrame",
    "lecture": ".st-key-lecture-copies",
}
"""The other pages, and what each has when it is drawn."""

TOKENS = "[class*=st-key-widget-clock] button"
"""The choice on the page Step through that shows token by token."""

SENT = {GOLDEN / "000_tiny_a.pt": ".st-key-card-questions", ROOT / "CHANGELOG.md": "[data-testid=stAlertContentWarning]"}
"""Files, and what the page Checkpoint shows of them: it asks about the first and refuses the second. A third fits no layout."""

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
    "Adam BERT BLOOM CPU CSV CUDA Ctrl DeBERTa Deutsch English Enter FlashAttention GGUF GPU HTML Headlight Hugging Face "
    "Jensen JSON Kaiming LayerNorm Jupyter Levenshtein Llama Logit MPT Multi30k PDF PNG PyTorch Rollout SVG SentencePiece "
    "Shannon Shift Streamlit Tatoeba Top TorchScript Transformer Vaswani WikiText bit exp head_dim icon lens logit nat "
    "normal post-norm pre-norm pos query rollout safetensors softmax teacher forcing float32 float64 itos out stoi "
    "softmax_uniform tutorial-parts Xavier gpt2 torch transformers width zip".split()
) | {folder.name for folder in (ROOT / "checkpoints").iterdir()}
"""Names of people, programs, formats, models and units, which Chinese texts of the field do not translate.

A busy server names the models that it still opens.
"""


def english(page: Page) -> list[str]:
    """The English words of a page; what it says of its tokens does not count."""
    tokens = {text.strip() for text in page.locator("bdi").all_inner_texts()}
    said = {QUOTED.sub(" ", text) for text in page.evaluate(WORDS, LEFT_OUT)}
    words = {(word, text) for text in said for word in re.findall(r"[A-Za-z][A-Za-z0-9_-]{2,}", text)}
    known = {name.lower() for name in NAMES | tokens}
    return sorted(f"{word}: {text}" for word, text in words if word.lower() not in known)


def drawn(page: Page, mark: str) -> tuple[list[str], int]:
    """The English words of a page and by how much it is too wide, once it is drawn.

    It looks again: Streamlit's words are replaced, and drawings get their size, a moment after they appear.
    """
    page.locator(mark).first.wait_for(state="attached")
    rest(page)
    until = time.monotonic() + HANG_S
    while (found := (english(page), overflow(page)))[0] or found[1] > 0:
        if time.monotonic() > until:
            break
        page.wait_for_timeout(100)
    return found


def test_no_english_is_left_on_any_chinese_page(watched: Page, serve: Serve, tmp_path: Path) -> None:
    strange = tmp_path / "strange.safetensors"
    save_file({f"blk_{number}.mix.kern": np.ones((4, 4), np.float32) for number in range(2)}, strange)
    watched.set_viewport_size({"width": 390, "height": 844})
    watched.goto(f"{serve(ROOT / 'app.py')}/{FIRST}", wait_until="domcontentloaded")
    expect(watched.locator("html")).to_have_attribute("lang", "zh-CN")
    found = {"step": drawn(watched, ".st-key-cell-csv")}
    watched.locator(TOKENS).first.click()
    found["token by token"] = drawn(watched, ".hl[data-drawing=player] canvas")
    for path, mark in PAGES.items():
        link = watched.locator(f"[data-testid=stSidebarNavLink][href$='/{path}']")
        link.evaluate("link => link.click()")  # the sidebar is closed
        found[path] = drawn(watched, mark)
        if path == "checkpoint":
            for file, mark_of_file in (SENT | {strange: ".st-key-card-roles"}).items():
                watched.locator("input[type=file]").first.set_input_files(file)
                found[file.name] = drawn(watched, mark_of_file)
    assert {where: words for where, (words, _wide) in found.items() if words} == {}
    assert {where: wide for where, (_words, wide) in found.items() if wide > 0} == {}
