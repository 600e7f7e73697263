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
    found = files.from_bytes(data, "survey.parquet") if data else None
    if found is None or found.about.fingerprint != page.trace.model.get("fingerprint"):
        raise NotDrawable(_("There is no stored survey of these weights of “{title}”.", title=page.info.title))
    return found


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


def of_survey(page: Page, found: Survey) -> Iterator[Panel]:
    """All heads as dots, the measures of the selected head, and every role with its criterion."""
    names, axes, chosen = _names(found), _axes(page), head_of(page, found, chosen=True)
    gaps = {"count": found.statistics.texts, "texts": found.about.texts}
    texts = _("Texts: {count:,} ({texts}). Every text counts equally.", **gaps)
    drawn, kinds = _dots(page, found)
    said = labels.scatter(names, *_values(page, found), axes)
    scene = dots.scene(page.trace, drawn, found.statistics.heads, kinds, axes, chosen, [], said)
    on_paper = Plot(lambda dark: figures.scatter(drawn, kinds, axes, chosen, dark), said, "survey")
    yield Panel("dots", _title(axes), Scene("Dots", scene), texts, width="half", paper=lambda: (on_paper,))
    yield Panel("head", names[chosen], _measures_of(found, chosen), width="half")
    if any(found.roles):
        yield Panel("roles", _("Roles, by criteria"), _roles(found, names), _criterion())


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


def _measures_of(found: Survey, head: int) -> Table:
    """The numbers of one head: a row for each measure that has a meaning for it."""
    own, titles = found.statistics, measure_labels.titles()
    known = [(name, column) for column, name in enumerate(MEASURES) if own.count[head, column]]
    columns = {_("mean"): own.mean, "±": own.error, _("smallest"): own.lowest, _("largest"): own.highest}
    numbers = {title: [float(values[head, column]) for _name, column in known] for title, values in columns.items()}
    return Table(pd.DataFrame(numbers, index=pd.Index([titles[name] for name, _column in known], name=_("measure"))))


def _roles(found: Survey, names: list[str]) -> Table:
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
        for roles in found.roles
        for role in roles
    ]
    heads = [name for name, roles in zip(names, found.roles, strict=True) for _role in roles]
    columns = [_("role"), _("measure"), _("mean"), _("at least"), _("untrained"), _("in random order"), _("of 100 texts")]
    return Table(pd.DataFrame(rows, index=pd.Index(heads, name=_("head")), columns=columns), decimals=2)
