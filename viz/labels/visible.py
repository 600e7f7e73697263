"""Text of tokens made visible: it is data, only ever shown as plain text.

Control characters become visible, blanks get a sign, right-to-left runs are isolated so that they cannot reorder the text
around them.
"""

import re
import string
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable
from functools import wraps

from cachetools import LRUCache, cached

CACHE_BYTES = 1 << 20
"""Byte limit of each function's cache of texts and results: a few thousand tokens."""

_ENTRY = 300  # bytes of a cache entry in addition to its texts

_ISOLATE, _END_ISOLATE = "\u2068", "\u2069"


def remembered(convert: Callable[[str], str]) -> Callable[[str], str]:
    """Adds an LRU cache bounded in bytes to `convert`: a token may be a whole line of text."""
    cache: LRUCache[str, tuple[str, str]] = LRUCache(CACHE_BYTES, lambda texts: sum(map(sys.getsizeof, texts)) + _ENTRY)

    @cached(cache, key=lambda text: text, lock=threading.Lock())
    def both(text: str) -> tuple[str, str]:
        return text, convert(text)

    @wraps(convert)
    def found(text: str) -> str:
        return both(text)[1]

    return found


@remembered
def plain(text: str) -> str:
    """`text` with invisible characters made visible: line breaks as ↵, other controls as pictures, blanks as ␣, formatting
    characters as U+XXXX, and so what joins characters where there is nothing to join.

    A text that begins with a combining mark gets ◌ as a base, or the mark would combine with the text before it.
    """
    piece = _PIECE if text.startswith(_PIECE) else ""
    if _ALL_JOINERS.fullmatch(text, len(piece)):
        return piece + "".join(f"U+{ord(c):04X}" for c in text[len(piece) :])
    carrier = "◌" if text and unicodedata.category(text[0]).startswith("M") else ""
    return carrier + "".join(_visible(c) for c in text)


_PIECE = "##"
"""Begins a piece that continues a word."""

_ALL_JOINERS = re.compile("[\u200c\u200d\ufe0e\ufe0f]+")
"""Joiners of letters and of emoji, and what chooses between emoji and sign: alone they would be an empty chip."""


def _visible(character: str) -> str:
    code = ord(character)
    if character == "\n":
        return "↵"
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if character.isspace():
        return "␣"
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn") and code not in (0x200C, 0x200D):
        return f"U+{code:04X}"
    return character


@remembered
def markdown(text: str) -> str:
    """Escapes `text` for Streamlit's Markdown: no emphasis, formula, color, link, emoji name or HTML.

    Streamlit looks for addresses, arrows and names such as `:streamlit:` after escapes are undone, so these are broken up with an
    invisible joiner.
    """
    parts = ["".join(c if c == " " else _visible(c) for c in part) for part in _ISOLATED.split(_PERCENT.sub(" ", text))]
    visible = "".join(_ISOLATE + part + _END_ISOLATE if place % 2 else part for place, part in enumerate(parts))
    return _MARKUP.sub(r"\\\g<0>", _READ_AFTER_ESCAPES.sub("\u2060", visible))


_ISOLATED = re.compile(f"{_ISOLATE}([^{_ISOLATE}{_END_ISOLATE}]*){_END_ISOLATE}")
_PERCENT = re.compile("(?<=[0-9])\u00a0(?=%)")
"""The blank of a German number in percent, which is none of a token's."""
_READ_AFTER_ESCAPES = re.compile(r"(?=://|@)|(?<=www)(?=\.)|(?<=:)(?=[\w+-]+:)|(?<=[<-])(?=[->])|(?<=[<>~])(?==)", re.IGNORECASE)
_MARKUP = re.compile(f"[{re.escape(string.punctuation)}]")


@remembered
def word(text: str) -> str:
    """A token inside other text: `plain`, and isolated if it has right-to-left characters: it reorders nothing around it."""
    return isolated(plain(text))


def line(texts: Iterable[str]) -> str:
    """Several tokens as one line inside other text, a blank between each two."""
    return isolated(" ".join(map(plain, texts)))


@remembered
def isolated(text: str) -> str:
    """`text` with directional isolates around it if it has right-to-left characters; the sign of a piece stays on its left, where
    the piece before it stands.
    """
    if text.startswith(_PIECE):
        return _PIECE + isolated(text.removeprefix(_PIECE))
    right_to_left = any(unicodedata.bidirectional(c) in ("R", "AL", "RLE", "RLO", "RLI") for c in text)
    return _ISOLATE + text + _END_ISOLATE if right_to_left else text
