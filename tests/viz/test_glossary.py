"""The catalogues use the words of docs/glossary.md, which has a column for each language."""

import re
from functools import cache
from pathlib import Path

import pytest

from viz.i18n import translate

ROOT = Path(__file__).parents[2]
COLUMNS = {"Deutsch": "de", "简体中文": "zh-CN", "繁體中文": "zh-TW"}
SAID_OTHERWISE = {
    "class": ("library", "a class token", "the class that saved it"),
    "edit": ("Edit it and save",),
    "lecture": ("lecture check",),
    "score": ("scores 1",),
    "source": ("source or target",),
    "stack": ("stack.pass.layer.kind",),
    "token": ("probability of the top token", "The token", "Greedy: most likely token"),
    "trace": ("to trace it back",),
}
"""Sentences in which an English word means something else, or is left out for want of room: by what they contain."""

CODE = re.compile(r"\{[^}]*\}|“[^”]*”|\S*[/=]\S*|\S*[.:\"]\S+")
"""Gaps, quotations, and words of code."""


def table() -> list[dict[str, str]]:
    """The rows of the table in four languages."""
    lines = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").partition("## In four languages")[2].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


@cache
def sentences(spoken: str) -> list[tuple[str, str, str]]:
    """Each sentence, what it says without code, and its translation in small letters."""
    return [(one, CODE.sub("", one), other.casefold()) for one, other in translate.sentences(spoken)]


@pytest.mark.parametrize("row", table(), ids=lambda row: row["English"].replace(" ", "-"))
def test_a_translation_uses_the_words_of_the_glossary(row: dict[str, str]) -> None:
    word = re.compile(rf"(?<![\w-]){row['English']}(?:s|es)?(?![\w-])", re.IGNORECASE)
    otherwise = SAID_OTHERWISE.get(row["English"], ())
    for column, spoken in COLUMNS.items():
        allowed = [each.strip().casefold() for each in row[column].split(",")]
        has_word = [(one, other) for one, words, other in sentences(spoken) if word.search(words)]
        said = [(one, other) for one, other in has_word if not any(each in one for each in otherwise)]
        assert [(one, other) for one, other in said if not any(each in other for each in allowed)] == [], row[column]


def test_the_table_has_every_word_of_the_standard_text_that_the_pages_use_most() -> None:
    assert len(table()) > 50
    assert all(row[column] for row in table() for column in (*COLUMNS, "source"))


ANOTHER_WORD = {
    r"\bforbid": "hide (an edit), mask",
    r"weighs the same": "counts equally",
    r"its (queries|keys|values) used": "used by its",
}
"""Words that sentences of pages do not use, and those that say the same."""


@pytest.mark.parametrize("pattern", ANOTHER_WORD)
def test_pages_have_one_word_for_one_thing(pattern: str) -> None:
    said = [
        one for one, words, _other in sentences("de") if re.search(pattern, words, re.IGNORECASE) and "the mask forbids" not in one
    ]
    assert said == [], f"say: {ANOTHER_WORD[pattern]}"
