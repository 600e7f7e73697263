"""The catalogues are complete: every sentence is translated, fills the same gaps, fits on its button, and is not English."""

import ast
import re
import string
import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from babel.messages import pofile

from viz.i18n import translate

ROOT = Path(__file__).parents[2]
Catalogue = dict[tuple[str, ...], tuple[str, ...]]
"""Every sentence, or its singular and its plural, with its translations."""

TRANSLATED = [spoken for spoken in translate.LANGUAGES if spoken != "en"]
BUTTONS = {"button", "download_button", "form_submit_button", "link_button", "page_link", "popover"}
WIDEST, NARROW = 1.6, 13
"""How much wider than the English words the words on a button may be; but so many letters fit on any button."""

KEPT = re.compile(
    r"\{[^}]*\}|“[^”]*”|「[^」]*」|„[^“]*“|\*\*|<[^>]*>|\S*[\\/=_.(]\S*|"
    r"Attention Is All You Need|Logit [lL]ens|logit lens|Jensen-Shannon|Hugging Face|Noto Sans|teacher forcing|lecture check|"
    r"Shapley|softmax|rollout|safetensors|transformers|TorchScript|Headlight|SentencePiece|Rollout|Xavier normal|"
    r"git lfs pull|hf auth login|attention sink|"
    r"torch.save|JSON|numpy|matplotlib|integrated gradients|Wiegreffe|Pinter|Jain|Wallace|Michel|Levy|Neubig|Vaswani|et al"
)
"""Names, code, gaps and quotations, which no translation changes."""


def width(text: str) -> int:
    """The width of a text in Latin letters."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def gaps(text: str) -> set[tuple[str, str | None, str | None]]:
    """The gaps of a sentence with their formats."""
    return {(name, form, change) for _text, name, form, change in string.Formatter().parse(text) if name}


@cache
def on_buttons() -> tuple[str, ...]:
    """The sentences that are the first argument of a button."""
    labels = list[str]()
    for path in sorted((ROOT / "viz").rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") in BUTTONS and call.args:
                label = call.args[0]
                if isinstance(label, ast.Call) and getattr(label.func, "id", "") == "_" and isinstance(label.args[0], ast.Constant):
                    labels.append(str(label.args[0].value))
    return tuple(labels)


def messages(path: Path) -> Catalogue:
    """Every sentence, or its singular and its plural, with its translations."""
    found = {}
    with path.open("rb") as file:
        for message in pofile.read_po(file):
            if message.id:
                ids, strings = (each if isinstance(each, list | tuple) else (each,) for each in (message.id, message.string))
                found[tuple(map(str, ids))] = tuple(map(str, strings))
    return found


@cache
def catalogue(spoken: str) -> Catalogue:
    return messages(ROOT / "viz" / "i18n" / "locale" / spoken.replace("-", "_") / "LC_MESSAGES" / "headlight.po")


@pytest.mark.parametrize("spoken", TRANSLATED)
def test_every_sentence_is_translated_and_nothing_else(spoken: str) -> None:
    asked, there = messages(ROOT / "viz" / "i18n" / "locale" / "headlight.pot"), catalogue(spoken)
    hint = "CONTRIBUTING.md, a translation"
    assert [one for one in asked if not all(there.get(one, ("",)))] == [], hint
    assert there.keys() - asked.keys() == set(), f"no longer on screen: {hint}"


@pytest.mark.parametrize("spoken", TRANSLATED)
def test_a_translation_has_the_gaps_of_its_original(spoken: str) -> None:
    for one, translations in catalogue(spoken).items():
        for place, text in enumerate(translations):
            wanted = gaps(one[-1])
            plural = len(one) > 1 and place == 0 and len(translations) > 1
            assert gaps(text) <= wanted if plural else gaps(text) == wanted, (one, text)


@pytest.mark.parametrize("spoken", TRANSLATED)
def test_words_on_a_button_are_hardly_wider_than_the_english_ones(spoken: str) -> None:
    there = catalogue(spoken)
    labels = on_buttons()
    assert len(labels) >= 30
    wide = {one: there[(one,)][0] for one in labels if (one,) in there}
    assert {one: text for one, text in wide.items() if width(text) > max(WIDEST * width(one), NARROW)} == {}


@pytest.mark.parametrize("spoken", TRANSLATED)
def test_no_english_is_left_but_names_and_code(spoken: str) -> None:
    words = r"[A-Za-z]{3,} [a-z]{3,}" if spoken.startswith("zh") else r"\b(the|of|is|are|and|not|with|this|that|by|has|it)\b"
    translations = [(one[0], text) for one, texts in catalogue(spoken).items() for text in texts]
    code = [(one, KEPT.sub(" ", re.sub(r"(python -m|torch\.save).*", "", text))) for one, text in translations]
    assert [(one, text) for one, text in code if re.search(words, text)] == []


@pytest.mark.parametrize(
    ("check", "wrong"),
    [
        (test_every_sentence_is_translated_and_nothing_else, {("Compare both runs",): ("",)}),
        (test_every_sentence_is_translated_and_nothing_else, {("No longer on screen",): ("Weg",)}),
        (test_a_translation_has_the_gaps_of_its_original, {("{count} heads",): ("{zahl} Heads",)}),
        (test_a_translation_has_the_gaps_of_its_original, {("{share:.0%} of it",): ("{share:.1%} davon",)}),
        (test_words_on_a_button_are_hardly_wider_than_the_english_ones, {("Close this survey",): ("breit " * 20,)}),
        (test_no_english_is_left_but_names_and_code, {("Compare both runs",): ("Compare both of the runs",)}),
    ],
)
def test_each_of_these_tests_can_fail(check: Callable[[str], None], wrong: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = catalogue("de")
    monkeypatch.setitem(globals(), "catalogue", lambda _spoken: whole | wrong)
    with pytest.raises(AssertionError):
        check("de")
