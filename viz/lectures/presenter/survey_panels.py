"""The panels of the page Survey, all heads by two measures, the selected one, and roles with their criteria; and links to it."""

from collections.abc import Iterator
from urllib.parse import urlencode

from model.engine.api import Engine
from model.errors import HeadlightError
from model.measures.catalogue import MEASURES
from model.survey import tables as files
from model.survey.questions import StoredSurvey
from model.survey.survey import Survey
from model.trace.types import Array, Site
from viz.export.print.catalogue import Figure, of_chart
from viz.features.survey import dots_scene as dots
from viz.features.survey import heads_figure as figures
from viz.features.survey import labels
from viz.features.survey.choice import head_of
from viz.features.survey.heads_figure import Dot
from viz.features.survey.view import SurveyView
from viz.i18n.translate import _, join_list, number
from viz.labels import measures as measure_labels
from viz.labels import tokens
from viz.lectures.presenter import tables
from viz.lectures.presenter.explore_panels import PanelWithScene
from viz.lectures.presenter.headless_page import NotDrawable
from viz.lectures.presenter.panels import Panel
from viz.lectures.script.lecture import Step
from viz.session.state import Page


def stored(page: Page) -> Survey:
    """The survey that lies beside the page's model.

    Raises:
        NotDrawable: there is none, or it is of other weights.
        BadTexts: it cannot be read.
    """
    data = page.engine.ask(StoredSurvey(page.info.name))
    found = files.from_bytes(data, "survey.parquet") if data else None
    if found is None or found.about.fingerprint != page.trace.model.get("fingerprint"):
        raise NotDrawable(_("There is no stored survey of these weights of “{title}”.", title=page.info.title))
    return found


def pointer(engine: Engine, step: Step) -> str:
    """Markdown for the notes of a step: links to what the heads of its claims do over many texts. Empty: it claims nothing about a
    head, or its model has no stored survey.
    """
    subjects = [each.subject for each in step.expects if each.subject.head.site and each.subject.head.number >= 0]
    heads = {(each.head.site, each.head.number): each for each in subjects}
    if step.page == "survey" or not heads:
        return ""
    try:
        if not engine.ask(StoredSurvey(step.view.model)):
            return ""
    except HeadlightError:  # a recording has none, nor has a model that is not here
        return ""
    said = []
    for (site, head), subject in heads.items():
        measure = next(({"y": each} for each in (subject.name, subject.kind) if each in MEASURES), {})
        link = urlencode({"model": step.view.model, "site": site, "head": head, **measure})
        said.append(f"[{tokens.site(Site.parse(site), head)}](/survey?{link})")
    return "\n\n" + _("What these heads do over many texts: {heads}", heads=join_list(said))


def of_survey(page: Page, found: Survey) -> Iterator[PanelWithScene]:
    """All heads as dots, the measures of the selected head, and every role with its criterion."""
    names, axes, chosen = _names(found), _axes(page), head_of(page, found, chosen=True)
    gaps = {"count": found.statistics.texts, "texts": found.about.texts}
    texts = _("Texts: {count:,} ({texts}). Every text counts equally.", **gaps)
    drawn, kinds = _dots(page, found)
    said = labels.scatter(names, *_values(page, found), axes)
    scene = dots.scene(page.trace, drawn, found.statistics.heads, kinds, axes, chosen, [], said)
    yield Panel("Dots", "dots", _title(axes), texts, half=True), scene
    yield Panel("Table", "head", names[chosen], half=True), _measures_of(found, chosen)
    if any(found.roles):
        yield Panel("Table", "roles", _("Roles, by criteria"), _criterion()), _roles(found, names)


def printed(page: Page) -> Figure:
    """The dots of all heads for print.

    Raises:
        NotDrawable, BadTexts: as for `stored`.
    """
    found, axes = stored(page), _axes(page)
    drawn, kinds = _dots(page, found)
    picture = figures.scatter(drawn, kinds, axes, head_of(page, found, chosen=True), dark=False)
    return of_chart("survey", _title(axes), picture, labels.scatter(_names(found), *_values(page, found), axes))


def _dots(page: Page, found: Survey) -> tuple[list[Dot], list[str]]:
    """The dots, and the names of the kinds of sites."""
    groups = [tokens.kind(site.stack, site.kind) for site in (Site.parse(site) for site, _head in found.statistics.heads)]
    roles = [", ".join(roles) for roles in _role_names(found)]
    return figures.dots(_names(found), groups, *_values(page, found), roles), list(dict.fromkeys(groups))


def _names(found: Survey) -> list[str]:
    return [tokens.site(Site.parse(site), head) for site, head in found.statistics.heads]


def _role_names(found: Survey) -> list[list[str]]:
    titles = labels.roles()
    return [[titles[role.criterion.role] for role in roles] for roles in found.roles]


def _axes(page: Page) -> tuple[str, str]:
    titles = measure_labels.of_heads()
    return titles[page.view.of(SurveyView).across], titles[page.view.of(SurveyView).up]


def _title(axes: tuple[str, str]) -> str:
    return _("All heads: {up}, {across}", up=axes[1], across=axes[0])


def _values(page: Page, found: Survey) -> tuple[Array, Array]:
    """The numbers of all heads on both axes; NaN where there is none."""
    return found.of_heads(page.view.of(SurveyView).across), found.of_heads(page.view.of(SurveyView).up)


def _criterion() -> str:
    return _(
        "A head has a role if its mean reaches the criterion and is at least twice each baseline: the "
        "untrained network, and the weights of each row in random order. Of induction and of the same word elsewhere, the mean "
        "over random tokens that repeat must reach it, too."
    )


def _measures_of(found: Survey, head: int) -> bytes:
    """The numbers of one head: a row for each measure that has a meaning for it."""
    own, titles = found.statistics, measure_labels.titles()
    rows = [
        [titles[name], *(number(values[head, column], ".3f") for values in (own.mean, own.error, own.lowest, own.highest))]
        for column, name in enumerate(MEASURES)
        if own.count[head, column]
    ]
    return tables.table([_("measure"), _("mean"), "±", _("smallest"), _("largest")], rows)


def _roles(found: Survey, names: list[str]) -> bytes:
    titles, measures = labels.roles(), measure_labels.titles()
    rows = [
        [
            name,
            titles[role.criterion.role],
            measures[role.criterion.measure],
            *(number(each, ".2f") for each in (role.mean, role.criterion.threshold, role.untrained, role.shuffled)),
            number(100 * role.share, ".0f"),
        ]
        for name, roles in zip(names, found.roles, strict=True)
        for role in roles
    ]
    columns = [
        _("head"),
        _("role"),
        _("measure"),
        _("mean"),
        _("at least"),
        _("untrained"),
        _("in random order"),
        _("of 100 texts"),
    ]
    return tables.table(columns, rows)
