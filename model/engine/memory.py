"""The byte budget of this process, from HEADLIGHT_MEMORY. Without torch."""

import os

from model.errors import BadSetting, phrase
from model.sharing.caches import BUDGET, default_bytes

MOST_MIB = 2**24
"""Largest budget that can be asked for: 16 TiB."""


def set_budget() -> None:
    """Bounds what all caches of this process hold together: HEADLIGHT_MEMORY MiB, or by default a fourth of the machine's memory
    (at least 256 MiB, at most 2 GiB).

    Raises:
        BadSetting: it is not a valid number.
    """
    asked = os.environ.get("HEADLIGHT_MEMORY") or ""
    # `isdecimal` alone is true of the digits of every script. The length is checked before `int` reads them, which
    # fails on thousands of digits.
    digits = asked.isascii() and asked.isdecimal() and len(asked) <= len(str(MOST_MIB))
    if asked and not (digits and 1 <= int(asked) <= MOST_MIB):
        raise BadSetting(
            name="HEADLIGHT_MEMORY", found=asked[:40], allowed=phrase("a whole number of MiB from 1 to {last:,}", last=MOST_MIB)
        )
    BUDGET.most_bytes = float(int(asked) << 20) if asked else default_bytes()
