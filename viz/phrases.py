"""Phrases that `model` puts into the gaps of its errors, in the language of the page.

`model` knows no languages: an error holds a template and fields, and a field may be an English phrase, such as "at most 5". The
catalogue holds these phrases as patterns with numbered gaps; what fits one is said in the current language. Anything else, such as
names and paths, stays as it is.
"""

import re
import string
from functools import cache

from viz import language

AS_THEY_ARE = frozenset({"asked", "edit", "host", "model", "path", "text"})
"""Fields that hold what people typed, or names."""

NOT_IN_ERRORS = (
    "CPU · 1 thread",
    "CPU · {0} threads",
    "{0}: a Headlight checkpoint folder (format {1}) with the weights of {2}.",
    "an encoder-decoder",
    "an encoder",
    "a language model",
    "{0}: a folder of the transformers library, architecture {1}.",
    "has {0}",
    "lacks {0}",
    "knows {0} of {1} names",
    "has {0}, which has no place in it",
    "has {0}, which have no place in it",
)
"""Phrases that the pages show by themselves."""

_GAP = re.compile(r"\\\{(\d+)\\\}")


def said(field: str, value: object) -> object:
    """The value of an error's field in the current language."""
    if not isinstance(value, str) or field in AS_THEY_ARE or language.current() == "en":
        return value
    return phrase(value)


def phrase(text: str) -> str:
    """A phrase in the current language; another text as it is."""
    spoken = language.current()
    found = language.catalogue(spoken).gettext(text) if text else text
    if found != text or " " not in text:
        return found
    for pattern, translation in _patterns(spoken):
        if match := pattern.fullmatch(text):
            return translation.format(*(phrase(gap) for gap in match.groups()))
    return text


@cache
def _patterns(spoken: str) -> list[tuple[re.Pattern[str], str]]:
    """The phrases with gaps, those with the most words of their own first, and their translations."""
    numbered = [(one, other) for one, other in language.messages(spoken) if "{0}" in one and other]
    numbered.sort(key=lambda pair: -sum(len(text) for text, *_gap in string.Formatter().parse(pair[0])))
    return [(re.compile(_GAP.sub("(.+?)", re.escape(one)), re.DOTALL), other) for one, other in numbered]
