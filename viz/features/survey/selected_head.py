"""The selected head in a survey: its roles, how its numbers are spread, and its map in single texts, run when one is chosen."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from model.engine.api import Run
from model.errors import HeadlightError
from model.features.survey.questions import MeasureTexts, Text
from model.features.survey.roles import CRITERIA
from model.features.survey.survey import Survey
from model.measures.catalogue import MEASURES
from model.requests.edits import Edit, read_edits
from viz.features.survey import figures, labels
from viz.features.survey.choice import measure_of
from viz.features.survey.view import SurveyView
from viz.figures.heatmap import head_weights
from viz.i18n.translate import _, error_message, join_sentences, number
from viz.labels import measures as measure_labels
from viz.labels import tokens
from viz.session.state import Page, decimals, page_at, update
from viz.url.view_state import new_sentence
from viz.widgets import numeric_tables
from viz.widgets.cards import chart, heading, say


def draw(page: Page, survey: Survey, names: list[str], selected: int) -> None:
    """Draws the roles of the selected head, and how one of its numbers is spread over the texts; in big mode only this."""
    statistics, titles, big = survey.statistics, measure_labels.titles(), page.view.big
    if not big:
        st.html(heading(names[selected], _("What it does over all texts")))
    st.session_state["survey-head-choice"] = selected
    st.selectbox(
        _("Head"),
        range(len(names)),
        format_func=names.__getitem__,
        key="survey-head-choice",
        on_change=partial(_choose, survey),
        label_visibility="collapsed" if big else "visible",
    )
    if not big:
        _roles(survey, names, selected)
    if (name := measure_of(page, survey, selected)) != page.view.of(SurveyView).up and page.view.of(SurveyView).up in MEASURES:
        st.caption(tokens.markdown(_("“{measure}” is not defined for this head.", measure=titles[page.view.of(SurveyView).up])))
    if not name:
        return
    column = list(MEASURES).index(name)
    digits = decimals(3)
    mean, error = labels.with_error(statistics.mean[selected, column], statistics.error[selected, column], 2 if big else 3)
    fields = {"mean": mean, "error": error}
    fields |= {
        "low": number(statistics.lowest[selected, column], digits),
        "high": number(statistics.highest[selected, column], digits),
    }
    text = _("“{measure}”: mean {mean} ± {error}, from {low} to {high}", measure=titles[name], **fields)
    st.caption(tokens.markdown(text))
    measure = MEASURES[name]
    figure = figures.histogram(
        statistics.bins[selected, column],
        measure.highest,
        titles[measure.name],
        _("texts"),
        statistics.mean[selected, column],
        page.dark,
    )
    chart(figure, (page.trace, text), fills=True, key="survey-histogram", alt=text)


def _roles(survey: Survey, names: list[str], selected: int) -> None:
    """Draws the roles of a head, or why it has none, and its copying score."""
    for role in survey.roles[selected]:
        st.markdown(tokens.markdown(_criterion(role.criterion.role, survey, selected)))
    if not survey.roles[selected]:
        st.markdown(tokens.markdown(_no_role(survey)))
    if survey.copying is not None and np.isfinite(score := survey.copying[selected]):
        gaps_ = {"head": names[selected], "copying": number(score, "+.2f")}
        st.caption(tokens.markdown(_("{head}: copying score {copying} (1: what it reads becomes more likely)", **gaps_)))


def _choose(survey: Survey) -> None:
    """Selects the head that was chosen by its name."""
    site, head = survey.statistics.heads[st.session_state["survey-head-choice"]]
    update(site=site, head=head)


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


def texts(page: Page, survey: Survey, selected: int) -> None:
    """Lists the texts that the survey keeps, in which the head's number is largest, smallest and between, and draws the head's map
    in the chosen one, run now; in big mode the map fills the screen, below the choice of a text.
    """
    measure = measure_of(page, survey, selected)
    if not measure:
        return
    title, rows = measure_labels.titles()[measure], _listed(survey, selected, measure)
    if page.view.big:
        choices = [_("{title} ({name})", title=line(text), name=f"{group}, {number(value, '.2f')}") for group, value, text in rows]
        row = st.selectbox(
            _("Texts"), range(len(rows)), format_func=choices.__getitem__, key="survey-text", label_visibility="collapsed"
        )
        _map_of(page, survey, selected, rows[row][2])
        return
    subtitle = _("Texts in which “{measure}” is largest and smallest, and some from each tenth in between", measure=title)
    st.html(heading(_("Texts"), subtitle))
    listed, drawn = st.columns([3, 2])
    table = pd.DataFrame([(group, value, line(text)) for group, value, text in rows], columns=["place", "value", "text"])
    with listed:
        named = {"place": _("place"), "value": _("measure"), "text": _("text")}
        event: Mapping[str, Mapping[str, list[int]]] = st.session_state.get("survey-rows") or {"selection": {"rows": []}}
        numeric_tables.draw(
            table,
            titles=named,
            decimals=3,
            widths={"place": 92, "value": 76},
            height=400,
            hide_index=True,
            key="survey-rows",
            on_select="rerun",
            selection_mode="single-row",
        )
    chosen = [row for row in event["selection"]["rows"] if row < len(rows)]
    with drawn:
        _map_of(page, survey, selected, rows[chosen[0] if chosen else 0][2])


def line(text: Text) -> str:
    """A text in one line."""
    sides = [side if isinstance(side, str) else " ".join(map(str, side)) for side in (text.source, text.target) if side is not None]
    return " ".join(" → ".join(sides).split())


def _listed(survey: Survey, head: int, measure: str) -> list[tuple[str, float, Text]]:
    """Group, value and text of the listed texts, largest numbers first."""
    statistics, column = survey.statistics, list(MEASURES).index(measure)

    def ends(name: str, group: str) -> list[tuple[str, float, Text]]:
        numbers, values = getattr(statistics, name)[head, column], getattr(statistics, f"{name}_values")[head, column]
        return [(group, float(v), survey.quoted[int(n)]) for n, v in zip(numbers, values, strict=True) if n >= 0]

    places = {int(text): index for index, text in enumerate(statistics.sample)}
    between = [
        (_("tenth {number}", number=tenth + 1), float(statistics.sampled[places[text], head, column]), survey.quoted[text])
        for tenth, texts_ in reversed(list(enumerate(statistics.deciles(head, measure))))
        for text in reversed(texts_)
    ]
    return [*ends("strongest", _("largest")), *between, *reversed(ends("weakest", _("smallest")))]


def _map_of(page: Page, survey: Survey, head: int, text: Text) -> None:
    """Runs one text and draws the head's map, outside big mode with a button that opens it in Explore."""
    site, number_ = survey.statistics.heads[head]
    question = MeasureTexts(page.info.name, page.view.parsed_settings(), texts=(), edits=read_edits("; ".join(survey.about.edits)))
    try:
        trace = page.engine.ask(Run(text.request(question, question.edits, page.info.spec.get("encoder") is not None)))
    except HeadlightError as error:
        say(error_message(error))
        return
    name = tokens.head_name(trace, trace.at(site).site, number_)
    figure = head_weights(trace, trace.at(site), number_, page.dark)
    alt = _("Weights in this text, computed now: {head}", head=name)
    chart(figure, (trace, name), fills=True, key="survey-map", alt=alt)
    if not page.view.big:
        open_button(page, text, (site, number_), "survey-open", edits=question.edits)


def open_button(
    page: Page,
    text: Text,
    head: tuple[str, int],
    key: str,
    row: int = -1,
    edits: tuple[Edit, ...] = (),
) -> None:
    """A button that opens a text in Explore, with a head and a row selected. Texts of bare ids cannot be typed there.

    Args:
        head: site and number.
        row: the query; -1: none.
        edits: changes with which it was measured.
    """
    if not isinstance(text.source, str):
        return
    fields = new_sentence() | {"text": text.source, "target": text.target if isinstance(text.target, str) else ""}
    fields |= {"site": head[0], "head": head[1], "query": row, "silence": "", "off": ""}
    fields |= {"edits": "; ".join(map(str, edits))}
    fields |= {"max_length": 0} if page.info.spec.get("encoder") is None else {}
    if st.button(_("Open in Explore"), icon=":material/grid_view:", key=key, on_click=partial(update, **fields)):
        st.switch_page(page_at("explore"))
