"""The text that a subword token stands for: undoes the characters that byte-level and SentencePiece vocabularies use for bytes and
blanks.
"""

from collections.abc import Mapping
from types import MappingProxyType


def _bytes_by_sign() -> dict[str, int]:
    """The byte that each character of a byte-level vocabulary stands for.

    A printable byte is written as itself; the others, in order, are written as the characters from U+0100 on.

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.2.
    """
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printed]
    return {chr(byte): byte for byte in printed} | {chr(256 + i): byte for i, byte in enumerate(others)}


BYTES: Mapping[str, int] = MappingProxyType(_bytes_by_sign())
BLANK = "▁"
"""The character for a blank in SentencePiece vocabularies."""


def written(token: str, byte_level: bool) -> str:
    """The piece of text that a token stands for.

    Args:
        byte_level: whether the vocabulary writes each byte as one character.
    """
    if byte_level and all(sign in BYTES for sign in token):
        return bytes(BYTES[sign] for sign in token).decode("utf-8", "backslashreplace")
    return token.replace(BLANK, " ")
