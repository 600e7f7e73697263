"""Languages of the pages: which there are, which one a call uses, its catalogue of sentences, its signs in numbers.

Each call has its own language, because many visitors share a process. A script run has that of its session, a route that of its
link (`speaking`), anything else that of the server.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

import streamlit as st
from babel import Locale, UnknownLocaleError
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import get_decimal_symbol, get_group_symbol
from babel.support import NullTranslations, Translations
from streamlit.runtime.scriptrunner import get_script_run_ctx

LOCALE = Path(__file__).parent / "locale"

LANGUAGES = {"en": "English", "de": "Deutsch", "zh-CN": "简体中文", "zh-TW": "繁體中文"}
"""The languages of the pages, each in its own words. English is the language of the source."""

SERVER_SETTING = "HEADLIGHT_LANGUAGE"

_SCRIPTS = {("zh", "Hans"): "zh-CN", ("zh", "Hant"): "zh-TW"}
_SPOKEN: ContextVar[str] = ContextVar("spoken", default="")
_SESSION = "spoken language"
"""Where the state of a session keeps the language of its last script run."""


def matching(asked: str | None) -> str:
    """The language of LANGUAGES that fits what a browser or a person asks for: "de-AT", "zh_Hant"; empty if none does."""
    try:
        locale = Locale.parse((asked or "").replace("-", "_"))
    except (ValueError, UnknownLocaleError):
        return ""
    if locale is None:
        return ""
    if locale.language == "zh":
        return _SCRIPTS.get(("zh", locale.script or _script(locale.territory)), "")
    return locale.language if locale.language in LANGUAGES else ""


def _script(territory: str | None) -> str:
    """The script in which Chinese is written in a place."""
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
        spoken = str(st.session_state.get(_SESSION, "")) if get_script_run_ctx(suppress_warning=True) else ""
        _SPOKEN.set(spoken)
    return spoken or of_server()


def speak(language: str) -> None:
    """Sets the language of a script run and of all that its session draws or calls until the next one."""
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
    compiled = io.BytesIO()
    write_mo(compiled, _read(language))
    compiled.seek(0)
    return Translations(compiled, domain="headlight")


def sentences(language: str) -> list[tuple[str, str]]:
    """All sentences of a language with their originals; one that counts has a line for each of its forms."""
    found = []
    for message in _read(language):
        if message.id:
            ids, strings = (each if isinstance(each, tuple | list) else (each,) for each in (message.id, message.string))
            found += [(str(ids[-1]), str(string)) for string in strings]
    return found


def messages(language: str) -> list[tuple[str, str]]:
    """The sentences of a language that count nothing, each with its original first."""
    return [(m.id, str(m.string)) for m in _read(language) if m.id and isinstance(m.id, str)] if language != "en" else []


def _read(language: str) -> Catalog:
    name = language.replace("-", "_")
    with (LOCALE / name / "LC_MESSAGES" / "headlight.po").open("rb") as file:
        return read_po(file, locale=name)


@cache
def _signs(language: str) -> dict[int, str]:
    locale = Locale.parse(language, sep="-")
    return str.maketrans({".": get_decimal_symbol(locale), ",": get_group_symbol(locale)})


def decimal_sign() -> str:
    """The sign between a number's whole part and its decimals."""
    return _signs(current())[ord(".")]


def group_sign() -> str:
    """The sign between each three digits of a large number."""
    return _signs(current())[ord(",")]


def localized(number: str) -> str:
    """A number that Python has formatted, with the signs of the current language: "1,234.5 %" is "1.234,5 %" in German."""
    text = number.translate(_signs(current()))
    return text.replace("%", "\u00a0%") if current() == "de" else text
