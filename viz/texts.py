"""Every sentence on screen goes through `_`, or `_n` where it counts: gettext catalogues, whole sentences with named gaps.

English is the language of the source; a translation is a `locale/LANGUAGE/LC_MESSAGES/headlight.po`. `viz/language.py` says which
language of the current call. A text that is written down when a module is imported is only marked there, with `N_`, and
translated where it is shown, with `translated`.
"""

import string
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from model.engine.api import ModelInfo
from model.errors import HeadlightError, from_json
from model.trace.types import Trace
from viz import language, phrases
from viz.language import N_ as N_
from viz.language import current as current
from viz.language import decimal_sign as decimal_sign
from viz.language import group_sign as group_sign
from viz.language import localized as localized
from viz.language import of_request as of_request
from viz.language import speaking as speaking
from viz.phrases import phrase as phrase


class _Filler(string.Formatter):
    """Fills gaps; numbers get the signs of the current language."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """One gap as text."""
        text = str(format(value, format_spec))
        counts = isinstance(value, float | np.floating) or (isinstance(value, int | np.integer) and format_spec)
        return localized(text) if counts else text


_FILLER = _Filler()


def _(message: str, /, **gaps: object) -> str:
    """`message` in the current language, its {gaps} filled."""
    return _filled(language.catalogue(current()).gettext(message), gaps)


def _n(one: str, many: str, count: int, /, **gaps: object) -> str:
    """A sentence about `count` things in the current language: `one` for 1 of them, `many` for another number."""
    return _filled(language.catalogue(current()).ngettext(one, many, count), gaps)


def translated(message: str) -> str:
    """A text that was marked elsewhere, in the current language; any other text as it is."""
    return language.catalogue(current()).gettext(message) if message else ""


def _filled(text: str, gaps: dict[str, Any]) -> str:
    if not gaps:
        return text
    return text.format(**gaps) if current() == "en" else _FILLER.vformat(text, (), gaps)


def number(value: float, form: str) -> str:
    """A number in the current language, with a minus sign instead of a hyphen.

    Args:
        value: the number.
        form: its format specification, such as ".3f".
    """
    return localized(f"{value:{form}}").replace("-", "−")


def listed(texts: Iterable[str]) -> str:
    """Several names in a row."""
    return _(", ").join(texts)


def joined(sentences: Iterable[str]) -> str:
    """Whole sentences after each other: with blanks between them, but not in Chinese."""
    return ("" if current().startswith("zh") else " ").join(sentences)


def titled(title: str, text: str) -> str:
    """A title as a sentence, and the sentences after it."""
    return joined((_("{sentence}.", sentence=title), text))


def clauses(texts: Iterable[str]) -> str:
    """Several phrases in a row, which may themselves contain commas."""
    return _("; ").join(texts)


def sentence(error: HeadlightError) -> str:
    """The sentence of an error in the current language."""
    fields = {name: phrases.said(name, value) for name, value in error.fields.items()}
    if error.singular:
        text = _n(error.singular, error.template, error.count(), **fields)
    else:
        text = _(error.on_screen or error.template, **fields)
    return " ".join(text.split())


def spoken(info: ModelInfo) -> ModelInfo:
    """A model with what its checkpoint says about it in the current language, where it is known: that of bundled ones is."""
    return replace(
        info,
        title=info.title if info.recorded else translated(info.title),  # a trace is called like its file
        summary=phrase(info.summary),
        languages={strip: translated(name) for strip, name in info.languages.items()},
        example_labels=tuple(map(translated, info.example_labels)),
    )


def language_of(trace: Trace, strip: str) -> str:
    """The language of a strip, in the current language: "German"; the strip's name if its model does not say."""
    names = {"source": N_("source"), "target": N_("target")}
    return translated(str(trace.model.get("languages", {}).get(strip, names.get(strip, strip))))


def problem(info: ModelInfo) -> str:
    """The reason why a model cannot be used, in the current language."""
    return sentence(from_json(info.problem))
