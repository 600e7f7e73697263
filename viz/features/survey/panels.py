"""The panels of the page Survey, all heads by two measures, the selected one, and roles with their criteria; and links to it."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlencode

import pandas as pd

from model.engine.api import Engine
from model.errors import HeadlightError
from model.features.survey import tables as files
from model.features.survey.questions import StoredSurvey
from model.features.survey.survey import Survey
from model.measures.catalogue import MEASURES
from model.trace.types import Array, Site
from viz.features.survey import dots_scene as dots
from viz.features.survey import heads_figure as figures
from viz.features.survey import labels
from viz.features.survey.choice import head_of
from viz.features.survey.heads_figure import Dot
from viz.features.survey.view import SurveyView
from viz.i18n.translate import _, join_list, number
from viz.labels import measures as measure_labels
from viz.labels import tokens
from viz.panels import NotDrawable, Panel, Plot, Scene, Table
from viz.session.state import Page
from viz.url.view_state import ViewState


def stored(page: Page) -> Survey:
    """The survey that lies beside the page's model.

    Raises:
        NotDrawable: there is none, or it is of other weights.
        BadTexts: it cannot be read.
    """
    data = page.engine.ask(StoredSurvey(page.info.name))
    survey = files.from_bytes(data, "survey.parquet") if data else None
    if survey is None or survey.about.fingerprint != page.trace.model.get("fingerprint"):
        raise NotDrawable(_("There is no stored survey of these weights of “{title}”.", title=page.info.title))
    return survey


def over_texts(engine: Engine, model: str, heads: Mapping[tuple[str, int], str]) -> str:
    """A sentence in Markdown with links to what heads do over many texts; empty if the model has no stored survey.

    Args:
        heads: by site and number, the measure that is of interest; empty: none.
    """
    try:
        if not heads or not engine.ask(StoredSurvey(model)):
            return ""
    except HeadlightError:  # a recording has none, nor has a model that is not here
        return ""
    links = []
    for (site, head), measure in heads.items():
        query = {"model": model, "site": site, "head": head} | ({"y": measure} if measure in MEASURES else {})
        links.append(f"[{tokens.site(Site.parse(site), head)}](/survey?{urlencode(query)})")
    return _("What these heads do over many texts: {heads}", heads=join_list(links))


def panels(page: Page, _link: ViewState) -> list[Panel]:
    """All heads as dots, the measures of the selected one, and every role with its criterion.

    Raises:
        NotDrawable, BadTexts: as for `stored`.
    """
    return list(of_survey(page, stored(page)))


def of_survey(page: Page, survey: Survey) -> Iterator[Panel]:
    """All heads as dots, the measures of the selected head, and every role with its criterion."""
    names, axes, chosen = _names(survey), _axes(page), head_of(page, survey, chosen=True)
    fields = {"count": survey.statistics.texts, "texts": survey.about.texts}
    texts = _("Texts: {count:,} ({texts}). Every text counts equally.", **fields)
    drawn, kinds = _dots(page, survey)
    words = labels.scatter(names, *_values(page, survey), axes)
    scene = dots.scene(page.trace, drawn, survey.statistics.heads, kinds, axes, chosen, [], words)
    on_paper = Plot(lambda dark: figures.scatter(drawn, kinds, axes, chosen, dark), words, "survey")
    yield Panel("dots", _title(axes), Scene("Dots", scene), texts, width="half", paper=lambda: (on_paper,))
    yield Panel("head", names[chosen], _measures_of(survey, chosen), width="half")
    if any(survey.roles):
        yield Panel("roles", _("Roles, by criteria"), _roles(survey, names), _criterion())


def _dots(page: Page, survey: Survey) -> tuple[list[Dot], list[str]]:
    """The dots, and the names of the kinds of sites."""
    groups = [tokens.kind(site.stack, site.kind) for site in (Site.parse(site) for site, _head in survey.statistics.heads)]
    roles = [", ".join(roles) for roles in _role_names(survey)]
    return figures.dots(_names(survey), groups, *_values(page, survey), roles), list(dict.fromkeys(groups))


def _names(survey: Survey) -> list[str]:
    return [tokens.site(Site.parse(site), head) for site, head in survey.statistics.heads]


def _role_names(survey: Survey) -> list[list[str]]:
    titles = labels.roles()
    return [[titles[role.criterion.role] for role in roles] for roles in survey.roles]


def _axes(page: Page) -> tuple[str, str]:
    titles = measure_labels.of_heads()
    return titles[page.view.of(SurveyView).across], titles[page.view.of(SurveyView).up]


def _title(axes: tuple[str, str]) -> str:
    return _("All heads: {up}, {across}", up=axes[1], across=axes[0])


def _values(page: Page, survey: Survey) -> tuple[Array, Array]:
    """The numbers of all heads on both axes; NaN where there is none."""
    return survey.of_heads(page.view.of(SurveyView).across), survey.of_heads(page.view.of(SurveyView).up)


def _criterion() -> str:
    return _(
        "A head has a role if its mean reaches the criterion and is at least twice each baseline: the "
        "untrained network, and the weights of each row in random order. Of induction and of the same word elsewhere, the mean "
        "over random tokens that repeat must reach it, too."
    )


def _measures_of(survey: Survey, head: int) -> Table:
    """The numbers of one head: a row for each measure that has a meaning for it."""
    statistics, titles = survey.statistics, measure_labels.titles()
    known = [(name, column) for column, name in enumerate(MEASURES) if statistics.count[head, column]]
    columns = {
        _("mean"): statistics.mean,
        "±": statistics.error,
        _("smallest"): statistics.lowest,
        _("largest"): statistics.highest,
    }
    numbers = {title: [float(values[head, column]) for _name, column in known] for title, values in columns.items()}
    return Table(pd.DataFrame(numbers, index=pd.Index([titles[name] for name, _column in known], name=_("measure"))))


def _roles(survey: Survey, names: list[str]) -> Table:
    titles, measures = labels.roles(), measure_labels.titles()
    rows = [
        [
            titles[role.criterion.role],
            measures[role.criterion.measure],
            role.mean,
            role.criterion.threshold,
            role.untrained,
            role.shuffled,
            number(100 * role.share, ".0f"),
        ]
        for roles in survey.roles
        for role in roles
    ]
    heads = [name for name, roles in zip(names, survey.roles, strict=True) for _role in roles]
    columns = [_("role"), _("measure"), _("mean"), _("at least"), _("untrained"), _("in random order"), _("of 100 texts")]
    return Table(pd.DataFrame(rows, index=pd.Index(heads, name=_("head")), columns=columns), decimals=2)
