"""Every sentence on screen goes through `_`, or `_n` where it counts: gettext catalogues, whole sentences with named gaps.

English is the language of the source; a translation is a `locale/LANGUAGE/LC_MESSAGES/headlight.po`. `locales.py` knows the
language of the current call. A text that is written when a module is imported is only marked there, with `N_`, and translated
where it is shown, with `translated`.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from model.engine.api import ModelInfo
from model.errors import HeadlightError, Phrase, Words, from_json
from model.errors.base import Filler
from model.trace.types import Trace
from viz.i18n import locales
from viz.i18n.locales import N_ as N_
from viz.i18n.locales import current as current
from viz.i18n.locales import decimal_sign as decimal_sign
from viz.i18n.locales import group_sign as group_sign
from viz.i18n.locales import localized as localized
from viz.i18n.locales import of_request as of_request
from viz.i18n.locales import speaking as speaking


class _Filler(Filler):
    """Fills gaps; numbers get the signs of the current language."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """One gap as text."""
        text = super().format_field(value, format_spec)
        counts = isinstance(value, float | np.floating) or (isinstance(value, int | np.integer) and format_spec)
        return localized(text) if counts else text


_FILLER = _Filler()
_HAN = re.compile("[\u3400-\u9fff]")


def _(message: str, /, **gaps: object) -> str:
    """`message` in the current language, its {gaps} filled."""
    return _filled(locales.catalogue(current()).gettext(message), gaps)


def _n(one: str, many: str, count: int, /, **gaps: object) -> str:
    """A sentence about `count` things in the current language: `one` for 1 of them, `many` for another number."""
    return _filled(locales.catalogue(current()).ngettext(one, many, count), gaps)


def translated(message: str) -> str:
    """A text that was marked elsewhere, in the current language; any other text as it is."""
    return locales.catalogue(current()).gettext(message) if message else ""


def _filled(text: str, gaps: dict[str, Any]) -> str:
    if not gaps:
        return text
    if not current().startswith("zh"):
        return text.format(**gaps) if current() == "en" else _FILLER.vformat(text, (), gaps)
    filled = ""
    for words, gap, form, conversion in _FILLER.parse(text):
        filled = _beside(filled, words)
        if gap is not None:
            field = gap + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
            filled = _beside(filled, _FILLER.vformat(f"{{{field}}}", (), gaps))
    return filled


def _beside(left: str, right: str) -> str:
    """Two pieces of a Chinese sentence: the blank beside a gap is for numbers and Latin words, not for another Chinese word."""
    if left.endswith(" ") and _HAN.match(left[-2:-1]) and _HAN.match(right):
        return left[:-1] + right
    if right.startswith(" ") and _HAN.match(left[-1:]) and _HAN.match(right[1:]):
        return left + right[1:]
    return left + right


def number(value: float, form: str) -> str:
    """A number in the current language, with a minus sign instead of a hyphen.

    Args:
        value: the number.
        form: its format specification, such as ".3f".
    """
    return localized(f"{value:{form}}").replace("-", "−")


def join_list(texts: Iterable[str]) -> str:
    """Several names in a row."""
    return _(", ").join(texts)


def join_sentences(sentences: Iterable[str]) -> str:
    """Whole sentences after each other: with blanks between them, but not in Chinese."""
    return ("" if current().startswith("zh") else " ").join(sentences)


def titled(title: str, text: str) -> str:
    """A title as a sentence, and the sentences after it."""
    return join_sentences((_("{sentence}.", sentence=title), text))


def join_clauses(texts: Iterable[str]) -> str:
    """Several phrases in a row, which may themselves contain commas."""
    return _("; ").join(texts)


def error_message(error: HeadlightError) -> str:
    """The sentence of an error in the current language."""
    return " ".join(said(error.on_page).split())


def said(words: Words) -> str:
    """What `model` says, in the current language; a plain text, such as a name or a sentence of an older version, as it is."""
    if isinstance(words, str):
        return words
    localize_info = locales.catalogue(current())
    one, many, fields = words.singular, words.template, words.fields
    template = localize_info.ngettext(one, many, int(str(fields[words.count]))) if one else localize_info.gettext(many)
    return _FILLER.vformat(template, (), {name: _in_gap(value) for name, value in fields.items()})


def _in_gap(value: object) -> object:
    """A clause, or several, in the current language; a name or a number as it is."""
    if isinstance(value, tuple):
        return join_clauses(map(said, value))
    return said(value) if isinstance(value, Phrase) else value


def localize_info(info: ModelInfo) -> ModelInfo:
    """A model with what its checkpoint says about it in the current language, where it is known: that of bundled ones is."""
    return replace(
        info,
        title=info.title if info.recorded else translated(info.title),  # a trace is called like its file
        summary=translated(info.summary) if isinstance(info.summary, str) else said(info.summary),
        languages={strip: translated(name) for strip, name in info.languages.items()},
        example_labels=tuple(map(translated, info.example_labels)),
    )


def language_of(trace: Trace, strip: str) -> str:
    """The language of a strip, in the current language: "German"; the strip's name if its model does not say."""
    names = {"source": N_("source"), "target": N_("target")}
    return translated(str(trace.model.get("languages", {}).get(strip, names.get(strip, strip))))


def problem(info: ModelInfo) -> str:
    """The reason why a model cannot be used, in the current language."""
    return error_message(from_json(info.problem))
