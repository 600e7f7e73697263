"""The panels of heads beside each other over many texts: how alike they are, dependencies, a training, and two surveys."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from model.features.survey.agreement import clustered
from model.features.survey.differences import Difference
from model.features.survey.film import SurveyFilm
from model.features.survey.relations import Accuracy, accuracies
from model.features.survey.survey import Survey
from model.measures.catalogue import MEASURES
from model.trace.types import Site
from viz.features.survey import figures, labels
from viz.features.survey.view import SurveyView
from viz.i18n.translate import _, join_list, number
from viz.labels import alt_text, tokens
from viz.labels import measures as measure_labels
from viz.panels import NotDrawable, Panel, Plot, Table
from viz.session.state import Page


def of_alike(survey: Survey, names: Sequence[str], selected: int) -> Panel:
    """The divergence of each two heads that attend between the same tokens as the selected one.

    Raises:
        NotDrawable: there is none.
    """
    apart = None if survey.compared is None else survey.compared.mean_divergence
    group = np.zeros(0, int) if apart is None else np.flatnonzero(np.isfinite(apart[selected]))
    if apart is None or len(group) < 2:
        raise NotDrawable(_("This head is compared with no other: none attends between the same tokens."))
    order = group[clustered(apart[np.ix_(group, group)])]
    nearest = min((head for head in group if head != selected), key=lambda head: apart[selected, head])
    words = _(
        "{head}: the most similar head is {other}, at {bits} bits (0: the same rows; 1: no key in common). Texts: {count}.",
        head=names[selected],
        other=names[int(nearest)],
        bits=number(float(apart[selected, nearest]), ".2f"),
        count=f"{survey.compared_done}",
    )
    short, named = [_short(survey, head) for head in order], [names[head] for head in order]
    divergence, quantity = apart[np.ix_(order, order)], _("divergence (bits)")
    title = _("How much the rows of two heads differ in the same texts")
    alt = f"{title}: {join_list(named)}"  # not of the selected head, so that it is not drawn anew for each
    plot = Plot(lambda dark: figures.alike(short, named, divergence, quantity, dark), alt, "survey-alike", title)
    return Panel("survey-alike", _("Similar heads"), plot, words)


def _short(survey: Survey, head: int) -> str:
    """Layer and head, counted from 1; with the pass where there are several."""
    name, number_ = survey.statistics.heads[head]
    site = Site.parse(name)
    return f"{site.layer + 1}.{number_ + 1}" if not site.pass_ else f"{site.pass_ + 1}.{site.layer + 1}.{number_ + 1}"


def best_of_relations(survey: Survey) -> list[Accuracy]:
    """The best head of each relation; empty where the texts have no parses."""
    return [] if survey.relations is None else accuracies(survey.relations, survey.statistics.sites)


def of_relations(survey: Survey, names: Sequence[str], selected: int) -> Panel:
    """The relations with the best head of each, the selected head and the best fixed offset.

    Raises:
        NotDrawable: the texts have no parses.
    """
    if survey.relations is None:
        raise NotDrawable(_("The texts of this survey have no parses."))
    of_selected = accuracies(survey.relations, survey.statistics.sites, selected)
    right = {(accuracy.relation, accuracy.direction): accuracy.right for accuracy in of_selected}
    directions = labels.directions()
    rows = [
        (
            best.relation,
            best.right,
            best.baseline,
            right.get((best.relation, best.direction), float("nan")),
            best.words,
            names[best.head],
            best.offset,
            directions[best.direction],
        )
        for best in best_of_relations(survey)
    ]
    columns = ["relation", "right", "baseline", "own", "words", "head", "offset", "direction"]  # a phone shows the first ones
    titles = {
        "relation": _("relation"),
        "direction": _("direction"),
        "words": _("words"),
        "head": _("best head"),
        "right": _("share correct"),
        "own": _("share correct, selected head"),
        "offset": _("best fixed offset"),
        "baseline": _("share correct, fixed offset"),
    }
    content = Table(pd.DataFrame(rows, columns=columns), titles=titles, named=False)
    return Panel("survey-relations", _("Dependencies"), content, about_relations())


def about_relations() -> str:
    """What is counted of dependencies."""
    return _("How often the word with the most weight is the one that a word depends on")


def of_film(survey: Survey, film: SurveyFilm, selected: int, measure: str) -> Panel:
    """A measure of every head in every snapshot of a training, with the spread of the selected one.

    Raises:
        NotDrawable: no head has it in every snapshot.
    """
    column, title = list(MEASURES).index(measure), measure_labels.titles()[measure]
    known = [row for row in range(len(film.heads)) if film.count[:, row, column].all()]
    if not known:
        raise NotDrawable(_("No head has this measure in every snapshot."))
    selection = survey.statistics.heads[selected]
    row = film.heads.index(selection) if selection in film.heads and film.heads.index(selection) in known else known[0]
    names = [tokens.site(Site.parse(site), head) for site, head in (film.heads[row] for row in known)]
    mean, spread, chosen = film.mean[:, known, column], film.std[:, known, column], known.index(row)
    fastest = int(np.argmax(np.abs(np.diff(mean[:, chosen]))))
    fields: dict[str, object] = {"head": names[chosen], "before": film.steps[fastest], "after": film.steps[fastest + 1]}
    for name, values in (("mean", mean), ("std", spread)):
        fields |= {f"{name}{at}": number(float(values[fastest + at, chosen]), ".2f") for at in (0, 1)}
    fields |= {"count": int(film.count[:, row, column].min()), "texts": film.about.texts}
    words = _(
        "{head}: largest change between steps {before:,} and {after:,}, from {mean0} ± {std0} to {mean1} ± "
        "{std1}. Texts: {count:,} ({texts}).",
        **fields,
    )
    curve = alt_text.curves([names[chosen]], [list(film.steps)], [mean[:, chosen]])
    plot = Plot(
        lambda dark: figures.film(film.steps, mean, spread, names, chosen, title, dark), f"{words} {curve}", "survey-film", title
    )
    return Panel("survey-film", _("During training"), plot, words)


def about_film(measure: str) -> str:
    """What the film of a survey shows."""
    title = measure_labels.titles()[measure]
    return _("“{measure}” in every snapshot, mean and standard deviation over the texts", measure=title)


def about_two(other: Survey, survey: Survey, apart: Sequence[Difference]) -> list[str]:
    """Which surveys are compared, and what the errors are of."""
    fields = {"model": other.about.model, "texts": other.about.texts, "count": other.statistics.texts}
    fields |= {"own": survey.about.model, "own_texts": survey.about.texts, "own_count": survey.statistics.texts}
    sentences = [_("First: {model} over {texts} ({count:,}). Second: {own} over {own_texts} ({own_count:,}).", **fields)]
    if other.about.edits:
        sentences.append(_("First, in every run: {edits}", edits="; ".join(other.about.edits)))
    if survey.about.edits:
        sentences.append(_("Second, in every run: {edits}", edits="; ".join(survey.about.edits)))
    if any(difference.paired for difference in apart):
        sentences.append(
            _("Both read the same texts, so the standard errors are those of the differences text by text, in the sampled texts.")
        )
    else:
        sentences.append(_("They read different texts, so the standard errors are those of two independent means."))
    return sentences


def of_two(page: Page, survey: Survey, apart: Sequence[Difference], names: Sequence[str], selected: int) -> Panel:
    """One measure of every head in both surveys; on the line nothing changed.

    Raises:
        NotDrawable: no head has it in both.
    """
    measure = page.view.of(SurveyView).up
    title = measure_labels.of_heads()[measure]
    by_place = {(difference.site, difference.head): difference for difference in apart if difference.measure == measure}
    if not by_place:
        raise NotDrawable(_("No head has this measure in both surveys: choose another one above."))
    heads = [head for head, place in enumerate(survey.statistics.heads) if place in by_place]
    chosen = [by_place[survey.statistics.heads[head]] for head in heads]
    axes = _("{measure}, first", measure=title), _("{measure}, second", measure=title)
    before, now, errors = (np.array([getattr(one, name) for one in chosen]) for name in ("first", "second", "error"))
    named = [names[head] for head in heads]
    plot = Plot(
        lambda dark: figures.two(named, heads, before, now, errors, axes, selected, dark),
        labels.scatter(named, before, now, axes),
        "survey-two",
        title,
    )
    return Panel("survey-two", title, plot)


def of_differences(apart: Sequence[Difference]) -> Panel:
    """All differences of two surveys, those of most standard errors first."""
    measures = measure_labels.titles()
    rows = [
        (
            tokens.site(Site.parse(difference.site), difference.head),
            measures[difference.measure],
            difference.first,
            difference.second,
            difference.difference,
            difference.error,
            difference.errors if np.isfinite(difference.errors) else np.nan,
        )
        for difference in apart
    ]
    titles = {
        "head": _("head"),
        "measure": _("measure"),
        "first": _("first"),
        "second": _("second"),
        "difference": _("difference"),
        "error": _("standard error"),
        "errors": _("difference in standard errors"),
    }
    return Panel(
        "survey-differences", _("All numbers"), Table(pd.DataFrame(rows, columns=list(titles)), titles=titles, named=False)
    )
