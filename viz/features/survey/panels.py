"""The panels of the page Survey by their parts, and links to it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

import pandas as pd

from model.engine.api import Engine
from model.errors import HeadlightError
from model.features.survey import tables as files
from model.features.survey.differences import differences
from model.features.survey.examples import Wanted, searched
from model.features.survey.questions import StoredSurvey
from model.features.survey.survey import Survey
from model.measures.catalogue import MEASURES
from model.trace.types import Site
from viz.features.survey import all_heads_panels, head_panels, labels, one_head, over_texts_panels, plane_panels
from viz.features.survey.all_heads_panels import names_of
from viz.features.survey.choice import head_of, measure_of
from viz.features.survey.one_head import Reading, in_order
from viz.features.survey.plane_panels import Colouring
from viz.features.survey.stored import stored as stored_survey
from viz.features.survey.stored import stored_film
from viz.features.survey.view import SurveyView
from viz.i18n.translate import _, join_list, number
from viz.labels import measures as measure_labels
from viz.labels import tokens
from viz.panels import NotDrawable, Panel, Table, Text, TextLine
from viz.session.state import Page
from viz.url.view_state import ViewState

MOST_READ = 50
"""Texts in which a lecture reads a head."""

LEAST = 0.3
"""The least weight of the examples of a head in a lecture."""


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
    chosen = head_of(page, survey, chosen=True)
    yield replace(all_heads_panels.of_dots(page, survey, chosen), words=_about(survey), width="half")
    yield Panel("head", names_of(survey)[chosen], _measures_of(survey, chosen), width="half")
    if any(survey.roles):
        yield Panel("roles", _("Roles, by criteria"), _roles(survey, names_of(survey)), _criterion())


def _about(survey: Survey) -> str:
    fields = {"count": survey.statistics.texts, "texts": survey.about.texts}
    return _("Texts: {count:,} ({texts}). Every text counts equally.", **fields)


def _criterion() -> str:
    return _(
        "A head has a role if its mean reaches the criterion and is at least twice each baseline: the "
        "untrained network, and the weights of each row in random order. Of induction and of the same word elsewhere, the mean "
        "over random tokens that repeat must reach it, too."
    )


def _measures_of(survey: Survey, head: int) -> Table:
    """The numbers of one head: a row for each measure that has a meaning for it."""
    summary, titles = survey.statistics, measure_labels.titles()
    known = [(name, column) for column, name in enumerate(MEASURES) if summary.count[head, column]]
    columns = {_("mean"): summary.mean, "±": summary.error, _("smallest"): summary.lowest, _("largest"): summary.highest}
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


@dataclass(frozen=True, eq=False)
class _Shown:
    """What a link shows of a survey.

    Attributes:
        survey: the stored one.
        head: the selected head of it.
        names: of all heads.
    """

    survey: Survey
    head: int
    names: list[str]


def _shown(page: Page, link: ViewState) -> _Shown:
    survey = stored(page)
    return _Shown(survey, head_of(page, survey, bool(link.site)), names_of(survey))


def _dots_part(page: Page, link: ViewState) -> Iterator[Panel]:
    shown = _shown(page, link)
    yield replace(all_heads_panels.of_dots(page, shown.survey, shown.head), words=_about(shown.survey))


def _grid_part(page: Page, link: ViewState) -> Iterator[Panel]:
    shown = _shown(page, link)
    yield replace(all_heads_panels.of_grid(page, shown.survey, shown.head), words=_about(shown.survey))


def _head_part(page: Page, link: ViewState) -> Iterator[Panel]:
    shown = _shown(page, link)
    sentences = [*head_panels.roles_of(shown.survey, shown.head), head_panels.copying_of(shown.survey, shown.head)]
    yield Panel("role", shown.names[shown.head], Text([TextLine(sentence) for sentence in sentences if sentence]))
    if measure := measure_of(page, shown.survey, shown.head):
        yield replace(head_panels.of_spread(page, shown.survey, shown.head, measure), title="")


def _texts_part(page: Page, link: ViewState) -> Iterator[Panel]:
    shown = _shown(page, link)
    if not (measure := measure_of(page, shown.survey, shown.head)):
        raise NotDrawable(_("This head has no measure."))
    yield head_panels.of_texts(shown.survey, shown.head, measure)
    text = head_panels.listed(shown.survey, shown.head, measure)[0][2]
    yield head_panels.of_map(head_panels.run_of(page, shown.survey, text), shown.survey, shown.head)


def _read(page: Page, shown: _Shown) -> Reading:
    """The selected head, read in a few texts."""
    texts = in_order(shown.survey)[:MOST_READ]
    *_before, reading = one_head.read(page.engine.ask, one_head.question_about(page, shown.survey, shown.head), texts)
    if reading.no_plane is not None:
        raise reading.no_plane
    return reading


def _plane_part(page: Page, link: ViewState) -> Iterator[Panel]:
    shown = _shown(page, link)
    reading = _read(page, shown)
    assert reading.plane is not None
    panel = plane_panels.of_plane(reading.texts, reading.plane, reading.parts, Colouring())
    yield replace(panel, title=shown.names[shown.head])


def _examples_part(page: Page, link: ViewState) -> Iterator[Panel]:
    shown = _shown(page, link)
    reading = _read(page, shown)
    examples = searched(reading.texts.texts, Wanted("", "", "", "", LEAST), reading.parts)
    if not examples.examples:
        raise NotDrawable(plane_panels.about_examples(examples, LEAST))
    yield replace(plane_panels.of_examples(reading.texts, examples), words=plane_panels.about_examples(examples, LEAST))


def _alike_part(page: Page, link: ViewState) -> Iterator[Panel]:
    shown = _shown(page, link)
    yield over_texts_panels.of_alike(shown.survey, shown.names, shown.head)


def _relations_part(page: Page, link: ViewState) -> Iterator[Panel]:
    shown = _shown(page, link)
    yield over_texts_panels.of_relations(shown.survey, shown.names, shown.head)


def _film_part(page: Page, link: ViewState) -> Iterator[Panel]:
    shown = _shown(page, link)
    film, measure = stored_film(page.engine, page.info.name), measure_of(page, shown.survey, shown.head)
    if film is None or not measure:
        raise NotDrawable(_("No snapshots were saved while “{title}” was trained.", title=page.info.title))
    panel = over_texts_panels.of_film(shown.survey, film, shown.head, measure)
    yield replace(panel, words="\n".join([over_texts_panels.about_film(measure), panel.words]))


def _table_part(page: Page, link: ViewState) -> Iterator[Panel]:
    yield all_heads_panels.of_table(page, _shown(page, link).survey)


def _two_part(page: Page, link: ViewState) -> Iterator[Panel]:
    shown, beside = _shown(page, link), page.view.of(SurveyView).beside
    other = stored_survey(page.engine, beside) if beside else None
    if other is None:
        raise NotDrawable(_("There is no stored survey of “{model}”. python -m model survey makes one.", model=beside))
    apart = differences(other, shown.survey)
    words = "\n".join(over_texts_panels.about_two(other, shown.survey, apart))
    yield replace(over_texts_panels.of_two(page, shown.survey, apart, shown.names, shown.head), words=words)
    yield over_texts_panels.of_differences(apart)


PARTS: Mapping[str, Callable[[Page, ViewState], Iterator[Panel]]] = {
    "survey": _dots_part,
    "survey-grid": _grid_part,
    "survey-head": _head_part,
    "survey-texts": _texts_part,
    "survey-plane": _plane_part,
    "survey-examples": _examples_part,
    "survey-alike": _alike_part,
    "survey-relations": _relations_part,
    "survey-film": _film_part,
    "survey-table": _table_part,
    "survey-two": _two_part,
}
"""As `viz.feature.FeaturePage.parts`."""
