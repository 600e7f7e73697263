"""The language of a typed sentence, if a library is sure of it: offline, from the frequencies of its letters (py3langid)."""

import threading
import unicodedata
from functools import cache
from typing import Any

SURE = 0.6
"""Calibrated probability from which on a language counts as recognized. The library gives “hello world” 0.14."""

CHINESE = ("zh", "yue", "wuu", "lzh")
"""What the library calls written Chinese."""

_LOADING = threading.Lock()


def recognized(text: str) -> str:
    """The code of the language of `text`, such as "de"; empty where the library is not sure. The first call loads its tables."""
    with _LOADING:  # two sessions load it once
        identifier = _identifier()
    code, probability = identifier.classify(text)
    if code in CHINESE and _is_han(text):  # a few characters are enough
        return "zh"
    return str(code) if probability >= SURE and len(code) == 2 else ""


def _is_han(text: str) -> bool:
    """Whether all letters of a text are Chinese characters."""
    letters = [letter for letter in text if letter.isalpha()]
    return bool(letters) and all(unicodedata.name(letter, "").startswith("CJK UNIFIED") for letter in letters)


@cache
def _identifier() -> Any:
    """The library's model. Imported here: most sentences never need it."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
