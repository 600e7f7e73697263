"""Readers of short texts that anybody may send: a number, an address. What is malformed is None, never an error."""

from urllib.parse import SplitResult, urlsplit

DIGITS = 20
"""Most digits of a whole number, whatever its limits."""


def whole_number(text: str, lowest: int, highest: int) -> int | None:
    """The whole number that a text writes in digits, perhaps after a minus sign; None: it writes none, or one outside the limits.

    `int` also reads blanks, underscores and the digits of other scripts, and fails on more than 4,300 digits. Here a number has no
    more digits than the longer limit, and at most DIGITS.
    """
    digits, most = text.removeprefix("-"), max(len(str(abs(lowest))), len(str(abs(highest))))
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= min(most, DIGITS)):
        return None
    number = int(text)
    return number if lowest <= number <= highest else None


def split_address(text: str) -> SplitResult | None:
    """The parts of a web address; None: it is malformed, such as `http://[` or one whose port is no number."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # is read, and may fail, only when it is asked for
    except ValueError:
        return None
    return parts


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a cell begins that a spreadsheet computes."""


def spreadsheet_text(text: str) -> str:
    """A text as a cell of a CSV file that a spreadsheet does not run: an apostrophe comes before what begins a formula."""
    return "'" + text if text.startswith(_FORMULA) else text
