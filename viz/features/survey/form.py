"""What a survey can read and where it is started, and a file of a survey that is opened."""

from collections.abc import Callable, Iterator, Sequence

import streamlit as st

from model.errors import BadSurvey, BadTexts, HeadlightError, phrase
from model.features.survey import tables, texts
from model.features.survey.questions import MeasureTexts
from model.features.survey.survey import Survey, begun, gone_on
from model.features.survey.texts import Texts
from model.requests.edits import read_edits
from viz.features.survey import making
from viz.i18n.translate import _, error_message
from viz.labels import tokens
from viz.session import access
from viz.session.state import Page, background_engine
from viz.widgets.cards import say

USUAL, MOST_IN_PUBLIC = 200, 200
"""Texts that are read unless asked otherwise, and at most on a public server."""

ENDINGS = ("txt", "tsv", "csv", "conllu", "parquet")


def draw(page: Page) -> None:
    """Draws what a survey can read, and the button that starts it, or opens a file of one."""
    kinds = {"bundled": _("Bundled texts"), "repeated": _("Repeated random tokens"), "pasted": _("My own texts")}
    kinds |= {} if access.is_public() else {"file": _("A file")}
    kind = st.segmented_control(
        _("Texts"), list(kinds), format_func=kinds.__getitem__, required=True, default="bundled", key="survey-kind"
    )
    name, data = _("My own texts"), b""
    if kind == "pasted":
        pasted = st.text_area(_("One text per line; a tab between source and target"), key="survey-pasted", height=160)
        data = pasted.encode("utf-8", "surrogatepass")
    elif kind == "file":
        sent = st.file_uploader(
            _("Texts (.txt, .tsv, .csv, .conllu), or a survey that was downloaded here (.parquet)"),
            type=ENDINGS,
            key="survey-file",
            max_upload_size=texts.MOST_BYTES // 2**20,
        )
        if sent is None:
            return
        name, data = sent.name, sent.getvalue()
    if name.lower().endswith(".parquet"):
        if st.button(_("Open the survey"), icon=":material/folder_open:", key="survey-open-file"):
            _attempt(lambda: _open(page, name, data))
        return
    most = MOST_IN_PUBLIC if access.is_public() else texts.MOST_TEXTS
    count = st.number_input(_("Maximum number of texts"), 1, most, USUAL, key="survey-most")
    if st.button(_("Survey"), icon=":material/play_arrow:", key="survey-start"):
        match kind:
            case "bundled":
                _attempt(lambda: _begin(page, texts.bundled(page.info.name), int(count)))
            case "repeated":
                _attempt(lambda: _begin(page, texts.repeated_for(int(count), page.info.spec), int(count)))
            case _:
                _attempt(lambda: _begin(page, texts.from_bytes(data, name), int(count)))


def _attempt(work: Callable[[], None]) -> None:
    """Does what a button asks for and draws the page again, or says why it cannot be done."""
    try:
        work()
    except HeadlightError as error:
        say(error_message(error))
    else:
        st.rerun()


def _open(page: Page, name: str, data: bytes) -> None:
    """Shows the survey in a file.

    Raises:
        BadSurvey: it holds none, or one of other heads.
    """
    survey = tables.from_bytes(data, name)
    if dict(survey.statistics.sites) != {str(site): attention.heads for site, attention in page.trace.attention.items()}:
        reason = phrase("it was made with “{model}”, whose heads are not those of the model shown", model=survey.about.model)
        raise BadSurvey(file=name, reason=reason)
    about = survey.about
    texts_again = None if survey.finished else texts.again(about.model, about.asked, about.content, page.info.spec)
    steps = None if texts_again is None else _steps(_question(page, about.edits), texts_again)
    making.keep(making.Making(survey, steps, page.info.name))


def go_on_with_file(page: Page, begun_survey: making.Making[Survey]) -> None:
    """Draws the way to go on with a survey that was opened: its texts are in a file that the visitor has."""
    survey = begun_survey.newest
    if begun_survey.steps is not None or survey.finished or access.is_public():
        return
    fields = {"done": survey.done, "of": survey.of_texts, "texts": survey.about.texts}
    st.info(
        tokens.markdown(
            _(
                "Texts that this survey has read: {done:,} of {of:,} ({texts}). To go on with it, choose the file of its texts.",
                **fields,
            )
        ),
        icon=":material/resume:",
    )
    sent = st.file_uploader(
        _("The texts of this survey (.txt, .tsv, .csv, .conllu)"),
        type=ENDINGS[:-1],
        key="survey-file-again",
        max_upload_size=texts.MOST_BYTES // 2**20,
    )
    if sent is not None and st.button(_("Go on"), icon=":material/play_arrow:", key="survey-go-on-file"):
        _attempt(lambda: _go_on(page, begun_survey, texts.from_bytes(sent.getvalue(), sent.name)))


def _go_on(page: Page, begun_survey: making.Making[Survey], sent: Texts) -> None:
    """Goes on with a survey whose texts were sent.

    Raises:
        BadTexts: they are others.
    """
    about = begun_survey.newest.about
    if (chosen := sent.first(about.asked)).content != about.content:
        raise BadTexts(file=sent.name, reason=phrase("its texts are not those that this survey began with"))
    engine = background_engine("survey")
    making.keep(making.start(engine.ask, _steps(_question(page, about.edits), chosen), begun_survey.newest, begun_survey.model))


def _question(page: Page, edits: Sequence[str]) -> MeasureTexts:
    return MeasureTexts(page.info.name, page.view.parsed_settings(), texts=(), edits=read_edits("; ".join(edits)))


def _steps(question: MeasureTexts, chosen: Texts) -> Callable[[making.Ask, Survey], Iterator[Survey]]:
    """What goes on with a survey over these texts."""
    return lambda ask, before: gone_on(ask, question, chosen, before)


def _begin(page: Page, chosen_texts: Texts, count: int) -> None:
    """Starts a survey of the model with the page's edits over the first texts."""
    chosen = chosen_texts.first(count)
    question = _question(page, tuple(map(str, page.view.active_edits())))
    engine = background_engine("survey")
    making.keep(making.start(engine.ask, _steps(question, chosen), begun(question, chosen), page.info.name))
