"""Languages of the pages, and the sentences in them: every sentence on screen goes through `_`, or `_n` where it counts.

English is the language of the source; a translation is a `locale/LANGUAGE/LC_MESSAGES/headlight.po` of whole sentences with named
gaps, read by Babel. A text that is written when a module is imported is only marked there, with `N_`, and translated where it is
shown, with `translated`. Each call has its own language, because many visitors share a process. A script run has that of its
session, a route that of its link (`speaking`), anything else that of the server. English needs neither Babel nor Streamlit, which
a notebook need not have.
"""

import io
import operator
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from gettext import GNUTranslations, NullTranslations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from model.errors import HeadlightError, Phrase, Words, from_json
from model.errors.base import Filler
from model.trace.types import Trace

if TYPE_CHECKING:
    from babel.messages.catalog import Catalog

    from model.engine.api import ModelInfo

LOCALE = Path(__file__).parent / "locale"

LANGUAGES = {"en": "English", "de": "Deutsch", "zh-CN": "简体中文", "zh-TW": "繁體中文"}
"""The languages of the pages, each in its own words. English is the language of the source."""

SERVER_SETTING = "HEADLIGHT_LANGUAGE"
"""The variable that names the language of visitors whose browser asks for none of LANGUAGES."""

_SCRIPTS = {("zh", "Hans"): "zh-CN", ("zh", "Hant"): "zh-TW"}
_SPOKEN: ContextVar[str] = ContextVar("spoken", default="")
_SESSION = "spoken language"
"""Where the state of a session keeps the language of its last script run."""


def matching(asked: str | None) -> str:
    """The language of LANGUAGES that fits what a browser or a person asks for: "de-AT", "zh_Hant"; empty if none does."""
    if not asked or asked in LANGUAGES:
        return asked or ""
    from babel import Locale, UnknownLocaleError

    try:
        locale = Locale.parse(asked.replace("-", "_"))
    except (ValueError, UnknownLocaleError):
        return ""
    if locale is None:
        return ""
    # A browser asks for a region (zh-HK) more often than for a script; the region says which script is read there.
    if locale.language == "zh":
        return _SCRIPTS.get(("zh", locale.script or _script(locale.territory)), "")
    return locale.language if locale.language in LANGUAGES else ""


def _script(territory: str | None) -> str:
    """The script in which Chinese is written in a country or region."""
    return "Hant" if territory in ("TW", "HK", "MO") else "Hans"


def of_server() -> str:
    """The language of visitors whose browser asks for none of LANGUAGES: HEADLIGHT_LANGUAGE, or English."""
    return matching(os.environ.get(SERVER_SETTING)) or "en"


def of_request(accept_language: str) -> str:
    """The language that a browser's header Accept-Language asks for first, of LANGUAGES; the server's if none does."""
    asked = (part.partition(";")[0].strip() for part in accept_language.split(","))
    return next(filter(None, map(matching, asked)), "") or of_server()


def current() -> str:
    """The language of the current call."""
    if not (spoken := _SPOKEN.get()):
        # A callback, or a fragment that is drawn again, begins in a new thread, before anything is said there.
        spoken = _of_session()
        _SPOKEN.set(spoken)
    return spoken or of_server()


def _of_session() -> str:
    """The language that the session of a script run was last drawn in; empty where no script runs, as in a notebook."""
    if "streamlit" not in sys.modules:
        return ""
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    return str(st.session_state.get(_SESSION, "")) if get_script_run_ctx(suppress_warning=True) else ""


def speak(language: str) -> None:
    """Sets the language of a script run and of all that its session draws or calls until the next one."""
    import streamlit as st

    st.session_state[_SESSION] = language
    _SPOKEN.set(language)


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Context in which sentences are in a language; an empty or unknown one is that of the server."""
    before = _SPOKEN.set(matching(language) or of_server())
    try:
        yield
    finally:
        _SPOKEN.reset(before)


def N_(message: str, /) -> str:  # noqa: N802  # the name that gettext programs use
    """Marks a text for translators and returns it as it is: for what is evaluated at import, before there is a language."""
    return message


@cache
def catalogue(language: str) -> NullTranslations:
    """The sentences of a language, read from its `.po` file once."""
    if language == "en":
        return NullTranslations()
    from babel.messages.mofile import write_mo

    compiled = io.BytesIO()
    write_mo(compiled, _read(language))
    compiled.seek(0)
    return GNUTranslations(compiled)


def sentences(language: str) -> list[tuple[str, str]]:
    """All sentences of a language with their originals; one that counts has a line for each of its forms."""
    pairs = []
    for message in _read(language):
        if message.id:
            ids, strings = (value if isinstance(value, tuple | list) else (value,) for value in (message.id, message.string))
            pairs += [(str(ids[-1]), str(string)) for string in strings]
    return pairs


def _read(language: str) -> "Catalog":
    from babel.messages.pofile import read_po

    name = language.replace("-", "_")
    with (LOCALE / name / "LC_MESSAGES" / "headlight.po").open("rb") as file:
        return read_po(file, locale=name)


@cache
def _signs(language: str) -> dict[int, str]:
    if language == "en":
        return {}
    from babel import Locale
    from babel.numbers import get_decimal_symbol, get_group_symbol

    locale = Locale.parse(language, sep="-")
    return str.maketrans({".": get_decimal_symbol(locale), ",": get_group_symbol(locale)})


def decimal_sign() -> str:
    """The sign between a number's whole part and its decimals."""
    return str(_signs(current()).get(ord("."), "."))


def group_sign() -> str:
    """The sign between each three digits of a large number."""
    return str(_signs(current()).get(ord(","), ","))


def localized(number: str) -> str:
    """A number that Python has formatted, with the signs of the current language: "1,234.5 %" is "1.234,5 %" in German."""
    text = number.translate(_signs(current()))
    return text.replace("%", "\u00a0%") if current() == "de" else text


class _Filler(Filler):
    """Fills gaps; numbers get the signs of the current language."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """One gap as text."""
        text = super().format_field(value, format_spec)
        counts = isinstance(value, float | np.floating) or (isinstance(value, int | np.integer) and format_spec)
        return localized(text) if counts else text


_FILLER = _Filler()
_HAN = re.compile("[\u3400-\u9fff]")


def _(message: str, /, **fields: object) -> str:
    """`message` in the current language, its {gaps} filled."""
    return _filled(catalogue(current()).gettext(message), fields)


def _n(singular: str, plural: str, count: int, /, **fields: object) -> str:
    """A sentence about `count` things in the current language: `singular` for 1 of them, `plural` for another number."""
    return _filled(catalogue(current()).ngettext(singular, plural, count), fields)


def translated(message: str) -> str:
    """A text that was marked elsewhere, in the current language; any other text as it is."""
    return catalogue(current()).gettext(message) if message else ""


def _filled(text: str, fields: dict[str, Any]) -> str:
    if not fields:
        return text
    if (language := current()) == "en":
        return text.format(**fields)
    # Other languages have other signs in numbers, so the gaps are filled here one by one; Chinese has no blanks between words.
    filled, join = "", _beside if language.startswith("zh") else operator.add
    for words, gap, form, conversion in _pieces(text):
        filled = join(filled, words)
        if gap is not None:
            filled = join(filled, _FILLER.format_field(_FILLER.convert_field(fields[gap], conversion), form or ""))
    return filled


@cache
def _pieces(text: str) -> list[tuple[str, str | None, str | None, Any]]:
    """The words of a sentence, each with the gap that follows and how a number is written there; parsed once."""
    return list(_FILLER.parse(text))


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


def amount_of_bytes(size: float) -> str:
    """A number of bytes with its unit, in four digits: 1.536 kB."""
    power = min(int(np.log10(max(size, 1)) // 3), 4)
    unit = ("B", "kB", "MB", "GB", "TB")[power]
    return f"{number(size / 1000**power, '.0f' if not power else '.4g')} {unit}"


def in_millions(count: int) -> str:
    """A number of parameters in millions: 9.0; a small one in two digits: 0.021."""
    return number(count / 1e6, ".1f" if count >= 100_000 else ".2g")


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
    """What `model` says, in the current language; a plain text, such as a name, as it is."""
    if isinstance(words, str):
        return words
    translations = catalogue(current())
    singular, plural, fields = words.singular, words.template, words.fields
    # The number chooses the plural form of the language, of which some have more than two.
    template = translations.ngettext(singular, plural, int(str(fields[words.count]))) if singular else translations.gettext(plural)
    filled: dict[str, object] = {}
    for name, value in fields.items():  # a clause, or several, in the current language; a name or a number as it is
        if isinstance(value, tuple):
            filled[name] = join_clauses(map(said, value))
        else:
            filled[name] = said(value) if isinstance(value, Phrase) else value
    return _FILLER.vformat(template, (), filled)


def localize_info(info: "ModelInfo") -> "ModelInfo":
    """A model with what its checkpoint says about it in the current language, where it is known: that of bundled ones is."""
    return replace(
        info,
        title=info.title if info.recorded else translated(info.title),  # a trace is called like its file
        summary=translated(info.summary) if isinstance(info.summary, str) else said(info.summary),
        languages={strip: translated(name) for strip, name in info.languages.items()},
        example_labels=tuple(map(translated, info.example_labels)),
    )


def language_of(trace: Trace, strip: str) -> str:
    """The language of a strip, in the current language: "German"; the strip's name if its model does not say.

    The only strip of a language model is then called a text, since it holds what was typed and what was written; what is read as
    patches an image, and as frames a sound.
    """
    name, spec = str(trace.model.get("languages", {}).get(strip, strip)), trace.model.get("spec") or {}
    encoder = spec.get("encoder") or {}
    alone = spec.get("decoder") is not None and not encoder
    read = N_("image") if encoder.get("image") else N_("sound") if encoder.get("sound") else N_("source")
    names = {"source": N_("text") if alone else read, "target": N_("target")}
    return translated(names.get(name, name))


def problem(info: "ModelInfo") -> str:
    """The reason why a model cannot be used, in the current language."""
    return error_message(from_json(info.problem))
