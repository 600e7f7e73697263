"""The panels of all heads of a survey: as dots by two numbers, as a grid of layers × heads, and as a table."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from model.features.survey.survey import Survey
from model.measures.catalogue import MEASURES
from model.trace.types import Array, Site
from viz.features.survey import dots_scene as dots
from viz.features.survey import heads_figure as figures
from viz.features.survey import labels
from viz.features.survey.view import SURVEYED, SurveyView
from viz.figures.head_map import by_kind
from viz.i18n.translate import _
from viz.labels import measures as measure_labels
from viz.labels import tokens
from viz.panels import Panel, Plot, Scene, Table
from viz.session.state import Page


def names_of(survey: Survey) -> list[str]:
    """The names of all heads."""
    return [tokens.site(Site.parse(site), head) for site, head in survey.statistics.heads]


def role_names(survey: Survey) -> list[str]:
    """The roles of each head in one text; empty: it has none."""
    titles = labels.roles()
    return [", ".join(titles[role.criterion.role] for role in roles) for roles in survey.roles]


def of_dots(page: Page, survey: Survey, selected: int, marked: Sequence[int] = ()) -> Panel:
    """A dot for each head that has both numbers of the view, which decides their color and their size, too.

    Args:
        marked: heads that somebody marked.
    """
    view, names, titles = page.view.of(SurveyView), names_of(survey), measure_labels.of_heads()
    across, up = survey.of_heads(view.across), survey.of_heads(view.up)
    axes, shade = (titles[view.across], titles[view.up]), shade_of(page, survey)
    sites = [Site.parse(site) for site, _head in survey.statistics.heads]
    groups = [tokens.kind(site.stack, site.kind) for site in sites]
    kinds, weight = list(dict.fromkeys(groups)), mattering(survey) if view.dots else None
    spread = [labels.spread(counts, highest) for counts, highest in spreads(page, survey)]
    drawn = figures.dots(names, groups, across, up, role_names(survey), shade, weight, spread)
    words = labels.scatter(names, across, up, axes)
    scene = dots.scene(page.trace, drawn, survey.statistics.heads, kinds, axes, selected, marked, words, shade)
    on_paper = Plot(lambda dark: figures.scatter(drawn, kinds, axes, selected, dark, shade), words, "survey-dots")
    title = _("All heads: {up}, {across}", up=axes[1], across=axes[0])
    return Panel("dots", title, Scene("Dots", scene), paper=lambda: (on_paper,))


def without_dot(page: Page, survey: Survey) -> int:
    """How many heads have no dot, because one of the two numbers is not defined for them."""
    view = page.view.of(SurveyView)
    return int((~(np.isfinite(survey.of_heads(view.across)) & np.isfinite(survey.of_heads(view.up)))).sum())


def of_grid(page: Page, survey: Survey, selected: int, marked: Sequence[int] = ()) -> Panel:
    """Layers × heads by the number that colors the dots, else by the one upwards."""
    up = page.view.of(SurveyView).up
    shade = shade_of(page, survey) or figures.Shade(survey.of_heads(up), measure_labels.of_heads()[up])
    heads, names = survey.statistics.heads, names_of(survey)
    rows = by_kind(list(survey.statistics.sites))
    places = [(rows.index(site), head) for site, head in heads]
    sites = [tokens.site(Site.parse(site)) for site in rows]
    around = [head for head in marked if head < len(heads)]
    alt = _("“{measure}” of every head: layers × heads; the table “All numbers” has the numbers", measure=shade.title)
    title = _("Head")
    plot = Plot(
        lambda dark: figures.grid(names, sites, places, title, shade, selected, around, dark), alt, "survey-grid", shade.title
    )
    return Panel("survey-grid", _("Layers × heads"), plot)


def of_table(page: Page, survey: Survey) -> Panel:
    """The means of all heads over the texts."""
    columns = {name: survey.of_heads(name) for name in SURVEYED}
    columns |= {} if survey.matters is None else {"matters": survey.matters.mean}
    columns = {name: values for name, values in columns.items() if np.isfinite(values).any()}
    frame = pd.DataFrame({"head": names_of(survey), "roles": role_names(survey)} | columns)
    titles = {
        "head": _("head"),
        "roles": _("roles"),
        "matters": _("log-probability lost without it (nats per token)"),
    } | measure_labels.of_heads()
    words = _("Means over the texts. An empty cell: the measure is not defined there.")
    return Panel("survey-table", _("All numbers"), Table(frame, titles=titles, named=False), words)


def spreads(page: Page, survey: Survey) -> list[tuple[Array, float]]:
    """For each head, how the measure upwards is spread over the texts: how many there are in each bin, and the end of the last one.
    Nothing, if what is drawn upwards is no measure."""
    name = page.view.of(SurveyView).up
    if name not in MEASURES:
        return []
    column = list(MEASURES).index(name)
    return [(counts, MEASURES[name].highest) for counts in survey.statistics.bins[:, column]]


def shade_of(page: Page, survey: Survey) -> figures.Shade | None:
    """The number that colors the dots; None: their kind of attention does."""
    name = page.view.of(SurveyView).shade
    return figures.Shade(survey.of_heads(name), measure_labels.of_heads()[name]) if name else None


def mattering(survey: Survey) -> figures.Shade | None:
    """How much each head matters, as far as it was measured."""
    matters = survey.matters
    return (
        figures.Shade(matters.mean, _("log-probability lost without it (nats per token)"))
        if matters is not None and matters.count
        else None
    )
