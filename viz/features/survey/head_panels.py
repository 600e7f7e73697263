"""The panels of one head in a survey: its roles, how its numbers are spread over the texts, and texts in which they are extreme."""

import numpy as np
import pandas as pd

from model.engine.api import Run
from model.features.survey.questions import MeasureTexts, Text
from model.features.survey.roles import CRITERIA
from model.features.survey.survey import Survey
from model.measures.catalogue import MEASURES
from model.requests.edits import Edit, read_edits
from model.trace.types import Site, Trace
from viz.features.survey import figures, labels
from viz.figures.heatmap import head_weights
from viz.i18n.translate import _, join_sentences, number
from viz.labels import measures as measure_labels
from viz.labels import tokens
from viz.panels import Panel, Plot, Table
from viz.session.state import Page


def of_spread(page: Page, survey: Survey, head: int, measure: str) -> Panel:
    """How one measure of a head is spread over the texts."""
    summary, title, column = survey.statistics, measure_labels.titles()[measure], list(MEASURES).index(measure)
    digits = page.digits(3)
    mean, error = labels.with_error(summary.mean[head, column], summary.error[head, column], digits)
    fields = {"mean": mean, "error": error}
    fields |= {
        "low": number(summary.lowest[head, column], f".{digits}f"),
        "high": number(summary.highest[head, column], f".{digits}f"),
    }
    words = _("“{measure}”: mean {mean} ± {error}, from {low} to {high}", measure=title, **fields)
    counts, highest, middle = summary.bins[head, column], MEASURES[measure].highest, summary.mean[head, column]
    plot = Plot(lambda dark: figures.histogram(counts, highest, title, _("texts"), middle, dark), words, "survey-histogram", words)
    return Panel("survey-head", tokens.site(*place_of(survey, head)), plot, words)


def place_of(survey: Survey, head: int) -> tuple[Site, int]:
    """The site and the number of a head of a survey."""
    site, number_ = survey.statistics.heads[head]
    return Site.parse(site), number_


def roles_of(survey: Survey, head: int) -> list[str]:
    """The roles of a head, a sentence each, or why it has none."""
    roles = [_criterion(role.criterion.role, survey, head) for role in survey.roles[head]]
    return roles or [_no_role(survey)]


def copying_of(survey: Survey, head: int) -> str:
    """The copying score of a head; empty: it has none."""
    if survey.copying is None or not np.isfinite(score := survey.copying[head]):
        return ""
    fields = {"head": tokens.site(*place_of(survey, head)), "copying": number(score, "+.2f")}
    return _("{head}: copying score {copying} (1: what it reads becomes more likely)", **fields)


def _criterion(name: str, survey: Survey, head: int) -> str:
    """One sentence: the role, by which criterion, how often it holds, and what the head does in the rest."""
    role = next(role for role in survey.roles[head] if role.criterion.role == name)
    titles = measure_labels.titles()
    fields: dict[str, object] = {
        "role": labels.roles()[name],
        "measure": titles[role.criterion.measure],
        "mean": number(role.mean, ".2f"),
        "threshold": number(role.criterion.threshold, ".2f"),
        "untrained": number(role.untrained, ".2f"),
        "shuffled": number(role.shuffled, ".2f"),
        "share": number(100 * role.share, ".0f"),
    }
    sentences = [
        _(
            "Role: {role}. “{measure}” is {mean} (criterion: at least {threshold}, and at least twice each "
            "baseline: untrained network {untrained}, weights in random order {shuffled}). It holds in {share} "
            "of 100 texts.",
            **fields,
        )
        if not role.rest
        else _(
            "Role: {role}. “{measure}” is {mean} (criterion: at least {threshold}, and at least twice each "
            "baseline: untrained network {untrained}, weights in random order {shuffled}). It holds in {share} "
            "of 100 texts; in the others, its largest measure is “{rest}” ({rest_mean}).",
            rest=titles[role.rest],
            rest_mean=number(role.rest_mean, ".2f"),
            **fields,
        )
    ]
    if role.criterion.repeated:
        repeated = number(role.repeated, ".2f")
        sentences.append(_("On random tokens that repeat it is {repeated}; the criterion holds there, too.", repeated=repeated))
    return join_sentences(sentences)


def _no_role(survey: Survey) -> str:
    """Why the selected head has no role."""
    if "untrained" in survey.without:
        return _("No head has a role here: an untrained copy of this network cannot be made, so one baseline is missing.")
    if not survey.finished and not any(survey.roles):
        return _("Roles appear when the baselines have been measured, which comes last.")
    return _("This head meets none of the {count} criteria, so it has no role.", count=len(CRITERIA))


def of_texts(survey: Survey, head: int, measure: str) -> Panel:
    """The texts that the survey keeps in which a measure of a head is largest, smallest and between."""
    subtitle = _(
        "Texts in which “{measure}” is largest and smallest, and some from each tenth in between",
        measure=measure_labels.titles()[measure],
    )
    rows = [(group, value, line(text)) for group, value, text in listed(survey, head, measure)]
    frame = pd.DataFrame(rows, columns=["place", "value", "text"])
    titles = {"place": _("place"), "value": _("measure"), "text": _("text")}
    return Panel("survey-texts", _("Texts"), Table(frame, titles=titles, named=False), subtitle)


def line(text: Text) -> str:
    """A text in one line."""
    sides = [side if isinstance(side, str) else " ".join(map(str, side)) for side in (text.source, text.target) if side is not None]
    return " ".join(" → ".join(sides).split())


def listed(survey: Survey, head: int, measure: str) -> list[tuple[str, float, Text]]:
    """Group, value and text of the listed texts, largest numbers first."""
    summary, column = survey.statistics, list(MEASURES).index(measure)

    def ends(name: str, group: str) -> list[tuple[str, float, Text]]:
        numbers, values = getattr(summary, name)[head, column], getattr(summary, f"{name}_values")[head, column]
        return [(group, float(v), survey.quoted[int(n)]) for n, v in zip(numbers, values, strict=True) if n >= 0]

    places = {int(text): index for index, text in enumerate(summary.sample)}
    between = [
        (_("tenth {number}", number=tenth + 1), float(summary.sampled[places[text], head, column]), survey.quoted[text])
        for tenth, texts_ in reversed(list(enumerate(summary.deciles(head, measure))))
        for text in reversed(texts_)
    ]
    return [*ends("strongest", _("largest")), *between, *reversed(ends("weakest", _("smallest")))]


def edits_of(survey: Survey) -> tuple[Edit, ...]:
    """The edits with which a survey was made."""
    return read_edits("; ".join(survey.about.edits))


def run_of(page: Page, survey: Survey, text: Text) -> Trace:
    """The run of a text as the survey ran it.

    Raises:
        HeadlightError: it is not possible.
    """
    question = MeasureTexts(page.info.name, page.view.parsed_settings(), texts=(), edits=edits_of(survey))
    return page.engine.ask(Run(text.request(question, question.edits, page.info.spec.get("encoder") is not None)))


def of_map(trace: Trace, survey: Survey, head: int) -> Panel:
    """The map of a head in a text."""
    site, number_ = place_of(survey, head)
    attention = trace.at(site)
    name = tokens.head_name(trace, site, number_)
    alt = _("Weights in this text, computed now: {head}", head=name)
    return Panel("survey-map", name, Plot(lambda dark: head_weights(trace, attention, number_, dark), alt, "survey-map", name), alt)
