"""The URL parameters of the page Compare, and the view of its second side."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from viz.i18n.translate import _
from viz.url import parsers as values
from viz.url.parsers import parameter
from viz.url.view_state import WITHOUT_EDITS, ViewState, all_parameters


@dataclass(frozen=True, kw_only=True)
class CompareView:
    """What the page Compare compares: side A is the view itself."""

    against: str = parameter(
        "",
        "against",
        "in what side B of Compare differs: parameters of this table as NAME=VALUE joined by &, %26 for & and %25 for %",
        lambda text: _against(text),
        reset_by="model",
        typed=True,
    )
    feed: str = parameter("", "feed", "first: both sides of Compare read the tokens of side A", values.choice("first"))


def differences(against: str) -> dict[str, Any]:
    """The fields of ViewState in which side B differs, with their values.

    Raises:
        ValueError: `against` is not what `differing` writes.
    """
    known = {parameter.name: parameter for parameter in all_parameters() if parameter.of_a_run}
    pairs = [pair.partition("=") for pair in against.split("&") if pair]
    if len({name for name, _equals, _value in pairs}) < len(pairs) or any(name not in known for name, _equals, _value in pairs):
        raise ValueError(_("the differences, such as text=Ein Hund.&decode=beam, each name at most once"))
    return {known[name].field: known[name].read(unquote(value)) for name, _equals, value in pairs}


def differing(**fields_: object) -> str:
    """The text form of `CompareView.against`, for fields in which side B differs."""
    parameters = {p.name: str(fields_[p.field]) for p in all_parameters() if p.field in fields_}
    return "&".join(f"{name}={value.replace('%', '%25').replace('&', '%26')}" for name, value in parameters.items())


def second_side(view: ViewState) -> ViewState:
    """The view of side B of Compare. Another model starts without the first one's settings and edits."""
    different = differences(view.of(CompareView).against)
    anew: dict[str, Any] = {"settings": "", "chat": "", **WITHOUT_EDITS} if different.get("model", view.model) != view.model else {}
    if {"model", "text", "target"} & different.keys():
        anew["begin"] = ""  # it continues side A
    anew |= {"off": ""} if "edits" in different else {}  # it counts the edits of side A
    return view.changed(**anew | different)


def _against(text: str) -> str:
    return values.text(differing(**differences(text)))
