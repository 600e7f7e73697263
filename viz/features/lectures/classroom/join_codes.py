"""Codes that students type and keys that lecturers hold.

A code has 8 characters of 32, 40 bits, without letters that look like digits. Where several processes serve the pages, its first
character names the process that holds the class, so that a proxy can send everybody there: 35 bits are random then. A key has 256
bits; only its hash is stored.
"""

import hmac
import os
import secrets
from hashlib import sha256

from model.errors import BadSetting

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: without I, L, O and U."""

LENGTH = 8
"""Characters of a code: 40 random bits, or 35 where the first one names the process."""

_READ_AS = str.maketrans({"I": "1", "L": "1", "O": "0", "-": None, " ": None})


def process() -> str:
    """The character that names this process among those that serve the pages, from HEADLIGHT_PROCESS; empty: there is only one.

    Raises:
        BadSetting: it is not one character of codes.
    """
    asked = os.environ.get("HEADLIGHT_PROCESS") or ""
    if len(asked) > 1 or asked not in ALPHABET:
        raise BadSetting(name="HEADLIGHT_PROCESS", found=asked[:40], allowed=f"one of the characters {ALPHABET}")
    return asked


def new_code() -> str:
    """A random code, which begins with the name of this process, if it has one."""
    name = process()
    return name + "".join(secrets.choice(ALPHABET) for _ in range(LENGTH - len(name)))


def read_code(text: str) -> str:
    """The code that somebody typed: any case, hyphens and blanks ignored, I and L read as 1, O as 0; empty: it is none."""
    code = text[: 4 * LENGTH].upper().translate(_READ_AS)
    return code if len(code) == LENGTH and all(letter in ALPHABET for letter in code) else ""


def shown(code: str) -> str:
    """The code as it is shown, in two halves: 7KQ2-M9XD."""
    return f"{code[: LENGTH // 2]}-{code[LENGTH // 2 :]}"


def new_token() -> str:
    """A random key of a lecturer, or the name of a student's device."""
    return secrets.token_urlsafe(32)


def hashed(token: str) -> str:
    """Hash of a key or of a device's name: what is stored and compared."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def is_key(token: str, stored: str) -> bool:
    """Whether `token` is the key with this hash. Takes equally long for each wrong key."""
    return hmac.compare_digest(hashed(token), stored)
