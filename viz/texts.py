"""Every sentence on screen goes through `_`, or `_n` where it counts: one gettext catalogue, whole sentences with named gaps.

English is the language of the source; a translation is a `locale/LANGUAGE/LC_MESSAGES/headlight.mo`. `HEADLIGHT_LANGUAGE`
chooses one.
"""

import gettext
import os
from pathlib import Path

from model.engine.api import ModelInfo
from model.errors import HeadlightError, from_json

LOCALE = Path(__file__).parent / "locale"

_catalogue = gettext.translation("headlight", LOCALE, languages=[os.environ.get("HEADLIGHT_LANGUAGE", "en")], fallback=True)


def _(message: str, /, **gaps: object) -> str:
    """`message` in the chosen language, its {gaps} filled."""
    text = _catalogue.gettext(message)
    return text.format(**gaps) if gaps else text


def _n(one: str, many: str, count: int, /, **gaps: object) -> str:
    """A sentence about `count` things in the chosen language: `one` for 1 of them, `many` for another number."""
    text = _catalogue.ngettext(one, many, count)
    return text.format(**gaps) if gaps else text


def sentence(error: HeadlightError) -> str:
    """The sentence of an error in the chosen language."""
    if error.singular:
        text = _n(error.singular, error.template, error.count(), **error.fields)
    else:
        text = _(error.on_screen or error.template, **error.fields)
    return " ".join(text.split())


def problem(info: ModelInfo) -> str:
    """The reason why a model cannot be used, in the chosen language."""
    return sentence(from_json(info.problem))
