"""Characters of which each token is only a part: an emoji in several bytes, or several emoji joined to one.

Byte-level vocabularies show such bytes as `\\xf0\\x9f`; nobody can read them, and a joiner alone is an empty chip.
"""

import re
import unicodedata
from collections.abc import Sequence

PIECE = "##"
"""Begins a piece that continues a word."""

MOST = 16
"""Most tokens of one character. The longest joined emoji in use have 10 characters, each at most 4 bytes."""

_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")
_JOINER, _SKIN = "\u200d", range(0x1F3FB, 0x1F400)
_CHOOSERS = ("\ufe0e", "\ufe0f")  # whether the sign before is drawn as text or as an emoji


def joined(texts: Sequence[str]) -> dict[int, tuple[int, str]]:
    """The runs of at least two tokens that are one character: by first token, how many there are, and the character.

    Args:
        texts: the tokens' texts, bytes that are no character by themselves as `\\xNN`.
    """
    units = list(_characters(texts))
    merged: list[tuple[int, int, str]] = []
    for first, count, text in units:
        if merged and _joins(merged[-1][2], text.removeprefix(PIECE)):
            begin, before, so_far = merged.pop()
            merged.append((begin, before + count, so_far + text.removeprefix(PIECE)))
        else:
            merged.append((first, count, text))
    return {first: (count, text) for first, count, text in merged if count > 1}


def _characters(texts: Sequence[str]) -> list[tuple[int, int, str]]:
    """First token, number of tokens and text of each smallest run whose bytes are whole characters."""
    found, at = list[tuple[int, int, str]](), 0
    while at < len(texts):
        count, text = 1, texts[at]
        if _ESCAPED.search(text):
            held = b""
            for longer in range(1, min(MOST, len(texts) - at) + 1):
                held += _bytes(texts[at + longer - 1].removeprefix(PIECE) if longer > 1 else text)
                try:
                    count, text = longer, held.decode("utf-8")
                    break
                except UnicodeDecodeError:
                    continue
        found.append((at, count, text))
        at += count
    return found


def _bytes(text: str) -> bytes:
    """The bytes of a token."""
    parts = _ESCAPED.split(text)  # text, two digits, text, two digits, text
    return b"".join(bytes.fromhex(part) if place % 2 else part.encode("utf-8", "surrogatepass") for place, part in enumerate(parts))


def _joins(before: str, after: str) -> bool:
    """Whether two texts are drawn as one emoji."""
    if (
        not before
        or not after
        or unicodedata.category(before.rstrip("".join((_JOINER, *_CHOOSERS)))[-1:] or " ") not in ("So", "Sk")
    ):
        return False
    return before.endswith(_JOINER) or after.startswith((_JOINER, *_CHOOSERS)) or ord(after[0]) in _SKIN
