"""The selected head read again in many texts: its queries and keys in a plane, and examples of its cells."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from model.errors import HeadlightError
from model.features.survey.plane import Plane, Way, has_umap, plane
from model.features.survey.questions import Text
from model.features.survey.reading import HeadTexts, ReadHead, read_on
from model.features.survey.survey import Survey
from model.features.survey.trees import parts_of
from model.requests.edits import read_edits
from viz.features.survey import head_examples, making, query_key
from viz.i18n.translate import _
from viz.labels import tokens
from viz.session import access
from viz.session.state import Page, background_engine
from viz.widgets.cards import card, heading

KEY = "survey-head-read"

USUAL, MOST, MOST_IN_PUBLIC = 200, 2000, 200
"""Texts that are read unless asked otherwise, and at most."""


@dataclass(frozen=True, eq=False)
class Reading:
    """One head in many texts, and its plane when all are read.

    Attributes:
        texts: the head in the texts.
        plane: its queries and keys; None: not yet, or `no_plane` says why not.
        no_plane: why there is no plane.
    """

    texts: HeadTexts
    plane: Plane | None = None
    no_plane: HeadlightError | None = None

    @property
    def steps(self) -> tuple[int, int]:
        """Texts read so far, and of all."""
        return self.texts.steps

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.plane is not None or self.no_plane is not None

    @property
    def parts(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """For each text the parts of speech of its queries and of its keys; empty where none is known."""
        read_texts = self.texts
        asked = [read_texts.asked[index] for index in read_texts.places]
        pairs = zip(read_texts.texts, ((text.source, text.tree) for text in asked), strict=True)
        return [(parts_of(text_read.queries, *text), parts_of(text_read.keys, *text)) for text_read, text in pairs]


def read(ask: Callable[[Any], Any], question: ReadHead, texts: Sequence[Text], way: Way = "components") -> Iterator[Reading]:
    """The head in the texts after each batch, and at the end with its plane.

    Raises:
        HeadlightError: as `read_on`.
    """
    reading = Reading(HeadTexts(question, tuple(texts)))
    for further in read_on(ask, question, texts):
        reading = Reading(further)
        yield reading
    try:
        yield replace(reading, plane=plane(reading.texts.texts, way))
    except HeadlightError as error:
        yield replace(reading, no_plane=error)


def draw(page: Page, survey: Survey, names: Sequence[str], selected: int) -> None:
    """Draws the plane and the search of the selected head, or the button that reads it."""
    if not survey.quoted:
        return
    question = question_about(page, survey, selected)
    mine = _reading(question)
    with card("survey-plane"):
        st.html(heading(_("Queries and keys of this head"), names[selected]))
        if mine is not None and mine.runs:
            making.progress(mine, "survey-read")
        elif mine is not None:
            making.ended(mine)
        if mine is None or not mine.runs:
            _form(question, survey)
        ready = _ready(mine)
        if ready is not None:
            _about(ready)
            plane_of(page, ready)
    with card("survey-examples"):
        st.html(heading(_("Examples of this head"), _("Cells with certain words and weights, and how many chance would give")))
        if ready is None:
            st.caption(_("First read this head in many texts, with the button above."))
        else:
            head_examples.draw(page, ready.texts, ready.parts)


def picture_of(page: Page, survey: Survey, selected: int) -> Reading | None:
    """What was read of the selected head, with its plane, if this visitor had it read, and it is all there."""
    ready = _ready(_reading(question_about(page, survey, selected)))
    return ready if ready is not None and ready.plane is not None else None


def plane_of(page: Page, ready: Reading) -> None:
    """Draws the plane of what was read."""
    query_key.draw(page, ready.texts, ready.plane, ready.no_plane, ready.parts)


def question_about(page: Page, survey: Survey, selected: int) -> ReadHead:
    """What is asked about the selected head; the texts come batch by batch."""
    site, head = survey.statistics.heads[selected]
    edits = read_edits("; ".join(survey.about.edits))
    return ReadHead(page.info.name, page.view.parsed_settings(), texts=(), site=site, head=head, edits=edits)


def _reading(question: ReadHead) -> making.Making[Reading] | None:
    """What this visitor had read, or has being read, if it is this."""
    making_of_session: making.Making[Reading] | None = st.session_state.get(KEY)
    return making_of_session if making_of_session is not None and making_of_session.newest.texts.question == question else None


def _ready(mine: making.Making[Reading] | None) -> Reading | None:
    """What was read, if all of it is there."""
    return mine.newest if mine is not None and mine.newest.texts.texts and not mine.runs else None


def _form(question: ReadHead, survey: Survey) -> None:
    """Draws how many texts are read, and the button that starts it."""
    texts = in_order(survey)
    most = min(MOST_IN_PUBLIC if access.is_public() else MOST, len(texts))
    with st.container(horizontal=True, vertical_alignment="bottom", key="survey-read-form"):
        count = st.number_input(_("Maximum number of texts"), 1, most, min(USUAL, most), key="survey-read-most")
        way: Way = "components"
        if has_umap():
            ways: dict[Way, str] = {"components": _("principal components"), "umap": "UMAP"}
            way = st.selectbox(_("Plane"), list(ways), format_func=ways.__getitem__, key="survey-read-way")
        if st.button(_("Read this head"), icon=":material/play_arrow:", key="survey-read-start"):
            chosen = texts[: int(count)]
            first = Reading(HeadTexts(question, tuple(chosen)))
            engine = background_engine("head")
            making.keep(making.start(engine.ask, lambda ask, _first: read(ask, question, chosen, way), first), KEY)
            st.rerun()
    if not has_umap():
        st.caption(_("UMAP can be chosen as the plane, too, where the package umap-learn is installed."))


def in_order(survey: Survey) -> list[Text]:
    """The texts that a survey holds: first the sampled ones, which are a fair choice, then those with extreme numbers."""
    sampled = [int(number) for number in survey.statistics.sample if int(number) in survey.quoted]
    others = sorted(set(survey.quoted) - set(sampled))
    return [survey.quoted[number] for number in (*sampled, *others)]


def _about(ready: Reading) -> None:
    """Says what was read, and what was left out."""
    read_texts = ready.texts
    left = len(read_texts.asked) - read_texts.done
    fields = {"count": len(read_texts.texts), "skipped": len(read_texts.problems), "left": left}
    text = _("Texts read: {count:,}; texts that could not be run: {skipped:,}.", **fields)
    if read_texts.full and left:
        text = _(
            "Texts read: {count:,}; texts that could not be run: {skipped:,}; not read, because there is enough to draw: {left:,}.",
            **fields,
        )
    st.caption(tokens.markdown(text))
