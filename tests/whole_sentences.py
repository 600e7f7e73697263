"""The rule by which sentences are whole: what is inserted into one is a name, a number, or a sentence or clause of its own."""

import re

BEFORE = re.compile(r"(^|[:;,→×·|\n>] ?|[(“]|\. )$")
AFTER = re.compile(r"^($|[:;,.)”|\n<]| [→×·|(] ?)")
"""What may stand before and after the gap of an inserted message: it is a name, a line of a list, or a sentence of its own."""


def among_words(text: str, gap: str) -> bool:
    """Whether the gap of a sentence stands among its words, so that what fills it would have to be inflected."""
    before, found, after = text.partition(f"{{{gap}}}")
    return bool(found) and not (BEFORE.search(before) and AFTER.search(after))
