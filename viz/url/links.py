"""Reads a view from the parameters of a URL, and writes it.

A parameter that equals its default is left out. A value that cannot be read is reported in a sentence and replaced by its default,
never dropped in silence.
"""

from collections.abc import Mapping
from dataclasses import replace

from viz.i18n.translate import _
from viz.url.parsers import LONGEST_TEXT
from viz.url.view_state import PARAMETERS, ViewState


def read(query: Mapping[str, str]) -> tuple[ViewState, list[str]]:
    """The view in a URL's parameters, and a sentence for each parameter that could not be taken as it is."""
    known = {parameter.name: parameter for parameter in PARAMETERS}
    view, problems = ViewState(), []
    for name, text in query.items():
        if name not in known:
            problems.append(_("This link contains an unknown parameter “{name}”, which was ignored.", name=name[:40]))
            continue
        try:
            view = replace(view, **{known[name].field: known[name].read(text)})
        except ValueError as error:
            gaps = {"name": name, "text": text[:40], "allowed": error}
            problems.append(_("The link sets {name} to “{text}”. Allowed: {allowed}. The default is used.", **gaps))
    if view.begin and not view.chosen_ids():
        problems.append(_("The tokens chosen in this link were ignored: they need a long enough decoding and no forced target."))
        view = replace(view, begin="")
    return view, problems


def write(view: ViewState) -> dict[str, str]:
    """The URL parameters of a view, defaults left out. Of a text that is too long as much stays as makes `read` say so."""
    default = ViewState()
    changed = [each for each in PARAMETERS if getattr(view, each.field) != getattr(default, each.field)]
    return {each.name: str(getattr(view, each.field))[: LONGEST_TEXT + 1] for each in changed}
