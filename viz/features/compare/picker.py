"""Names of the two sides of Compare: what differs between them, in a few words for titles and in a sentence."""

from model.engine.api import Models
from model.requests.edits import read_edits
from viz.features.compare.view import second_side
from viz.i18n.translate import _, join_clauses, join_list, translated
from viz.labels import edits
from viz.session.state import Page, opened
from viz.url import view_state
from viz.url.view_state import ViewState

LONGEST = 48
"""Most characters of a value in the name of a side."""

MOST_HEADS = 3
"""Silenced heads that are named; of more, the number is told."""


def names(page: Page) -> tuple[str, str]:
    """The names of the two sides: what each of them has where they differ. They are never equal."""
    views = page.view, second_side(page.view)
    short = [join_list(_name(page, view, field, LONGEST) for field in differing(page)) for view in views]
    if short[0] == short[1]:
        short = [join_list(_name(page, view, field, None) for field in differing(page)) for view in views]
    return short[0], short[1]


def differing(page: Page) -> list[str]:
    """The fields of ViewState that decide what runs and in which the sides differ."""
    second = second_side(page.view)
    return [p.field for p in view_state.all_parameters() if p.of_a_run and second.value(p) != page.view.value(p)]


def what_differs(page: Page) -> list[str]:
    """The differences of the second side from the first side, in words."""
    names = {parameter.field: translated(parameter.of_a_run) for parameter in view_state.all_parameters()}
    sides = page.view, second_side(page.view)

    def value_of(view: ViewState, field: str) -> str:
        if field == "silence" and (count := len(view.silence.split())) > MOST_HEADS:
            return str(count)
        text = _value(page, view, field)
        return _("“{value}”", value=text) if text else _("none")

    return [
        _("{what}: {first} → {second}", what=names[field], first=value_of(sides[0], field), second=value_of(sides[1], field))
        for field in differing(page)
    ]


def _value(page: Page, view: ViewState, field: str) -> str:
    """The value of a field as it is shown; empty if there is none."""
    value = getattr(view, field)
    if field == "model":
        return _title(page, str(value))
    if field == "method":
        return {"greedy": _("greedy"), "sample": _("sampling"), "beam": _("beam search")}[value]
    if field == "edits":
        same = (view.model, view.text) == (page.view.model, page.view.text)
        return join_clauses(edits.words(edit, page.trace.tokens if same else None) for edit in read_edits(value)) if value else ""
    return edits.heads(view.silence) if field == "silence" else str(value)


def _title(page: Page, name: str) -> str:
    """The title of a model; its name where another model has the same title, or where it is not listed."""
    titles = {info.name: info.title for info in (*opened(), *page.engine.ask(Models()).models)}
    title = titles.get(name, name)
    return title if list(titles.values()).count(title) <= 1 else f"{title} ({name})"


def _name(page: Page, view: ViewState, field: str, longest: int | None) -> str:
    """The value of one field of a side, in words."""
    what, value = translated({p.field: p.of_a_run for p in view_state.all_parameters()}[field]), _value(page, view, field)
    text = value if longest is None or len(value) <= longest else value[: longest - 1] + "…"
    match field:
        case "model":
            return text
        case "silence":
            count = len(view.silence.split())
            return _("heads silenced: {count}", count=count) if longest and count > 1 else text or _("nothing silenced")
        case "edits" if longest and len(value) > longest:
            text = str(len(read_edits(view.edits)))
        case "text":
            return _("“{value}”", value=text)
        case "method":
            return value
    return _("{what}: {value}", what=what, value=text or _("none"))
