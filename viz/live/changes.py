"""Changes beside the sentence that the live route draws before the page's script knows them: seed, temperature, silenced heads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from viz import links
from viz.links import NEW_SENTENCE

NAMES = {"seed": NEW_SENTENCE, "temperature": NEW_SENTENCE, "silence": {}}
"""URL parameters that may be changed, each with what else it resets, as on the page."""


@dataclass(frozen=True)
class Question:
    """What a browser asks to be drawn.

    Attributes:
        text: the sentence; None: the page's own, with everything that was chosen for it.
        fields: fields of `viz.links.View` that are changed.
    """

    text: str | None
    fields: Mapping[str, Any] = field(default_factory=dict)


def fields_of(change: object) -> dict[str, Any]:
    """The fields of `viz.links.View` that a browser's report changes; it is written as in a URL, by the parameters in NAMES.

    Raises:
        ValueError: the report is of another form, or a value is not allowed.
    """
    if not isinstance(change, Mapping) or not all(name in NAMES and isinstance(text, str) for name, text in change.items()):
        raise ValueError
    view, problems = links.read(change)
    if problems:
        raise ValueError(problems[0])
    found: dict[str, Any] = {}
    for parameter in links.PARAMETERS:
        if parameter.name in change:
            found |= {**NAMES[parameter.name], parameter.field: getattr(view, parameter.field)}
    return found
